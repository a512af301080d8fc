/* SPDX-License-Identifier: Apache-2.0 */
#include "vgpu/core/extents.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define BLOCK_EXTENTS 64

struct block {
	size_t count; /* never 0 */
	struct tn_extent items[BLOCK_EXTENTS];
};

pthread_mutex_t tn__values_lock = PTHREAD_MUTEX_INITIALIZER;
static struct block **blocks;
static size_t block_count, block_capacity, extent_count;
static uint64_t stored_bytes, era;

static uint64_t
end_of(const struct tn_extent *extent)
{
	return extent->address + extent->size;
}

struct tn_extent *
tn__extents_at(struct tn_place *place)
{
	if (place->block < block_count && place->item == blocks[place->block]->count)
		*place = (struct tn_place){ place->block + 1, 0 };
	return place->block < block_count ? &blocks[place->block]->items[place->item] : NULL;
}

struct tn_extent *
tn__extents_next(struct tn_place *place)
{
	place->item++;
	return tn__extents_at(place);
}

struct tn_extent *
tn__extents_first(struct tn_place *place, uint64_t address)
{
	size_t low = 0, high = block_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (end_of(&blocks[middle]->items[blocks[middle]->count - 1]) > address)
			high = middle;
		else
			low = middle + 1;
	}
	place->block = low;
	place->item = 0;
	if (low == block_count)
		return NULL;
	high = blocks[low]->count - 1; /* which ends above it */
	for (low = 0; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (end_of(&blocks[place->block]->items[middle]) > address)
			high = middle;
		else
			low = middle + 1;
	}
	place->item = low;
	return &blocks[place->block]->items[low];
}

size_t
tn__extents_count(void)
{
	return extent_count;
}

uint64_t
tn__extents_stored(void)
{
	return stored_bytes;
}

/* A new block at an index, with the last `count` extents of the one before it. */
static bool
add_block(size_t index, size_t count)
{
	struct block *block = malloc(sizeof(*block));
	if (!block || !tn__array_room(&blocks, &block_capacity, block_count + 1, sizeof(struct block *), TN_EXTENTS_MAX)) {
		free(block);
		return false;
	}
	memmove(&blocks[index + 1], &blocks[index], (block_count - index) * sizeof(struct block *));
	blocks[index] = block;
	block_count++;
	block->count = count;
	if (count) {
		struct block *before = blocks[index - 1];
		before->count -= count;
		memcpy(block->items, &before->items[before->count], count * sizeof(*block->items));
	}
	return true;
}

static void
remove_block(size_t index)
{
	free(blocks[index]);
	block_count--;
	memmove(&blocks[index], &blocks[index + 1], (block_count - index) * sizeof(struct block *));
}

/* Makes room for one more at a place. One that comes behind all others begins a block, so that blocks filled in order are full. */
static bool
make_room(struct tn_place *place)
{
	if (place->block == block_count) {
		if (block_count > 0 && blocks[block_count - 1]->count < BLOCK_EXTENTS)
			*place = (struct tn_place){ block_count - 1, blocks[block_count - 1]->count };
		else
			return add_block(block_count, 0);
	}
	if (blocks[place->block]->count < BLOCK_EXTENTS)
		return true;
	if (!add_block(place->block + 1, BLOCK_EXTENTS / 2))
		return false;
	if (place->item > BLOCK_EXTENTS / 2)
		*place = (struct tn_place){ place->block + 1, place->item - BLOCK_EXTENTS / 2 };
	return true;
}

bool
tn__extents_add(const struct tn_extent *extent)
{
	struct tn_place place;
	tn__extents_first(&place, extent->address);
	if (extent_count >= TN_EXTENTS_MAX || !make_room(&place)) {
		free(extent->bytes);
		return false;
	}
	struct block *block = blocks[place.block];
	memmove(&block->items[place.item + 1], &block->items[place.item],
	        (block->count - place.item) * sizeof(*block->items));
	block->items[place.item] = *extent;
	block->count++;
	extent_count++;
	stored_bytes += extent->bytes ? extent->size : 0;
	return true;
}

/* A block and the next one, if there is one, become one where they would fill no more than half of it. */
static bool
join_blocks(size_t index)
{
	struct block *block = blocks[index], *next = index + 1 < block_count ? blocks[index + 1] : NULL;
	if (!next || block->count + next->count > BLOCK_EXTENTS / 2)
		return false;
	memcpy(&block->items[block->count], next->items, next->count * sizeof(*next->items));
	block->count += next->count;
	remove_block(index + 1);
	return true;
}

struct tn_extent *
tn__extents_remove(struct tn_place *place)
{
	struct block *block = blocks[place->block];
	struct tn_extent *extent = &block->items[place->item];
	stored_bytes -= extent->bytes ? extent->size : 0;
	free(extent->bytes);
	block->count--;
	extent_count--;
	memmove(extent, extent + 1, (block->count - place->item) * sizeof(*extent));
	if (block->count == 0) {
		remove_block(place->block);
		return tn__extents_at(place);
	}
	join_blocks(place->block);
	size_t before = place->block > 0 ? blocks[place->block - 1]->count : 0;
	if (place->block > 0 && join_blocks(place->block - 1))
		*place = (struct tn_place){ place->block - 1, place->item + before };
	return tn__extents_at(place);
}

struct tn_extent
tn__extent_part(const struct tn_extent *extent, uint64_t from, uint64_t to)
{
	struct tn_extent part = *extent;
	part.address = from;
	part.size = to - from;
	if (extent->bytes) {
		part.bytes = malloc(part.size);
		if (!part.bytes)
			return (struct tn_extent){ 0 };
		memcpy(part.bytes, extent->bytes + (from - extent->address), part.size);
	} else {
		size_t shift = (size_t)((from - extent->address) % extent->pattern_bytes);
		for (size_t i = 0; i < extent->pattern_bytes; i++)
			part.pattern[i] = extent->pattern[(i + shift) % extent->pattern_bytes];
	}
	return part;
}

void
tn__extents_cut(uint64_t address, uint64_t size)
{
	uint64_t end = address + size;
	struct tn_place place;
	struct tn_extent *extent = tn__extents_first(&place, address);
	if (!extent || extent->address >= end)
		return;
	struct tn_extent before = { 0 }, after = { 0 };
	while (extent && extent->address < end) {
		if (extent->address < address)
			before = tn__extent_part(extent, extent->address, address);
		if (end_of(extent) > end)
			after = tn__extent_part(extent, end, end_of(extent));
		extent = tn__extents_remove(&place);
	}
	if (before.size)
		tn__extents_add(&before);
	if (after.size)
		tn__extents_add(&after);
}

void
tn__extents_clear(void)
{
	struct tn_place place;
	for (struct tn_extent *extent = tn__extents_first(&place, 0); extent;)
		extent = extent->pinned ? tn__extents_next(&place) : tn__extents_remove(&place);
}

void
tn__extent_copy(const struct tn_extent *extent, uint64_t from, uint64_t to, unsigned char *out)
{
	uint64_t offset = from - extent->address;
	if (extent->bytes) {
		memcpy(out, extent->bytes + offset, to - from);
		return;
	}
	for (uint64_t i = 0; i < to - from; i++)
		out[i] = extent->pattern[(offset + i) % extent->pattern_bytes];
}

bool
tn__extent_is_zeros(const struct tn_extent *extent)
{
	for (size_t i = 0; i < extent->pattern_bytes; i++)
		if (extent->pattern[i] != 0)
			return false;
	return extent->bytes == NULL;
}

void
tn__extents_outlive(void)
{
	era++;
}

uint64_t
tn__extents_era(void)
{
	return era;
}

bool
tn__extent_outlived(const struct tn_extent *extent)
{
	return extent->era != era;
}

bool
tn__extents_cover(uint64_t address, uint64_t bytes)
{
	uint64_t end = address + bytes, at = address;
	struct tn_place place;
	for (struct tn_extent *extent = tn__extents_first(&place, address); extent && at < end && extent->address <= at;
	     extent = tn__extents_next(&place))
		at = end_of(extent);
	return at >= end;
}

bool
tn__extent_counts(const struct tn_extent *extent, bool covered)
{
	return covered || !tn__extent_outlived(extent) || extent->pinned;
}

uint64_t
tn__extents_read(uint64_t address, unsigned char *host, uint64_t bytes, enum tn_which which)
{
	uint64_t read = 0, end = address + bytes;
	bool covered = tn__extents_cover(address, bytes);
	struct tn_place place;
	for (struct tn_extent *extent = tn__extents_first(&place, address); extent && extent->address < end;
	     extent = tn__extents_next(&place)) {
		bool assumed = extent->likely.kind != TN_LIKELY_NONE;
		if (assumed != (which == TN_ASSUMED) || (which == TN_KNOWN_NOT_ZEROS && tn__extent_is_zeros(extent)) ||
		    !tn__extent_counts(extent, covered))
			continue;
		uint64_t from = extent->address > address ? extent->address : address;
		uint64_t to = end_of(extent) < end ? end_of(extent) : end;
		if (host)
			tn__extent_copy(extent, from, to, host + (from - address));
		read += to - from;
	}
	return read;
}
