/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that read or map: of a stand-in's holes (weights.h) they give private zero memory, and no file page is made. Reads of
 * the holes that the run's own checkpoints have (entries_write.c) do the same, so that loading one costs no memory either.
 *
 * Invariant: the bytes, the count and the offset are what the real call would have left. While the process has met no
 * stand-in, and the run has no holes, each costs two loads; afterwards reads of at least LARGE bytes, or OWN_LARGE, cost one
 * fstat more. Memory is given as zeros without being touched where that is possible: whole pages of private anonymous memory are
 * handed back to the kernel.
 */
#include "preload/overlay.h"
#include "preload/weights.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define LARGE 4096u
#define OWN_LARGE ((size_t)64 << 10)
#define LAZY ((size_t)4 << 20)
#define MAPPINGS 4096u
#define PAGE 4096u

/* ---- zeros ---- */

static uint64_t
take_hex(const char **at)
{
	uint64_t value = 0;
	for (;; (*at)++) {
		char c = **at;
		if (c >= '0' && c <= '9')
			value = value << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uint64_t)(c - 'a' + 10);
		else
			return value;
	}
}

/* A line of /proc/self/maps: private, writable, of no file (Documentation/filesystems/proc.rst). */
static bool
is_private_memory(const char *rest)
{
	if (strncmp(rest, " rw-p 00000000 00:00 0", 22))
		return false;
	rest += 22;
	while (*rest == ' ')
		rest++;
	return *rest == 0 || !strncmp(rest, "[heap]", 6) || !strncmp(rest, "[anon", 5);
}

/* Is all of it private memory that belongs to no file? */
static TN_SLOW bool
is_anonymous(uint64_t begin, uint64_t end)
{
	char buffer[8192];
	size_t used = 0;
	long got, fd = TN_CALL(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0L);
	bool wrong = fd < 0;

	while (!wrong && begin < end && (got = TN_CALL(SYS_read, fd, buffer + used, sizeof(buffer) - 1 - used)) > 0) {
		char *line = buffer, *stop;
		used += (size_t)got;
		buffer[used] = 0;
		while (!wrong && begin < end && (stop = strchr(line, '\n'))) {
			const char *at = line;
			*stop = 0;
			uint64_t from = take_hex(&at), to = (at++, take_hex(&at));
			if (from <= begin && begin < to) {
				wrong = !is_private_memory(at);
				begin = to;
			} else if (from > begin) {
				wrong = true;
			}
			line = stop + 1;
		}
		used -= (size_t)(line - buffer);
		memmove(buffer, line, used);
		wrong |= used == sizeof(buffer) - 1;
	}
	if (fd >= 0)
		(void)TN_CALL(SYS_close, fd);
	return !wrong && begin >= end;
}

static void
give_zeros(char *buffer, size_t size)
{
	uint64_t begin = ((uintptr_t)buffer + PAGE - 1) & ~(uint64_t)(PAGE - 1),
			 end = ((uintptr_t)buffer + size) & ~(uint64_t)(PAGE - 1);

	if (size >= LAZY && is_anonymous(begin, end) && TN_CALL(SYS_madvise, begin, end - begin, MADV_DONTNEED) == 0) {
		memset(buffer, 0, (size_t)(begin - (uintptr_t)buffer));
		memset((char *)(uintptr_t)end, 0, (size_t)((uintptr_t)buffer + size - end)); /* NOLINT: inside the buffer */
		return;
	}
	memset(buffer, 0, size);
}

/* ---- reading ---- */

/* What is read: a stand-in, or a file of the run that may have holes. */
struct source {
	struct tn__weights_record *record; /* NULL: no stand-in */
	off_t length;
};

static inline bool
may_have_holes(size_t size)
{
	return (tn__weights_met() && size >= LARGE) ||
	       (size >= OWN_LARGE && atomic_load_explicit(&tn__head->holes, memory_order_relaxed));
}

static bool
find_source(int fd, size_t size, struct source *out)
{
	struct stat about;
	long flags;
	*out = (struct source){ .record = tn__weights_met() ? tn__weights_of(fd) : NULL };
	if (out->record) {
		out->length = out->record->length;
		return true;
	}
	if (size < OWN_LARGE || TN_CALL(SYS_fstat, fd, &about) < 0 || !S_ISREG(about.st_mode))
		return false;
	flags = TN_CALL(SYS_fcntl, fd, F_GETFL, 0L);
	out->length = about.st_size;
	return flags >= 0 && (flags & O_ACCMODE) != O_WRONLY;
}

/* How many bytes from `at` on are of one kind, at most `size`; *hole says which. By a descriptor of our own, since the
 * program's offset must not move. */
static size_t
piece_at(off_t length, int own, off_t at, size_t size, bool *hole)
{
	long next = TN_CALL(SYS_lseek, own, at, SEEK_DATA);
	if (next < 0)
		next = length;
	*hole = next > at;
	if (!*hole)
		next = TN_CALL(SYS_lseek, own, at, SEEK_HOLE);
	if (next <= at)
		return size; /* no such file system: data */
	return (uint64_t)(next - at) < size ? (size_t)(next - at) : size;
}

static long
open_again(int fd)
{
	char link[48] = "/proc/self/fd/", digits[16], *at = digits + sizeof(digits) - 1;
	*at = 0;
	do
		*--at = (char)('0' + fd % 10);
	while (fd /= 10);
	memcpy(link + 14, at, strlen(at) + 1);
	return TN_CALL(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0L);
}

static void
count_read(struct tn__weights_record *record, size_t bytes)
{
	atomic_fetch_add_explicit(&record->read, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&record->reread, 1, memory_order_relaxed);
}

/* Fills the buffer from `at` on. How many bytes, or an error. */
static long
read_at(const struct source *source, int fd, char *buffer, size_t size, off_t at)
{
	size_t done = 0;
	long own = open_again(fd);

	if (own < 0)
		return -ENOSYS;
	if (at >= source->length)
		size = 0;
	else if ((uint64_t)(source->length - at) < size)
		size = (size_t)(source->length - at);
	while (done < size) {
		bool hole;
		size_t piece = piece_at(source->length, (int)own, at + (off_t)done, size - done, &hole);
		long got = (long)piece;
		if (hole) {
			give_zeros(buffer + done, piece);
			if (source->record)
				count_read(source->record, piece);
		} else {
			got = TN_CALL(SYS_pread64, own, buffer + done, piece, at + (off_t)done);
		}
		if (got <= 0) {
			(void)TN_CALL(SYS_close, own);
			return done ? (long)done : got;
		}
		done += (size_t)got;
	}
	(void)TN_CALL(SYS_close, own);
	return (long)done;
}

/* -ENOSYS: none of ours. */
static TN_SLOW long
read_weights(int fd, void *buffer, size_t size, off_t position)
{
	struct source source;
	off_t at = position;
	long result;

	if (!find_source(fd, size, &source))
		return -ENOSYS;
	if (position == TN__AT_OFFSET)
		at = TN_CALL(SYS_lseek, fd, 0L, SEEK_CUR);
	if (at < 0)
		return -ENOSYS;
	result = read_at(&source, fd, buffer, size, at);
	if (result > 0 && position == TN__AT_OFFSET)
		(void)TN_CALL(SYS_lseek, fd, at + result, SEEK_SET);
	return result;
}

#define READ(name, parameters, position, ...)                       \
	TN_ENTRY ssize_t name parameters                                \
	{                                                               \
		if (may_have_holes(size)) {                                 \
			long result = read_weights(fd, buffer, size, position); \
			if (result != -ENOSYS)                                  \
				return tn__moved(result);                           \
		}                                                           \
		return TN_NEXT(name)(__VA_ARGS__);                          \
	}
ssize_t __read(int fd, void *buffer, size_t size);
ssize_t __pread64(int fd, void *buffer, size_t size, off64_t at);
READ(read, (int fd, void *buffer, size_t size), TN__AT_OFFSET, fd, buffer, size)
READ(__read, (int fd, void *buffer, size_t size), TN__AT_OFFSET, fd, buffer, size)
READ(pread, (int fd, void *buffer, size_t size, off_t at), at, fd, buffer, size, at)
READ(pread64, (int fd, void *buffer, size_t size, off64_t at), at, fd, buffer, size, at)
READ(__pread64, (int fd, void *buffer, size_t size, off64_t at), at, fd, buffer, size, at)

/* What fortified programs call. */
#define READ_CHK(name, parameters, position, ...)                   \
	ssize_t name parameters;                                        \
	TN_ENTRY ssize_t name parameters                                \
	{                                                               \
		if (may_have_holes(size) && size <= room) {                 \
			long result = read_weights(fd, buffer, size, position); \
			if (result != -ENOSYS)                                  \
				return tn__moved(result);                           \
		}                                                           \
		return TN_NEXT(name)(__VA_ARGS__);                          \
	}
READ_CHK(__read_chk, (int fd, void *buffer, size_t size, size_t room), TN__AT_OFFSET, fd, buffer, size, room)
READ_CHK(__pread_chk, (int fd, void *buffer, size_t size, off_t at, size_t room), at, fd, buffer, size, at, room)
READ_CHK(__pread64_chk, (int fd, void *buffer, size_t size, off64_t at, size_t room), at, fd, buffer, size, at, room)

/* Into several buffers, one after the other. -ENOSYS as above. */
static TN_SLOW long
read_parts(int fd, const struct iovec *parts, int count, off_t position)
{
	long done = 0;

	if (!tn__weights_of(fd))
		return -ENOSYS;
	for (int i = 0; i < count; i++) {
		long result = read_weights(fd, parts[i].iov_base, parts[i].iov_len,
		                           position == TN__AT_OFFSET ? TN__AT_OFFSET : position + done);
		if (result < 0)
			return done ? done : result;
		done += result;
		if ((size_t)result < parts[i].iov_len)
			break;
	}
	return done;
}

#define READV(name, parameters, position, ...)                    \
	TN_ENTRY ssize_t name parameters                              \
	{                                                             \
		if (tn__weights_met()) {                                  \
			long result = read_parts(fd, parts, count, position); \
			if (result != -ENOSYS)                                \
				return tn__moved(result);                         \
		}                                                         \
		return TN_NEXT(name)(__VA_ARGS__);                        \
	}
READV(readv, (int fd, const struct iovec *parts, int count), TN__AT_OFFSET, fd, parts, count)
READV(preadv, (int fd, const struct iovec *parts, int count, off_t at), at, fd, parts, count, at)
READV(preadv64, (int fd, const struct iovec *parts, int count, off64_t at), at, fd, parts, count, at)
READV(preadv2, (int fd, const struct iovec *parts, int count, off_t at, int flags), at, fd, parts, count, at, flags)
READV(preadv64v2, (int fd, const struct iovec *parts, int count, off64_t at, int flags), at, fd, parts, count, at,
      flags)

/* Through a stream: what it has buffered is dropped, and its place moved on by its own means. 0: the real call. */
static TN_SLOW size_t
stream_weights(char *buffer, size_t size, FILE *stream)
{
	struct source source;
	off_t at = find_source(fileno(stream), size, &source) ? ftello(stream) : -1;
	long done = at >= 0 ? read_at(&source, fileno(stream), buffer, size, at) : 0;

	if (done <= 0 || fseeko(stream, at + done, SEEK_SET))
		return 0;
	return (size_t)done;
}

#undef fread_unlocked /* optimised headers have a macro */
#define FREAD(name)                                                                                 \
	TN_ENTRY size_t name(void *buffer, size_t size, size_t count, FILE *stream)                     \
	{                                                                                               \
		size_t all;                                                                                 \
		if (!__builtin_mul_overflow(size, count, &all) && may_have_holes(all)) {                    \
			size_t done = stream_weights(buffer, all, stream);                                      \
			if (done == all)                                                                        \
				return count;                                                                       \
			if (done) /* the file's end, which the stream must know */                              \
				return (done + TN_NEXT(name)((char *)buffer + done, 1, all - done, stream)) / size; \
		}                                                                                           \
		return TN_NEXT(name)(buffer, size, count, stream);                                          \
	}
FREAD(fread)
FREAD(fread_unlocked)

/* ---- mapping ---- */

struct mapping {
	_Atomic uintptr_t begin; /* 0: free */
	_Atomic uintptr_t end;
	_Atomic int writable;
	off_t offset;
	struct tn__weights_record *record;
};
static struct mapping mappings[MAPPINGS];
static _Atomic unsigned mapped; /* how many there may be: the slots below it */

static void
remember(uintptr_t begin, size_t size, bool writable, off_t offset, struct tn__weights_record *record)
{
	for (unsigned i = 0; i < MAPPINGS; i++) {
		uintptr_t none = 0;
		if (!atomic_compare_exchange_strong(&mappings[i].begin, &none, 1))
			continue;
		mappings[i].record = record;
		mappings[i].offset = offset;
		atomic_store(&mappings[i].writable, writable);
		atomic_store(&mappings[i].end, begin + size);
		atomic_store(&mappings[i].begin, begin);
		unsigned count = atomic_load(&mapped);
		while (count < i + 1 && !atomic_compare_exchange_weak(&mapped, &count, i + 1))
			;
		return;
	}
}

/* What any part of is unmapped, moved or changed is no mapping of ours any more: it is then memory like any other. */
static TN_SLOW void
forget(uintptr_t begin, size_t size)
{
	unsigned count = atomic_load(&mapped);
	for (unsigned i = 0; i < count; i++) {
		uintptr_t first = atomic_load(&mappings[i].begin);
		if (first > 1 && first < begin + size && atomic_load(&mappings[i].end) > begin)
			atomic_store(&mappings[i].begin, 0);
	}
}

int
tn_weights_absent(const void *address, size_t size)
{
	unsigned count = atomic_load(&mapped);
	uintptr_t begin = (uintptr_t)address;

	for (unsigned i = 0; i < count; i++) {
		uintptr_t first = atomic_load(&mappings[i].begin);
		if (first > 1 && first <= begin && begin + size <= atomic_load(&mappings[i].end))
			return 1 + (atomic_load(&mappings[i].writable) != 0);
	}
	return 0;
}

/* Copies what is there of [offset, offset + size) into the fresh memory. */
static bool
fill(const struct tn__weights_record *record, int fd, char *memory, size_t size, off_t offset, int prot)
{
	long own = open_again(fd);
	uint64_t end = offset + (off_t)size < record->length ? (uint64_t)offset + size : (uint64_t)record->length;
	bool well = own >= 0;

	for (uint64_t at = (uint64_t)offset; well && at < end;) {
		bool hole;
		size_t piece = piece_at(record->length, (int)own, (off_t)at, end - at, &hole);
		if (!hole) {
			char *page = memory + (at - (uint64_t)offset) / PAGE * PAGE, *target = memory + (at - (uint64_t)offset);
			size_t pages = ((size_t)(target - page) + piece + PAGE - 1) / PAGE * PAGE;
			well = (prot & PROT_WRITE) || TN_CALL(SYS_mprotect, page, pages, PROT_READ | PROT_WRITE) == 0;
			for (size_t done = 0; well && done < piece;) {
				long got = TN_CALL(SYS_pread64, own, target + done, piece - done, at + done);
				well = got > 0;
				done += well ? (size_t)got : 0;
			}
			well = well && ((prot & PROT_WRITE) || TN_CALL(SYS_mprotect, page, pages, prot) == 0);
		}
		at += piece;
	}
	if (own >= 0)
		(void)TN_CALL(SYS_close, own);
	return well;
}

/* -ENOSYS: the real call. */
static TN_SLOW long
map_weights(void *address, size_t size, int prot, int flags, int fd, off_t offset)
{
	struct tn__weights_record *record = tn__weights_of(fd);
	int type = flags & MAP_TYPE;
	long result;

	if (!record || size == 0 || offset < 0 || offset % PAGE || offset >= record->length || (prot & PROT_EXEC) ||
	    (type != MAP_PRIVATE && (prot & PROT_WRITE))) /* the kernel's error is the right one */
		return -ENOSYS;
	flags = (flags & ~(MAP_TYPE | MAP_POPULATE)) | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	result = TN_CALL(SYS_mmap, address, size, prot, flags, -1L, 0L);
	if (result < 0 && result > -4096)
		return -ENOSYS;
	if (!fill(record, fd, (char *)result, size, offset, prot)) { /* NOLINT: an address from the kernel */
		(void)TN_CALL(SYS_munmap, result, size);
		return -ENOSYS;
	}
	forget((uintptr_t)result, size);
	remember((uintptr_t)result, size, prot & PROT_WRITE, offset, record);
	return result;
}

#define MMAP(name, type)                                                                      \
	TN_ENTRY void *name(void *address, size_t size, int prot, int flags, int fd, type offset) \
	{                                                                                         \
		if (tn__weights_met() && fd >= 0 && !(flags & MAP_ANONYMOUS)) {                       \
			long result = map_weights(address, size, prot, flags, fd, offset);                \
			if (result != -ENOSYS)                                                            \
				return (void *)result; /* NOLINT: an address from the kernel */               \
		}                                                                                     \
		void *memory = TN_NEXT(name)(address, size, prot, flags, fd, offset);                 \
		if ((flags & MAP_FIXED) && memory != MAP_FAILED && atomic_load(&mapped))              \
			forget((uintptr_t)memory, size);                                                  \
		return memory;                                                                        \
	}
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

TN_ENTRY int
munmap(void *address, size_t size)
{
	if (atomic_load_explicit(&mapped, memory_order_acquire))
		forget((uintptr_t)address, size);
	return TN_NEXT(munmap)(address, size);
}

TN_ENTRY void *
mremap(void *address, size_t size, size_t new_size, int flags, ...)
{
	void *new_address = NULL;
	if (flags & MREMAP_FIXED) {
		va_list arguments;
		va_start(arguments, flags);
		new_address = va_arg(arguments, void *);
		va_end(arguments);
	}
	if (atomic_load_explicit(&mapped, memory_order_acquire))
		forget((uintptr_t)address, size);
	return TN_NEXT(mremap)(address, size, new_size, flags, new_address);
}

TN_ENTRY int
mprotect(void *address, size_t size, int prot)
{
	if ((prot & PROT_WRITE) && atomic_load_explicit(&mapped, memory_order_acquire))
		forget((uintptr_t)address, size);
	return TN_NEXT(mprotect)(address, size, prot);
}

/* ---- reading ahead, which would fill the page cache ---- */

#define ADVISE(name, type)                                    \
	TN_ENTRY int name(int fd, type at, type size, int advice) \
	{                                                         \
		if (tn__weights_met() && tn__weights_of(fd))          \
			return 0;                                         \
		return TN_NEXT(name)(fd, at, size, advice);           \
	}
ADVISE(posix_fadvise, off_t)
ADVISE(posix_fadvise64, off64_t)

TN_ENTRY ssize_t
readahead(int fd, off64_t at, size_t size)
{
	if (tn__weights_met() && tn__weights_of(fd))
		return 0;
	return TN_NEXT(readahead)(fd, at, size);
}
