/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorted array of taken ranges. A device of a training run holds hundreds of segments, so that moving a few kilobytes on
 * insertion is cheaper than a tree; the search for a gap starts at the first one known.
 */
#include "device/space.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"

void
tn__space_init(struct tn_space *space, uint64_t base, uint64_t size)
{
	*space = (struct tn_space){ .base = base, .size = size };
}

void
tn__space_destroy(struct tn_space *space)
{
	free(space->ranges);
	*space = (struct tn_space){ 0 };
}

/* Index of the first range whose end lies above `address`. */
static size_t
first_above(const struct tn_space *space, uint64_t address)
{
	size_t low = 0, high = space->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (space->ranges[middle].address + space->ranges[middle].size > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static uint64_t
end_of(const struct tn_space *space, size_t index)
{
	return index == 0 ? space->base : space->ranges[index - 1].address + space->ranges[index - 1].size;
}

static uint64_t
start_of(const struct tn_space *space, size_t index)
{
	return index == space->count ? space->base + space->size : space->ranges[index].address;
}

/* Looks for a gap before range `index`; returns the address or 0. */
static uint64_t
fit_before(const struct tn_space *space, size_t index, uint64_t size, uint64_t alignment)
{
	uint64_t start = (end_of(space, index) + alignment - 1) & ~(alignment - 1);
	uint64_t end = start_of(space, index);
	return start <= end && end - start >= size ? start : 0;
}

static bool
fits_at(const struct tn_space *space, uint64_t wanted, uint64_t size, size_t *index)
{
	if (wanted < space->base || size > space->size || wanted - space->base > space->size - size)
		return false;
	*index = first_above(space, wanted);
	return start_of(space, *index) >= wanted + size;
}

static tn_status
reserve_one(struct tn_space *space)
{
	TN_RETURN_IF(space->count == space->capacity && !tn__array_room(&space->ranges, &space->capacity, space->count + 1,
	                                                                sizeof(*space->ranges), SIZE_MAX),
	             TN_NO_MEMORY, "no host memory for the address space of a device");
	return TN_OK;
}

static void
insert(struct tn_space *space, size_t index, const struct tn_range *range)
{
	memmove(&space->ranges[index + 1], &space->ranges[index], (space->count - index) * sizeof(*range));
	space->ranges[index] = *range;
	space->count++;
	assert(tn__space_check(space) == TN_OK);
}

tn_status
tn__space_take(struct tn_space *space, uint64_t size, uint64_t alignment, uint64_t wanted, uint64_t tag, void *object,
               struct tn_range *out)
{
	TN_RETURN_IF(size == 0 || alignment == 0 || (alignment & (alignment - 1)) != 0, TN_INVALID,
	             "a range needs a size and an alignment that is a power of two");
	TN_FORWARD_IF_ERROR(reserve_one(space));
	size_t index = 0;
	uint64_t address = 0;
	if (wanted && (wanted & (alignment - 1)) == 0 && fits_at(space, wanted, size, &index))
		address = wanted;
	bool gap_seen = false;
	for (size_t i = space->first_gap; !address && i <= space->count; i++) {
		address = fit_before(space, i, size, alignment);
		index = i;
		if (!gap_seen && (address || end_of(space, i) < start_of(space, i))) {
			gap_seen = true;
			space->first_gap = i;
		}
	}
	TN_RETURN_IF(!address, TN_LIMIT, "the address space of the device is full");
	struct tn_range range = { .address = address, .size = size, .tag = tag, .object = object };
	insert(space, index, &range);
	if (index < space->first_gap)
		space->first_gap = index;
	*out = range;
	return TN_OK;
}

struct tn_range *
tn__space_find(struct tn_space *space, uint64_t address)
{
	size_t index = first_above(space, address);
	if (index == space->count || space->ranges[index].address > address)
		return NULL;
	return &space->ranges[index];
}

void
tn__space_remove(struct tn_space *space, struct tn_range *range)
{
	size_t index = (size_t)(range - space->ranges);
	memmove(range, range + 1, (space->count - index - 1) * sizeof(*range));
	space->count--;
	if (index < space->first_gap)
		space->first_gap = index;
	assert(tn__space_check(space) == TN_OK);
}

tn_status
tn__space_give(struct tn_space *space, uint64_t address, struct tn_range *out)
{
	struct tn_range *range = tn__space_find(space, address);
	TN_RETURN_IF(!range || range->address != address, TN_NOT_FOUND, "nothing was allocated at this address");
	if (out)
		*out = *range;
	tn__space_remove(space, range);
	return TN_OK;
}

tn_status
tn__space_check(const struct tn_space *space)
{
	uint64_t end = space->base;
	for (size_t i = 0; i < space->count; i++) {
		TN_RETURN_IF(space->ranges[i].address < end, TN_STATE, "range %zu overlaps the one before it", i);
		end = space->ranges[i].address + space->ranges[i].size;
	}
	TN_RETURN_IF(end > space->base + space->size, TN_STATE, "the last range ends outside the space");
	return TN_OK;
}
