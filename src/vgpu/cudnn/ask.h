/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking the real cuDNN (dnn/wire.h): from the memory of this process, from the cache on disk, from the run's helper.
 *
 * Thread-safe. When nobody can answer (no libcudnn beside PyTorch, one before 9.8, a helper that died) every question
 * has no answer from then on, the ledger says why, and the model of workspace.h is used.
 */
#ifndef TN_VGPU_CUDNN_ASK_H
#define TN_VGPU_CUDNN_ASK_H

#include "dnn/wire.h"
#include "vgpu/cudnn/descriptor.h"

/* A finalized operation graph, and what is wanted to know of it. */
struct tn__dnn_wish {
	enum tn_dnn_kind kind;
	const struct tn__dnn_descriptor *graph;
	int mode; /* cudnnBackendHeurMode_t */
	int rank; /* a plan: its configuration's place in that mode's answer */
	int device;
};

/* Sets *status to cuDNN's and *rows before the answer's rows, of which there are *count. The bytes stay as long as the
 * process. False when there is no answer. */
bool tn__dnn_ask(const struct tn__dnn_wish *wish, int *status, struct tn_dnn_cursor *rows, uint32_t *count);

/* Writes the path of the real cuDNN that belongs to this program's PyTorch. NULL, or why there is none to be asked (a
 * literal; `out` is then empty). */
const char *tn__dnn_real_library(char *out, size_t size);

#endif
