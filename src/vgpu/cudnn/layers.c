/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of the legacy API without workspace: softmax, activation, pooling, local response normalisation, spatial
 * transformer. Their descriptors are kept and read back; launching one moves its tensors' bytes.
 */
#include "vgpu/cudnn/api.h"

#include <stdlib.h>
#include <string.h>

struct tn__dnn_activation {
	int mode, nan;
	double coefficient, swish_beta;
};

struct tn__dnn_pooling {
	int mode, nan, rank;
	int window[DNN_DIM_MAX], padding[DNN_DIM_MAX], stride[DNN_DIM_MAX];
};

struct tn__dnn_lrn {
	unsigned n;
	double alpha, beta, k;
};

struct tn__dnn_transformer {
	int sampler;
	struct tn__dnn_tensor output;
};

int
cudnnSoftmaxForward(dnn_handle handle, int algorithm, int mode, const void *alpha, dnn_tensor x_desc, const void *x,
                    const void *beta, dnn_tensor y_desc, void *y)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(x_desc) + tn__dnn_bytes(y_desc));
}

int
cudnnSoftmaxBackward(dnn_handle handle, int algorithm, int mode, const void *alpha, dnn_tensor y_desc, const void *y,
                     dnn_tensor dy_desc, const void *dy, const void *beta, dnn_tensor dx_desc, void *dx)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(y_desc) + tn__dnn_bytes(dy_desc) + tn__dnn_bytes(dx_desc));
}

/* ---- activation ---- */

int
cudnnCreateActivationDescriptor(struct tn__dnn_activation **activation)
{
	DNN_CREATE(activation, struct tn__dnn_activation);
	(*activation)->swish_beta = 1.0; /* documented default */
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroyActivationDescriptor(struct tn__dnn_activation *activation)
{
	free(activation);
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetActivationDescriptor(struct tn__dnn_activation *activation, int mode, int nan, double coefficient)
{
	DNN_REQUIRE_POINTER(activation);
	activation->mode = mode;
	activation->nan = nan;
	activation->coefficient = coefficient;
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetActivationDescriptor(const struct tn__dnn_activation *activation, int *mode, int *nan, double *coefficient)
{
	DNN_REQUIRE_POINTER(activation);
	if (mode != NULL)
		*mode = activation->mode;
	if (nan != NULL)
		*nan = activation->nan;
	if (coefficient != NULL)
		*coefficient = activation->coefficient;
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetActivationDescriptorSwishBeta(struct tn__dnn_activation *activation, double beta)
{
	DNN_REQUIRE_POINTER(activation);
	activation->swish_beta = beta;
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetActivationDescriptorSwishBeta(const struct tn__dnn_activation *activation, double *beta)
{
	DNN_REQUIRE_POINTER(activation);
	DNN_REQUIRE_POINTER(beta);
	*beta = activation->swish_beta;
	return DNN_STATUS_SUCCESS;
}

int
cudnnActivationForward(dnn_handle handle, const struct tn__dnn_activation *activation, const void *alpha,
                       dnn_tensor x_desc, const void *x, const void *beta, dnn_tensor y_desc, void *y)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(x_desc) + tn__dnn_bytes(y_desc));
}

int
cudnnActivationBackward(dnn_handle handle, const struct tn__dnn_activation *activation, const void *alpha,
                        dnn_tensor y_desc, const void *y, dnn_tensor dy_desc, const void *dy, dnn_tensor x_desc,
                        const void *x, const void *beta, dnn_tensor dx_desc, void *dx)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(y_desc) + tn__dnn_bytes(dy_desc) + 2 * tn__dnn_bytes(dx_desc));
}

/* ---- pooling ---- */

int
cudnnCreatePoolingDescriptor(struct tn__dnn_pooling **pooling)
{
	DNN_CREATE(pooling, struct tn__dnn_pooling);
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroyPoolingDescriptor(struct tn__dnn_pooling *pooling)
{
	free(pooling);
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetPooling2dDescriptor(struct tn__dnn_pooling *pooling, int mode, int nan, int window_h, int window_w, int pad_h,
                            int pad_w, int stride_h, int stride_w)
{
	return cudnnSetPoolingNdDescriptor(pooling, mode, nan, 2, (const int[]){ window_h, window_w },
	                                   (const int[]){ pad_h, pad_w }, (const int[]){ stride_h, stride_w });
}

int
cudnnGetPooling2dDescriptor(const struct tn__dnn_pooling *pooling, int *mode, int *nan, int *window_h, int *window_w,
                            int *pad_h, int *pad_w, int *stride_h, int *stride_w)
{
	DNN_REQUIRE_POINTER(pooling);
	DNN_REQUIRE(pooling->rank == 2, DNN_STATUS_BAD_PARAM, "the descriptor has %d dimensions", pooling->rank);
	int *const out[8] = { mode, nan, window_h, window_w, pad_h, pad_w, stride_h, stride_w };
	const int values[8] = { pooling->mode,       pooling->nan,        pooling->window[0], pooling->window[1],
		                    pooling->padding[0], pooling->padding[1], pooling->stride[0], pooling->stride[1] };
	for (int i = 0; i < 8; i++) {
		if (out[i] != NULL)
			*out[i] = values[i];
	}
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetPoolingNdDescriptor(struct tn__dnn_pooling *pooling, int mode, int nan, int rank, const int *window,
                            const int *padding, const int *stride)
{
	DNN_REQUIRE(pooling != NULL && window != NULL && padding != NULL && stride != NULL, DNN_STATUS_BAD_PARAM,
	            "a pointer is null");
	DNN_REQUIRE(rank >= 1 && rank <= DNN_DIM_MAX - 2, DNN_STATUS_NOT_SUPPORTED, "%d dimensions", rank);
	for (int i = 0; i < rank; i++) {
		DNN_REQUIRE(window[i] > 0 && padding[i] >= 0 && stride[i] > 0, DNN_STATUS_BAD_PARAM,
		            "window %d, padding %d, stride %d", window[i], padding[i], stride[i]);
		pooling->window[i] = window[i];
		pooling->padding[i] = padding[i];
		pooling->stride[i] = stride[i];
	}
	pooling->mode = mode;
	pooling->nan = nan;
	pooling->rank = rank;
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetPoolingNdDescriptor(const struct tn__dnn_pooling *pooling, int requested, int *mode, int *nan, int *rank,
                            int *window, int *padding, int *stride)
{
	DNN_REQUIRE_POINTER(pooling);
	size_t bytes = sizeof(int) * (size_t)(requested < 0 ? 0 : requested < pooling->rank ? requested : pooling->rank);
	if (mode != NULL)
		*mode = pooling->mode;
	if (nan != NULL)
		*nan = pooling->nan;
	if (rank != NULL)
		*rank = pooling->rank;
	if (window != NULL)
		memcpy(window, pooling->window, bytes);
	if (padding != NULL)
		memcpy(padding, pooling->padding, bytes);
	if (stride != NULL)
		memcpy(stride, pooling->stride, bytes);
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetPooling2dForwardOutputDim(const struct tn__dnn_pooling *pooling, dnn_tensor x, int *n, int *c, int *height,
                                  int *width)
{
	int dims[4];
	DNN_FORWARD(cudnnGetPoolingNdForwardOutputDim(pooling, x, 4, dims));
	DNN_REQUIRE(n != NULL && c != NULL && height != NULL && width != NULL, DNN_STATUS_BAD_PARAM, "an answer is null");
	*n = dims[0];
	*c = dims[1];
	*height = dims[2];
	*width = dims[3];
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetPoolingNdForwardOutputDim(const struct tn__dnn_pooling *pooling, dnn_tensor x, int rank, int *dims)
{
	DNN_REQUIRE(pooling != NULL && x != NULL && dims != NULL, DNN_STATUS_BAD_PARAM, "a pointer is null");
	DNN_REQUIRE(rank == pooling->rank + 2 && x->rank == rank, DNN_STATUS_BAD_PARAM, "%d dimensions for a pooling of %d",
	            rank, pooling->rank);
	for (int i = 0; i < pooling->rank; i++) {
		int64_t room = x->dims[i + 2] + 2 * (int64_t)pooling->padding[i] - pooling->window[i];
		DNN_REQUIRE(room >= 0, DNN_STATUS_BAD_PARAM, "the window is larger than the input");
		dims[i + 2] = (int)(room / pooling->stride[i] + 1);
	}
	dims[0] = (int)x->dims[0];
	dims[1] = (int)x->dims[1];
	return DNN_STATUS_SUCCESS;
}

int
cudnnPoolingForward(dnn_handle handle, const struct tn__dnn_pooling *pooling, const void *alpha, dnn_tensor x_desc,
                    const void *x, const void *beta, dnn_tensor y_desc, void *y)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(x_desc) + tn__dnn_bytes(y_desc));
}

int
cudnnPoolingBackward(dnn_handle handle, const struct tn__dnn_pooling *pooling, const void *alpha, dnn_tensor y_desc,
                     const void *y, dnn_tensor dy_desc, const void *dy, dnn_tensor x_desc, const void *x,
                     const void *beta, dnn_tensor dx_desc, void *dx)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(x_desc) + tn__dnn_bytes(dx_desc) + 2 * tn__dnn_bytes(dy_desc));
}

/* ---- local response normalisation ---- */

int
cudnnCreateLRNDescriptor(struct tn__dnn_lrn **lrn)
{
	DNN_CREATE(lrn, struct tn__dnn_lrn);
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroyLRNDescriptor(struct tn__dnn_lrn *lrn)
{
	free(lrn);
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetLRNDescriptor(struct tn__dnn_lrn *lrn, unsigned n, double alpha, double beta, double k)
{
	DNN_REQUIRE_POINTER(lrn);
	DNN_REQUIRE(n >= 1 && n <= 16, DNN_STATUS_BAD_PARAM, "a window of %u", n);
	*lrn = (struct tn__dnn_lrn){ n, alpha, beta, k };
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetLRNDescriptor(const struct tn__dnn_lrn *lrn, unsigned *n, double *alpha, double *beta, double *k)
{
	DNN_REQUIRE_POINTER(lrn);
	if (n != NULL)
		*n = lrn->n;
	if (alpha != NULL)
		*alpha = lrn->alpha;
	if (beta != NULL)
		*beta = lrn->beta;
	if (k != NULL)
		*k = lrn->k;
	return DNN_STATUS_SUCCESS;
}

int
cudnnLRNCrossChannelForward(dnn_handle handle, const struct tn__dnn_lrn *lrn, int mode, const void *alpha,
                            dnn_tensor x_desc, const void *x, const void *beta, dnn_tensor y_desc, void *y)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(x_desc) + tn__dnn_bytes(y_desc));
}

int
cudnnLRNCrossChannelBackward(dnn_handle handle, const struct tn__dnn_lrn *lrn, int mode, const void *alpha,
                             dnn_tensor y_desc, const void *y, dnn_tensor dy_desc, const void *dy, dnn_tensor x_desc,
                             const void *x, const void *beta, dnn_tensor dx_desc, void *dx)
{
	return tn__dnn_put_bytes(handle, 2 * tn__dnn_bytes(y_desc) + tn__dnn_bytes(x_desc) + tn__dnn_bytes(dx_desc));
}

/* ---- spatial transformer ---- */

int
cudnnCreateSpatialTransformerDescriptor(struct tn__dnn_transformer **transformer)
{
	DNN_CREATE(transformer, struct tn__dnn_transformer);
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroySpatialTransformerDescriptor(struct tn__dnn_transformer *transformer)
{
	free(transformer);
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetSpatialTransformerNdDescriptor(struct tn__dnn_transformer *transformer, int sampler, int type, int rank,
                                       const int *dims)
{
	DNN_REQUIRE_POINTER(transformer);
	transformer->sampler = sampler;
	return tn__dnn_set_packed(&transformer->output, DNN_TENSOR_NCHW, type, rank, dims);
}

/* A grid has one coordinate for each spatial dimension of each output position; it is small beside the tensors
 * sampled. */
static int
put_grid(dnn_handle handle, const struct tn__dnn_transformer *transformer)
{
	DNN_REQUIRE_POINTER(transformer);
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(&transformer->output));
}

int
cudnnSpatialTfGridGeneratorForward(dnn_handle handle, const struct tn__dnn_transformer *transformer, const void *theta,
                                   void *grid)
{
	return put_grid(handle, transformer);
}

int
cudnnSpatialTfGridGeneratorBackward(dnn_handle handle, const struct tn__dnn_transformer *transformer, const void *dgrid,
                                    void *dtheta)
{
	return put_grid(handle, transformer);
}

int
cudnnSpatialTfSamplerForward(dnn_handle handle, const struct tn__dnn_transformer *transformer, const void *alpha,
                             dnn_tensor x_desc, const void *x, const void *grid, const void *beta, dnn_tensor y_desc,
                             void *y)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(x_desc) + tn__dnn_bytes(y_desc));
}

int
cudnnSpatialTfSamplerBackward(dnn_handle handle, const struct tn__dnn_transformer *transformer, const void *alpha,
                              dnn_tensor x_desc, const void *x, const void *beta, dnn_tensor dx_desc, void *dx,
                              const void *alpha_grid, dnn_tensor dy_desc, const void *dy, const void *grid,
                              const void *beta_grid, void *dgrid)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(x_desc) + tn__dnn_bytes(dx_desc) + 2 * tn__dnn_bytes(dy_desc));
}
