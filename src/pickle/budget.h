/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays that grow under one limit of memory for everything that a file makes us keep.
 *
 * Invariant: used <= limit. Not thread-safe: a budget belongs to one reader.
 */
#ifndef TN_PICKLE_BUDGET_H
#define TN_PICKLE_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h" /* tn_status */

struct tn_budget {
	uint64_t used;
	uint64_t limit;
};

/* Makes room for at least `needed` elements of `width` bytes in an array that *array (a pointer to any object type,
 * NULL at first) points to, doubling it while the budget allows. TN_LIMIT beyond the budget, TN_NO_MEMORY; the array
 * stays as it was then. */
tn_status tn__grow(struct tn_budget *budget, void *array, size_t *capacity, size_t needed, size_t width);

/* Frees what tn__grow made and gives its bytes back. *array becomes NULL, *capacity 0. */
void tn__release(struct tn_budget *budget, void *array, size_t *capacity, size_t width);

#endif
