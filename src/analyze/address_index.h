/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses by rank, and sets of ranks that know the next and the previous member in a few steps.
 *
 * All addresses of a trace are known before anything is asked, so that an ordered set is a bitmap with a summary of 64
 * bits to the word above it. Knows no snapshot. Not thread-safe while it changes.
 */
#ifndef TN_ANALYZE_ADDRESS_INDEX_H
#define TN_ANALYZE_ADDRESS_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h" /* tn_status */

#define TN_NO_ADDRESS UINT32_MAX

/* Different addresses, ascending. */
struct tn_address_index {
	uint64_t *addresses;
	uint32_t count;
};

/* Takes over `addresses` (malloc), sorts it and drops what is there twice. */
void tn__address_index_take(struct tn_address_index *places, uint64_t *addresses, size_t count);

/* The rank of an address; TN_NO_ADDRESS when it is not there. */
uint32_t tn__place_of(const struct tn_address_index *places, uint64_t address);

/* The rank of the highest address that is not above this one; TN_NO_ADDRESS when there is none. */
uint32_t tn__place_below(const struct tn_address_index *places, uint64_t address);

/* A set of ranks. */
struct tn_set {
	uint64_t *words; /* of all levels, the lowest first */
	size_t levels;
	size_t first[6]; /* word of each level */
};

/* An empty set of ranks below `count`. TN_NO_MEMORY. Release with tn__set_free. */
tn_status tn__set_make(struct tn_set *set, uint32_t count);
void tn__set_free(struct tn_set *set); /* of a zeroed set as well */

void tn__set_add(struct tn_set *set, uint32_t rank);
void tn__set_remove(struct tn_set *set, uint32_t rank);

/* The lowest member above `rank`, and the highest that is not above it; TN_NO_ADDRESS when there is none. */
uint32_t tn__set_above(const struct tn_set *set, uint32_t rank);
uint32_t tn__set_below(const struct tn_set *set, uint32_t rank);

#endif
