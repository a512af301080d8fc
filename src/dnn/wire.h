/* SPDX-License-Identifier: Apache-2.0
 *
 * How the virtual cuDNN asks the helper that has the real one, and how both read the cache: questions and answers as
 * bytes of this machine, little by little behind each other without gaps.
 *
 *     question  = head, path of libcudnn, properties of the card (JSON), graph
 *     graph     = node of the operation graph
 *     node      = type, number of attributes, attributes by rising name
 *     attribute = name, type, count, then `count` nodes (descriptors) or elements
 *     answer    = version of cuDNN, status, number of rows, rows
 *     row       = heuristics: engine, workspace and shared memory of its configuration (-1: not said), then counts and
 *                 elements of knobs, numerical notes, behaviour notes; a plan: its workspace
 *
 * A plan is asked for by its place in the heuristics and not by engine and knobs: configurations that agree in these
 * were seen to differ in their plans' workspaces.
 * Attributes that name a handle, and those that cuDNN computes, are not sent. Descriptors that are shared are sent
 * each time: cuDNN knows tensors by their unique id.
 */
#ifndef TN_DNN_WIRE_H
#define TN_DNN_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TN_DNN_WIRE_VERSION = 3, TN_DNN_MOST_BYTES = 1 << 20, TN_DNN_MOST_DEPTH = 16 };

enum tn_dnn_kind { TN_DNN_HEURISTICS = 1, TN_DNN_PLAN = 2 };

struct tn_dnn_head {
	uint32_t version;
	uint32_t kind;
	int32_t mode;     /* cudnnBackendHeurMode_t */
	uint32_t rank;    /* a plan: its configuration's place in the answer of that mode */
	uint32_t library; /* bytes of the path, without a zero */
	uint32_t card;    /* of the JSON */
	uint32_t graph;   /* bytes */
	uint32_t unused;
};

/* Bytes of one element of an attribute type (cudnnBackendAttributeType_t); 0 for an unknown one. */
size_t tn__dnn_element_bytes(int type);

/* Bytes that grow; `failed` once memory was short, and then nothing more is added. Release with tn__dnn_bytes_free. */
struct tn_dnn_bytes {
	unsigned char *at;
	size_t length, room;
	bool failed;
};

void tn__dnn_add(struct tn_dnn_bytes *bytes, const void *from, size_t length);
void tn__dnn_add_u32(struct tn_dnn_bytes *bytes, uint32_t number);
void tn__dnn_add_i64(struct tn_dnn_bytes *bytes, int64_t number);
void tn__dnn_bytes_free(struct tn_dnn_bytes *bytes);

/* Reading: every function gives zero, and `failed` is set, when there is not enough left. */
struct tn_dnn_cursor {
	const unsigned char *at, *end;
	bool failed;
};

const void *tn__dnn_take(struct tn_dnn_cursor *cursor, size_t length); /* NULL: not enough left */
uint32_t tn__dnn_take_u32(struct tn_dnn_cursor *cursor);
int64_t tn__dnn_take_i64(struct tn_dnn_cursor *cursor);

/* A question whole, seen in parts. False when it is none. */
struct tn_dnn_question {
	struct tn_dnn_head head;
	const char *library, *card; /* not ended by a zero */
	struct tn_dnn_cursor graph;
};
bool tn__dnn_question_read(const void *bytes, size_t length, struct tn_dnn_question *out);

/* What answers are found by: two hashes of everything in the question but the library's path. */
struct tn_dnn_key {
	uint64_t one, other;
};
struct tn_dnn_key tn__dnn_key_of(const struct tn_dnn_question *question);

#endif
