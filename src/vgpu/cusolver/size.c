/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSOLVER's workspaces, by a model: no document gives them, and the library cannot be asked without a card. Each is what
 * LAPACK's routine of that name documents as its work array (Users' Guide, lwork), with blocks of 64 columns where LAPACK
 * asks the machine for a block size, and for what LAPACK has not (Jacobi) the copies that the method needs. The report
 * names the model as the source. Pure arithmetic; matrices are column-major.
 *
 * In elements of the matrix:
 *   potrf      n * 64               a panel of the blocked factorization (LAPACK: none)
 *   getrf      m * 64               a panel (LAPACK: none)
 *   geqrf      n * 64               LAPACK
 *   orgqr      n * 64               LAPACK; ormqr: n or m * 64, LAPACK
 *   sytrf      n * 64               LAPACK
 *   sytrs      n * nrhs             a copy of the right sides
 *   gesvd      3 min + (m + n) * 64 LAPACK's optimum for reduction to bidiagonal form
 *   gesvdj     m * n + 2 min^2      copies of A and of both sides' rotations
 *   gesvda     2 n^2 + n            A^T A and its vectors, a matrix
 *   syevd      1 + 6 n + 2 n^2      LAPACK with vectors; 2 n + 1 without
 *   syevj      2 n^2                copies of A and of the rotations
 *   geev       n^2 + 4 n            LAPACK (4 n), and a copy in Hessenberg form
 */
#include <limits.h>

#include "vgpu/core/library_handle.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define BLOCK 64.0
#define LARGEST 4e18 /* bytes; no card has them */

typedef const struct tn_library_handle *handle_t;

static void
count(void)
{
	tn__count_answer(false,
	                 "cuSOLVER, cuSPARSE cannot be asked without a card: workspaces by a model of their documents");
}

/* Legacy functions count in elements, in an int. */
static int
elements(handle_t handle, double wanted, int *out)
{
	if (!handle)
		return HANDLE_NOT_INITIALIZED;
	if (!out || wanted < 0 || wanted > INT_MAX)
		return HANDLE_INVALID_VALUE;
	count();
	*out = wanted < 1 ? 1 : (int)wanted;
	return HANDLE_SUCCESS;
}

static double
bytes_of(int type)
{
	static const double sizes[] = { 4, 8, 2, 1, 8, 16 }; /* CUDA_R_32F, R_64F, R_16F, R_8I, C_32F, C_64F */
	return type >= 0 && type < 6 ? sizes[type] : 16;
}

/* Functions of the 64-bit interface count in bytes, on the card and on the host. */
static int
bytes(handle_t handle, double wanted, int type, size_t *device, size_t *host)
{
	wanted *= bytes_of(type);
	if (!handle)
		return HANDLE_NOT_INITIALIZED;
	if (!device || !host || wanted < 0 || wanted > LARGEST)
		return HANDLE_INVALID_VALUE;
	count();
	*device = wanted < 1 ? 1 : (size_t)wanted;
	*host = 0;
	return HANDLE_SUCCESS;
}

static double
smaller(double a, double b)
{
	return a < b ? a : b;
}

static double
eigenvectors(int jobz, double n)
{
	return jobz ? 1 + 6 * n + 2 * n * n : 2 * n + 1;
}

static double
jacobi(double m, double n)
{
	double least = smaller(m, n);
	return m * n + 2 * least * least;
}

/* ---- one name a type; the arguments are those of the library's header ---- */

#define FOUR(function) function(S) function(D) function(C) function(Z)
#define REAL(function) function(S) function(D)
#define COMPLEX(function) function(C) function(Z)

#define POTRF(T)                                                                                           \
	TN_EXPORT int cusolverDn##T##potrf_bufferSize(handle_t h, int uplo, int n, void *a, int lda, int *out) \
	{                                                                                                      \
		return elements(h, BLOCK * n, out);                                                                \
	}
#define GETRF(T)                                                                                        \
	TN_EXPORT int cusolverDn##T##getrf_bufferSize(handle_t h, int m, int n, void *a, int lda, int *out) \
	{                                                                                                   \
		return elements(h, BLOCK * m, out);                                                             \
	}
#define GEQRF(T)                                                                                        \
	TN_EXPORT int cusolverDn##T##geqrf_bufferSize(handle_t h, int m, int n, void *a, int lda, int *out) \
	{                                                                                                   \
		return elements(h, BLOCK * n, out);                                                             \
	}
#define FORM_Q(T, name)                                                                                     \
	TN_EXPORT int cusolverDn##T##name##_bufferSize(handle_t h, int m, int n, int k, const void *a, int lda, \
	                                               const void *tau, int *out)                               \
	{                                                                                                       \
		return elements(h, BLOCK * n, out);                                                                 \
	}
#define APPLY_Q(T, name)                                                                                            \
	TN_EXPORT int cusolverDn##T##name##_bufferSize(handle_t h, int side, int trans, int m, int n, int k,            \
	                                               const void *a, int lda, const void *tau, const void *c, int ldc, \
	                                               int *out)                                                        \
	{                                                                                                               \
		return elements(h, BLOCK * (side ? m : n), out);                                                            \
	}
#define ORGQR(T) FORM_Q(T, orgqr)
#define UNGQR(T) FORM_Q(T, ungqr)
#define ORMQR(T) APPLY_Q(T, ormqr)
#define UNMQR(T) APPLY_Q(T, unmqr)
#define SYTRF(T)                                                                                 \
	TN_EXPORT int cusolverDn##T##sytrf_bufferSize(handle_t h, int n, void *a, int lda, int *out) \
	{                                                                                            \
		return elements(h, BLOCK * n, out);                                                      \
	}
#define GESVD(T)                                                                      \
	TN_EXPORT int cusolverDn##T##gesvd_bufferSize(handle_t h, int m, int n, int *out) \
	{                                                                                 \
		return elements(h, 3 * smaller(m, n) + BLOCK * ((double)m + n), out);         \
	}
#define GESVDJ(T)                                                                                                 \
	TN_EXPORT int cusolverDn##T##gesvdj_bufferSize(handle_t h, int jobz, int econ, int m, int n, const void *a,   \
	                                               int lda, const void *s, const void *u, int ldu, const void *v, \
	                                               int ldv, int *out, const void *parameters)                     \
	{                                                                                                             \
		return elements(h, jacobi(m, n), out);                                                                    \
	}
#define GESVDJ_BATCHED(T)                                                                                             \
	TN_EXPORT int cusolverDn##T##gesvdjBatched_bufferSize(handle_t h, int jobz, int m, int n, const void *a, int lda, \
	                                                      const void *s, const void *u, int ldu, const void *v,       \
	                                                      int ldv, int *out, const void *parameters, int batch)       \
	{                                                                                                                 \
		return elements(h, jacobi(m, n) * batch, out);                                                                \
	}
#define GESVDA(T)                                                                                                   \
	TN_EXPORT int cusolverDn##T##gesvdaStridedBatched_bufferSize(                                                   \
		handle_t h, int jobz, int rank, int m, int n, const void *a, int lda, long long stride_a, const void *s,    \
		long long stride_s, const void *u, int ldu, long long stride_u, const void *v, int ldv, long long stride_v, \
		int *out, int batch)                                                                                        \
	{                                                                                                               \
		return elements(h, (2.0 * n * n + n) * batch, out);                                                         \
	}
#define EIGEN_D(T, name)                                                                                          \
	TN_EXPORT int cusolverDn##T##name##_bufferSize(handle_t h, int jobz, int uplo, int n, const void *a, int lda, \
	                                               const void *w, int *out)                                       \
	{                                                                                                             \
		return elements(h, eigenvectors(jobz, n), out);                                                           \
	}
#define EIGEN_J(T, name)                                                                                          \
	TN_EXPORT int cusolverDn##T##name##_bufferSize(handle_t h, int jobz, int uplo, int n, const void *a, int lda, \
	                                               const void *w, int *out, const void *parameters)               \
	{                                                                                                             \
		return elements(h, 2.0 * n * n, out);                                                                     \
	}
#define EIGEN_J_BATCHED(T, name)                                                                                  \
	TN_EXPORT int cusolverDn##T##name##_bufferSize(handle_t h, int jobz, int uplo, int n, const void *a, int lda, \
	                                               const void *w, int *out, const void *parameters, int batch)    \
	{                                                                                                             \
		return elements(h, 2.0 * n * n * batch, out);                                                             \
	}
#define SYEVD(T) EIGEN_D(T, syevd)
#define HEEVD(T) EIGEN_D(T, heevd)
#define SYEVJ(T) EIGEN_J(T, syevj)
#define HEEVJ(T) EIGEN_J(T, heevj)
#define SYEVJ_BATCHED(T) EIGEN_J_BATCHED(T, syevjBatched)
#define HEEVJ_BATCHED(T) EIGEN_J_BATCHED(T, heevjBatched)

FOUR(POTRF)
FOUR(GETRF)
FOUR(GEQRF)
REAL(ORGQR)
COMPLEX(UNGQR)
REAL(ORMQR)
COMPLEX(UNMQR)
FOUR(SYTRF)
FOUR(GESVD)
FOUR(GESVDJ)
FOUR(GESVDJ_BATCHED)
FOUR(GESVDA)
REAL(SYEVD)
COMPLEX(HEEVD)
REAL(SYEVJ)
COMPLEX(HEEVJ)
REAL(SYEVJ_BATCHED)
COMPLEX(HEEVJ_BATCHED)

/* ---- the 64-bit interface ---- */

TN_EXPORT int
cusolverDnXpotrf_bufferSize(handle_t h, const void *parameters, int uplo, int64_t n, int type, const void *a,
                            int64_t lda, int compute, size_t *device, size_t *host)
{
	return bytes(h, BLOCK * (double)n, type, device, host);
}

TN_EXPORT int
cusolverDnXgetrf_bufferSize(handle_t h, const void *parameters, int64_t m, int64_t n, int type, const void *a,
                            int64_t lda, int compute, size_t *device, size_t *host)
{
	return bytes(h, BLOCK * (double)m, type, device, host);
}

TN_EXPORT int
cusolverDnXgeqrf_bufferSize(handle_t h, const void *parameters, int64_t m, int64_t n, int type, const void *a,
                            int64_t lda, int tau_type, const void *tau, int compute, size_t *device, size_t *host)
{
	return bytes(h, BLOCK * (double)n, type, device, host);
}

TN_EXPORT int
cusolverDnXsyevd_bufferSize(handle_t h, const void *parameters, int jobz, int uplo, int64_t n, int type, const void *a,
                            int64_t lda, int w_type, const void *w, int compute, size_t *device, size_t *host)
{
	return bytes(h, eigenvectors(jobz, (double)n), type, device, host);
}

TN_EXPORT int
cusolverDnXsyevBatched_bufferSize(handle_t h, const void *parameters, int jobz, int uplo, int64_t n, int type,
                                  const void *a, int64_t lda, int w_type, const void *w, int compute, size_t *device,
                                  size_t *host, int64_t batch)
{
	return bytes(h, eigenvectors(jobz, (double)n) * (double)batch, type, device, host);
}

TN_EXPORT int
cusolverDnXgesvd_bufferSize(handle_t h, const void *parameters, signed char jobu, signed char jobvt, int64_t m,
                            int64_t n, int type, const void *a, int64_t lda, int s_type, const void *s, int u_type,
                            const void *u, int64_t ldu, int v_type, const void *v, int64_t ldv, int compute,
                            size_t *device, size_t *host)
{
	return bytes(h, 3 * smaller((double)m, (double)n) + BLOCK * ((double)m + (double)n), type, device, host);
}

TN_EXPORT int
cusolverDnXgeev_bufferSize(handle_t h, const void *parameters, int left, int right, int64_t n, int type, const void *a,
                           int64_t lda, int w_type, const void *w, int vl_type, const void *vl, int64_t ldvl,
                           int vr_type, const void *vr, int64_t ldvr, int compute, size_t *device, size_t *host)
{
	return bytes(h, (double)n * (double)n + 4 * (double)n, type, device, host);
}

TN_EXPORT int
cusolverDnXsytrs_bufferSize(handle_t h, int uplo, int64_t n, int64_t sides, int a_type, const void *a, int64_t lda,
                            const int64_t *pivots, int type, const void *b, int64_t ldb, size_t *device, size_t *host)
{
	return bytes(h, (double)n * (double)sides, type, device, host);
}
