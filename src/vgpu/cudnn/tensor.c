/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor and filter descriptors of the legacy API, and the calls that only touch one tensor.
 *
 * Invariant: dims and strides of a descriptor that was set are positive (a stride may be 0: broadcast), rank is at
 * most DNN_DIM_MAX. Getters of N dimensions write what was asked for, and no more than there is.
 */
#include "vgpu/cudnn/api.h"

#include <stdlib.h>

static int
check_shape(int type, int rank, const int *dims)
{
	DNN_REQUIRE_POINTER(dims);
	DNN_REQUIRE(tn__dnn_type_bits(type) != 0, DNN_STATUS_BAD_PARAM, "data type %d", type);
	DNN_REQUIRE(rank >= 1 && rank <= DNN_DIM_MAX, DNN_STATUS_NOT_SUPPORTED, "%d dimensions", rank);
	int64_t elements = 1;
	for (int i = 0; i < rank; i++) {
		DNN_REQUIRE(dims[i] > 0, DNN_STATUS_BAD_PARAM, "dimension %d is %d", i, dims[i]);
		DNN_REQUIRE(!__builtin_mul_overflow(elements, (int64_t)dims[i], &elements), DNN_STATUS_NOT_SUPPORTED,
		            "more elements than can be counted");
	}
	return DNN_STATUS_SUCCESS;
}

/* Strides without gaps; channels-last puts dimension 1 innermost. */
static void
pack(struct tn__dnn_tensor *tensor, int format)
{
	int64_t stride = 1;
	bool last = format == DNN_TENSOR_NHWC && tensor->rank > 2;
	if (last) {
		tensor->strides[1] = 1;
		stride = tensor->dims[1];
	}
	for (int i = tensor->rank - 1; i >= 0; i--) {
		if (last && i == 1)
			continue;
		tensor->strides[i] = stride;
		stride *= tensor->dims[i];
	}
}

int
tn__dnn_set_packed(struct tn__dnn_tensor *tensor, int format, int type, int rank, const int *dims)
{
	DNN_REQUIRE_POINTER(tensor);
	DNN_REQUIRE(format >= DNN_TENSOR_NCHW && format <= DNN_TENSOR_NCHW_VECT_C, DNN_STATUS_BAD_PARAM, "format %d",
	            format);
	DNN_FORWARD(check_shape(type, rank, dims));
	tensor->type = type;
	tensor->format = format;
	tensor->rank = rank;
	for (int i = 0; i < rank; i++)
		tensor->dims[i] = dims[i];
	pack(tensor, format);
	return DNN_STATUS_SUCCESS;
}

int
cudnnCreateTensorDescriptor(struct tn__dnn_tensor **tensor)
{
	DNN_CREATE(tensor, struct tn__dnn_tensor);
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroyTensorDescriptor(struct tn__dnn_tensor *tensor)
{
	free(tensor);
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetTensor4dDescriptor(struct tn__dnn_tensor *tensor, int format, int type, int n, int c, int h, int w)
{
	return tn__dnn_set_packed(tensor, format, type, 4, (const int[]){ n, c, h, w });
}

int
cudnnSetTensor4dDescriptorEx(struct tn__dnn_tensor *tensor, int type, int n, int c, int h, int w, int n_stride,
                             int c_stride, int h_stride, int w_stride)
{
	return cudnnSetTensorNdDescriptor(tensor, type, 4, (const int[]){ n, c, h, w },
	                                  (const int[]){ n_stride, c_stride, h_stride, w_stride });
}

int
cudnnGetTensor4dDescriptor(dnn_tensor tensor, int *type, int *n, int *c, int *h, int *w, int *n_stride, int *c_stride,
                           int *h_stride, int *w_stride)
{
	int *const dims[4] = { n, c, h, w }, *const strides[4] = { n_stride, c_stride, h_stride, w_stride };
	DNN_REQUIRE_POINTER(tensor);
	DNN_REQUIRE(tensor->rank == 4, DNN_STATUS_BAD_PARAM, "the tensor has %d dimensions", tensor->rank);
	if (type != NULL)
		*type = tensor->type;
	for (int i = 0; i < 4; i++) {
		if (dims[i] != NULL)
			*dims[i] = (int)tensor->dims[i];
		if (strides[i] != NULL)
			*strides[i] = (int)tensor->strides[i];
	}
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetTensorNdDescriptor(struct tn__dnn_tensor *tensor, int type, int rank, const int *dims, const int *strides)
{
	DNN_REQUIRE_POINTER(strides);
	DNN_FORWARD(tn__dnn_set_packed(tensor, DNN_TENSOR_NCHW, type, rank, dims));
	for (int i = 0; i < rank; i++)
		tensor->strides[i] = strides[i];
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetTensorNdDescriptorEx(struct tn__dnn_tensor *tensor, int format, int type, int rank, const int *dims)
{
	return tn__dnn_set_packed(tensor, format, type, rank, dims);
}

/* Writes at most `requested` of the tensor's dims and strides. */
static void
write_shape(dnn_tensor tensor, int requested, int *dims, int *strides)
{
	for (int i = 0; i < tensor->rank && i < requested; i++) {
		if (dims != NULL)
			dims[i] = (int)tensor->dims[i];
		if (strides != NULL)
			strides[i] = (int)tensor->strides[i];
	}
}

int
cudnnGetTensorNdDescriptor(dnn_tensor tensor, int requested, int *type, int *rank, int *dims, int *strides)
{
	DNN_REQUIRE_POINTER(tensor);
	if (type != NULL)
		*type = tensor->type;
	if (rank != NULL)
		*rank = tensor->rank;
	write_shape(tensor, requested, dims, strides);
	return DNN_STATUS_SUCCESS;
}

/* From the first to the last element, as the reference says: gaps that strides leave are included. */
int
cudnnGetTensorSizeInBytes(dnn_tensor tensor, size_t *bytes)
{
	DNN_REQUIRE_POINTER(tensor);
	DNN_REQUIRE_POINTER(bytes);
	uint64_t last = 0;
	for (int i = 0; i < tensor->rank; i++)
		last += (uint64_t)(tensor->dims[i] - 1) * (uint64_t)tensor->strides[i];
	*bytes = tensor->rank == 0 ? 0 : ((size_t)(last + 1) * (size_t)tn__dnn_type_bits(tensor->type) + 7) / 8;
	return DNN_STATUS_SUCCESS;
}

int
cudnnCreateFilterDescriptor(struct tn__dnn_tensor **filter)
{
	DNN_CREATE(filter, struct tn__dnn_tensor);
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroyFilterDescriptor(struct tn__dnn_tensor *filter)
{
	free(filter);
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetFilter4dDescriptor(struct tn__dnn_tensor *filter, int type, int format, int k, int c, int h, int w)
{
	return tn__dnn_set_packed(filter, format, type, 4, (const int[]){ k, c, h, w });
}

int
cudnnGetFilter4dDescriptor(dnn_tensor filter, int *type, int *format, int *k, int *c, int *h, int *w)
{
	DNN_REQUIRE_POINTER(filter);
	if (format != NULL)
		*format = filter->format;
	return cudnnGetTensor4dDescriptor(filter, type, k, c, h, w, NULL, NULL, NULL, NULL);
}

int
cudnnSetFilterNdDescriptor(struct tn__dnn_tensor *filter, int type, int format, int rank, const int *dims)
{
	return tn__dnn_set_packed(filter, format, type, rank, dims);
}

int
cudnnGetFilterNdDescriptor(dnn_tensor filter, int requested, int *type, int *format, int *rank, int *dims)
{
	DNN_REQUIRE_POINTER(filter);
	if (format != NULL)
		*format = filter->format;
	return cudnnGetTensorNdDescriptor(filter, requested, type, rank, dims, NULL);
}

int
cudnnGetFilterSizeInBytes(dnn_tensor filter, size_t *bytes)
{
	return cudnnGetTensorSizeInBytes(filter, bytes);
}

int
cudnnTransformTensor(dnn_handle handle, const void *alpha, dnn_tensor x_desc, const void *x, const void *beta,
                     dnn_tensor y_desc, void *y)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(x_desc) + tn__dnn_bytes(y_desc));
}

int
cudnnAddTensor(dnn_handle handle, const void *alpha, dnn_tensor a_desc, const void *a, const void *beta,
               dnn_tensor c_desc, void *c)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(a_desc) + 2 * tn__dnn_bytes(c_desc));
}

int
cudnnSetTensor(dnn_handle handle, dnn_tensor y_desc, void *y, const void *value)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(y_desc));
}

int
cudnnScaleTensor(dnn_handle handle, dnn_tensor y_desc, void *y, const void *alpha)
{
	return tn__dnn_put_bytes(handle, 2 * tn__dnn_bytes(y_desc));
}
