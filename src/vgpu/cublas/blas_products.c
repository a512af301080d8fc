/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS: matrix products, recorded by shape and type; everything else that computes is counted as work by its name.
 */
#include "vgpu/blas.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* How the matrices lie: elements from column to column of each; and where the results do: `batch` of m x n, `stride`
 * elements from one to the next. */
struct operands {
	int64_t lda, ldb, ldc;
	const void *result; /* NULL: an array on the device says it */
	int64_t stride;
};

static int
product(void *opaque, int64_t m, int64_t n, int64_t k, int64_t batch, int a, int b, int c, int compute,
        struct operands operands)
{
	const struct blas_handle *handle = blas_handle_of(opaque);
	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if (m < 0 || n < 0 || k < 0 || batch < 0)
		return BLAS_INVALID_VALUE;
	bool empty = m == 0 || n == 0 || batch == 0;
	const struct tn_matmul shape = {
		.m = m,
		.n = n,
		.k = k,
		.batch = batch,
		.a_type = a,
		.b_type = b,
		.c_type = c,
		.compute_type = compute,
		.library = "cublas",
		.unaligned = !tn__matmul_aligned(a, operands.lda) || !tn__matmul_aligned(b, operands.ldb) ||
		             !tn__matmul_aligned(c, operands.ldc),
		.result = operands.result,
		.result_elements = empty ? 0 : m + (n - 1) * operands.ldc + (batch - 1) * operands.stride
	};
	tn__work_matmul(handle->stream, &shape, blas_math_of(a, compute, handle->math_mode));
	return BLAS_OK;
}

/* Plain products of one type: 32-bit and 64-bit sizes. The pointers and strides between are the program's. */
#define GEMM(name, integer, type, compute)                                                                         \
	TN_EXPORT int name(void *h, int ta, int tb, integer m, integer n, integer k, const void *alpha, const void *a, \
	                   integer lda, const void *b, integer ldb, const void *beta, void *c, integer ldc)            \
	{                                                                                                              \
		return product(h, m, n, k, 1, type, type, type, compute, (struct operands){ lda, ldb, ldc, c, 0 });        \
	}
#define GEMM_BATCHED(name, integer, type, compute)                                                                     \
	TN_EXPORT int name(void *h, int ta, int tb, integer m, integer n, integer k, const void *alpha, const void *a,     \
	                   integer lda, const void *b, integer ldb, const void *beta, void *c, integer ldc, integer batch) \
	{                                                                                                                  \
		return product(h, m, n, k, batch, type, type, type, compute, (struct operands){ lda, ldb, ldc, NULL, 0 });     \
	}
#define GEMM_STRIDED(name, integer, type, compute)                                                                     \
	TN_EXPORT int name(void *h, int ta, int tb, integer m, integer n, integer k, const void *alpha, const void *a,     \
	                   integer lda, long long sa, const void *b, integer ldb, long long sb, const void *beta, void *c, \
	                   integer ldc, long long sc, integer batch)                                                       \
	{                                                                                                                  \
		return product(h, m, n, k, batch, type, type, type, compute, (struct operands){ lda, ldb, ldc, c, sc });       \
	}
#define GEMM_FAMILY(letter, type, compute)                               \
	GEMM(cublas##letter##gemm_v2, int, type, compute)                    \
	GEMM(cublas##letter##gemm_v2_64, int64_t, type, compute)             \
	GEMM_BATCHED(cublas##letter##gemmBatched, int, type, compute)        \
	GEMM_BATCHED(cublas##letter##gemmBatched_64, int64_t, type, compute) \
	GEMM_STRIDED(cublas##letter##gemmStridedBatched, int, type, compute) \
	GEMM_STRIDED(cublas##letter##gemmStridedBatched_64, int64_t, type, compute)

GEMM_FAMILY(S, TYPE_32F, COMPUTE_32F)
GEMM_FAMILY(D, TYPE_64F, COMPUTE_64F)
GEMM_FAMILY(C, TYPE_32FC, COMPUTE_32F)
GEMM_FAMILY(Z, TYPE_64FC, COMPUTE_64F)

GEMM(cublasHgemm, int, TYPE_16F, COMPUTE_16F)
GEMM(cublasHgemm_64, int64_t, TYPE_16F, COMPUTE_16F)
GEMM_BATCHED(cublasHgemmBatched, int, TYPE_16F, COMPUTE_16F)
GEMM_BATCHED(cublasHgemmBatched_64, int64_t, TYPE_16F, COMPUTE_16F)
GEMM_STRIDED(cublasHgemmStridedBatched, int, TYPE_16F, COMPUTE_16F)
GEMM_STRIDED(cublasHgemmStridedBatched_64, int64_t, TYPE_16F, COMPUTE_16F)

/* Products of mixed types. */
#define GEMM_EX(name, integer)                                                                                     \
	TN_EXPORT int name(void *h, int ta, int tb, integer m, integer n, integer k, const void *alpha, const void *a, \
	                   int a_type, integer lda, const void *b, int b_type, integer ldb, const void *beta, void *c, \
	                   int c_type, integer ldc, int compute, int algorithm)                                        \
	{                                                                                                              \
		return product(h, m, n, k, 1, a_type, b_type, c_type, compute, (struct operands){ lda, ldb, ldc, c, 0 });  \
	}
#define GEMM_BATCHED_EX(name, integer)                                                                             \
	TN_EXPORT int name(void *h, int ta, int tb, integer m, integer n, integer k, const void *alpha, const void *a, \
	                   int a_type, integer lda, const void *b, int b_type, integer ldb, const void *beta, void *c, \
	                   int c_type, integer ldc, integer batch, int compute, int algorithm)                         \
	{                                                                                                              \
		return product(h, m, n, k, batch, a_type, b_type, c_type, compute,                                         \
		               (struct operands){ lda, ldb, ldc, NULL, 0 });                                               \
	}
#define GEMM_STRIDED_EX(name, integer)                                                                                 \
	TN_EXPORT int name(void *h, int ta, int tb, integer m, integer n, integer k, const void *alpha, const void *a,     \
	                   int a_type, integer lda, long long sa, const void *b, int b_type, integer ldb, long long sb,    \
	                   const void *beta, void *c, int c_type, integer ldc, long long sc, integer batch, int compute,   \
	                   int algorithm)                                                                                  \
	{                                                                                                                  \
		return product(h, m, n, k, batch, a_type, b_type, c_type, compute, (struct operands){ lda, ldb, ldc, c, sc }); \
	}

GEMM_EX(cublasGemmEx, int)
GEMM_EX(cublasGemmEx_64, int64_t)
GEMM_BATCHED_EX(cublasGemmBatchedEx, int)
GEMM_BATCHED_EX(cublasGemmBatchedEx_64, int64_t)
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx, int)
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx_64, int64_t)

#define SGEMM_EX(name, integer, type)                                                                              \
	TN_EXPORT int name(void *h, int ta, int tb, integer m, integer n, integer k, const void *alpha, const void *a, \
	                   int a_type, integer lda, const void *b, int b_type, integer ldb, const void *beta, void *c, \
	                   int c_type, integer ldc)                                                                    \
	{                                                                                                              \
		return product(h, m, n, k, 1, a_type, b_type, c_type, type, (struct operands){ lda, ldb, ldc, c, 0 });     \
	}

SGEMM_EX(cublasSgemmEx, int, COMPUTE_32F)
SGEMM_EX(cublasSgemmEx_64, int64_t, COMPUTE_32F)
SGEMM_EX(cublasCgemmEx, int, COMPUTE_32F)
SGEMM_EX(cublasCgemmEx_64, int64_t, COMPUTE_32F)

/* Factorisations of small matrices in batches report to the host, too: nothing was wrong. */
#define GEQRF_BATCHED(name)                                                                      \
	TN_EXPORT int name(void *h, int m, int n, void *a, int lda, void *tau, int *info, int batch) \
	{                                                                                            \
		if (info)                                                                                \
			*info = 0;                                                                           \
		return tn__blas_compute(h, #name);                                                       \
	}
#define GETRS_BATCHED(name)                                                                                          \
	TN_EXPORT int name(void *h, int t, int n, int nrhs, const void *a, int lda, const int *pivots, void *b, int ldb, \
	                   int *info, int batch)                                                                         \
	{                                                                                                                \
		if (info)                                                                                                    \
			*info = 0;                                                                                               \
		return tn__blas_compute(h, #name);                                                                           \
	}
#define GELS_BATCHED(name)                                                                                    \
	TN_EXPORT int name(void *h, int t, int m, int n, int nrhs, void *a, int lda, void *c, int ldc, int *info, \
	                   int *device_info, int batch)                                                           \
	{                                                                                                         \
		if (info)                                                                                             \
			*info = 0;                                                                                        \
		return tn__blas_compute(h, #name);                                                                    \
	}

int tn__blas_compute(void *opaque, const char *name);

GEQRF_BATCHED(cublasSgeqrfBatched)
GEQRF_BATCHED(cublasDgeqrfBatched)
GEQRF_BATCHED(cublasCgeqrfBatched)
GEQRF_BATCHED(cublasZgeqrfBatched)
GETRS_BATCHED(cublasSgetrsBatched)
GETRS_BATCHED(cublasDgetrsBatched)
GETRS_BATCHED(cublasCgetrsBatched)
GETRS_BATCHED(cublasZgetrsBatched)
GELS_BATCHED(cublasSgelsBatched)
GELS_BATCHED(cublasDgelsBatched)
GELS_BATCHED(cublasCgelsBatched)
GELS_BATCHED(cublasZgelsBatched)

/* What the table calls COMPUTE: all operands and results lie on the device, so that only the stream matters. */
int
tn__blas_compute(void *opaque, const char *name)
{
	const struct blas_handle *handle = blas_handle_of(opaque);
	if (!handle)
		return BLAS_NOT_INITIALIZED;
	tn__work(handle->stream, tn__time_of_bytes(0), "cublas");
	return BLAS_OK;
}

/* Reductions return a scalar: on the device by pointer mode 1; a host result cannot be known, so that it is refused. */
int
tn__blas_reduce(void *opaque, const char *name)
{
	const struct blas_handle *handle = blas_handle_of(opaque);
	if (handle && handle->pointer_mode == 0)
		return tn__refuse("cublas", name, BLAS_NOT_SUPPORTED);
	return tn__blas_compute(opaque, name);
}
