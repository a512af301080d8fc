/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program gets that reads device memory, and what the core itself may know of it (doc/design/0006-values.md):
 *   - what is not known is an assumption (likely.c): extents may say what their bytes are taken to be, else the reader's
 *     own word about the type does, else it reads as zero. Each such read is counted (computed_reads) and shown to the read
 *     observer, who may choose another value;
 *   - a large read moves no pages: it leaves holes, and brings what is known only as long as that is little.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vgpu/core/extents.h"
#include "vgpu/core/state.h"

#define LIKELY_MAX (UINT64_C(1) << 20) /* bytes that are filled with an assumption at a time; larger reads are zeros */
#define SMALL (UINT64_C(1) << 17)      /* bytes whose pages are not worth dropping */

static _Atomic(void (*)(struct tn_value_read *)) read_observer;
/* What the thread reads, in the words of its program: tn_vgpu_reading. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	struct tn_likely likely;
	uint64_t address, bytes;
} said;

/* The first assumption in a range; NULL: there is none. */
static const struct tn_extent *
assumption_in(uint64_t address, uint64_t bytes)
{
	bool covered = tn__extents_cover(address, bytes);
	struct tn_place place;
	for (struct tn_extent *extent = tn__extents_first(&place, address); extent && extent->address < address + bytes;
	     extent = tn__extents_next(&place))
		if (extent->likely.kind != TN_LIKELY_NONE && tn__extent_counts(extent, covered))
			return extent;
	return NULL;
}

bool
tn__values_assumed(uint64_t address, struct tn_likely *out)
{
	pthread_mutex_lock(&tn__values_lock);
	const struct tn_extent *found = assumption_in(address, 1);
	if (found)
		*out = found->likely;
	pthread_mutex_unlock(&tn__values_lock);
	return found != NULL;
}

/* As tn__extents_read, for a large range whose host bytes are zero already: zeros are not written again, and the rest only
 * when it is no more than a small copy. */
static uint64_t
read_large(uint64_t address, unsigned char *host, uint64_t bytes)
{
	uint64_t others = tn__extents_read(address, NULL, bytes, TN_KNOWN_NOT_ZEROS);
	uint64_t zeros = tn__extents_read(address, NULL, bytes, TN_KNOWN) - others;
	bool few = others <= tn__core.values_bound;
	return zeros + (few ? tn__extents_read(address, host, bytes, TN_KNOWN_NOT_ZEROS) : 0);
}

/* Makes whole pages read zero without touching them; false where that is not sure. MADV_DONTNEED gives private
 * anonymous memory back, but brings a file's bytes back, too; MADV_FREE refuses everything that is not private,
 * anonymous and unlocked. It is asked first for one page, so that huge pages of a pool stay, and then, when there is
 * nothing left to free, for all. Shared memory (also what libtonnage-lean hands out) takes a hole instead. What either
 * has done to a part before it failed does not matter: all of it is about to be zero. */
static bool
drop_pages(unsigned char *from, size_t bytes, size_t page)
{
	if (madvise(from, page, MADV_FREE) == 0)
		return madvise(from, bytes, MADV_DONTNEED) == 0 && madvise(from, bytes, MADV_FREE) == 0;
	return madvise(from, bytes, MADV_REMOVE) == 0;
}

/* The pages that lie inside as a whole are dropped; the edges may share theirs with somebody else's bytes. */
static void
zero_host(unsigned char *host, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (size_t)(-(uintptr_t)host & (page - 1));
	size_t inner = bytes > before ? (bytes - before) & ~(page - 1) : 0;
	if (bytes <= SMALL || inner == 0 || !drop_pages(host + before, inner, page)) {
		memset(host, 0, bytes);
		return;
	}
	memset(host, 0, before);
	memset(host + before + inner, 0, bytes - before - inner);
}

void
tn_vgpu_set_read_observer(void (*observer)(struct tn_value_read *read))
{
	atomic_store(&read_observer, observer);
}

void
tn_vgpu_reading(int number, uint64_t address, uint64_t count)
{
	enum tn_dtype dtype = number > 0 && number < TN_ELEMENTS ? (enum tn_dtype)number : TN_DTYPE_NONE;
	said.likely = (struct tn_likely){ .dtype = (unsigned char)dtype, .truth = true };
	said.address = address;
	said.bytes = count * tn__dtype_bytes(dtype);
	if (dtype == TN_DTYPE_BOOL)
		said.likely.kind = TN_LIKELY_TRUTH;
	else if (tn__dtype_is_real(dtype) || dtype >= TN_DTYPE_C64)
		said.likely.kind = TN_LIKELY_REAL;
	else if (dtype != TN_DTYPE_NONE) /* of many, each may be an index: zero is always in range */
		said.likely.kind = count > 1 ? TN_LIKELY_INDEX : TN_LIKELY_WHOLE;
}

/* What the program said of these bytes; kind TN_LIKELY_NONE: nothing. Many may have been made contiguous elsewhere. */
static struct tn_likely
said_of(uint64_t address, uint64_t bytes)
{
	bool many = bytes > sizeof(double), same = bytes == said.bytes && (address == said.address || many);
	return same ? said.likely : (struct tn_likely){ .kind = TN_LIKELY_NONE };
}

void
tn__values_likely(uint64_t address, void *host, uint64_t bytes, enum tn_dtype dtype)
{
	pthread_mutex_lock(&tn__values_lock);
	const struct tn_extent *assumed = assumption_in(address, bytes);
	if (assumed && assumed->likely.dtype == dtype)
		tn__extents_read(address, host, bytes, TN_ASSUMED);
	tn__extents_read(address, host, bytes, TN_KNOWN);
	pthread_mutex_unlock(&tn__values_lock);
}

/* Whether an assumption is of the type that is read. What is not may be that of an earlier owner of the memory: 1 in each
 * byte of a mask would be a giant as a count. */
static bool
is_of_type(const struct tn_extent *assumed, uint64_t address, uint64_t bytes)
{
	const struct tn_likely *likely = &assumed->likely;
	struct tn_likely of = said_of(address, bytes);
	if (likely->dtype == TN_DTYPE_NONE)
		return bytes == sizeof(int32_t) || bytes == sizeof(int64_t);
	if (of.kind != TN_LIKELY_NONE)
		return of.dtype == likely->dtype;
	return bytes == assumed->pattern_bytes || (address == assumed->address && bytes == assumed->size);
}

/* What a range is taken to be: what launches told of it, else what the reader says of its type. */
static struct tn_likely
likely_of(uint64_t address, uint64_t bytes)
{
	const struct tn_extent *assumed = assumption_in(address, bytes);
	return assumed && is_of_type(assumed, address, bytes) ? assumed->likely : said_of(address, bytes);
}

static struct tn_value_read
offer(const struct tn_likely *likely, uint64_t bytes)
{
	struct tn_value_read read = { .bytes = bytes, .kind = likely->kind };
	if (likely->kind == TN_LIKELY_COUNT)
		read.bound = likely->bound;
	for (int i = 0; i < TN_OFFERED; i++)
		read.offered[i] = tn__likely_value(likely, i);
	return read;
}

/* Every element of the range is the chosen value, but where something is known, or something likelier was said. */
static void
fill_host(uint64_t address, unsigned char *host, uint64_t bytes, const struct tn_likely *likely,
          const struct tn_value_read *read)
{
	unsigned char pattern[16];
	int choice = read->choice >= 0 && read->choice < TN_OFFERED ? read->choice : 0;
	size_t width = tn__likely_pattern(likely, read->offered[choice], pattern);
	for (uint64_t i = 0; i < bytes; i++)
		host[i] = pattern[i % width];
	pthread_mutex_lock(&tn__values_lock);
	if (choice == 0 && likely->each)
		tn__extents_read(address, host, bytes, TN_ASSUMED);
	tn__extents_read(address, host, bytes, TN_KNOWN);
	pthread_mutex_unlock(&tn__values_lock);
}

void
tn__values_read(uint64_t address, void *host, uint64_t bytes)
{
	tn__pending_settle(address, bytes);
	zero_host(host, bytes);
	pthread_mutex_lock(&tn__values_lock);
	bool small = bytes <= tn__core.values_bound && bytes <= LIKELY_MAX;
	uint64_t known = bytes <= tn__core.values_bound ? tn__extents_read(address, host, bytes, TN_KNOWN)
	                                                : read_large(address, host, bytes);
	struct tn_likely likely = known < bytes && small ? likely_of(address, bytes) : (struct tn_likely){ 0 };
	pthread_mutex_unlock(&tn__values_lock);
	said.bytes = 0;
	if (known == bytes)
		return;
	atomic_fetch_add_explicit(&tn__core.ledger->computed_reads, 1, memory_order_relaxed);
	struct tn_value_read read = offer(&likely, bytes);
	if (likely.each && bytes == tn__dtype_bytes((enum tn_dtype)likely.dtype) &&
	    tn__dtype_is_integer((enum tn_dtype)likely.dtype)) { /* the one that stands there */
		fill_host(address, host, bytes, &likely, &read);
		read.offered[0] = (double)tn__integer_at(host, (enum tn_dtype)likely.dtype);
	}
	void (*observer)(struct tn_value_read *) = atomic_load(&read_observer);
	if (observer)
		observer(&read);
	if (likely.kind != TN_LIKELY_NONE)
		fill_host(address, host, bytes, &likely, &read);
}

size_t
tn__values_runs(uint64_t address, void *host, uint64_t bytes, struct tn_run *out, size_t room)
{
	size_t count = 0;
	uint64_t end = address + bytes;
	pthread_mutex_lock(&tn__values_lock);
	struct tn_place place;
	for (struct tn_extent *extent = tn__extents_first(&place, address); extent && extent->address < end;
	     extent = tn__extents_next(&place)) {
		if (extent->likely.kind != TN_LIKELY_NONE)
			continue;
		uint64_t from = extent->address > address ? extent->address : address;
		uint64_t stop = extent->address + extent->size;
		uint64_t to = stop < end ? stop : end;
		bool joined = count > 0 && out[count - 1].from + out[count - 1].count == from - address;
		if (!joined && count == room)
			break;
		tn__extent_copy(extent, from, to, (unsigned char *)host + (from - address));
		if (joined)
			out[count - 1].count += (uint32_t)(to - from);
		else
			out[count++] = (struct tn_run){ (uint32_t)(from - address), (uint32_t)(to - from) };
	}
	pthread_mutex_unlock(&tn__values_lock);
	return count;
}

void
tn__values_peek(uint64_t address, uint64_t bytes_count, unsigned char *bytes, unsigned char *known)
{
	uint64_t end = address + bytes_count;
	memset(known, 0, bytes_count);
	pthread_mutex_lock(&tn__values_lock);
	bool covered = tn__extents_cover(address, bytes_count);
	struct tn_place place;
	for (struct tn_extent *extent = tn__extents_first(&place, address); extent && extent->address < end;
	     extent = tn__extents_next(&place)) {
		uint64_t from = extent->address > address ? extent->address : address;
		uint64_t stop = extent->address + extent->size, to = stop < end ? stop : end;
		if (extent->likely.kind != TN_LIKELY_NONE || !tn__extent_counts(extent, covered))
			continue;
		tn__extent_copy(extent, from, to, bytes + (from - address));
		memset(known + (from - address), 1, to - from);
	}
	pthread_mutex_unlock(&tn__values_lock);
}

/* Of an extent's elements in a range. */
static uint64_t
selected_in(const struct tn_extent *extent, uint64_t from, uint64_t to, uint64_t width)
{
	uint64_t count = (to - from + width - 1) / width, most = 0;
	if (extent->likely.kind == TN_LIKELY_TRUTH && extent->likely.bound > 0)
		return extent->likely.bound < count ? extent->likely.bound : count;
	if (extent->likely.kind != TN_LIKELY_NONE)
		return count;
	if (tn__extent_is_zeros(extent))
		return 0;
	for (uint64_t at = from; at < to; at += width) {
		unsigned char dtype[16];
		uint64_t end = at + width < to ? at + width : to;
		bool zero = true;
		tn__extent_copy(extent, at, end, dtype);
		for (uint64_t i = 0; i < end - at; i++)
			zero &= dtype[i] == 0;
		most += !zero;
	}
	return most;
}

uint64_t
tn__values_selected(uint64_t address, uint64_t bytes, uint64_t width)
{
	uint64_t most = 0, told = 0, end = address + bytes;
	pthread_mutex_lock(&tn__values_lock);
	bool covered = tn__extents_cover(address, bytes);
	struct tn_place place;
	for (struct tn_extent *extent = tn__extents_first(&place, address); extent && extent->address < end;
	     extent = tn__extents_next(&place)) {
		uint64_t from = extent->address > address ? extent->address : address;
		uint64_t stop = extent->address + extent->size, to = stop < end ? stop : end;
		if (!tn__extent_counts(extent, covered))
			continue;
		most += selected_in(extent, from, to, width);
		told += to - from;
	}
	pthread_mutex_unlock(&tn__values_lock);
	most += (bytes - told) / width;
	return most < bytes / width ? most : bytes / width;
}

uint64_t
tn__values_extent(uint64_t address, struct tn_likely *likely)
{
	uint64_t bytes = 0;
	pthread_mutex_lock(&tn__values_lock);
	struct tn_place place;
	struct tn_extent *extent = tn__extents_first(&place, address);
	if (extent && extent->address <= address) {
		bool mask = extent->likely.kind == TN_LIKELY_TRUTH && extent->address == address;
		if (mask || (extent->likely.kind == TN_LIKELY_NONE && tn__extent_is_zeros(extent)))
			bytes = extent->address + extent->size - address;
		*likely = extent->likely;
	}
	pthread_mutex_unlock(&tn__values_lock);
	return bytes;
}

bool
tn__values_known(uint64_t address, void *host, uint64_t bytes)
{
	pthread_mutex_lock(&tn__values_lock);
	uint64_t known = tn__extents_count() ? tn__extents_read(address, host, bytes, TN_KNOWN) : 0;
	pthread_mutex_unlock(&tn__values_lock);
	return known == bytes;
}
