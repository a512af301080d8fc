/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines that are not named without a card: see unlisted.h.
 */
#include "vgpu/cudnn/unlisted.h"

#include "vgpu/cudnn/api.h"

enum { N, C, H, W }; /* of tensors; of filters: outputs, inputs, rows, columns */
enum { HOPPER = 90 };
/* Numbers of engines by direction, as the H200 named them. */
static const int64_t product_engine[] = { 58, 63, 62 };
enum { WINOGRAD_ENGINE = 17 };

static bool
is_contiguous(const struct tn__dnn_tensor *tensor)
{
	int64_t elements = 1;
	for (int i = tensor->rank - 1; i >= 0; i--) {
		if (tensor->dims[i] > 1 && tensor->strides[i] != elements)
			return false;
		elements *= tensor->dims[i];
	}
	return true;
}

/* Of one group, with filters of side x side that move by one and keep the size of the picture. */
static bool
is_same_size(const struct tn__dnn_convolution *convolution, int64_t side)
{
	const struct tn__dnn_tensor *x = &convolution->x, *w = &convolution->w;
	for (int i = 0; i < 2; i++)
		if (w->dims[H + i] != side || convolution->padding[i] != side / 2 || convolution->stride[i] != 1 ||
		    convolution->dilation[i] != 1)
			return false;
	return x->dims[C] == w->dims[C];
}

/* A convolution of 1 x 1 as a matrix product for each picture. The filter's gradient is added up in fp32 from those of all
 * pictures. Pictures of 7 x 7 and gradients of one channel were mostly left to other engines. */
static bool
find_product(const struct tn__dnn_convolution *convolution, struct tn__dnn_unlisted *out)
{
	const struct tn__dnn_tensor *x = &convolution->x, *w = &convolution->w;
	bool gradient = convolution->direction == DNN_FILTER_GRADIENT;
	if (!is_same_size(convolution, 1) || x->dims[H] * x->dims[W] < 64 || w->dims[N] == 1)
		return false;
	*out = (struct tn__dnn_unlisted){ .engine = product_engine[convolution->direction], .tensor_cores = true };
	if (gradient)
		out->workspace = 4 * (uint64_t)((x->dims[N] < 8 ? x->dims[N] : 8) * w->dims[N] * w->dims[C]);
	return true;
}

/* The gradient of filters of 3 x 3 by Winograd's transforms F(4 x 4, 3 x 3): 36 coefficients in fp32 of the filters, and of
 * both pictures' tiles of 4 x 4. It is taken where tensor cores are not allowed. */
static bool
find_winograd(const struct tn__dnn_convolution *convolution, struct tn__dnn_unlisted *out)
{
	const struct tn__dnn_tensor *x = &convolution->x, *w = &convolution->w;
	int64_t tiles = x->dims[N] * ((x->dims[H] + 3) / 4) * ((x->dims[W] + 3) / 4);
	int64_t outputs = w->dims[N], inputs = w->dims[C];
	if (convolution->direction != DNN_FILTER_GRADIENT || x->type != DNN_DATA_FLOAT || !is_same_size(convolution, 3) ||
	    inputs < 32 || outputs < 32)
		return false;
	*out = (struct tn__dnn_unlisted){
		.engine = WINOGRAD_ENGINE,
		.workspace = 36 * 4 * (uint64_t)(outputs * inputs + (outputs + inputs) * tiles),
	};
	return true;
}

bool
tn__dnn_unlisted(const struct tn__dnn_graph *graph, bool plain, int capability, struct tn__dnn_unlisted *out)
{
	const struct tn__dnn_convolution *convolution = &graph->convolution;
	if (capability != HOPPER || !plain || !graph->has_convolution || convolution->spatial_dims != 2)
		return false;
	if (!is_contiguous(&convolution->x) || !is_contiguous(&convolution->w) || !is_contiguous(&convolution->y))
		return false;
	return find_product(convolution, out) || find_winograd(convolution, out);
}
