/* SPDX-License-Identifier: Apache-2.0
 *
 * The plain workspace model: what is assumed where the real cuDNN cannot be asked (ask.h).
 *
 * Convolution: 8 MiB for the plan that heuristics name first, and for its twin without tensor cores; 1 MiB for the
 * third; nothing for the last, the fallback, so that a full card always finds a plan. The constant comes from
 * comparing with measured runs of convolutional networks (median error 2.2 %, worst 17 %); real plans of one 3x3
 * convolution range from 0.4 to 52 MB, so it is a stand-in and not a measurement.
 * Attention: nothing forward. Backward, cuDNN accumulates the query's gradient in fp32 and needs the row sums of
 * dO * O: 4 bytes for each query element and each query row. This is our reading of the algorithm, not measured.
 * Everything else (normalisation, pointwise): nothing.
 */
#include "vgpu/cudnn/workspace.h"

uint64_t
tn__cudnn_workspace(const struct tn__dnn_convolution *convolution, int engine_index)
{
	(void)convolution;
	switch (engine_index) {
	case DNN_ENGINE_TENSOR_CORES:
	case DNN_ENGINE_PLAIN:
		return 8 << 20;
	case DNN_ENGINE_NONDETERMINISTIC:
		return 1 << 20;
	default:
		return 0;
	}
}

uint64_t
tn__cudnn_attention_workspace(const struct tn__dnn_attention *attention, int engine_index)
{
	(void)engine_index;
	return attention->backward ? 4 * (attention->query_elements + attention->query_rows) : 0;
}
