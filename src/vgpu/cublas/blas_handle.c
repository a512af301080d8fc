/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS: handles, modes, workspaces, versions, copies of vectors and matrices.
 */
#include <stdio.h>
#include <stdlib.h>

#include "vgpu/core/memory_log.h"
#include "vgpu/core/runtime.h"
#include "vgpu/blas.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define BLAS_VERSION \
	(TN_CUDA_MAJOR == 12 ? 120405 : 130400) /* of the newest library of the major that is stood in for */

TN_EXPORT int
cublasCreate_v2(void **out)
{
	if (!out)
		return BLAS_INVALID_VALUE;
	if (tn__enter() != TN_CUDA_OK)
		return BLAS_NOT_INITIALIZED;
	struct blas_handle *handle = calloc(1, sizeof(*handle));
	if (!handle)
		return BLAS_ALLOC_FAILED;
	handle->magic = BLAS_MAGIC;
	handle->device = tn__current_device();
	*out = handle;
	return BLAS_OK;
}

TN_EXPORT int
cublasDestroy_v2(void *opaque)
{
	struct blas_handle *handle = blas_handle_of(opaque);
	if (!handle)
		return BLAS_NOT_INITIALIZED;
	handle->magic = 0;
	free(handle);
	return BLAS_OK;
}

/* A setter and a getter of one field. */
#define BLAS_FIELD(setter, getter, type, field)         \
	TN_EXPORT int setter(void *opaque, type value)      \
	{                                                   \
		struct blas_handle *h = blas_handle_of(opaque); \
		if (!h)                                         \
			return BLAS_NOT_INITIALIZED;                \
		h->field = value;                               \
		return BLAS_OK;                                 \
	}                                                   \
	TN_EXPORT int getter(void *opaque, type *value)     \
	{                                                   \
		struct blas_handle *h = blas_handle_of(opaque); \
		if (!h)                                         \
			return BLAS_NOT_INITIALIZED;                \
		if (!value)                                     \
			return BLAS_INVALID_VALUE;                  \
		*value = h->field;                              \
		return BLAS_OK;                                 \
	}

BLAS_FIELD(cublasSetPointerMode_v2, cublasGetPointerMode_v2, int, pointer_mode)
BLAS_FIELD(cublasSetMathMode, cublasGetMathMode, int, math_mode)
BLAS_FIELD(cublasSetAtomicsMode, cublasGetAtomicsMode, int, atomics_mode)
BLAS_FIELD(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sm_target)

/* Setting a stream also gives the user's workspace back to the library's own (cuBLAS documentation of
 * cublasSetStream). */
TN_EXPORT int
cublasSetStream_v2(void *opaque, uintptr_t stream)
{
	struct blas_handle *handle = blas_handle_of(opaque);
	if (!handle)
		return BLAS_NOT_INITIALIZED;
	handle->stream = stream;
	handle->workspace = NULL;
	handle->workspace_bytes = 0;
	return BLAS_OK;
}

TN_EXPORT int
cublasGetStream_v2(void *opaque, uintptr_t *stream)
{
	const struct blas_handle *handle = blas_handle_of(opaque);
	if (!handle || !stream)
		return handle ? BLAS_INVALID_VALUE : BLAS_NOT_INITIALIZED;
	*stream = handle->stream;
	return BLAS_OK;
}

TN_EXPORT int
cublasSetWorkspace_v2(void *opaque, void *workspace, size_t bytes)
{
	struct blas_handle *handle = blas_handle_of(opaque);
	if (!handle)
		return BLAS_NOT_INITIALIZED;
	handle->workspace = workspace;
	handle->workspace_bytes = bytes;
	tn__note_workspace(TN_LIBRARY_CUBLAS, workspace, bytes);
	return BLAS_OK;
}

TN_EXPORT int
cublasGetVersion_v2(void *opaque, int *version)
{
	if (!version)
		return BLAS_INVALID_VALUE;
	*version = BLAS_VERSION;
	return BLAS_OK;
}

TN_EXPORT int
cublasGetProperty(int property, int *value)
{
	if (!value || property < 0 || property > 2)
		return BLAS_INVALID_VALUE;
	*value = property == 0 ? BLAS_VERSION / 10000 : property == 1 ? BLAS_VERSION / 100 % 100 : BLAS_VERSION % 100;
	return BLAS_OK;
}

TN_EXPORT size_t
cublasGetCudartVersion(void)
{
	return TN_CUDA_MAJOR == 12 ? 12040 : 13020;
}

static const char *
status_name(int status)
{
	switch (status) {
	case BLAS_OK:
		return "CUBLAS_STATUS_SUCCESS";
	case BLAS_NOT_INITIALIZED:
		return "CUBLAS_STATUS_NOT_INITIALIZED";
	case BLAS_ALLOC_FAILED:
		return "CUBLAS_STATUS_ALLOC_FAILED";
	case BLAS_INVALID_VALUE:
		return "CUBLAS_STATUS_INVALID_VALUE";
	case BLAS_NOT_SUPPORTED:
		return "CUBLAS_STATUS_NOT_SUPPORTED";
	default:
		return "CUBLAS_STATUS_UNKNOWN";
	}
}

TN_EXPORT const char *
cublasGetStatusName(int status)
{
	return status_name(status);
}

TN_EXPORT const char *
cublasGetStatusString(int status)
{
	return status_name(status);
}

/* ---- copies: PyTorch does not use them, older code does ---- */

static int
copy(uint64_t to, uint64_t from, uint64_t width, uint64_t to_pitch, uint64_t from_pitch, uint64_t count,
     uintptr_t stream, bool asynchronous)
{
	if (tn__enter() != TN_CUDA_OK)
		return BLAS_NOT_INITIALIZED;
	return tn__copy_2d(to, to_pitch, from, from_pitch, width, count, stream, asynchronous) == TN_CUDA_OK
	           ? BLAS_OK
	           : BLAS_INVALID_VALUE;
}

TN_EXPORT int
cublasSetVectorAsync(int n, int size, const void *from, int from_step, void *to, int to_step, uintptr_t stream)
{
	if (n < 0 || size <= 0 || from_step <= 0 || to_step <= 0)
		return BLAS_INVALID_VALUE;
	return copy((uintptr_t)to, (uintptr_t)from, (uint64_t)size, (uint64_t)size * (uint64_t)to_step,
	            (uint64_t)size * (uint64_t)from_step, (uint64_t)n, stream, true);
}

TN_EXPORT int
cublasGetVectorAsync(int n, int size, const void *from, int from_step, void *to, int to_step, uintptr_t stream)
{
	return cublasSetVectorAsync(n, size, from, from_step, to, to_step, stream);
}

TN_EXPORT int
cublasSetMatrixAsync(int rows, int columns, int size, const void *from, int from_lead, void *to, int to_lead,
                     uintptr_t stream)
{
	if (rows < 0 || columns < 0 || size <= 0 || from_lead < rows || to_lead < rows)
		return BLAS_INVALID_VALUE;
	return copy((uintptr_t)to, (uintptr_t)from, (uint64_t)rows * (uint64_t)size, (uint64_t)to_lead * (uint64_t)size,
	            (uint64_t)from_lead * (uint64_t)size, (uint64_t)columns, stream, true);
}

TN_EXPORT int
cublasGetMatrixAsync(int rows, int columns, int size, const void *from, int from_lead, void *to, int to_lead,
                     uintptr_t stream)
{
	return cublasSetMatrixAsync(rows, columns, size, from, from_lead, to, to_lead, stream);
}
