/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorted addresses, and bitmaps in levels: a bit of a level says that the word below it holds one.
 */
#include "analyze/address_index.h"

#include <stdlib.h>

#include "base/error.h"

enum { BITS = 64, SHIFT = 6 };

static int
compare_addresses(const void *left, const void *right)
{
	uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
	return (one > other) - (one < other);
}

void
tn__address_index_take(struct tn_address_index *places, uint64_t *addresses, size_t count)
{
	uint32_t kept = 0;
	if (count)
		qsort(addresses, count, sizeof(*addresses), compare_addresses);
	for (size_t index = 0; index < count; index++) {
		if (kept == 0 || addresses[kept - 1] != addresses[index])
			addresses[kept++] = addresses[index];
	}
	*places = (struct tn_address_index){ .addresses = addresses, .count = kept };
}

uint32_t
tn__place_below(const struct tn_address_index *places, uint64_t address)
{
	uint32_t low = 0, high = places->count; /* the answer + 1 lies from low to high */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (places->addresses[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : TN_NO_ADDRESS;
}

uint32_t
tn__place_of(const struct tn_address_index *places, uint64_t address)
{
	uint32_t rank = tn__place_below(places, address);
	return rank != TN_NO_ADDRESS && places->addresses[rank] == address ? rank : TN_NO_ADDRESS;
}

tn_status
tn__set_make(struct tn_set *set, uint32_t count)
{
	struct tn_set fresh = { 0 };
	size_t words = 0, width = count ? count : 1;
	do {
		width = (width + BITS - 1) / BITS;
		fresh.first[fresh.levels++] = words;
		words += width;
	} while (width > 1);
	fresh.words = calloc(words, sizeof(*fresh.words));
	TN_RETURN_IF(!fresh.words, TN_NO_MEMORY, "no host memory for %zu bytes", words * sizeof(*fresh.words));
	*set = fresh;
	return TN_OK;
}

void
tn__set_free(struct tn_set *set)
{
	free(set->words);
	*set = (struct tn_set){ 0 };
}

static inline uint64_t *
word_of(const struct tn_set *set, size_t level, uint32_t number)
{
	return &set->words[set->first[level] + (number >> SHIFT)];
}

static inline uint64_t
bit_of(uint32_t number)
{
	return (uint64_t)1 << (number % BITS);
}

void
tn__set_add(struct tn_set *set, uint32_t rank)
{
	for (size_t level = 0; level < set->levels; level++, rank >>= SHIFT)
		*word_of(set, level, rank) |= bit_of(rank);
}

void
tn__set_remove(struct tn_set *set, uint32_t rank)
{
	for (size_t level = 0; level < set->levels; level++, rank >>= SHIFT) {
		uint64_t *word = word_of(set, level, rank);
		*word &= ~bit_of(rank);
		if (*word)
			return;
	}
}

/* The lowest (or highest) rank below a bit of a level. */
static uint32_t
descend(const struct tn_set *set, size_t level, uint32_t number, int highest)
{
	while (level-- > 0) {
		uint64_t word = set->words[set->first[level] + number];
		uint32_t bit = (uint32_t)(highest ? BITS - 1 - __builtin_clzll(word) : __builtin_ctzll(word));
		number = number << SHIFT | bit;
	}
	return number;
}

uint32_t
tn__set_above(const struct tn_set *set, uint32_t rank)
{
	for (size_t level = 0; level < set->levels; level++, rank >>= SHIFT) {
		uint64_t above = *word_of(set, level, rank) & ~(bit_of(rank) | (bit_of(rank) - 1));
		if (above)
			return descend(set, level, (rank & ~(uint32_t)(BITS - 1)) | (uint32_t)__builtin_ctzll(above), 0);
	}
	return TN_NO_ADDRESS;
}

uint32_t
tn__set_below(const struct tn_set *set, uint32_t rank)
{
	for (size_t level = 0; level < set->levels; level++, rank >>= SHIFT) {
		uint64_t below = *word_of(set, level, rank) & (level ? bit_of(rank) - 1 : bit_of(rank) | (bit_of(rank) - 1));
		if (below)
			return descend(set, level, (rank & ~(uint32_t)(BITS - 1)) | (uint32_t)(BITS - 1 - __builtin_clzll(below)),
			               1);
	}
	return TN_NO_ADDRESS;
}
