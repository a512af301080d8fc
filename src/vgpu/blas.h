/* SPDX-License-Identifier: Apache-2.0
 *
 * What the shells of cuBLAS and cuBLASLt share. Types and numbers are those of the documented API, declared here because cuBLAS's
 * headers come only with its half-gigabyte package.
 */
#ifndef TN_VGPU_BLAS_H
#define TN_VGPU_BLAS_H

#include "vgpu/core/core.h"

enum { BLAS_OK = 0, BLAS_NOT_INITIALIZED = 1, BLAS_ALLOC_FAILED = 3, BLAS_INVALID_VALUE = 7, BLAS_NOT_SUPPORTED = 15 };

/* cudaDataType_t */
enum {
	TYPE_32F = 0,
	TYPE_64F = 1,
	TYPE_16F = 2,
	TYPE_8I = 3,
	TYPE_32FC = 4,
	TYPE_64FC = 5,
	TYPE_32I = 10,
	TYPE_16BF = 14,
};
/* cublasComputeType_t */
enum { COMPUTE_16F = 64, COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32F_FAST_TF32 = 77 };

#define BLAS_MAGIC 0x74626c61u

/* A handle: PyTorch makes one for each thread and device. It holds no device memory of its own: what the real library
 * allocates when a handle is made is not documented (see the report's list of what is not counted). */
struct blas_handle {
	uint32_t magic;
	int device;
	uintptr_t stream;
	int pointer_mode, math_mode, atomics_mode, sm_target;
	void *workspace;
	size_t workspace_bytes;
};

/* NULL for anything that is not a handle of ours. */
static inline struct blas_handle *
blas_handle_of(void *opaque)
{
	struct blas_handle *handle = opaque;
	return handle && handle->magic == BLAS_MAGIC ? handle : NULL;
}

/* Which unit computes a product of these types. */
static inline enum tn_math
blas_math_of(int type, int compute_type, int math_mode)
{
	if (type == TYPE_64F || type == TYPE_64FC)
		return TN_MATH_FP64;
	if (type == TYPE_32F || type == TYPE_32FC)
		return compute_type == COMPUTE_32F_FAST_TF32 || math_mode == 3 ? TN_MATH_TF32 : TN_MATH_FP32;
	return TN_MATH_HALF;
}

#endif
