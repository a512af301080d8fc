/* SPDX-License-Identifier: Apache-2.0
 *
 * One byte arena, one array of places in it, one open-addressed table kept at most half full.
 */
#include "pickle/intern.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"

enum { FIRST_TABLE = 256, ALIGNMENT = 8 };

void
tn__intern_init(struct tn_intern *intern, struct tn_budget *budget)
{
	*intern = (struct tn_intern){ .budget = budget };
	if (getrandom(&intern->seed, sizeof(intern->seed), GRND_NONBLOCK) != sizeof(intern->seed))
		intern->seed = (uintptr_t)intern * 0x9e3779b97f4a7c15u;
}

void
tn__intern_destroy(struct tn_intern *intern)
{
	if (!intern->budget)
		return;
	tn__release(intern->budget, &intern->bytes, &intern->bytes_capacity, 1);
	tn__release(intern->budget, &intern->items, &intern->items_capacity, sizeof(*intern->items));
	tn__intern_freeze(intern);
	intern->used = intern->count = 0;
}

void
tn__intern_clear(struct tn_intern *intern)
{
	intern->used = intern->count = 0;
	if (intern->table)
		memset(intern->table, 0, intern->table_size * sizeof(*intern->table));
}

void
tn__intern_freeze(struct tn_intern *intern)
{
	tn__release(intern->budget, &intern->table, &intern->table_size, sizeof(*intern->table));
}

/* Folds the 128-bit product of two words. */
static inline uint64_t
mix(uint64_t left, uint64_t right)
{
	__uint128_t product = (__uint128_t)left * right;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t
word_at(const uint8_t *bytes)
{
	uint64_t word;
	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Two lanes, so that the multiplications of a long string overlap. */
static uint32_t
hash_of(uint64_t seed, const uint8_t *bytes, size_t length)
{
	const uint64_t first = 0xa0761d6478bd642fu, second = 0xe7037ed1a0b428dbu;
	uint64_t even = seed ^ length * second, odd = seed ^ first, last = 0;
	for (; length >= 16; bytes += 16, length -= 16) {
		even = mix(even ^ word_at(bytes), first);
		odd = mix(odd ^ word_at(bytes + 8), second);
	}
	if (length >= 8) {
		even = mix(even ^ word_at(bytes), first);
		bytes += 8;
		length -= 8;
	}
	for (size_t index = 0; index < length; index++)
		last |= (uint64_t)bytes[index] << (8 * index);
	return (uint32_t)mix(even ^ last ^ second, odd ^ first);
}

static void
place(struct tn_intern *intern, uint32_t number)
{
	size_t mask = intern->table_size - 1;
	size_t slot = intern->items[number].hash & mask;
	while (intern->table[slot])
		slot = (slot + 1) & mask;
	intern->table[slot] = number + 1;
}

static tn_status
enlarge_table(struct tn_intern *intern)
{
	size_t size = intern->table_size ? intern->table_size * 2 : FIRST_TABLE;
	uint32_t *table = NULL;
	size_t capacity = 0;
	/* A power of two: tn__grow makes a new array of exactly that size or fails. */
	TN_FORWARD_IF_ERROR(tn__grow(intern->budget, &table, &capacity, size, sizeof(*table)));
	tn__release(intern->budget, &intern->table, &intern->table_size, sizeof(*table));
	memset(table, 0, capacity * sizeof(*table));
	intern->table = table;
	intern->table_size = capacity;
	for (size_t number = 0; number < intern->count; number++)
		place(intern, (uint32_t)number);
	return TN_OK;
}

/* Looks in the table; *number is set when found. */
static inline bool
find(const struct tn_intern *intern, uint32_t hash, const void *bytes, size_t length, uint32_t *number)
{
	if (!intern->table_size)
		return false;
	size_t mask = intern->table_size - 1;
	for (size_t slot = hash & mask; intern->table[slot]; slot = (slot + 1) & mask) {
		const struct tn_interned *item = &intern->items[intern->table[slot] - 1];
		if (item->hash == hash && item->length == length && memcmp(intern->bytes + item->offset, bytes, length) == 0) {
			*number = intern->table[slot] - 1;
			return true;
		}
	}
	return false;
}

static tn_status
add(struct tn_intern *intern, uint32_t hash, const void *bytes, size_t length, uint32_t *number)
{
	TN_RETURN_IF(intern->count >= TN_INTERN_MAX || length > UINT32_MAX - ALIGNMENT, TN_LIMIT,
	             "too many different strings");
	if ((intern->count + 1) * 2 > intern->table_size)
		TN_FORWARD_IF_ERROR(enlarge_table(intern));
	size_t needed = intern->used + (length + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
	TN_FORWARD_IF_ERROR(tn__grow(intern->budget, &intern->bytes, &intern->bytes_capacity, needed, 1));
	TN_FORWARD_IF_ERROR(
		tn__grow(intern->budget, &intern->items, &intern->items_capacity, intern->count + 1, sizeof(*intern->items)));
	if (length)
		memcpy(intern->bytes + intern->used, bytes, length);
	memset(intern->bytes + intern->used + length, 0, needed - intern->used - length);
	intern->items[intern->count] = (struct tn_interned){ .offset = intern->used,
		                                                 .length = (uint32_t)length,
		                                                 .hash = hash };
	intern->used = needed;
	place(intern, (uint32_t)intern->count);
	*number = (uint32_t)intern->count++;
	return TN_OK;
}

tn_status
tn__intern(struct tn_intern *intern, const void *bytes, size_t length, uint32_t *number)
{
	uint32_t hash = hash_of(intern->seed, bytes, length);
	if (find(intern, hash, bytes, length, number))
		return TN_OK;
	return add(intern, hash, bytes, length, number);
}
