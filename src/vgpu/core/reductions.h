/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel selects or reduces, and reductions. Everything wants the core lock.
 */
#ifndef TN_VGPU_REDUCTIONS_H
#define TN_VGPU_REDUCTIONS_H

#include "vgpu/core/state.h"

/* tn_kernel.selection */
enum selection {
	SELECTION_UNREAD,
	SELECTION_NONE,
	SELECTION_ALL, /* whether all, whether any */
	SELECTION_ANY,
	SELECTION_SUM,
	SELECTION_EXTREME, /* max, min */
	SELECTION_INDEX,
	SELECTION_FIGURE,      /* any other reduction: mean, norm */
	SELECTION_COUNT_PARTS, /* of what is not zero: a number for each block, then their sum */
	SELECTION_COUNT,
	SELECTION_UNIQUE,
	SELECTION_RUNS, /* of equal elements, with their lengths */
	SELECTION_THRUST_UNIQUE,
	SELECTION_SCAN,
	SELECTION_SCRATCH, /* prepares the memory that one of the above works in, and nothing else */
	SELECTION_HISTOGRAM,
	SELECTION_TOPK,
	SELECTION_NUMBER_SLICES, /* each slice's elements are 0, 1, 2, ... */
	SELECTION_SORT,          /* keys with values, in place */
};

#define TN_FOLLOWED_MAX (UINT64_C(1) << 20) /* bytes of an operand that is looked through */

/* Whole numbers as they are known or assumed, 1 where neither; the caller frees. *known: all are. NULL: too many, or no memory. */
unsigned char *tn__likely_whole(uint64_t address, uint64_t count, enum tn_dtype dtype, bool *known);

/* The largest, the smallest or the sum of whole numbers: computed where these are known. */
bool tn__reduction_is_exact(const struct tn_kernel *kernel);

/* Follows a reduction, as tn__selected_launch does. */
bool tn__reduce(const struct tn_kernel *kernel, const struct tn_launch *launch, bool after_mask);

#endif
