/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches whose results programs read next: counts, truths, sums, norms.
 */
#ifndef TN_VGPU_SELECTED_H
#define TN_VGPU_SELECTED_H

#include "vgpu/core/state.h"

/* Follows such a launch, whose every other effect is unknown; false: it is none. `after_mask`: the launch before wrote a mask whose
 * place is not known. Wants the core lock. */
bool tn__selected_launch(struct tn_kernel *kernel, const struct tn_launch *launch, bool after_mask);
/* Whether it is such a kernel. Wants the core lock. */
bool tn__selected_is(struct tn_kernel *kernel);
/* True when its result is computed from what it reads, so that what is on its way there has to be waited for: PyTorch 2.15's
 * all_gather_object asks for the largest of the sizes that it gathered. Wants the core lock. */
bool tn__selected_reads(struct tn_kernel *kernel);

#endif
