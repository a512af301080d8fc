/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt: stubs of everything that the table refuses.
 */
#define TN_SHELL_LIBRARY "cublasLt"
#define TN_SHELL_TABLE "vgpu/cublaslt/table.def"
#define TN_SHELL_REFUSAL 15 /* CUBLAS_STATUS_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"
