/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that write bytes: zeros that go to a file of the run become holes, and the run's limit of disk space is kept.
 *
 * What a virtual card computes is zeros, and checkpoints are full of it. A large write of zeros to a regular file below the
 * run folder (the upper is) moves the offset on and leaves the place as a hole; what the program reads is the same.
 * Invariant: the bytes, the length and the offset of the file are what the real call would have left; a file outside the
 * run is never touched otherwise than by the real call; writes below LARGE cost one comparison, and with a limit one fstat.
 */
#include "preload/network_state.h"
#include "preload/overlay.h"

#include <dirent.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#define LARGE ((size_t)64 << 10)
#define PAGE 4096u

/* ---- zeros ---- */

static bool
is_zero(const char *bytes, size_t size)
{
	/* Equal to itself moved by one, and the first is zero: memcmp is the fastest loop that libc has. */
	return size == 0 || (bytes[0] == 0 && !memcmp(bytes, bytes + 1, size - 1));
}

/* Worth a second look? A cheap no for what is not zeros. */
static bool
may_be_zero(const char *bytes, size_t size)
{
	return size >= LARGE && is_zero(bytes, 64) && is_zero(bytes + size / 2, 64);
}

/* How many bytes at the start of the buffer are zeros (or are not), in whole pages of the buffer but for its end. */
static size_t
run_of(const char *bytes, size_t size, bool zeros)
{
	size_t at = 0;

	while (at < size) {
		size_t piece = size - at < PAGE ? size - at : PAGE;
		if (is_zero(bytes + at, piece) != zeros)
			break;
		at += piece;
	}
	return at;
}

/* ---- whose file ---- */

/* A regular file of the run that is open for writing, and not for appending. */
static bool
is_own_file(int fd, struct stat *about)
{
	struct tn__place place;
	long flags;

	if (tn__mode() != TN__ACTIVE || TN_CALL(SYS_fstat, fd, about) < 0 || !S_ISREG(about->st_mode))
		return false;
	flags = TN_CALL(SYS_fcntl, fd, F_GETFL, 0L);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_APPEND))
		return false;
	if (about->st_nlink == 0) /* without a name nobody knows whose it is */
		return false;
	tn__resolve_descriptor(fd, &place);
	return !place.error &&
	       (!place.lower || (place.pass && strncmp(place.path, "/proc/", 6) && strncmp(place.path, "/sys/", 5)));
}

/* ---- the limit ---- */

static uint64_t
blocks_below(int parent, const char *name, int depth)
{
	_Alignas(struct dirent64) char records[4096];
	uint64_t bytes = 0;
	long got, fd = TN_CALL(SYS_openat, parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0L);

	while (fd >= 0 && depth < 64 && (got = TN_CALL(SYS_getdents64, fd, records, sizeof(records))) > 0)
		for (long at = 0; at < got;) {
			const struct dirent64 *entry = (const void *)(records + at);
			struct stat about;
			at += entry->d_reclen;
			if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
			    TN_CALL(SYS_newfstatat, fd, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) < 0)
				continue;
			bytes += (uint64_t)about.st_blocks * 512;
			if (S_ISDIR(about.st_mode))
				bytes += blocks_below((int)fd, entry->d_name, depth + 1);
		}
	if (fd >= 0)
		(void)TN_CALL(SYS_close, fd);
	return bytes;
}

/* Counts what is written, and looks at the disk again when the count has reached the limit: it never falls by itself.
 * Some threads at once may go over the limit by what they write at that moment. */
static bool
is_over_limit(size_t size)
{
	char scratch[PATH_MAX];
	uint64_t limit = tn__head->limit, spent = atomic_fetch_add(&tn__head->spent, size) + size;

	if (spent <= limit)
		return false;
	memcpy(scratch, tn__overlay_library.run, tn__overlay_library.run_length);
	memcpy(scratch + tn__overlay_library.run_length, "/scratch", sizeof("/scratch"));
	spent = blocks_below(AT_FDCWD, scratch, 0);
	atomic_store(&tn__head->spent, spent);
	if (spent + size <= limit) {
		atomic_fetch_add(&tn__head->spent, size);
		return false;
	}
	atomic_fetch_add(&tn__head->full, 1);
	return true;
}

/* The real call, and a note where the disk is full. */
static long
write_bytes(int fd, const char *bytes, size_t size, off_t position)
{
	long result = position == TN__AT_OFFSET ? TN_CALL(SYS_write, fd, bytes, size)
	                                        : TN_CALL(SYS_pwrite64, fd, bytes, size, position);
	if (result == -ENOSPC || result == -EDQUOT)
		atomic_fetch_add(&tn__head->full, 1);
	return result;
}

/* ---- writing ---- */

/* Leaves a hole of `size` bytes at `at`, where the file was `*length` long. Blocks may have been reserved beyond its end
 * (numpy does), and file systems punch within the length only: so it is made longer first. */
static long
leave_hole(int fd, off_t at, size_t size, off_t *length)
{
	off_t end = at + (off_t)size;
	bool fresh = at >= *length;
	long result = 0;

	if (end > *length) {
		result = TN_CALL(SYS_ftruncate, fd, end);
		if (result == 0)
			*length = end;
	}
	if (result == 0)
		result = TN_CALL(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, size);
	if (result == 0)
		atomic_store_explicit(&tn__head->holes, 1, memory_order_relaxed);
	return fresh && result == -EOPNOTSUPP ? 0 : result;
}

/* Writes pieces at a position of the file; how many bytes, or an error when it was none. */
static long
write_pieces(int fd, const char *bytes, size_t size, off_t at, off_t length)
{
	size_t done = 0;

	while (done < size) {
		size_t zeros = run_of(bytes + done, size - done, true), data;
		if (zeros >= LARGE && leave_hole(fd, at + (off_t)done, zeros, &length) == 0) {
			done += zeros;
			continue;
		}
		data = zeros + run_of(bytes + done + zeros, size - done - zeros, false);
		if (tn__head->limit && is_over_limit(data))
			return done ? (long)done : -ENOSPC;
		long result = write_bytes(fd, bytes + done, data, at + (off_t)done);
		if (result < 0)
			return done ? (long)done : result;
		done += (size_t)result;
		if (at + (off_t)done > length)
			length = at + (off_t)done;
		if ((size_t)result < data)
			break;
	}
	return (long)done;
}

/* A write that may hold zeros. -ENOSYS: not one for us. */
static TN_SLOW long
write_sparsely(int fd, const char *bytes, size_t size, off_t position)
{
	struct stat about;
	off_t at = position;
	long result;

	if (!is_own_file(fd, &about))
		return -ENOSYS;
	if (position == TN__AT_OFFSET)
		at = TN_CALL(SYS_lseek, fd, 0L, SEEK_CUR);
	if (at < 0)
		return -ENOSYS;
	result = write_pieces(fd, bytes, size, at, about.st_size);
	if (result > 0 && position == TN__AT_OFFSET)
		(void)TN_CALL(SYS_lseek, fd, at + result, SEEK_SET);
	return result;
}

static TN_SLOW bool
is_held_back(int fd, size_t size)
{
	struct stat about;
	return is_own_file(fd, &about) && is_over_limit(size);
}

/* Defines a call that writes `size` bytes, the real one by TN_NEXT: it is a point where threads are cancelled. */
#define WRITE(name, parameters, position, ...)                       \
	TN_ENTRY ssize_t name parameters                                 \
	{                                                                \
		if (tn__network_stops(fd, bytes, size))                      \
			return -1;                                               \
		if (may_be_zero(bytes, size)) {                              \
			long result = write_sparsely(fd, bytes, size, position); \
			if (result != -ENOSYS)                                   \
				return tn__moved(result);                            \
		} else if (tn__head->limit && is_held_back(fd, size)) {      \
			return tn__moved(-ENOSPC);                               \
		}                                                            \
		ssize_t written = TN_NEXT(name)(__VA_ARGS__);                \
		if (written < 0 && errno == ENOSPC)                          \
			atomic_fetch_add(&tn__head->full, 1);                    \
		return written;                                              \
	}
ssize_t __write(int fd, const void *bytes, size_t size);
ssize_t __pwrite64(int fd, const void *bytes, size_t size, off64_t at);
WRITE(write, (int fd, const void *bytes, size_t size), TN__AT_OFFSET, fd, bytes, size)
WRITE(__write, (int fd, const void *bytes, size_t size), TN__AT_OFFSET, fd, bytes, size)
WRITE(pwrite, (int fd, const void *bytes, size_t size, off_t at), at, fd, bytes, size, at)
WRITE(pwrite64, (int fd, const void *bytes, size_t size, off64_t at), at, fd, bytes, size, at)
WRITE(__pwrite64, (int fd, const void *bytes, size_t size, off64_t at), at, fd, bytes, size, at)

/* Of a list of buffers those before the first large one go as they are; then each by itself. */
TN_ENTRY ssize_t
writev(int fd, const struct iovec *parts, int count)
{
	ssize_t done = 0;
	int first = 0;

	if (tn__network_stops_pieces(fd, parts, count > 0 ? (size_t)count : 0))
		return -1;
	while (first < count && first < 16 && !may_be_zero(parts[first].iov_base, parts[first].iov_len))
		first++;
	struct stat about;
	if (first >= count || first >= 16 || !is_own_file(fd, &about)) {
		done = TN_NEXT(writev)(fd, parts, count);
		if (done < 0 && errno == ENOSPC)
			atomic_fetch_add(&tn__head->full, 1);
		return done;
	}
	for (int i = 0; i < count; i++) {
		ssize_t result = parts[i].iov_len ? write(fd, parts[i].iov_base, parts[i].iov_len) : 0;
		if (result < 0)
			return done ? done : -1;
		done += result;
		if ((size_t)result < parts[i].iov_len)
			break;
	}
	return done;
}

/* Through a stream: what it holds is written out first, then the place is left by its own means. */
static TN_SLOW bool
stream_zeros(FILE *stream, size_t size)
{
	struct stat about;
	int fd = fileno(stream);
	off_t at, length;

	if (fd < 0 || !is_own_file(fd, &about) || fflush(stream))
		return false;
	at = ftello(stream);
	if (at < 0 || TN_CALL(SYS_fstat, fd, &about) < 0)
		return false;
	length = about.st_size;
	return leave_hole(fd, at, size, &length) == 0 && fseeko(stream, (off_t)size, SEEK_CUR) == 0;
}

#define FWRITE(name)                                                                                        \
	TN_ENTRY size_t name(const void *bytes, size_t size, size_t count, FILE *stream)                        \
	{                                                                                                       \
		size_t all;                                                                                         \
		if (!__builtin_mul_overflow(size, count, &all) && may_be_zero(bytes, all) && is_zero(bytes, all) && \
		    stream_zeros(stream, all))                                                                      \
			return count;                                                                                   \
		return TN_NEXT(name)(bytes, size, count, stream);                                                   \
	}
#undef fwrite_unlocked /* optimised headers have a macro */
FWRITE(fwrite)
FWRITE(fwrite_unlocked)

/* ---- copying in the kernel, which fills holes ---- */

/* At a hole of `in`: moves both sides past it, at most `size` bytes, and says how many. 0: there is data, or it is none of
 * ours; *data is then how much of it there is. `in_at` and `out_at` NULL: the files' own offsets. */
static long
copy_hole(int in, off_t *in_at, int out, off_t *out_at, size_t size, size_t *data)
{
	struct stat from, to;
	off_t at, target, length, begin;

	*data = size;
	if (size < LARGE || TN_CALL(SYS_fstat, in, &from) < 0 || !S_ISREG(from.st_mode) || !is_own_file(out, &to))
		return 0;
	at = in_at ? *in_at : TN_CALL(SYS_lseek, in, 0L, SEEK_CUR);
	target = out_at ? *out_at : TN_CALL(SYS_lseek, out, 0L, SEEK_CUR);
	if (at < 0 || target < 0 || at >= from.st_size)
		return 0;
	begin = TN_CALL(SYS_lseek, in, at, SEEK_DATA);
	if (begin == -ENXIO)
		begin = from.st_size;
	if (begin == at) {
		off_t end = TN_CALL(SYS_lseek, in, at, SEEK_HOLE);
		*data = end > at && (size_t)(end - at) < size ? (size_t)(end - at) : size;
	}
	if (!in_at)
		(void)TN_CALL(SYS_lseek, in, at, SEEK_SET);
	if (begin <= at)
		return 0;
	if ((size_t)(begin - at) < size)
		size = (size_t)(begin - at);
	if (at + (off_t)size > from.st_size)
		size = (size_t)(from.st_size - at);
	length = to.st_size;
	if (leave_hole(out, target, size, &length))
		return 0;
	if (in_at)
		*in_at = at + (off_t)size;
	else
		(void)TN_CALL(SYS_lseek, in, at + (off_t)size, SEEK_SET);
	if (out_at)
		*out_at = target + (off_t)size;
	else
		(void)TN_CALL(SYS_lseek, out, target + (off_t)size, SEEK_SET);
	return (long)size;
}

#define SENDFILE(name, type)                                       \
	TN_ENTRY ssize_t name(int out, int in, type *at, size_t size)  \
	{                                                              \
		size_t data;                                               \
		if (tn__network_stops(out, NULL, size))                    \
			return -1;                                             \
		long hole = copy_hole(in, at, out, NULL, size, &data);     \
		return hole > 0 ? hole : TN_NEXT(name)(out, in, at, data); \
	}
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

TN_ENTRY ssize_t
copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t size, unsigned flags)
{
	size_t data;
	long hole = copy_hole(in, in_at, out, out_at, size, &data);
	return hole > 0 ? hole : TN_NEXT(copy_file_range)(in, in_at, out, out_at, data, flags);
}
