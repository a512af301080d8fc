/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that move elements: cat and stack, indexing and assignment at indices.
 */
#ifndef TN_VGPU_REARRANGE_H
#define TN_VGPU_REARRANGE_H

#include "vgpu/core/state.h"

/* Follows such a launch: its result is as known as what it reads, nothing else is touched; false: it is none, or does not look
 * as expected. Wants the core lock. */
bool tn__rearrange_launch(struct tn_kernel *kernel, const struct tn_launch *launch);
/* Whether it is such a kernel, which looks at values. Wants the core lock. */
bool tn__rearrange_reads(struct tn_kernel *kernel);

#endif
