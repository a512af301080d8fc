/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this folder share: the handle, failing with a text, putting work on the handle's stream, tensors.
 *
 * cuDNN is answered without kernels: descriptors are kept, sizes are computed, and every call that would launch
 * something puts work of an estimated time on its stream. All functions are thread-safe as far as cuDNN's own are:
 * descriptors are not to be changed by two threads at once.
 * Must not know: PyTorch, the ledger.
 */
#ifndef TN_VGPU_CUDNN_DNN_H
#define TN_VGPU_CUDNN_DNN_H

#include "vgpu/core/core.h"
#include "vgpu/core/memory_log.h"
#include "dnn/abi.h"

struct tn__dnn_handle {
	uintptr_t stream;
	int device;
};

/* A tensor or filter descriptor of the legacy API, and how the backend's tensors are seen by graph.c. */
struct tn__dnn_tensor {
	int type;   /* cudnnDataType_t */
	int format; /* filters: cudnnTensorFormat_t */
	int rank;   /* 0 while it was never set */
	int64_t dims[DNN_DIM_MAX], strides[DNN_DIM_MAX];
};

/* Records the text for cudnnGetLastErrorString and returns `status`. */
int tn__dnn_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* cuDNN's status for ours. */
int tn__dnn_status(tn_status status);

/* Puts work of about `nanoseconds` that computes and moves `effort`, or what moving `bytes` takes, on the handle's
 * stream. */
int tn__dnn_put(const struct tn__dnn_handle *handle, uint64_t nanoseconds, const struct tn_effort *effort);
/* The same where it is known which tensors it may write to. */
int tn__dnn_put_written(const struct tn__dnn_handle *handle, uint64_t nanoseconds, const struct tn_effort *effort,
                        const struct tn_written *written);
int tn__dnn_put_bytes(const struct tn__dnn_handle *handle, uint64_t bytes);

/* Bits that one element of a cudnnDataType_t takes (vector types: one vector); 0 for an unknown type. */
int tn__dnn_type_bits(int type);

/* Elements, and the bytes that they take without gaps. 0 for a tensor that was never set. */
uint64_t tn__dnn_elements(const struct tn__dnn_tensor *tensor);
uint64_t tn__dnn_bytes(const struct tn__dnn_tensor *tensor);

/* Writes dims and packed strides of `format`. DNN_STATUS_BAD_PARAM when rank, type or a dimension is out of range. */
int tn__dnn_set_packed(struct tn__dnn_tensor *tensor, int format, int type, int rank, const int *dims);

/* The rate of the arithmetic that a type is computed with; `tensor_cores` false: fp32 is not rounded to TF32. */
enum tn_math tn__dnn_math(int type, bool tensor_cores);

#define DNN_REQUIRE(condition, status, ...)             \
	do {                                                \
		if (!(condition))                               \
			return tn__dnn_fail((status), __VA_ARGS__); \
	} while (0)

#define DNN_REQUIRE_POINTER(pointer) \
	DNN_REQUIRE((pointer) != NULL, DNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: %s is null", __func__, #pointer)

#define DNN_FORWARD(call)                        \
	do {                                         \
		int dnn_forwarded = (call);              \
		if (dnn_forwarded != DNN_STATUS_SUCCESS) \
			return dnn_forwarded;                \
	} while (0)

/* Makes an opaque object of the legacy API: zeroed memory of the given type behind *out. */
#define DNN_CREATE(out, type)                                                                               \
	do {                                                                                                    \
		DNN_REQUIRE_POINTER(out);                                                                           \
		type *dnn_object = calloc(1, sizeof(type));                                                         \
		DNN_REQUIRE(dnn_object != NULL, DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of memory"); \
		*(out) = dnn_object;                                                                                \
	} while (0)

#endif
