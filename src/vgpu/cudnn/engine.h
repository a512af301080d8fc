/* SPDX-License-Identifier: Apache-2.0
 *
 * What finalizing does: engines, heuristics and plans for an operation graph.
 */
#ifndef TN_VGPU_CUDNN_ENGINE_H
#define TN_VGPU_CUDNN_ENGINE_H

#include "vgpu/cudnn/graph.h"

/* What an execution plan needs when it runs. */
struct tn__dnn_plan {
	struct tn__dnn_graph graph;
	int engine; /* the model's, whose arithmetic and time it has */
	int rank;   /* of the real one's: what heuristics name later takes longer */
	uint64_t workspace;
};

/* Checks a descriptor for what its type needs and computes the attributes that cuDNN answers. Does not mark it
 * finalized. */
int tn__dnn_finalize(struct tn__dnn_descriptor *descriptor);

#endif
