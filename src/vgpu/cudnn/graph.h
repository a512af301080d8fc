/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operation graph of the backend API comes to: its convolution or attention, its arithmetic and its traffic.
 */
#ifndef TN_VGPU_CUDNN_GRAPH_H
#define TN_VGPU_CUDNN_GRAPH_H

#include "vgpu/cudnn/descriptor.h"
#include "vgpu/cudnn/workspace.h"

struct tn__dnn_graph {
	bool has_convolution, has_attention;
	struct tn__dnn_convolution convolution; /* the first one, if there is one */
	struct tn__dnn_attention attention;
	double flops;
	int flops_type; /* cudnnDataType_t of the operands */
	uint64_t bytes; /* of all tensors that are not virtual, each once */
};

/* Reads a finalized operation graph. DNN_STATUS_BAD_PARAM when an operation lacks a tensor that it needs. */
int tn__dnn_graph_read(const struct tn__dnn_descriptor *graph, struct tn__dnn_graph *out);

/* Reads a backend tensor descriptor. */
int tn__dnn_graph_tensor(const struct tn__dnn_descriptor *descriptor, struct tn__dnn_tensor *out);

/* Multiply-adds of a convolution, as 2 operations each: 2 * N * K * (C / groups) * output positions * filter
 * positions. */
double tn__dnn_convolution_flops(const struct tn__dnn_convolution *convolution);

/* Workspace and time of a graph with one of our engines. */
uint64_t tn__dnn_graph_workspace(const struct tn__dnn_graph *graph, int engine);
uint64_t tn__dnn_graph_time(const struct tn__dnn_graph *graph, int engine);

/* The time of `flops` and `bytes` with an engine: the longer of both, and more for the slower engines, so that a
 * search by time finds the engine that heuristics name first. */
uint64_t tn__dnn_time(double flops, int type, uint64_t bytes, int engine);
/* The same, as time estimates count it. */
struct tn_effort tn__dnn_effort(double flops, int type, uint64_t bytes, int engine);

#endif
