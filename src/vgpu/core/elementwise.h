/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise kernels: what they compute, and where they write.
 */
#ifndef TN_VGPU_ELEMENTWISE_H
#define TN_VGPU_ELEMENTWISE_H

#include "vgpu/core/state.h"

/* Makes the result known where all operands are, nothing else being touched; false: it was not followed. Wants the core lock. */
bool tn__elementwise_launch(struct tn_kernel *kernel, const struct tn_launch *launch);
/* Where such a launch writes, whatever it computes, and how many bytes at least and at most: its name does not always tell
 * how wide an element of the result is. false: not known. After tn__elementwise_launch. */
bool tn__elementwise_result(const struct tn_kernel *kernel, const struct tn_launch *launch, uint64_t *address,
                            uint64_t *least, uint64_t *most);
/* Whether it is such a kernel. Wants the core lock. */
bool tn__elementwise_is(struct tn_kernel *kernel);
/* Whether such a launch looks at values. Wants the core lock. */
bool tn__elementwise_reads(struct tn_kernel *kernel);

#endif
