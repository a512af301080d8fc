/* SPDX-License-Identifier: Apache-2.0
 *
 * Driver: stubs of everything that the table refuses.
 */
#define TN_SHELL_LIBRARY "cuda"
#define TN_SHELL_TABLE "vgpu/driver/table.def"
#define TN_SHELL_REFUSAL 801 /* CUDA_ERROR_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"
