/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches whose results programs read next: counts, truths, sums, norms.
 */
#ifndef TN_VGPU_SELECTED_H
#define TN_VGPU_SELECTED_H

#include "vgpu/core/state.h"

/* Follows such a launch, whose every other effect is unknown; false: it is none. Wants the core lock. */
bool tn__selected_launch(struct tn_kernel *kernel, const struct tn_launch *launch);
/* How many of `count` elements can be selected at most, by what is known of the tensor at `address`: meaning.c. */
uint64_t tn__likely_share_of(uint64_t address, uint64_t count, enum tn_element element);
/* Whether the launch before wrote a mask whose place is not known. */
bool tn__likely_last_is_mask(void);

#endif
