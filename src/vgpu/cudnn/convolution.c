/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution through the legacy API: descriptors, algorithms, workspace, launches.
 *
 * An algorithm number stands for one of our engines (table below); all other numbers are answered NOT_SUPPORTED,
 * which the reference allows for any algorithm and shape. Searches (Find) put the work that they time on the stream
 * like the real ones, and answer the engines' modelled times. Workspace comes from workspace.c alone, so that both
 * APIs agree.
 */
#include "vgpu/cudnn/api.h"
#include "vgpu/cudnn/graph.h"

#include <stdlib.h>
#include <string.h>

struct tn__dnn_conv_descriptor {
	int rank; /* spatial dimensions */
	int padding[DNN_DIM_MAX], stride[DNN_DIM_MAX], dilation[DNN_DIM_MAX];
	int mode, compute_type, math, groups, reorder;
};

struct choice {
	int algorithm, engine, determinism;
};

enum { CHOICES = 3 };

/* By direction, in the order in which searches answer. A search keeps the deterministic, large one first. */
static const struct choice choices[3][CHOICES] = {
	[DNN_FORWARD_PASS] = { { DNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, DNN_ENGINE_TENSOR_CORES,
	                         DNN_DETERMINISTIC },
	                       { DNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, DNN_ENGINE_FALLBACK, DNN_DETERMINISTIC },
	                       { -1, -1, -1 } },
	[DNN_DATA_GRADIENT] = { { DNN_CONVOLUTION_BWD_DATA_ALGO_1, DNN_ENGINE_TENSOR_CORES, DNN_DETERMINISTIC },
	                        { DNN_CONVOLUTION_BWD_DATA_ALGO_0, DNN_ENGINE_FALLBACK, DNN_NON_DETERMINISTIC },
	                        { -1, -1, -1 } },
	[DNN_FILTER_GRADIENT] = { { DNN_CONVOLUTION_BWD_FILTER_ALGO_1, DNN_ENGINE_TENSOR_CORES, DNN_DETERMINISTIC },
	                          { DNN_CONVOLUTION_BWD_FILTER_ALGO_3, DNN_ENGINE_NONDETERMINISTIC, DNN_NON_DETERMINISTIC },
	                          { DNN_CONVOLUTION_BWD_FILTER_ALGO_0, DNN_ENGINE_FALLBACK, DNN_NON_DETERMINISTIC } },
};

int
cudnnCreateConvolutionDescriptor(struct tn__dnn_conv_descriptor **descriptor)
{
	DNN_CREATE(descriptor, struct tn__dnn_conv_descriptor);
	(*descriptor)->groups = 1;
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroyConvolutionDescriptor(struct tn__dnn_conv_descriptor *descriptor)
{
	free(descriptor);
	return DNN_STATUS_SUCCESS;
}

/* Single numbers of a descriptor, set and read back. */
#define DNN_FIELD(Name, field)                                                                  \
	int cudnnSetConvolution##Name(struct tn__dnn_conv_descriptor *descriptor, int value)        \
	{                                                                                           \
		DNN_REQUIRE_POINTER(descriptor);                                                        \
		descriptor->field = value;                                                              \
		return DNN_STATUS_SUCCESS;                                                              \
	}                                                                                           \
	int cudnnGetConvolution##Name(const struct tn__dnn_conv_descriptor *descriptor, int *value) \
	{                                                                                           \
		DNN_REQUIRE_POINTER(descriptor);                                                        \
		DNN_REQUIRE_POINTER(value);                                                             \
		*value = descriptor->field;                                                             \
		return DNN_STATUS_SUCCESS;                                                              \
	}
DNN_FIELD(MathType, math)
DNN_FIELD(GroupCount, groups)
DNN_FIELD(ReorderType, reorder)
#undef DNN_FIELD

int
cudnnSetConvolution2dDescriptor(struct tn__dnn_conv_descriptor *descriptor, int pad_h, int pad_w, int stride_h,
                                int stride_w, int dilation_h, int dilation_w, int mode, int compute_type)
{
	return cudnnSetConvolutionNdDescriptor(descriptor, 2, (const int[]){ pad_h, pad_w },
	                                       (const int[]){ stride_h, stride_w }, (const int[]){ dilation_h, dilation_w },
	                                       mode, compute_type);
}

int
cudnnGetConvolution2dDescriptor(const struct tn__dnn_conv_descriptor *descriptor, int *pad_h, int *pad_w, int *stride_h,
                                int *stride_w, int *dilation_h, int *dilation_w, int *mode, int *compute_type)
{
	DNN_REQUIRE_POINTER(descriptor);
	DNN_REQUIRE(descriptor->rank == 2, DNN_STATUS_BAD_PARAM, "the descriptor has %d dimensions", descriptor->rank);
	int *const out[8] = { pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, mode, compute_type };
	const int values[8] = { descriptor->padding[0], descriptor->padding[1],  descriptor->stride[0],
		                    descriptor->stride[1],  descriptor->dilation[0], descriptor->dilation[1],
		                    descriptor->mode,       descriptor->compute_type };
	for (int i = 0; i < 8; i++) {
		if (out[i] != NULL)
			*out[i] = values[i];
	}
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetConvolutionNdDescriptor(struct tn__dnn_conv_descriptor *descriptor, int rank, const int *padding,
                                const int *stride, const int *dilation, int mode, int compute_type)
{
	DNN_REQUIRE_POINTER(descriptor);
	DNN_REQUIRE(padding != NULL && stride != NULL && dilation != NULL, DNN_STATUS_BAD_PARAM, "an array is null");
	DNN_REQUIRE(rank >= 1 && rank <= DNN_DIM_MAX - 2, DNN_STATUS_NOT_SUPPORTED, "%d spatial dimensions", rank);
	for (int i = 0; i < rank; i++) {
		DNN_REQUIRE(padding[i] >= 0 && stride[i] > 0 && dilation[i] > 0, DNN_STATUS_BAD_PARAM,
		            "padding %d, stride %d, dilation %d", padding[i], stride[i], dilation[i]);
		descriptor->padding[i] = padding[i];
		descriptor->stride[i] = stride[i];
		descriptor->dilation[i] = dilation[i];
	}
	descriptor->rank = rank;
	descriptor->mode = mode;
	descriptor->compute_type = compute_type;
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetConvolutionNdDescriptor(const struct tn__dnn_conv_descriptor *descriptor, int requested, int *rank,
                                int *padding, int *stride, int *dilation, int *mode, int *compute_type)
{
	DNN_REQUIRE_POINTER(descriptor);
	size_t bytes = sizeof(int) * (size_t)(requested < 0                  ? 0
	                                      : requested < descriptor->rank ? requested
	                                                                     : descriptor->rank);
	if (rank != NULL)
		*rank = descriptor->rank;
	if (padding != NULL)
		memcpy(padding, descriptor->padding, bytes);
	if (stride != NULL)
		memcpy(stride, descriptor->stride, bytes);
	if (dilation != NULL)
		memcpy(dilation, descriptor->dilation, bytes);
	if (mode != NULL)
		*mode = descriptor->mode;
	if (compute_type != NULL)
		*compute_type = descriptor->compute_type;
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetConvolution2dForwardOutputDim(const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor x, dnn_tensor w,
                                      int *n, int *c, int *height, int *width)
{
	int dims[4];
	DNN_FORWARD(cudnnGetConvolutionNdForwardOutputDim(descriptor, x, w, 4, dims));
	DNN_REQUIRE(n != NULL && c != NULL && height != NULL && width != NULL, DNN_STATUS_BAD_PARAM, "an answer is null");
	*n = dims[0];
	*c = dims[1];
	*height = dims[2];
	*width = dims[3];
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetConvolutionNdForwardOutputDim(const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor x, dnn_tensor w,
                                      int rank, int *dims)
{
	DNN_REQUIRE(descriptor != NULL && x != NULL && w != NULL && dims != NULL, DNN_STATUS_BAD_PARAM,
	            "a pointer is null");
	DNN_REQUIRE(rank == descriptor->rank + 2 && x->rank == rank && w->rank == rank, DNN_STATUS_BAD_PARAM,
	            "%d dimensions for a convolution of %d", rank, descriptor->rank);
	for (int i = 0; i < descriptor->rank; i++) {
		int64_t reach = (w->dims[i + 2] - 1) * descriptor->dilation[i] + 1;
		int64_t room = x->dims[i + 2] + 2 * (int64_t)descriptor->padding[i] - reach;
		DNN_REQUIRE(room >= 0, DNN_STATUS_BAD_PARAM, "the filter is larger than the input");
		dims[i + 2] = (int)(room / descriptor->stride[i] + 1);
	}
	dims[0] = (int)x->dims[0];
	dims[1] = (int)w->dims[0];
	return DNN_STATUS_SUCCESS;
}

/* ---- algorithms ---- */

static int
gather(enum tn__dnn_direction direction, dnn_tensor x, dnn_tensor w, dnn_tensor y,
       const struct tn__dnn_conv_descriptor *descriptor, struct tn__dnn_convolution *out)
{
	DNN_REQUIRE(x != NULL && w != NULL && y != NULL && descriptor != NULL, DNN_STATUS_BAD_PARAM,
	            "a descriptor is null");
	DNN_REQUIRE(x->rank >= 3 && x->rank == w->rank && x->rank == y->rank, DNN_STATUS_BAD_PARAM,
	            "a convolution of tensors with %d, %d and %d dimensions", x->rank, w->rank, y->rank);
	*out = (struct tn__dnn_convolution){ .direction = direction,
		                                 .x = *x,
		                                 .w = *w,
		                                 .y = *y,
		                                 .spatial_dims = descriptor->rank,
		                                 .compute_type = descriptor->compute_type };
	for (int i = 0; i < descriptor->rank; i++) {
		out->padding[i] = descriptor->padding[i];
		out->stride[i] = descriptor->stride[i];
		out->dilation[i] = descriptor->dilation[i];
	}
	return DNN_STATUS_SUCCESS;
}

/* The engine behind an algorithm number, or -1. */
static int
engine_of(enum tn__dnn_direction direction, int algorithm)
{
	for (int i = 0; i < CHOICES; i++) {
		if (choices[direction][i].algorithm == algorithm && algorithm >= 0)
			return choices[direction][i].engine;
	}
	return -1;
}

static uint64_t
bytes_of(const struct tn__dnn_convolution *convolution)
{
	return tn__dnn_bytes(&convolution->x) + tn__dnn_bytes(&convolution->w) + tn__dnn_bytes(&convolution->y);
}

static uint64_t
time_of(const struct tn__dnn_convolution *convolution, int engine)
{
	return tn__dnn_time(tn__dnn_convolution_flops(convolution), convolution->x.type, bytes_of(convolution), engine);
}

/* Puts one run of the convolution on the handle's stream. */
static int
put(dnn_handle handle, const struct tn__dnn_convolution *convolution, int engine)
{
	const struct tn_effort effort = tn__dnn_effort(tn__dnn_convolution_flops(convolution), convolution->x.type,
	                                               bytes_of(convolution), engine);
	return tn__dnn_put(handle, time_of(convolution, engine), &effort);
}

struct search {
	dnn_handle handle;
	bool timed;             /* Find: run each candidate once */
	size_t workspace_bytes; /* Find...Ex: what candidates may use */
	int requested, *returned;
	struct tn__dnn_algorithm *results;
};

static int
search(const struct search *ask, const struct tn__dnn_convolution *convolution, int math)
{
	int found = 0;
	DNN_REQUIRE_POINTER(ask->handle);
	DNN_REQUIRE(ask->returned != NULL && ask->results != NULL && ask->requested > 0, DNN_STATUS_BAD_PARAM,
	            "no room for answers");
	for (int i = 0; i < CHOICES && found < ask->requested; i++) {
		const struct choice *choice = &choices[convolution->direction][i];
		if (choice->algorithm < 0)
			continue;
		uint64_t workspace = tn__cudnn_workspace(convolution, choice->engine);
		uint64_t nanoseconds = time_of(convolution, choice->engine);
		if (workspace > ask->workspace_bytes)
			continue;
		if (ask->timed)
			DNN_FORWARD(put(ask->handle, convolution, choice->engine));
		ask->results[found++] = (struct tn__dnn_algorithm){ .algorithm = choice->algorithm,
			                                                .milliseconds = (float)nanoseconds * 1e-6f,
			                                                .workspace = workspace,
			                                                .determinism = choice->determinism,
			                                                .math = math };
	}
	*ask->returned = found;
	return DNN_STATUS_SUCCESS;
}

static int
workspace_size(enum tn__dnn_direction direction, dnn_tensor x, dnn_tensor w, dnn_tensor y,
               const struct tn__dnn_conv_descriptor *descriptor, int algorithm, size_t *bytes)
{
	struct tn__dnn_convolution convolution;
	int engine = engine_of(direction, algorithm);
	DNN_REQUIRE_POINTER(bytes);
	DNN_FORWARD(gather(direction, x, w, y, descriptor, &convolution));
	DNN_REQUIRE(engine >= 0, DNN_STATUS_NOT_SUPPORTED, "convolution algorithm %d", algorithm);
	*bytes = tn__cudnn_workspace(&convolution, engine);
	tn__note_wanted(*bytes);
	return DNN_STATUS_SUCCESS;
}

static int
launch(dnn_handle handle, enum tn__dnn_direction direction, dnn_tensor x, dnn_tensor w, dnn_tensor y,
       const struct tn__dnn_conv_descriptor *descriptor, int algorithm, const void *workspace, size_t workspace_bytes)
{
	struct tn__dnn_convolution convolution;
	int engine = engine_of(direction, algorithm);
	DNN_FORWARD(gather(direction, x, w, y, descriptor, &convolution));
	DNN_REQUIRE(engine >= 0, DNN_STATUS_NOT_SUPPORTED, "convolution algorithm %d", algorithm);
	DNN_REQUIRE(workspace_bytes >= tn__cudnn_workspace(&convolution, engine), DNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
	            "convolution algorithm %d with %zu bytes of workspace", algorithm, workspace_bytes);
	tn__note_workspace(TN_LIBRARY_CUDNN, workspace, workspace_bytes);
	return put(handle, &convolution, engine);
}

int
cudnnGetConvolutionForwardAlgorithmMaxCount(dnn_handle handle, int *count)
{
	DNN_REQUIRE_POINTER(count);
	*count = CHOICES;
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetConvolutionBackwardDataAlgorithmMaxCount(dnn_handle handle, int *count)
{
	return cudnnGetConvolutionForwardAlgorithmMaxCount(handle, count);
}

int
cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(dnn_handle handle, int *count)
{
	return cudnnGetConvolutionForwardAlgorithmMaxCount(handle, count);
}

/* One direction's searches: recommended (v7), timed (Find), timed with the caller's workspace (FindEx). */
static int
search_direction(const struct search *ask, enum tn__dnn_direction direction, dnn_tensor x, dnn_tensor w, dnn_tensor y,
                 const struct tn__dnn_conv_descriptor *descriptor)
{
	struct tn__dnn_convolution convolution;
	DNN_FORWARD(gather(direction, x, w, y, descriptor, &convolution));
	return search(ask, &convolution, descriptor->math);
}

int
cudnnGetConvolutionForwardAlgorithm_v7(dnn_handle handle, dnn_tensor x, dnn_tensor w,
                                       const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor y, int requested,
                                       int *returned, struct tn__dnn_algorithm *results)
{
	const struct search ask = { handle, false, SIZE_MAX, requested, returned, results };
	return search_direction(&ask, DNN_FORWARD_PASS, x, w, y, descriptor);
}

int
cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn_handle handle, dnn_tensor w, dnn_tensor dy,
                                            const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dx,
                                            int requested, int *returned, struct tn__dnn_algorithm *results)
{
	const struct search ask = { handle, false, SIZE_MAX, requested, returned, results };
	return search_direction(&ask, DNN_DATA_GRADIENT, dx, w, dy, descriptor);
}

int
cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn_handle handle, dnn_tensor x, dnn_tensor dy,
                                              const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dw,
                                              int requested, int *returned, struct tn__dnn_algorithm *results)
{
	const struct search ask = { handle, false, SIZE_MAX, requested, returned, results };
	return search_direction(&ask, DNN_FILTER_GRADIENT, x, dw, dy, descriptor);
}

int
cudnnFindConvolutionForwardAlgorithm(dnn_handle handle, dnn_tensor x, dnn_tensor w,
                                     const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor y, int requested,
                                     int *returned, struct tn__dnn_algorithm *results)
{
	const struct search ask = { handle, true, SIZE_MAX, requested, returned, results };
	return search_direction(&ask, DNN_FORWARD_PASS, x, w, y, descriptor);
}

int
cudnnFindConvolutionBackwardDataAlgorithm(dnn_handle handle, dnn_tensor w, dnn_tensor dy,
                                          const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dx,
                                          int requested, int *returned, struct tn__dnn_algorithm *results)
{
	const struct search ask = { handle, true, SIZE_MAX, requested, returned, results };
	return search_direction(&ask, DNN_DATA_GRADIENT, dx, w, dy, descriptor);
}

int
cudnnFindConvolutionBackwardFilterAlgorithm(dnn_handle handle, dnn_tensor x, dnn_tensor dy,
                                            const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dw,
                                            int requested, int *returned, struct tn__dnn_algorithm *results)
{
	const struct search ask = { handle, true, SIZE_MAX, requested, returned, results };
	return search_direction(&ask, DNN_FILTER_GRADIENT, x, dw, dy, descriptor);
}

int
cudnnFindConvolutionForwardAlgorithmEx(dnn_handle handle, dnn_tensor x_desc, const void *x, dnn_tensor w_desc,
                                       const void *w, const struct tn__dnn_conv_descriptor *descriptor,
                                       dnn_tensor y_desc, void *y, int requested, int *returned,
                                       struct tn__dnn_algorithm *results, void *workspace, size_t workspace_bytes)
{
	const struct search ask = { handle, true, workspace_bytes, requested, returned, results };
	return search_direction(&ask, DNN_FORWARD_PASS, x_desc, w_desc, y_desc, descriptor);
}

int
cudnnFindConvolutionBackwardDataAlgorithmEx(dnn_handle handle, dnn_tensor w_desc, const void *w, dnn_tensor dy_desc,
                                            const void *dy, const struct tn__dnn_conv_descriptor *descriptor,
                                            dnn_tensor dx_desc, void *dx, int requested, int *returned,
                                            struct tn__dnn_algorithm *results, void *workspace, size_t workspace_bytes)
{
	const struct search ask = { handle, true, workspace_bytes, requested, returned, results };
	return search_direction(&ask, DNN_DATA_GRADIENT, dx_desc, w_desc, dy_desc, descriptor);
}

int
cudnnFindConvolutionBackwardFilterAlgorithmEx(dnn_handle handle, dnn_tensor x_desc, const void *x, dnn_tensor dy_desc,
                                              const void *dy, const struct tn__dnn_conv_descriptor *descriptor,
                                              dnn_tensor dw_desc, void *dw, int requested, int *returned,
                                              struct tn__dnn_algorithm *results, void *workspace,
                                              size_t workspace_bytes)
{
	const struct search ask = { handle, true, workspace_bytes, requested, returned, results };
	return search_direction(&ask, DNN_FILTER_GRADIENT, x_desc, dw_desc, dy_desc, descriptor);
}

int
cudnnGetConvolutionForwardWorkspaceSize(dnn_handle handle, dnn_tensor x, dnn_tensor w,
                                        const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor y, int algorithm,
                                        size_t *bytes)
{
	return workspace_size(DNN_FORWARD_PASS, x, w, y, descriptor, algorithm, bytes);
}

int
cudnnGetConvolutionBackwardDataWorkspaceSize(dnn_handle handle, dnn_tensor w, dnn_tensor dy,
                                             const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dx,
                                             int algorithm, size_t *bytes)
{
	return workspace_size(DNN_DATA_GRADIENT, dx, w, dy, descriptor, algorithm, bytes);
}

int
cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn_handle handle, dnn_tensor x, dnn_tensor dy,
                                               const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dw,
                                               int algorithm, size_t *bytes)
{
	return workspace_size(DNN_FILTER_GRADIENT, x, dw, dy, descriptor, algorithm, bytes);
}

int
cudnnConvolutionForward(dnn_handle handle, const void *alpha, dnn_tensor x_desc, const void *x, dnn_tensor w_desc,
                        const void *w, const struct tn__dnn_conv_descriptor *descriptor, int algorithm, void *workspace,
                        size_t workspace_bytes, const void *beta, dnn_tensor y_desc, void *y)
{
	return launch(handle, DNN_FORWARD_PASS, x_desc, w_desc, y_desc, descriptor, algorithm, workspace, workspace_bytes);
}

int
cudnnConvolutionBiasActivationForward(dnn_handle handle, const void *alpha1, dnn_tensor x_desc, const void *x,
                                      dnn_tensor w_desc, const void *w,
                                      const struct tn__dnn_conv_descriptor *descriptor, int algorithm, void *workspace,
                                      size_t workspace_bytes, const void *alpha2, dnn_tensor z_desc, const void *z,
                                      dnn_tensor bias_desc, const void *bias,
                                      const struct tn__dnn_activation *activation, dnn_tensor y_desc, void *y)
{
	return launch(handle, DNN_FORWARD_PASS, x_desc, w_desc, y_desc, descriptor, algorithm, workspace, workspace_bytes);
}

int
cudnnConvolutionBackwardData(dnn_handle handle, const void *alpha, dnn_tensor w_desc, const void *w, dnn_tensor dy_desc,
                             const void *dy, const struct tn__dnn_conv_descriptor *descriptor, int algorithm,
                             void *workspace, size_t workspace_bytes, const void *beta, dnn_tensor dx_desc, void *dx)
{
	return launch(handle, DNN_DATA_GRADIENT, dx_desc, w_desc, dy_desc, descriptor, algorithm, workspace,
	              workspace_bytes);
}

int
cudnnConvolutionBackwardFilter(dnn_handle handle, const void *alpha, dnn_tensor x_desc, const void *x,
                               dnn_tensor dy_desc, const void *dy, const struct tn__dnn_conv_descriptor *descriptor,
                               int algorithm, void *workspace, size_t workspace_bytes, const void *beta,
                               dnn_tensor dw_desc, void *dw)
{
	return launch(handle, DNN_FILTER_GRADIENT, x_desc, dw_desc, dy_desc, descriptor, algorithm, workspace,
	              workspace_bytes);
}

int
cudnnConvolutionBackwardBias(dnn_handle handle, const void *alpha, dnn_tensor dy_desc, const void *dy, const void *beta,
                             dnn_tensor db_desc, void *db)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(dy_desc) + tn__dnn_bytes(db_desc));
}
