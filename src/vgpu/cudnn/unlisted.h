/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines that cuDNN's heuristics name to a program on a card, and not when they are asked without one.
 *
 * Asked with a handle on an H200 (cuDNN 9.19; bench/results/cudnn_engines.csv), they named all that they name without, in the
 * same order, and engines of an older kind besides. Two of these come first often enough to matter, and what they take
 * follows from the sizes. They are known for compute capability 9.0 only: no other card was asked.
 */
#ifndef TN_VGPU_CUDNN_UNLISTED_H
#define TN_VGPU_CUDNN_UNLISTED_H

#include "vgpu/cudnn/graph.h"

struct tn__dnn_unlisted {
	int64_t engine; /* its global index */
	uint64_t workspace;
	/* With tensor cores it comes before everything else; without them before the first engine that has none, either. */
	bool tensor_cores;
};

/* The engine that a card of this compute capability (10 x major + minor) would be named besides, if there is one.
 * `plain`: the graph is the convolution alone. Computes only. */
bool tn__dnn_unlisted(const struct tn__dnn_graph *graph, bool plain, int capability, struct tn__dnn_unlisted *out);

#endif
