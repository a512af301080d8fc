/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of cuDNN that are refused, or that have nothing to do: see cudnn.def.
 */
#define TN_SHELL_LIBRARY "cudnn"
#define TN_SHELL_TABLE "vgpu/cudnn/table.def"
#define TN_SHELL_REFUSAL 3000 /* CUDNN_STATUS_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"
