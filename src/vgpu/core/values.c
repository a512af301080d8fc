/* SPDX-License-Identifier: Apache-2.0
 *
 * Values: the little that is known of what device memory holds. Kernels do not run, so memory has no bytes; but a program
 * that copies a small tensor to the device and back must get it again, and one that fills a tensor with a constant may
 * ask for it.
 *
 * A table of extents, sorted by address, without overlap, says which bytes are known. Policy:
 *   - direct copies up to a bound, and fills, are known;
 *   - a kernel that is not known by name may have written anything that its arguments point at (reach.c): that is
 *     forgotten, and everything where the arguments cannot be seen, since a stale byte can pass for a size (nonzero() once
 *     asked for a gigabyte because a freed block handed its old bytes on). What outlived such a kernel may belong to
 *     an earlier owner of the memory: it counts only for ranges of which everything is known or assumed;
 *   - what Python has read at an address stays the same until something that can write there does;
 *   - what is not known is an assumption (likely.c): extents may say what their bytes are taken to be, else the reader's
 *     own word about the type does, else it reads as zero. Each such read is counted (computed_reads) and shown to the read
 *     observer, who may choose another value;
 *   - a large read moves no pages: it leaves holes, and brings what is known only as long as that is little;
 *   - pinned values stay until their memory is freed or written directly.
 * tn__values_lock guards the table; it is taken inside the core lock or alone.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "vgpu/core/counted.h"
#include "vgpu/core/state.h"

struct extent {
	uint64_t address, size;
	unsigned char *bytes; /* owned; NULL: the pattern, repeated from the extent's start */
	unsigned char pattern[16];
	uint8_t pattern_bytes;
	bool pinned;
	bool outlived;           /* a kernel that is not known by name */
	uint8_t choice;          /* of an assumption: which of the offered values it has */
	struct tn_likely likely; /* kind TN_LIKELY_NONE: the bytes are known; else they are assumed */
};

enum which { KNOWN, NOT_ZEROS, ASSUMED }; /* of the extents; the first two: what is known */

#define EXTENTS_MAX 65536
#define JOINED_FROM 16     /* pieces of what a kernel moved that become one extent */
#define PIECES_MAX 1024    /* and those that may stay */
#define OUTLIVING_MAX 4096 /* extents that outlive a kernel: what is older than so many is hardly read again */
#define GRANULE \
	UINT64_C(512) /* no two tensors of PyTorch's share one: kMinBlockSize, c10/cuda/CUDACachingAllocator.cpp */
#define LIKELY_MAX (UINT64_C(1) << 20)  /* bytes that are filled with an assumption at a time; larger reads are zeros */
#define SMALL (UINT64_C(1) << 17)       /* bytes whose pages are not worth dropping */
#define STORED_MAX (UINT64_C(64) << 20) /* bytes of direct copies kept at a time, unless TONNAGE_VALUES=all */

static pthread_mutex_t values_lock = PTHREAD_MUTEX_INITIALIZER;
static struct extent *extents;
static size_t extent_count, extent_capacity;
static _Atomic bool forgettable; /* there may be extents that a kernel makes stale; read without the lock */
static uint64_t stored_bytes;
static _Atomic(void (*)(struct tn_value_read *)) read_observer;
/* What the thread reads, in the words of its program: tn_vgpu_reading. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	struct tn_likely likely;
	uint64_t address, bytes;
} said;

static size_t
first_above(uint64_t address)
{
	size_t low = 0, high = extent_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (extents[middle].address + extents[middle].size > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static bool
insert(size_t index, const struct extent *extent)
{
	if (!tn__array_room(&extents, &extent_capacity, extent_count + 1, sizeof(*extents), EXTENTS_MAX))
		return false;
	memmove(&extents[index + 1], &extents[index], (extent_count - index) * sizeof(*extents));
	extents[index] = *extent;
	extent_count++;
	if (!extent->pinned)
		atomic_store_explicit(&forgettable, true, memory_order_relaxed);
	stored_bytes += extent->bytes ? extent->size : 0;
	return true;
}

static void
release(const struct extent *extent)
{
	stored_bytes -= extent->bytes ? extent->size : 0;
	free(extent->bytes);
}

/* Leaves of an extent what lies in [from, to), as a new extent; empty when nothing does or memory is short. */
static struct extent
part_of(const struct extent *extent, uint64_t from, uint64_t to)
{
	struct extent part = *extent;
	part.address = from;
	part.size = to - from;
	if (extent->bytes) {
		part.bytes = malloc(part.size);
		if (!part.bytes)
			return (struct extent){ 0 };
		memcpy(part.bytes, extent->bytes + (from - extent->address), part.size);
	} else {
		size_t shift = (size_t)((from - extent->address) % extent->pattern_bytes);
		for (size_t i = 0; i < extent->pattern_bytes; i++)
			part.pattern[i] = extent->pattern[(i + shift) % extent->pattern_bytes];
	}
	return part;
}

static void
forget_bytes(uint64_t address, uint64_t size)
{
	uint64_t end = address + size;
	size_t index = first_above(address);
	while (index < extent_count && extents[index].address < end) {
		struct extent old = extents[index];
		uint64_t old_end = old.address + old.size;
		struct extent before = { 0 }, after = { 0 };
		if (old.address < address)
			before = part_of(&old, old.address, address);
		if (old_end > end)
			after = part_of(&old, end, old_end);
		memmove(&extents[index], &extents[index + 1], (extent_count - index - 1) * sizeof(*extents));
		extent_count--;
		release(&old);
		if (before.size && insert(index, &before))
			index++;
		if (after.size)
			insert(index, &after);
	}
}

static void
forget_range(uint64_t address, uint64_t size)
{
	tn__counted_drop(address, size);
	forget_bytes(address, size);
}

void
tn__values_forget_range(uint64_t address, uint64_t bytes)
{
	tn__pending_drop(address, bytes);
	pthread_mutex_lock(&values_lock);
	forget_range(address, bytes);
	pthread_mutex_unlock(&values_lock);
}

void
tn__values_forget_at_most(uint64_t address, uint64_t least, uint64_t most)
{
	tn__pending_drop(address, most);
	pthread_mutex_lock(&values_lock);
	tn__counted_drop(address, least);
	forget_bytes(address, most);
	pthread_mutex_unlock(&values_lock);
}

static void
forget_all(void)
{
	size_t kept = 0;
	for (size_t i = 0; i < extent_count; i++) {
		if (extents[i].pinned)
			extents[kept++] = extents[i];
		else
			free(extents[i].bytes);
	}
	extent_count = kept;
	stored_bytes = 0;
	for (size_t i = 0; i < kept; i++)
		stored_bytes += extents[i].bytes ? extents[i].size : 0;
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
	pthread_mutex_lock(&values_lock);
	forget_all();
	pthread_mutex_unlock(&values_lock);
}

/* Whether an extent goes on where the one before it ends. At the edge of a granule another tensor may begin. */
static bool
goes_on(const struct extent *extent)
{
	uint64_t end = extent[-1].address + extent[-1].size;
	return extent->address == end && end % GRANULE != 0;
}

/* Drops the extents that a kernel with this address among its arguments can write to: those at the address, and what goes on
 * from them, which is the same tensor's. */
static void
forget_tensor_at(uint64_t address)
{
	uint64_t from = address & ~(GRANULE - 1), to = from + GRANULE;
	size_t first = first_above(from), last = first;
	while (last < extent_count && (extents[last].address < to || (last > first && goes_on(&extents[last])))) {
		if (!extents[last].pinned)
			stored_bytes -= extents[last].bytes ? extents[last].size : 0;
		last++;
	}
	size_t kept = first;
	for (size_t i = first; i < last; i++) {
		if (extents[i].pinned)
			extents[kept++] = extents[i];
		else
			free(extents[i].bytes);
	}
	memmove(&extents[kept], &extents[last], (extent_count - last) * sizeof(*extents));
	extent_count -= last - kept;
}

void
tn__values_forget_reached(const uint64_t *addresses, size_t count)
{
	tell_network();
	if (!atomic_load_explicit(&forgettable, memory_order_relaxed))
		return;
	pthread_mutex_lock(&values_lock);
	if (extent_count > OUTLIVING_MAX)
		forget_all();
	for (size_t i = 0; i < count; i++)
		forget_tensor_at(addresses[i]);
	for (size_t i = 0; i < extent_count; i++)
		extents[i].outlived = true;
	pthread_mutex_unlock(&values_lock);
}

/* One count or truth that is taken to be, or one of many. */
static bool
is_count_or_truth(const struct extent *extent)
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
	pthread_mutex_lock(&values_lock);
	size_t kept = 0;
	for (size_t i = 0; i < extent_count; i++) {
		extents[i].outlived = true;
		if (extents[i].pinned || (extent_count <= OUTLIVING_MAX && is_count_or_truth(&extents[i])))
			extents[kept++] = extents[i];
		else
			release(&extents[i]);
	}
	extent_count = kept;
	pthread_mutex_unlock(&values_lock);
}

static void
put(const struct extent *extent)
{
	if (extent_count + 4 > EXTENTS_MAX)
		forget_all();
	forget_range(extent->address, extent->size);
	if (!insert(first_above(extent->address), extent))
		free(extent->bytes);
}

void
tn__values_write(uint64_t address, const void *host, uint64_t bytes)
{
	struct extent extent = { .address = address, .size = bytes };
	bool keep = bytes > 0 && bytes <= tn__core.values_bound;
	tn__pending_drop(address, bytes);
	pthread_mutex_lock(&values_lock);
	if (keep && tn__core.values_bound != UINT64_MAX && stored_bytes + bytes > STORED_MAX)
		forget_all();
	if (keep)
		extent.bytes = malloc(bytes);
	if (extent.bytes) {
		memcpy(extent.bytes, host, bytes);
		put(&extent);
	} else {
		forget_range(address, bytes);
	}
	pthread_mutex_unlock(&values_lock);
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
	struct extent extent = { .address = address, .size = bytes, .pattern_bytes = (uint8_t)pattern_bytes };
	memcpy(extent.pattern, pattern, pattern_bytes);
	tn__pending_drop(address, bytes);
	pthread_mutex_lock(&values_lock);
	if (bytes)
		put(&extent);
	pthread_mutex_unlock(&values_lock);
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
	struct extent extent = { .address = address, .size = bytes, .likely = *likely };
	extent.pattern_bytes = (uint8_t)tn__likely_pattern(likely, tn__likely_value(likely, 0), extent.pattern);
	pthread_mutex_lock(&values_lock);
	if (bytes && extent.pattern_bytes)
		put(&extent);
	pthread_mutex_unlock(&values_lock);
}

void
tn__values_assume_bytes(uint64_t address, const void *bytes, uint64_t count, const struct tn_likely *likely)
{
	struct extent extent = { .address = address, .size = count, .likely = *likely, .bytes = malloc(count) };
	extent.likely.each = true;
	extent.pattern_bytes = (uint8_t)tn__dtype_bytes((enum tn_dtype)likely->dtype);
	if (!extent.bytes)
		return tn__values_forget_range(address, count);
	memcpy(extent.bytes, bytes, count);
	pthread_mutex_lock(&values_lock);
	put(&extent);
	pthread_mutex_unlock(&values_lock);
}

/* Whether extents cover a range without a gap. */
static bool
is_covered(uint64_t address, uint64_t bytes)
{
	uint64_t end = address + bytes, at = address;
	for (size_t i = first_above(address); i < extent_count && at < end && extents[i].address <= at; i++)
		at = extents[i].address + extents[i].size;
	return at >= end;
}

/* Whether an extent says something about a range that it overlaps, which is covered or not. One that outlived a kernel may
 * be an earlier owner's, where something of the range is not known. */
static bool
counts_in(const struct extent *extent, bool covered)
{
	return covered || !extent->outlived || extent->pinned;
}

/* The first assumption in a range; NULL: there is none. */
static const struct extent *
assumption_in(uint64_t address, uint64_t bytes)
{
	bool covered = is_covered(address, bytes);
	for (size_t i = first_above(address); i < extent_count && extents[i].address < address + bytes; i++)
		if (extents[i].likely.kind != TN_LIKELY_NONE && counts_in(&extents[i], covered))
			return &extents[i];
	return NULL;
}

bool
tn__values_assumed(uint64_t address, struct tn_likely *out)
{
	pthread_mutex_lock(&values_lock);
	const struct extent *found = assumption_in(address, 1);
	if (found)
		*out = found->likely;
	pthread_mutex_unlock(&values_lock);
	return found != NULL;
}

int
tn_vgpu_pin_value(uint64_t address, const void *value, uint64_t bytes)
{
	struct extent extent = { .address = address, .size = bytes, .pattern_bytes = (uint8_t)bytes, .pinned = true };
	if (bytes == 0 || bytes > sizeof(extent.pattern))
		return TN_CUDA_INVALID_VALUE;
	memcpy(extent.pattern, value, bytes);
	pthread_mutex_lock(&values_lock);
	put(&extent);
	pthread_mutex_unlock(&values_lock);
	return TN_CUDA_OK;
}

static void
copy_out(const struct extent *extent, uint64_t from, uint64_t to, unsigned char *out)
{
	uint64_t offset = from - extent->address;
	if (extent->bytes) {
		memcpy(out, extent->bytes + offset, to - from);
		return;
	}
	for (uint64_t i = 0; i < to - from; i++)
		out[i] = extent->pattern[(offset + i) % extent->pattern_bytes];
}

static bool
is_zeros(const struct extent *extent)
{
	for (size_t i = 0; i < extent->pattern_bytes; i++)
		if (extent->pattern[i] != 0)
			return false;
	return extent->bytes == NULL;
}

/* Writes what is known (or assumed) into `host` (may be NULL); returns how many bytes were. */
static uint64_t
read_known(uint64_t address, unsigned char *host, uint64_t bytes, enum which which)
{
	uint64_t known = 0, end = address + bytes;
	bool covered = is_covered(address, bytes);
	for (size_t i = first_above(address); i < extent_count && extents[i].address < end; i++) {
		bool assumed = extents[i].likely.kind != TN_LIKELY_NONE;
		if (assumed != (which == ASSUMED) || (which == NOT_ZEROS && is_zeros(&extents[i])) ||
		    !counts_in(&extents[i], covered))
			continue;
		uint64_t from = extents[i].address > address ? extents[i].address : address;
		uint64_t stop = extents[i].address + extents[i].size;
		uint64_t to = stop < end ? stop : end;
		if (host)
			copy_out(&extents[i], from, to, host + (from - address));
		known += to - from;
	}
	return known;
}

/* As read_known, for a large range whose host bytes are zero already: zeros are not written again, and the rest only
 * when it is no more than a small copy. */
static uint64_t
read_large(uint64_t address, unsigned char *host, uint64_t bytes)
{
	uint64_t others = read_known(address, NULL, bytes, NOT_ZEROS);
	uint64_t zeros = read_known(address, NULL, bytes, KNOWN) - others;
	bool few = others <= tn__core.values_bound;
	return zeros + (few ? read_known(address, host, bytes, NOT_ZEROS) : 0);
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
	pthread_mutex_lock(&values_lock);
	const struct extent *assumed = assumption_in(address, bytes);
	if (assumed && assumed->likely.dtype == dtype)
		read_known(address, host, bytes, ASSUMED);
	read_known(address, host, bytes, KNOWN);
	pthread_mutex_unlock(&values_lock);
}

/* Whether an assumption is of the type that is read. What is not may be that of an earlier owner of the memory: 1 in each
 * byte of a mask would be a giant as a count. */
static bool
is_of_type(const struct extent *assumed, uint64_t address, uint64_t bytes)
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
	const struct extent *assumed = assumption_in(address, bytes);
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
	pthread_mutex_lock(&values_lock);
	if (choice == 0 && likely->each)
		read_known(address, host, bytes, ASSUMED);
	read_known(address, host, bytes, KNOWN);
	pthread_mutex_unlock(&values_lock);
}

void
tn__values_read(uint64_t address, void *host, uint64_t bytes)
{
	tn__pending_settle(address, bytes);
	zero_host(host, bytes);
	pthread_mutex_lock(&values_lock);
	bool small = bytes <= tn__core.values_bound && bytes <= LIKELY_MAX;
	uint64_t known = bytes <= tn__core.values_bound ? read_known(address, host, bytes, KNOWN)
	                                                : read_large(address, host, bytes);
	struct tn_likely likely = known < bytes && small ? likely_of(address, bytes) : (struct tn_likely){ 0 };
	pthread_mutex_unlock(&values_lock);
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
	pthread_mutex_lock(&values_lock);
	for (size_t i = first_above(address); i < extent_count && extents[i].address < end; i++) {
		if (extents[i].likely.kind != TN_LIKELY_NONE)
			continue;
		uint64_t from = extents[i].address > address ? extents[i].address : address;
		uint64_t stop = extents[i].address + extents[i].size;
		uint64_t to = stop < end ? stop : end;
		bool joined = count > 0 && out[count - 1].from + out[count - 1].count == from - address;
		if (!joined && count == room)
			break;
		copy_out(&extents[i], from, to, (unsigned char *)host + (from - address));
		if (joined)
			out[count - 1].count += (uint32_t)(to - from);
		else
			out[count++] = (struct tn_run){ (uint32_t)(from - address), (uint32_t)(to - from) };
	}
	pthread_mutex_unlock(&values_lock);
	return count;
}

void
tn__values_peek(uint64_t address, uint64_t bytes_count, unsigned char *bytes, unsigned char *known)
{
	uint64_t end = address + bytes_count;
	memset(known, 0, bytes_count);
	pthread_mutex_lock(&values_lock);
	bool covered = is_covered(address, bytes_count);
	for (size_t i = first_above(address); i < extent_count && extents[i].address < end; i++) {
		uint64_t from = extents[i].address > address ? extents[i].address : address;
		uint64_t stop = extents[i].address + extents[i].size, to = stop < end ? stop : end;
		if (extents[i].likely.kind != TN_LIKELY_NONE || !counts_in(&extents[i], covered))
			continue;
		copy_out(&extents[i], from, to, bytes + (from - address));
		memset(known + (from - address), 1, to - from);
	}
	pthread_mutex_unlock(&values_lock);
}

/* Of an extent's elements in a range. */
static uint64_t
selected_in(const struct extent *extent, uint64_t from, uint64_t to, uint64_t width)
{
	uint64_t count = (to - from + width - 1) / width, most = 0;
	if (extent->likely.kind == TN_LIKELY_TRUTH && extent->likely.bound > 0)
		return extent->likely.bound < count ? extent->likely.bound : count;
	if (extent->likely.kind != TN_LIKELY_NONE)
		return count;
	if (is_zeros(extent))
		return 0;
	for (uint64_t at = from; at < to; at += width) {
		unsigned char dtype[16];
		uint64_t end = at + width < to ? at + width : to;
		bool zero = true;
		copy_out(extent, at, end, dtype);
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
	pthread_mutex_lock(&values_lock);
	bool covered = is_covered(address, bytes);
	for (size_t i = first_above(address); i < extent_count && extents[i].address < end; i++) {
		uint64_t from = extents[i].address > address ? extents[i].address : address;
		uint64_t stop = extents[i].address + extents[i].size, to = stop < end ? stop : end;
		if (!counts_in(&extents[i], covered))
			continue;
		most += selected_in(&extents[i], from, to, width);
		told += to - from;
	}
	pthread_mutex_unlock(&values_lock);
	most += (bytes - told) / width;
	return most < bytes / width ? most : bytes / width;
}

uint64_t
tn__values_extent(uint64_t address, struct tn_likely *likely)
{
	uint64_t bytes = 0;
	pthread_mutex_lock(&values_lock);
	size_t i = first_above(address);
	if (i < extent_count && extents[i].address <= address) {
		bool mask = extents[i].likely.kind == TN_LIKELY_TRUTH && extents[i].address == address;
		if (mask || (extents[i].likely.kind == TN_LIKELY_NONE && is_zeros(&extents[i])))
			bytes = extents[i].address + extents[i].size - address;
		*likely = extents[i].likely;
	}
	pthread_mutex_unlock(&values_lock);
	return bytes;
}

void
tn__values_counted(uint64_t address, uint64_t bytes, int32_t count)
{
	pthread_mutex_lock(&values_lock);
	tn__counted_note(address, bytes, count);
	pthread_mutex_unlock(&values_lock);
}

bool
tn__values_count_of(uint64_t address, uint64_t bytes, int32_t *count)
{
	pthread_mutex_lock(&values_lock);
	bool found = tn__counted_find(address, bytes, count);
	pthread_mutex_unlock(&values_lock);
	return found;
}

void
tn__values_written_at(uint64_t address)
{
	pthread_mutex_lock(&values_lock);
	tn__counted_drop(address, 1);
	pthread_mutex_unlock(&values_lock);
}

bool
tn__values_known(uint64_t address, void *host, uint64_t bytes)
{
	pthread_mutex_lock(&values_lock);
	uint64_t known = extent_count ? read_known(address, host, bytes, KNOWN) : 0;
	pthread_mutex_unlock(&values_lock);
	return known == bytes;
}

/* Copies of what is known in [from, from + bytes), as they will stand at `to`; the caller frees the array. */
static struct extent *
collect(uint64_t to, uint64_t from, uint64_t bytes, size_t *count)
{
	size_t first = first_above(from), last = first;
	while (last < extent_count && extents[last].address < from + bytes)
		last++;
	*count = 0;
	bool covered = is_covered(from, bytes);
	struct extent *parts = last > first ? malloc((last - first) * sizeof(*parts)) : NULL;
	for (size_t i = first; parts && i < last; i++) {
		uint64_t end = extents[i].address + extents[i].size;
		if (!counts_in(&extents[i], covered))
			continue;
		struct extent part = part_of(&extents[i], extents[i].address > from ? extents[i].address : from,
		                             end < from + bytes ? end : from + bytes);
		part.address = part.address - from + to;
		part.pinned = part.outlived = false;
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
	pthread_mutex_lock(&values_lock);
	size_t pieces = 0;
	for (size_t i = first_above(address); i < extent_count && extents[i].address < address + bytes; i++)
		pieces++;
	bool known = pieces > JOINED_FROM && bytes <= tn__core.values_bound &&
	             read_known(address, NULL, bytes, KNOWN) == bytes;
	unsigned char *joined = known ? malloc(bytes) : NULL;
	if (joined) {
		read_known(address, joined, bytes, KNOWN);
		put(&(struct extent){ .address = address, .size = bytes, .bytes = joined });
	} else if (pieces > PIECES_MAX) {
		forget_range(address, bytes);
	}
	pthread_mutex_unlock(&values_lock);
}

void
tn__values_move_known(uint64_t to, uint64_t from, uint64_t bytes)
{
	tn__pending_drop(to, bytes);
	pthread_mutex_lock(&values_lock);
	size_t count = 0;
	struct extent *parts = bytes <= tn__core.values_bound ? collect(to, from, bytes, &count) : NULL;
	forget_range(to, bytes);
	for (size_t i = 0; i < count; i++)
		put(&parts[i]);
	pthread_mutex_unlock(&values_lock);
	free(parts);
}
