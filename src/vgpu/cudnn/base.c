/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles, streams, error texts, and what the other files share: see dnn.h.
 */
#include "vgpu/cudnn/api.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_error[512];

int
tn__dnn_fail(int status, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(last_error, sizeof(last_error), format, arguments);
	va_end(arguments);
	return status;
}

int
tn__dnn_status(tn_status status)
{
	switch (status) {
	case TN_OK:
		return DNN_STATUS_SUCCESS;
	case TN_NO_MEMORY:
		return tn__dnn_fail(DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of host memory");
	case TN_OUT_OF_DEVICE_MEMORY:
		return tn__dnn_fail(DNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "out of device memory");
	default:
		return tn__dnn_fail(DNN_STATUS_EXECUTION_FAILED_CUDART, "the virtual GPU refused: %s", tn_status_text(status));
	}
}

int
tn__dnn_put(const struct tn__dnn_handle *handle, uint64_t nanoseconds, const struct tn_effort *effort)
{
	return tn__dnn_put_written(handle, nanoseconds, effort, NULL);
}

int
tn__dnn_put_written(const struct tn__dnn_handle *handle, uint64_t nanoseconds, const struct tn_effort *effort,
                    const struct tn_written *written)
{
	DNN_REQUIRE_POINTER(handle);
	return tn__dnn_status(tn__work_written(handle->stream, nanoseconds, "cudnn", effort, written));
}

int
tn__dnn_put_bytes(const struct tn__dnn_handle *handle, uint64_t bytes)
{
	const struct tn_effort effort = { .kind = TN_EFFORT_KERNEL, .math = TN_MATH_FP32, .bytes = (double)bytes };
	return tn__dnn_put(handle, tn__time_of_bytes(bytes), &effort);
}

int
tn__dnn_type_bits(int type)
{
	static const uint16_t bits[] = {
		[DNN_DATA_FLOAT] = 32,         [DNN_DATA_DOUBLE] = 64,      [DNN_DATA_HALF] = 16,
		[DNN_DATA_INT8] = 8,           [DNN_DATA_INT32] = 32,       [DNN_DATA_INT8x4] = 32,
		[DNN_DATA_UINT8] = 8,          [DNN_DATA_UINT8x4] = 32,     [DNN_DATA_INT8x32] = 256,
		[DNN_DATA_BFLOAT16] = 16,      [DNN_DATA_INT64] = 64,       [DNN_DATA_BOOLEAN] = 1,
		[DNN_DATA_FP8_E4M3] = 8,       [DNN_DATA_FP8_E5M2] = 8,     [DNN_DATA_FAST_FLOAT_FOR_FP8] = 32,
		[DNN_DATA_FP8_E8M0] = 8,       [DNN_DATA_FP4_E2M1] = 4,     [DNN_DATA_INT4] = 4,
		[DNN_DATA_UINT4] = 4,          [DNN_DATA_UINT32] = 32,      [DNN_DATA_COMPLEX_FP32] = 64,
		[DNN_DATA_COMPLEX_FP64] = 128, [DNN_DATA_BYTE_BOOLEAN] = 8, [DNN_DATA_FP8_E5M3] = 8,
	};
	return type < 0 || type >= (int)(sizeof(bits) / sizeof(bits[0])) ? 0 : bits[type];
}

uint64_t
tn__dnn_elements(const struct tn__dnn_tensor *tensor)
{
	uint64_t count = 1;
	if (tensor == NULL || tensor->rank == 0)
		return 0;
	for (int i = 0; i < tensor->rank; i++) {
		if (__builtin_mul_overflow(count, (uint64_t)tensor->dims[i], &count))
			return UINT64_MAX / 256; /* larger than any card: a time estimate, never a size */
	}
	return count;
}

uint64_t
tn__dnn_bytes(const struct tn__dnn_tensor *tensor)
{
	uint64_t bits = tensor == NULL ? 0 : (uint64_t)tn__dnn_type_bits(tensor->type);
	uint64_t elements = tn__dnn_elements(tensor);
	return bits < 8 ? (elements * bits + 7) / 8 : elements * (bits / 8);
}

enum tn_math
tn__dnn_math(int type, bool tensor_cores)
{
	if (type == DNN_DATA_DOUBLE || type == DNN_DATA_COMPLEX_FP64)
		return TN_MATH_FP64;
	if (type == DNN_DATA_FLOAT || type == DNN_DATA_COMPLEX_FP32)
		return tensor_cores ? TN_MATH_TF32 : TN_MATH_FP32;
	return TN_MATH_HALF;
}

int
cudnnCreate(struct tn__dnn_handle **handle)
{
	DNN_REQUIRE_POINTER(handle);
	int device = tn__current_device();
	DNN_FORWARD(tn__dnn_status(tn__ensure_context(device)));
	DNN_CREATE(handle, struct tn__dnn_handle);
	(*handle)->device = device;
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroy(struct tn__dnn_handle *handle)
{
	free(handle);
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetStream(struct tn__dnn_handle *handle, void *stream)
{
	DNN_REQUIRE_POINTER(handle);
	handle->stream = (uintptr_t)stream;
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetStream(const struct tn__dnn_handle *handle, void **stream)
{
	DNN_REQUIRE_POINTER(handle);
	DNN_REQUIRE_POINTER(stream);
	*stream = (void *)handle->stream;
	return DNN_STATUS_SUCCESS;
}

const char *
cudnnGetErrorString(int status)
{
	switch (status) {
#define DNN_CASE(name, number) \
	case number:               \
		return "CUDNN_" #name;
		DNN_STATUS_LIST(DNN_CASE)
		DNN_LATER_STATUS_LIST(DNN_CASE)
#undef DNN_CASE
	default:
		return "CUDNN_UNKNOWN_STATUS";
	}
}

void
cudnnGetLastErrorString(char *message, size_t max_size)
{
	if (message != NULL && max_size > 0)
		snprintf(message, max_size, "%s", last_error);
	last_error[0] = '\0'; /* documented: reading clears */
}

int
cudnnQueryRuntimeError(const struct tn__dnn_handle *handle, int *status, int mode, void *tag)
{
	(void)mode;
	(void)tag;
	DNN_REQUIRE_POINTER(handle);
	DNN_REQUIRE_POINTER(status);
	*status = DNN_STATUS_SUCCESS;
	return DNN_STATUS_SUCCESS;
}

/* The callback is for cuDNN's own log lines, of which we have none: it is kept so that it can be read back. */
static pthread_mutex_t callback_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	unsigned mask;
	void *data;
	void (*function)(void);
} callback; /* under callback_lock */

int
cudnnSetCallback(unsigned mask, void *data, void (*function)(void))
{
	pthread_mutex_lock(&callback_lock);
	callback.mask = mask;
	callback.data = data;
	callback.function = function;
	pthread_mutex_unlock(&callback_lock);
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetCallback(unsigned *mask, void **data, void (**function)(void))
{
	pthread_mutex_lock(&callback_lock);
	if (mask != NULL)
		*mask = callback.mask;
	if (data != NULL)
		*data = callback.data;
	if (function != NULL)
		*function = callback.function;
	pthread_mutex_unlock(&callback_lock);
	return DNN_STATUS_SUCCESS;
}
