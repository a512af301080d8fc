/* SPDX-License-Identifier: Apache-2.0
 *
 * How much workspace a plan of cuDNN takes: the one place that knows.
 */
#ifndef TN_VGPU_CUDNN_WORKSPACE_H
#define TN_VGPU_CUDNN_WORKSPACE_H

#include "vgpu/cudnn/dnn.h"

enum tn__dnn_direction { DNN_FORWARD_PASS, DNN_DATA_GRADIENT, DNN_FILTER_GRADIENT };

/* One convolution, whichever API it came through. Gradients: x, w and y are where input, filter and output are. */
struct tn__dnn_convolution {
	enum tn__dnn_direction direction;
	struct tn__dnn_tensor x, w, y;
	int spatial_dims;
	int64_t padding[DNN_DIM_MAX], stride[DNN_DIM_MAX], dilation[DNN_DIM_MAX];
	int compute_type;
};

/* The engines that we say there are, in the order in which heuristics name them; the last is the fallback. */
enum tn__dnn_engine {
	DNN_ENGINE_TENSOR_CORES,     /* note: tensor cores */
	DNN_ENGINE_PLAIN,            /* no note: passes every filter */
	DNN_ENGINE_NONDETERMINISTIC, /* note: not deterministic */
	DNN_ENGINE_FALLBACK,         /* no note, least memory */
	DNN_ENGINES
};

/* Bytes of workspace of a convolution. */
uint64_t tn__cudnn_workspace(const struct tn__dnn_convolution *convolution, int engine_index);

/* What a graph without convolution is made of, as far as workspace goes. */
struct tn__dnn_attention {
	bool backward;
	uint64_t query_elements; /* batch x heads x length x head size */
	uint64_t query_rows;     /* batch x heads x length */
};
uint64_t tn__cudnn_attention_workspace(const struct tn__dnn_attention *attention, int engine_index);

#endif
