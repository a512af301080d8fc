/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte strings kept once: equal bytes have equal numbers, counted from 0 in order of first appearance.
 *
 * Serves for texts, and for stacks and records that are compared as bytes (which must hold no padding). Each is
 * aligned to 8 bytes and followed by a zero byte. The hash has a random seed, so that no file can be made to collide;
 * numbers do not depend on it. Not thread-safe while it grows.
 */
#ifndef TN_PICKLE_INTERN_H
#define TN_PICKLE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "pickle/budget.h" /* struct tn_budget */

struct tn_interned {
	uint64_t offset;
	uint32_t length;
	uint32_t hash;
};

struct tn_intern {
	struct tn_budget *budget;
	uint64_t seed;
	uint8_t *bytes;
	size_t used, bytes_capacity;
	struct tn_interned *items;
	size_t count, items_capacity;
	uint32_t *table; /* number + 1; 0: free */
	size_t table_size;
};

/* At most this many different strings in one table: a number fits 28 bits beside a kind. */
#define TN_INTERN_MAX ((size_t)1 << 28)

void tn__intern_init(struct tn_intern *intern, struct tn_budget *budget);
void tn__intern_destroy(struct tn_intern *intern);

/* Forgets all strings and keeps the memory. */
void tn__intern_clear(struct tn_intern *intern);

/* The number of these bytes, which must not lie in the table itself. TN_LIMIT, TN_NO_MEMORY. */
tn_status tn__intern(struct tn_intern *intern, const void *bytes, size_t length, uint32_t *number);

/* Gives up the hash table (and what grew in excess): lookups only by number from now on. */
void tn__intern_freeze(struct tn_intern *intern);

/* The bytes of a number below count; valid until the next tn__intern. */
static inline const void *
tn__interned(const struct tn_intern *intern, uint32_t number)
{
	return intern->bytes + intern->items[number].offset;
}

static inline size_t
tn__interned_length(const struct tn_intern *intern, uint32_t number)
{
	return intern->items[number].length;
}

#endif
