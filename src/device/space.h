/* SPDX-License-Identifier: Apache-2.0
 *
 * Address space of one virtual device: hands out the lowest free range that is big enough, so that the same calls give the
 * same addresses in every run. Knows nothing of bytes being available: that is the ledger's.
 *
 * Invariants (tn__space_check): ranges are sorted by address, do not overlap and lie inside [base, base + size).
 * Not thread-safe: the owner locks.
 */
#ifndef TN_DEVICE_SPACE_H
#define TN_DEVICE_SPACE_H

#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h"

#define TN_GRANULARITY (UINT64_C(2) << 20) /* pages in which a device gives memory out */
#define TN_SMALL_ALIGNMENT UINT64_C(512)   /* of allocations that share a page */

struct tn_range {
	uint64_t address, size;
	uint64_t tag; /* the owner's: kind, device, whatever it needs */
	void *object; /* the owner's */
};

struct tn_space {
	uint64_t base, size;
	struct tn_range *ranges; /* taken ones, by address */
	size_t count, capacity;
	size_t first_gap; /* no gap lies before this index: keeps allocation quick while nothing was freed */
};

void tn__space_init(struct tn_space *space, uint64_t base, uint64_t size);
void tn__space_destroy(struct tn_space *space);

/* Takes the lowest free range of `size` bytes at a multiple of `alignment` (a power of two). `wanted`, if not 0, is tried
 * first. The range is copied to *out. TN_LIMIT when the space has no such gap, TN_NO_MEMORY for host memory. */
tn_status tn__space_take(struct tn_space *space, uint64_t size, uint64_t alignment, uint64_t wanted, uint64_t tag,
                         void *object, struct tn_range *out);

/* The taken range that contains `address`, or NULL. The pointer is valid until the next take or give. */
struct tn_range *tn__space_find(struct tn_space *space, uint64_t address);

/* Gives the range that starts at `address` back; *out, if not NULL, receives what it was. TN_NOT_FOUND when no range
 * starts there. */
tn_status tn__space_give(struct tn_space *space, uint64_t address, struct tn_range *out);

/* The same for a range that tn__space_find returned: the search is not made twice. */
void tn__space_remove(struct tn_space *space, struct tn_range *range);

tn_status tn__space_check(const struct tn_space *space);

#endif
