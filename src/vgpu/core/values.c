/* SPDX-License-Identifier: Apache-2.0
 *
 * Values: the little that is known of what device memory holds. Kernels do not run, so memory has no bytes; but a program
 * that copies a small tensor to the device and back must get it again, and one that fills a tensor with a constant may
 * ask for it.
 *
 * Extents (extents.h) say which bytes are known. Policy:
 *   - direct copies up to a bound, and fills, are known;
 *   - a kernel that is not known by name may have written anything that its arguments point at (reach.c): that is
 *     forgotten, and everything where the arguments cannot be seen, since a stale byte can pass for a size (nonzero() once
 *     asked for a gigabyte because a freed block handed its old bytes on). What outlived such a kernel may belong to
 *     an earlier owner of the memory: it counts only for ranges of which everything is known or assumed;
 *   - what Python has read at an address stays the same until something that can write there does;
 *   - what is not known is an assumption: values_read.c;
 *   - pinned values stay until their memory is freed or written directly.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "vgpu/core/counted.h"
#include "vgpu/core/extents.h"
#include "vgpu/core/state.h"

#define JOINED_FROM 16     /* pieces of what a kernel moved that become one extent */
#define PIECES_MAX 1024    /* and those that may stay */
#define OUTLIVING_MAX 4096 /* extents that outlive a kernel: what is older than so many is hardly read again */
#define GRANULE \
	UINT64_C(512) /* no two tensors of PyTorch's share one: kMinBlockSize, c10/cuda/CUDACachingAllocator.cpp */
#define STORED_MAX (UINT64_C(64) << 20) /* bytes of direct copies kept at a time, unless TONNAGE_VALUES=all */
#define LARGE (UINT64_C(16) << 10)      /* such copies go first: settings, sizes, indices and masks are smaller */

static _Atomic bool forgettable; /* there may be extents that a kernel makes stale; read without the lock */
static bool real;                /* there may be some that are neither counts nor truths */

static void
forget_range(uint64_t address, uint64_t size)
{
	tn__counted_drop(address, size);
	tn__extents_cut(address, size);
}

void
tn__values_forget_range(uint64_t address, uint64_t bytes)
{
	tn__pending_drop(address, bytes);
	pthread_mutex_lock(&tn__values_lock);
	forget_range(address, bytes);
	pthread_mutex_unlock(&tn__values_lock);
}

void
tn__values_forget_at_most(uint64_t address, uint64_t least, uint64_t most)
{
	tn__pending_drop(address, most);
	pthread_mutex_lock(&tn__values_lock);
	tn__counted_drop(address, least);
	tn__extents_cut(address, most);
	pthread_mutex_unlock(&tn__values_lock);
}

static void
forget_all(void)
{
	tn__extents_clear();
	atomic_store_explicit(&forgettable, false, memory_order_relaxed);
}

/* A kernel ran whose result nobody knows: from now on what the program holds may be made up, and the network wall of the run
 * closes (src/preload/network.h). The library that has it is loaded into every process of a run. */
static void
tell_network(void)
{
	static void (*_Atomic ran)(void);
	static _Atomic bool asked;
	if (!atomic_load_explicit(&asked, memory_order_acquire)) {
		void *found = dlsym(RTLD_DEFAULT, "tn_preload_kernels_ran");
		void (*function)(void);
		memcpy(&function, &found, sizeof(function));
		atomic_store(&ran, function);
		atomic_store_explicit(&asked, true, memory_order_release);
	}
	void (*tell)(void) = atomic_load_explicit(&ran, memory_order_relaxed);
	if (tell)
		tell();
}

void
tn__values_forget(void)
{
	tell_network();
	if (!atomic_load_explicit(&forgettable, memory_order_relaxed))
		return;
	pthread_mutex_lock(&tn__values_lock);
	forget_all();
	pthread_mutex_unlock(&tn__values_lock);
}

/* Drops the extents that a kernel with this address among its arguments can write to: those at the address, and what goes on
 * from them, which is the same tensor's. At the edge of a granule another tensor may begin. */
static void
forget_tensor_at(uint64_t address)
{
	uint64_t from = address & ~(GRANULE - 1), to = from + GRANULE, end = 0;
	struct tn_place place;
	struct tn_extent *extent = tn__extents_first(&place, from);
	while (extent && (extent->address < to || (extent->address == end && end % GRANULE != 0))) {
		end = extent->address + extent->size;
		extent = extent->pinned ? tn__extents_next(&place) : tn__extents_remove(&place);
	}
}

void
tn__values_forget_reached(const uint64_t *addresses, size_t count)
{
	tell_network();
	if (!atomic_load_explicit(&forgettable, memory_order_relaxed))
		return;
	pthread_mutex_lock(&tn__values_lock);
	if (tn__extents_count() > OUTLIVING_MAX)
		forget_all();
	for (size_t i = 0; i < count; i++)
		forget_tensor_at(addresses[i]);
	tn__extents_outlive();
	pthread_mutex_unlock(&tn__values_lock);
}

/* One count or truth that is taken to be, or one of many. */
static bool
is_count_or_truth(const struct tn_extent *extent)
{
	unsigned char dtype = extent->likely.dtype;
	bool type = dtype == TN_DTYPE_NONE || dtype == TN_DTYPE_I64 || dtype == TN_DTYPE_BOOL;
	return extent->likely.kind != TN_LIKELY_NONE && type && extent->size <= sizeof(int64_t);
}

void
tn__values_forget_reals(void)
{
	tell_network();
	if (!atomic_load_explicit(&forgettable, memory_order_relaxed))
		return;
	pthread_mutex_lock(&tn__values_lock);
	if (tn__extents_count() > OUTLIVING_MAX)
		forget_all();
	struct tn_place place;
	for (struct tn_extent *extent = real ? tn__extents_first(&place, 0) : NULL; extent;)
		extent = extent->pinned || is_count_or_truth(extent) ? tn__extents_next(&place) : tn__extents_remove(&place);
	real = false;
	tn__extents_outlive();
	pthread_mutex_unlock(&tn__values_lock);
}

/* Makes room for what is copied: large ones go, and all where small ones alone fill most of it. */
static void
make_room(void)
{
	struct tn_place place;
	for (struct tn_extent *extent = tn__extents_first(&place, 0); extent;)
		extent = extent->bytes && !extent->pinned && extent->size >= LARGE ? tn__extents_remove(&place)
		                                                                   : tn__extents_next(&place);
	if (tn__extents_stored() > STORED_MAX / 2)
		forget_all();
}

/* Takes the extent's bytes over. */
static void
put(struct tn_extent *extent)
{
	if (tn__extents_count() + 4 > TN_EXTENTS_MAX)
		forget_all();
	forget_range(extent->address, extent->size);
	extent->era = tn__extents_era();
	if (!tn__extents_add(extent))
		return;
	real |= !is_count_or_truth(extent);
	if (!extent->pinned)
		atomic_store_explicit(&forgettable, true, memory_order_relaxed);
}

void
tn__values_write(uint64_t address, const void *host, uint64_t bytes)
{
	struct tn_extent extent = { .address = address, .size = bytes };
	bool keep = bytes > 0 && bytes <= tn__core.values_bound;
	tn__pending_drop(address, bytes);
	pthread_mutex_lock(&tn__values_lock);
	if (keep && tn__core.values_bound != UINT64_MAX && tn__extents_stored() + bytes > STORED_MAX)
		make_room();
	if (keep)
		extent.bytes = malloc(bytes);
	if (extent.bytes) {
		memcpy(extent.bytes, host, bytes);
		put(&extent);
	} else {
		forget_range(address, bytes);
	}
	pthread_mutex_unlock(&tn__values_lock);
}

void
tn__values_put(uint64_t address, const void *bytes_or_null, uint64_t bytes)
{
	if (bytes_or_null)
		tn__values_write(address, bytes_or_null, bytes);
	else
		tn__values_forget_range(address, bytes);
}

void
tn__values_fill(uint64_t address, uint64_t bytes, const void *pattern, size_t pattern_bytes)
{
	struct tn_extent extent = { .address = address, .size = bytes, .pattern_bytes = (uint8_t)pattern_bytes };
	memcpy(extent.pattern, pattern, pattern_bytes);
	tn__pending_drop(address, bytes);
	pthread_mutex_lock(&tn__values_lock);
	if (bytes)
		put(&extent);
	pthread_mutex_unlock(&tn__values_lock);
}

void
tn__values_set(uint64_t address, int value, uint64_t bytes)
{
	unsigned char byte = (unsigned char)value;
	tn__values_fill(address, bytes, &byte, 1);
}

void
tn__values_assume(uint64_t address, uint64_t bytes, const struct tn_likely *likely)
{
	struct tn_extent extent = { .address = address, .size = bytes, .likely = *likely };
	extent.pattern_bytes = (uint8_t)tn__likely_pattern(likely, tn__likely_value(likely, 0), extent.pattern);
	pthread_mutex_lock(&tn__values_lock);
	if (bytes && extent.pattern_bytes)
		put(&extent);
	pthread_mutex_unlock(&tn__values_lock);
}

void
tn__values_assume_bytes(uint64_t address, const void *bytes, uint64_t count, const struct tn_likely *likely)
{
	struct tn_extent extent = { .address = address, .size = count, .likely = *likely, .bytes = malloc(count) };
	extent.likely.each = true;
	extent.pattern_bytes = (uint8_t)tn__dtype_bytes((enum tn_dtype)likely->dtype);
	if (!extent.bytes)
		return tn__values_forget_range(address, count);
	memcpy(extent.bytes, bytes, count);
	pthread_mutex_lock(&tn__values_lock);
	put(&extent);
	pthread_mutex_unlock(&tn__values_lock);
}

int
tn_vgpu_pin_value(uint64_t address, const void *value, uint64_t bytes)
{
	struct tn_extent extent = { .address = address, .size = bytes, .pattern_bytes = (uint8_t)bytes, .pinned = true };
	if (bytes == 0 || bytes > sizeof(extent.pattern))
		return TN_CUDA_INVALID_VALUE;
	memcpy(extent.pattern, value, bytes);
	pthread_mutex_lock(&tn__values_lock);
	put(&extent);
	pthread_mutex_unlock(&tn__values_lock);
	return TN_CUDA_OK;
}

void
tn__values_counted(uint64_t address, uint64_t bytes, int32_t count)
{
	pthread_mutex_lock(&tn__values_lock);
	tn__counted_note(address, bytes, count);
	pthread_mutex_unlock(&tn__values_lock);
}

bool
tn__values_count_of(uint64_t address, uint64_t bytes, int32_t *count)
{
	pthread_mutex_lock(&tn__values_lock);
	bool found = tn__counted_find(address, bytes, count);
	pthread_mutex_unlock(&tn__values_lock);
	return found;
}

void
tn__values_written_at(uint64_t address)
{
	pthread_mutex_lock(&tn__values_lock);
	tn__counted_drop(address, 1);
	pthread_mutex_unlock(&tn__values_lock);
}

/* Copies of what is known in [from, from + bytes), as they will stand at `to`; the caller frees the array. */
static struct tn_extent *
collect(uint64_t to, uint64_t from, uint64_t bytes, size_t *count)
{
	uint64_t end = from + bytes;
	bool covered = tn__extents_cover(from, bytes);
	struct tn_place place;
	size_t capacity = 0;
	struct tn_extent *parts = NULL;
	*count = 0;
	for (struct tn_extent *extent = tn__extents_first(&place, from); extent && extent->address < end;
	     extent = tn__extents_next(&place)) {
		uint64_t stop = extent->address + extent->size;
		if (!tn__extent_counts(extent, covered))
			continue;
		if (!tn__array_room(&parts, &capacity, *count + 1, sizeof(*parts), TN_EXTENTS_MAX))
			break;
		struct tn_extent part = tn__extent_part(extent, extent->address > from ? extent->address : from,
		                                        stop < end ? stop : end);
		part.address = part.address - from + to;
		part.pinned = false;
		if (part.size)
			parts[(*count)++] = part;
	}
	return parts;
}

void
tn__values_move(uint64_t to, uint64_t from, uint64_t bytes)
{
	tn__pending_settle(from, bytes);
	tn__values_move_known(to, from, bytes);
}

/* What was moved piece by piece would fill the table: it becomes one extent where all of it is known, and is forgotten
 * where it is not and stays in too many pieces. */
void
tn__values_join(uint64_t address, uint64_t bytes)
{
	pthread_mutex_lock(&tn__values_lock);
	size_t pieces = 0;
	struct tn_place place;
	for (struct tn_extent *extent = tn__extents_first(&place, address); extent && extent->address < address + bytes;
	     extent = tn__extents_next(&place))
		pieces++;
	bool known = pieces > JOINED_FROM && bytes <= tn__core.values_bound &&
	             tn__extents_read(address, NULL, bytes, TN_KNOWN) == bytes;
	unsigned char *joined = known ? malloc(bytes) : NULL;
	if (joined) {
		tn__extents_read(address, joined, bytes, TN_KNOWN);
		put(&(struct tn_extent){ .address = address, .size = bytes, .bytes = joined });
	} else if (pieces > PIECES_MAX) {
		forget_range(address, bytes);
	}
	pthread_mutex_unlock(&tn__values_lock);
}

void
tn__values_move_known(uint64_t to, uint64_t from, uint64_t bytes)
{
	tn__pending_drop(to, bytes);
	pthread_mutex_lock(&tn__values_lock);
	size_t count = 0;
	struct tn_extent *parts = bytes <= tn__core.values_bound ? collect(to, from, bytes, &count) : NULL;
	forget_range(to, bytes);
	for (size_t i = 0; i < count; i++)
		put(&parts[i]);
	pthread_mutex_unlock(&tn__values_lock);
	free(parts);
}

/* The extent that says everything of [from, from + bytes); NULL: nothing is said of it. *whole is false where it is neither. */
static struct tn_extent *
one_for(uint64_t from, uint64_t bytes, bool *whole)
{
	struct tn_place place;
	struct tn_extent *extent = tn__extents_first(&place, from);
	if (!extent || extent->address >= from + bytes)
		return NULL;
	*whole &= extent->address <= from && from + bytes <= extent->address + extent->size &&
	          extent->likely.kind == TN_LIKELY_NONE;
	return extent;
}

bool
tn__values_move_pieces(uint64_t to, const uint64_t *from, uint64_t count, uint64_t width)
{
	const uint64_t bytes = count * width;
	unsigned char *moved = bytes <= tn__core.values_bound ? malloc(bytes) : NULL;
	uint64_t known = 0;
	bool whole = moved != NULL;
	tn__pending_drop(to, bytes);
	pthread_mutex_lock(&tn__values_lock);
	const struct tn_extent *extent = NULL;
	for (uint64_t i = 0; whole && i < count; i++) {
		if (!extent || from[i] < extent->address || from[i] + width > extent->address + extent->size)
			extent = one_for(from[i], width, &whole);
		if (extent && whole) {
			tn__extent_copy(extent, from[i], from[i] + width, moved + i * width);
			known++;
		}
	}
	whole &= known == 0 || known == count;
	if (whole && known)
		put(&(struct tn_extent){ .address = to, .size = bytes, .bytes = moved });
	else if (whole)
		forget_range(to, bytes);
	pthread_mutex_unlock(&tn__values_lock);
	if (!whole || !known)
		free(moved);
	return whole;
}

bool
tn__values_any(uint64_t address, uint64_t bytes)
{
	struct tn_place place;
	pthread_mutex_lock(&tn__values_lock);
	const struct tn_extent *extent = tn__extents_first(&place, address);
	bool any = extent && extent->address < address + bytes;
	pthread_mutex_unlock(&tn__values_lock);
	return any;
}
