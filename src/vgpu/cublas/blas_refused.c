/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS: stubs of everything that the table computes, reduces or refuses.
 */
int tn__blas_compute(void *opaque, const char *name);
int tn__blas_reduce(void *opaque, const char *name);

#define TN_SHELL_LIBRARY "cublas"
#define TN_SHELL_TABLE "vgpu/cublas/table.def"
#define TN_SHELL_REFUSAL 15 /* CUBLAS_STATUS_NOT_SUPPORTED */
#define TN_SHELL_COMPUTE tn__blas_compute
#define TN_SHELL_REDUCE tn__blas_reduce
#include "vgpu/core/stubs.h"
