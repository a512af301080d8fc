/* SPDX-License-Identifier: Apache-2.0
 *
 * Which files of weights are stood in for, and how their stand-ins are made.
 *
 * Invariant: a stand-in is whole before its record counts, and is never changed afterwards; the real file is only read. Any
 * failure leaves the program with the real file. Keeps errno, allocates nothing but mappings. Locks: the table file's own
 * (flock) while a record is added.
 */
#include "preload/weights.h"

#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "base/weights_file.h"
#include "preload/overlay.h"

#define SMALL_TENSOR (64u << 10) /* what --weights shape reads all the same: norms, scales, settings kept as tensors */
#define SMALL_SHARE (256 << 20)  /* of a file with holes, what may be copied */
#define COPY_BYTES (64 << 10)
#define SEEN 256u

_Atomic int tn__weights_mode = TN__WEIGHTS_UNKNOWN;
struct tn__weights_table *_Atomic tn__weights_table;

/* Files that were looked at and are none of ours. */
static _Atomic uint64_t ordinary[SEEN];

/* ---- names ---- */

static TN_SLOW int
find_mode(void)
{
	const char *text = getenv("TONNAGE_WEIGHTS"), *run = getenv("TONNAGE_RUN");
	int mode = TN__WEIGHTS_REAL;

	if (run && *run && text && !strcmp(text, "auto"))
		mode = TN__WEIGHTS_AUTO;
	else if (run && *run && text && !strcmp(text, "shape"))
		mode = TN__WEIGHTS_SHAPE;
	atomic_store_explicit(&tn__weights_mode, mode, memory_order_relaxed);
	return mode;
}

static bool
ends_with(const char *path, size_t length, const char *end)
{
	size_t size = strlen(end);
	return length > size && !memcmp(path + length - size, end, size);
}

bool
tn__weights_named(const char *path)
{
	static const char *const ends[] = { ".safetensors", ".bin", ".pt", ".pth", ".ckpt" };
	size_t length = strlen(path);
	bool named = strstr(path, "/blobs/") !=
	             NULL; /* the hub's cache, where names are links to files named by their hash */

	for (size_t i = 0; !named && i < sizeof(ends) / sizeof(ends[0]); i++)
		named = ends_with(path, length, ends[i]);
	if (!named)
		return false;
	int mode = atomic_load_explicit(&tn__weights_mode, memory_order_relaxed);
	return (mode == TN__WEIGHTS_UNKNOWN ? find_mode() : mode) != TN__WEIGHTS_REAL;
}

/* ---- the table ---- */

static size_t
append(char *out, size_t used, const char *text)
{
	size_t length = strlen(text);
	if (used + length >= PATH_MAX)
		return used;
	memcpy(out + used, text, length + 1);
	return used + length;
}

static size_t
append_number(char *out, size_t used, uint64_t number)
{
	char digits[24], *at = digits + sizeof(digits) - 1;
	*at = 0;
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	return append(out, used, at);
}

/* A file in the run's state; "" where the run is not known. */
static void
name_in_run(char *out, const char *rest)
{
	const char *run = getenv("TONNAGE_RUN");
	out[0] = 0;
	if (tn__overlay_library.run_length)
		run = tn__overlay_library.run;
	if (run && strlen(run) + 64 < PATH_MAX)
		(void)append(out, append(out, 0, run), rest);
}

static struct tn__weights_table *
map_table(int fd)
{
	struct tn__weights_table *table = atomic_load(&tn__weights_table), *none = NULL;
	struct stat about;
	long result;

	if (table)
		return table;
	result = TN_CALL(SYS_fstat, fd, &about);
	if (result == 0 && about.st_size < (off_t)sizeof(*table)) /* blocks now: a full disk is an error, never a signal */
		result = TN_CALL(SYS_fallocate, fd, 0L, 0L, sizeof(*table));
	if (result)
		return NULL;
	result = TN_CALL(SYS_mmap, NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
	if (result < 0 && result > -4096)
		return NULL;
	table = (struct tn__weights_table *)result; /* NOLINT: an address from the kernel */
	table->magic = TN__WEIGHTS_MAGIC;
	if (!atomic_compare_exchange_strong(&tn__weights_table, &none, table)) {
		(void)TN_CALL(SYS_munmap, table, sizeof(*table));
		return none;
	}
	return table;
}

static struct tn__weights_record *
find_stand_in(const struct tn__weights_table *table, const struct stat *st)
{
	uint64_t count = table ? atomic_load_explicit(&table->count, memory_order_acquire) : 0;
	for (uint64_t i = 0; i < count && i < TN__WEIGHTS_FILES; i++)
		if (table->records[i].inode == st->st_ino && table->records[i].device == st->st_dev)
			return (struct tn__weights_record *)&table->records[i];
	return NULL;
}

static struct tn__weights_record *
find_real(const struct tn__weights_table *table, const struct stat *st, uint64_t from)
{
	uint64_t count = table ? atomic_load_explicit(&table->count, memory_order_acquire) : 0;
	for (uint64_t i = from; i < count && i < TN__WEIGHTS_FILES; i++) {
		const struct tn__weights_record *record = &table->records[i];
		if (record->real.st_ino == st->st_ino && record->real.st_dev == st->st_dev &&
		    record->real_length == st->st_size && record->real.st_mtim.tv_sec == st->st_mtim.tv_sec &&
		    record->real.st_mtim.tv_nsec == st->st_mtim.tv_nsec)
			return (struct tn__weights_record *)record;
	}
	return NULL;
}

struct tn__weights_record *
tn__weights_of(int fd)
{
	struct tn__weights_table *table = atomic_load_explicit(&tn__weights_table, memory_order_acquire);
	struct stat st;

	if (!table || fd < 0 || TN_CALL(SYS_fstat, fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	return find_stand_in(table, &st);
}

/* ---- what is to be stood in for ---- */

struct plan {
	int from, to;
	off_t length, real_length;
	bool shape;               /* the tensors are there */
	uint64_t tensors, absent; /* what is not there, or not taken */
	uint64_t kept;            /* up to here, in the order of the file, everything is taken */
	bool failed;
};

static bool
copy_bytes(struct plan *plan, uint64_t begin, uint64_t end)
{
	char buffer[4096];
	while (begin < end && !plan->failed) {
		size_t piece = end - begin < sizeof(buffer) ? (size_t)(end - begin) : sizeof(buffer);
		long got = TN_CALL(SYS_pread64, plan->from, buffer, piece, begin);
		if (got <= 0 || TN_CALL(SYS_pwrite64, plan->to, buffer, got, begin) != got)
			plan->failed = true;
		else
			begin += (uint64_t)got;
	}
	return !plan->failed;
}

static void
count_absent(void *context, uint64_t begin, uint64_t end)
{
	struct plan *plan = context;
	if (end <= (uint64_t)plan->real_length)
		return;
	plan->tensors++;
	plan->absent += end - begin;
}

static bool
is_taken(uint64_t begin, uint64_t end)
{
	return end - begin <= SMALL_TENSOR;
}

static void
count_large(void *context, uint64_t begin, uint64_t end)
{
	struct plan *plan = context;
	if (is_taken(begin, end))
		return;
	plan->tensors++;
	plan->absent += end - begin;
}

static void
copy_small(void *context, uint64_t begin, uint64_t end)
{
	if (is_taken(begin, end))
		(void)copy_bytes(context, begin, end);
}

/* In a zip everything that is no storage counts: what lies between them and after them. They come in the file's order. */
static void
copy_between(void *context, uint64_t begin, uint64_t end)
{
	struct plan *plan = context;
	if (is_taken(begin, end))
		return;
	if (begin < plan->kept) {
		plan->failed = true;
		return;
	}
	(void)copy_bytes(plan, plan->kept, begin);
	plan->kept = end;
}

static bool
read_at(void *context, uint64_t at, void *buffer, size_t size)
{
	const struct plan *plan = context;
	return TN_CALL(SYS_pread64, plan->from, buffer, size, at) == (long)size;
}

/* The header of a safetensors file, mapped; NULL when it is none. */
static char *
map_header(const struct plan *plan, uint64_t *size)
{
	char start[9];
	long result;

	if (plan->real_length < 10 || TN_CALL(SYS_pread64, plan->from, start, sizeof(start), 0L) != sizeof(start))
		return NULL;
	memcpy(size, start, 8);
	if (*size < 2 || *size > TN__LONGEST_HEADER || *size + 8 > (uint64_t)plan->real_length || start[8] != '{')
		return NULL;
	result = TN_CALL(SYS_mmap, NULL, *size + 8, PROT_READ, MAP_PRIVATE, plan->from, 0L);
	return result < 0 && result > -4096 ? NULL : (char *)result; /* NOLINT: an address from the kernel */
}

static bool
plan_safetensors(struct plan *plan, bool shape, bool copy)
{
	uint64_t size, end = 0;
	char *header = map_header(plan, &size);
	bool known;

	if (!header)
		return false;
	known = tn__safetensors_scan(header + 8, size, size + 8, count_absent, plan, &end);
	plan->length = (off_t)end;
	plan->shape = known && shape && end <= (uint64_t)plan->real_length;
	if (plan->shape) {
		plan->length = plan->real_length;
		(void)tn__safetensors_scan(header + 8, size, size + 8, count_large, plan, &end);
	}
	if (known && copy && plan->shape) {
		(void)copy_bytes(plan, 0, size + 8);
		(void)tn__safetensors_scan(header + 8, size, size + 8, copy_small, plan, &end);
	} else if (known && copy && plan->absent > 0) {
		(void)copy_bytes(plan, 0, (uint64_t)plan->real_length);
	}
	(void)TN_CALL(SYS_munmap, header, size + 8);
	return known && plan->absent > 0;
}

static bool
plan_zip(struct plan *plan, bool copy)
{
	plan->shape = true;
	plan->length = plan->real_length;
	if (!tn__torch_zip_scan((uint64_t)plan->real_length, read_at, plan, count_large, plan) || plan->absent == 0)
		return false;
	if (!copy)
		return true;
	if (!tn__torch_zip_scan((uint64_t)plan->real_length, read_at, plan, copy_between, plan))
		plan->failed = true;
	return copy_bytes(plan, plan->kept, (uint64_t)plan->real_length);
}

/* A file of the whole length that is mostly holes: nothing that anybody saved. */
static bool
plan_sparse(struct plan *plan, const struct stat *st, bool copy)
{
	if ((uint64_t)st->st_blocks * 512 + (1 << 20) > (uint64_t)st->st_size / 2 || st->st_blocks * 512 > SMALL_SHARE)
		return false;
	plan->length = st->st_size;
	plan->tensors = 0;
	plan->absent = 0;
	for (off_t at = 0; at < st->st_size && !plan->failed;) {
		long begin = TN_CALL(SYS_lseek, plan->from, at, SEEK_DATA), end;
		if (begin < 0)
			begin = st->st_size;
		plan->absent += (uint64_t)(begin - at);
		end = begin < st->st_size ? TN_CALL(SYS_lseek, plan->from, begin, SEEK_HOLE) : begin;
		if (end < begin)
			return false;
		if (copy)
			(void)copy_bytes(plan, (uint64_t)begin, (uint64_t)end);
		at = end;
	}
	return plan->absent > 0;
}

/* Is the file to be stood in for? With `copy` its stand-in's bytes are written to plan->to, too. */
static bool
make_plan(struct plan *plan, const struct stat *st, bool own, bool copy)
{
	bool shape = !own && atomic_load_explicit(&tn__weights_mode, memory_order_relaxed) == TN__WEIGHTS_SHAPE;
	int from = plan->from, to = plan->to;

	*plan = (struct plan){ .from = from, .to = to, .real_length = st->st_size };
	if (plan_safetensors(plan, shape, copy))
		return !plan->failed;
	*plan = (struct plan){ .from = from, .to = to, .real_length = st->st_size };
	if (shape && plan_zip(plan, copy))
		return !plan->failed;
	*plan = (struct plan){ .from = from, .to = to, .real_length = st->st_size };
	return !own && plan_sparse(plan, st, copy) && !plan->failed;
}

/* ---- making ---- */

static long
open_stand_in(uint64_t number, int flags)
{
	char name[PATH_MAX];
	size_t used;

	name_in_run(name, "/state/stand-ins");
	if (!name[0])
		return -ENOENT;
	if (flags & O_CREAT)
		(void)TN_PASS_CALL(SYS_mkdirat, AT_FDCWD, name, 0700, 0L, 0L);
	used = append(name, strlen(name), "/");
	(void)append_number(name, used, number);
	return TN_PASS_CALL(SYS_openat, AT_FDCWD, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600, 0L);
}

static void
read_link(int fd, char *out)
{
	char link[64] = "/proc/self/fd/";
	long length;

	(void)append_number(link, 14, (uint64_t)fd);
	length = TN_CALL(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
	out[length > 0 ? length : 0] = 0;
}

/* A line of weights-names. */
static bool
note_name(const char *path)
{
	char name[PATH_MAX], line[PATH_MAX + 1];
	size_t length = strlen(path);
	long fd, result = -1;

	name_in_run(name, "/state/weights-names");
	for (size_t i = 0; i < length; i++)
		line[i] = path[i] == '\n' ? '?' : path[i];
	line[length] = '\n';
	fd = TN_PASS_CALL(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600, 0L);
	if (fd >= 0) {
		result = TN_CALL(SYS_write, fd, line, length + 1);
		(void)TN_CALL(SYS_close, fd);
	}
	return result == (long)length + 1;
}

static struct tn__weights_record *
add_record(struct tn__weights_table *table, int fd, const struct stat *st, bool own, const char *path)
{
	uint64_t number = atomic_load(&table->count);
	struct tn__weights_record *record = &table->records[number];
	struct plan plan = { .from = fd };
	struct stat made;
	long to;

	if (number >= TN__WEIGHTS_FILES || (to = open_stand_in(number, O_RDWR | O_CREAT | O_TRUNC)) < 0)
		return NULL;
	plan.to = (int)to;
	plan.failed = !make_plan(&plan, st, own, true) || TN_CALL(SYS_ftruncate, to, plan.length) ||
	              TN_CALL(SYS_fstat, to, &made) || !note_name(path);
	(void)TN_CALL(SYS_close, to);
	if (plan.failed)
		return NULL;
	*record = (struct tn__weights_record){ .device = made.st_dev,
		                                   .inode = made.st_ino,
		                                   .length = plan.length,
		                                   .real = *st,
		                                   .real_length = st->st_size,
		                                   .tensors = plan.tensors,
		                                   .absent = plan.absent,
		                                   .shape = plan.shape };
	record->real.st_size = plan.length;
	atomic_store_explicit(&table->count, number + 1, memory_order_release);
	return record;
}

/* Finds or makes the stand-in, with the table's lock. */
static TN_SLOW struct tn__weights_record *
make(int fd, const struct stat *st, bool own, const char *path)
{
	char name[PATH_MAX];
	struct tn__weights_record *record = NULL;
	struct tn__weights_table *table;
	long lock;

	name_in_run(name, "/state/weights");
	lock = TN_PASS_CALL(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600, 0L);
	if (lock < 0)
		return NULL;
	if (TN_CALL(SYS_flock, lock, LOCK_EX) == 0 && (table = map_table((int)lock))) {
		record = find_real(table, st, 0);
		if (!record)
			record = add_record(table, fd, st, own, path);
	}
	(void)TN_CALL(SYS_flock, lock, LOCK_UN); /* the mapping holds the open file, and with it the lock */
	(void)TN_CALL(SYS_close, lock);
	return record;
}

static uint64_t
key_of(const struct stat *st)
{
	uint64_t key = 1469598103934665603ull, parts[] = { st->st_dev, st->st_ino, (uint64_t)st->st_size,
		                                               (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec };
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		key = (key ^ parts[i]) * 0x9e3779b97f4a7c15ull, key ^= key >> 29;
	return key | 1;
}

/* A regular file that is open for reading: its stand-in, or NULL. */
static struct tn__weights_record *
stand_in_for(int fd, const struct stat *st)
{
	struct tn__weights_record *record = find_real(atomic_load(&tn__weights_table), st, 0);
	_Atomic uint64_t *seen = &ordinary[key_of(st) % SEEN];
	char path[PATH_MAX];
	struct plan plan = { .from = fd, .to = -1 };
	bool own;

	if (record || find_stand_in(atomic_load(&tn__weights_table), st))
		return record;
	if (st->st_size < 16 || atomic_load_explicit(seen, memory_order_relaxed) == key_of(st))
		return NULL;
	read_link(fd, path);
	own = tn__strip_upper(path);
	if (path[0] == '/' && make_plan(&plan, st, own, false))
		record = make(fd, st, own, path);
	if (!record)
		atomic_store_explicit(seen, key_of(st), memory_order_relaxed);
	return record;
}

void
tn__weights_open(int fd)
{
	struct tn__weights_record *record;
	struct stat st;
	long flags, stand_in;

	if (TN_CALL(SYS_fstat, fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	record = stand_in_for(fd, &st);
	if (!record)
		return;
	stand_in = open_stand_in((uint64_t)(record - atomic_load(&tn__weights_table)->records), O_RDONLY);
	if (stand_in < 0)
		return;
	flags = TN_CALL(SYS_fcntl, fd, F_GETFD, 0L);
	(void)TN_CALL(SYS_dup3, stand_in, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0L);
	(void)TN_CALL(SYS_close, stand_in);
}

void
tn__weights_stat(int dirfd, const char *path, struct stat *st)
{
	struct tn__target target;
	struct tn__weights_record *record = NULL;
	struct stat about;
	long fd;

	if (!S_ISREG(st->st_mode))
		return;
	tn__map_read(dirfd, path, TN__FOLLOW, &target);
	fd = TN_CALL(SYS_openat, target.dirfd, target.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0L);
	if (fd < 0)
		return;
	if (TN_CALL(SYS_fstat, fd, &about) == 0 && about.st_ino == st->st_ino && about.st_dev == st->st_dev)
		record = stand_in_for((int)fd, &about);
	if (record)
		st->st_size = record->length;
	(void)TN_CALL(SYS_close, fd);
}

bool
tn__weights_fstat(struct stat *st)
{
	struct tn__weights_record *record = find_stand_in(atomic_load(&tn__weights_table), st);
	if (record)
		*st = record->real;
	return record != NULL;
}
