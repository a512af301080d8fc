/* SPDX-License-Identifier: Apache-2.0
 *
 * The real cuDNN, opened without a device: the functions of its backend API, and descriptors of it.
 *
 * Since 9.8 heuristics can be asked and plans finalised for a card that is not there, by a descriptor of its properties
 * (NVIDIA, "Deviceless Ahead-of-time Compilation"). Not thread-safe: the helper is one thread.
 */
#ifndef TN_DNN_REAL_H
#define TN_DNN_REAL_H

#include "base/error.h"
#include "dnn/wire.h"

typedef void *tn_dnn_descriptor;

struct tn_dnn_real {
	void *library;
	size_t (*version)(void);
	int (*create)(int type, tn_dnn_descriptor *out);
	int (*destroy)(tn_dnn_descriptor);
	int (*finalize)(tn_dnn_descriptor);
	int (*set)(tn_dnn_descriptor, int name, int type, int64_t count, const void *elements);
	int (*get)(tn_dnn_descriptor, int name, int type, int64_t requested, int64_t *count, void *elements);
};

/* Half of cuDNN's engines are compiled when a plan is made, and are there only with a compiler and a driver to load what
 * it made: loads the compiler beside the library, and `driver` (the virtual GPU's; NULL: none). False when one is
 * missing: what cuDNN says then is not to be kept. */
bool tn__dnn_real_prepare(const char *path, const char *driver);

/* Opens the library at a path. TN_IO when it cannot be loaded or lacks a function, TN_UNSUPPORTED when it is older than
 * 9.8. It stays open for the life of the process. */
tn_status tn__dnn_real_open(const char *path, struct tn_dnn_real *out);

/* Descriptors that were made for a question, released together. */
struct tn_dnn_made {
	const struct tn_dnn_real *real;
	tn_dnn_descriptor *all;
	size_t count, room;
};

/* cuDNN's statuses from here on; 0 is success. */
int tn__dnn_make(struct tn_dnn_made *made, int type, tn_dnn_descriptor *out);
int tn__dnn_make_card(struct tn_dnn_made *made, const char *json, size_t length, tn_dnn_descriptor *out);
/* Makes and finalises the node that the cursor stands before. */
int tn__dnn_make_node(struct tn_dnn_made *made, struct tn_dnn_cursor *cursor, tn_dnn_descriptor *out);
void tn__dnn_unmake(struct tn_dnn_made *made);

/* Sets an attribute of one descriptor. */
int tn__dnn_set_child(struct tn_dnn_made *made, tn_dnn_descriptor descriptor, int name, tn_dnn_descriptor child);

/* Writes the answer to a question behind `out`: every question that can be read gets one. */
void tn__dnn_answer(const struct tn_dnn_real *real, const struct tn_dnn_question *question, struct tn_dnn_bytes *out);

#endif
