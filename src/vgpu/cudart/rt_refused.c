/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime: stubs of everything that the table refuses.
 */
#define TN_SHELL_LIBRARY "cudart"
#define TN_SHELL_TABLE "vgpu/cudart/table.def"
#define TN_SHELL_REFUSAL 801 /* cudaErrorNotSupported */
#include "vgpu/core/stubs.h"
