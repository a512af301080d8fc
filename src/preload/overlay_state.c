/* SPDX-License-Identifier: Apache-2.0
 *
 * The write overlay's state: whether it is on, where the run lies, and the index that all processes of the run share.
 *
 * Invariant: tn__generation points at a word that is 0 only when reading needs no mapping. Set-up happens once a
 * process, at the first call of any entry, which may come before any constructor ran: no allocation, no stdio. A
 * forked child goes on with its parent's mapping. Must not know paths' meaning.
 */
#include "preload/overlay.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define INDEX_PROBES 4096u
#define FLAG_BITS 7ull

struct index {
	struct tn__index_head head;
	_Atomic uint64_t slots[TN__INDEX_SLOTS]; /* key with its lowest three bits replaced by flags; 0: free */
};

static _Atomic uint64_t not_set_up = 1; /* sends readers the slow way, where the overlay is set up */
static _Atomic uint64_t always_quiet = 0;
static struct index *shared_index;
static struct tn__index_head no_head; /* in the place of the index's, while there is none; has its pass word already */
static _Atomic int current_mode = TN__UNKNOWN;
static _Atomic int setting_up = 0;

struct tn__overlay_library tn__overlay_library;
_Atomic uint64_t *tn__generation = &not_set_up;
struct tn__index_head *tn__head = &no_head;

static void
complain(const char *what, int error)
{
	char line[512];
	static const char end[] = "; the program's writes will fail\n";
	size_t used = 0;
	const char *parts[] = { "tonnage: the write overlay could not be set up: ", what, ": ", strerror(error), end };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *part = parts[i] ? parts[i] : "unknown error";
		size_t length = strlen(part);
		if (length > sizeof(line) - used)
			length = sizeof(line) - used;
		memcpy(line + used, part, length);
		used += length;
	}
	(void)TN_CALL(SYS_write, 2, line, used);
}

/* Joins two names; false when they are too long. */
static bool
join(char *out, const char *first, const char *second)
{
	size_t first_length = strlen(first), second_length = strlen(second);
	if (first_length + second_length >= PATH_MAX)
		return false;
	memcpy(out, first, first_length);
	memcpy(out + first_length, second, second_length + 1);
	return true;
}

/* The run folder without symbolic links, by way of a descriptor. */
static int
find_run_folder(const char *named)
{
	char link[64];
	long fd, length;

	fd = TN_CALL(SYS_openat, AT_FDCWD, named, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return (int)fd;
	memcpy(link, "/proc/self/fd/", 14);
	char *digit = link + sizeof(link) - 1;
	*digit = 0;
	for (long rest = fd; digit == link + sizeof(link) - 1 || rest; rest /= 10)
		*--digit = (char)('0' + rest % 10);
	memmove(link + 14, digit, strlen(digit) + 1);
	length = TN_CALL(SYS_readlinkat, AT_FDCWD, link, tn__overlay_library.run, sizeof(tn__overlay_library.run) - 1);
	(void)TN_CALL(SYS_close, fd);
	if (length < 0)
		return (int)length;
	tn__overlay_library.run[length] = 0;
	tn__overlay_library.run_length = (size_t)length;
	return tn__overlay_library.run[0] == '/' && length > 1 ? 0 : -ENOENT;
}

/* What is made and opened before the index is mapped carries the pass word, too. */
static void
read_pass(void)
{
	char name[PATH_MAX];
	struct tn__index_head head;
	long fd = join(name, tn__overlay_library.run, "/state/index")
	              ? TN_CALL(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0L)
	              : -ENAMETOOLONG;

	no_head.pass = fd >= 0 && TN_CALL(SYS_pread64, fd, &head, sizeof(head), 0L) == (long)sizeof(head) ? head.pass : 0;
	if (fd >= 0)
		(void)TN_CALL(SYS_close, fd);
}

/* <run>/shm leads to the run's own part of /dev/shm. Without it new files there go where all others go. */
static int
find_shared_folder(void)
{
	char name[PATH_MAX];
	long length;

	tn__overlay_library.shared_length = 0;
	if (!join(name, tn__overlay_library.run, "/shm"))
		return -ENAMETOOLONG;
	length = TN_CALL(SYS_readlinkat, AT_FDCWD, name, tn__overlay_library.shared,
	                 sizeof(tn__overlay_library.shared) - 16);
	if (length <= 0 || strncmp(tn__overlay_library.shared, TN__SHARED "/", sizeof(TN__SHARED)))
		return 0;
	tn__overlay_library.shared[length] = 0;
	tn__overlay_library.shared_length = (size_t)length;
	return 0;
}

static int
make_folders(void)
{
	static const char *const folders[] = { "/scratch", "/scratch/files", "/state" };
	char name[PATH_MAX];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (!join(name, tn__overlay_library.run, folders[i]))
			return -ENAMETOOLONG;
		long result = TN_PASS_CALL(SYS_mkdirat, AT_FDCWD, name, 0700, 0L, 0L);
		if (result < 0 && result != -EEXIST)
			return (int)result;
	}
	if (!join(tn__overlay_library.upper, tn__overlay_library.run, "/scratch/files"))
		return -ENAMETOOLONG;
	tn__overlay_library.upper_length = strlen(tn__overlay_library.upper);
	return find_shared_folder();
}

/* The supervisor has made the file whole; where nobody has, it is done here, by everybody to the same size. A hole would
 * end the program by a signal once the disk is full. */
static long
give_blocks(int fd)
{
	struct stat about;
	long result = TN_CALL(SYS_fstat, fd, &about);

	if (result == 0 && about.st_size >= (off_t)sizeof(struct index))
		return 0;
	if (result == 0)
		result = TN_CALL(SYS_fallocate, fd, 0L, 0L, sizeof(struct index));
	if (result == -EOPNOTSUPP)
		result = TN_CALL(SYS_ftruncate, fd, sizeof(struct index));
	return result;
}

static int
map_index(void)
{
	char name[PATH_MAX];
	uint64_t magic = 0;
	long fd, result;

	if (!join(name, tn__overlay_library.run, "/state/index"))
		return -ENAMETOOLONG;
	fd = TN_PASS_CALL(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600, 0L);
	if (fd < 0)
		return (int)fd;
	result = give_blocks((int)fd);
	if (result == 0)
		result = TN_CALL(SYS_mmap, NULL, sizeof(struct index), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
	(void)TN_CALL(SYS_close, fd);
	if (result < 0 && result > -4096)
		return (int)result;
	shared_index = (struct index *)result; /* NOLINT: an address from the kernel */
	if (!atomic_compare_exchange_strong(&shared_index->head.magic, &magic, TN__INDEX_MAGIC) && magic != TN__INDEX_MAGIC)
		return -EUCLEAN;
	tn__head = &shared_index->head;
	return 0;
}

static int
find_self(void)
{
	Dl_info self;

	if (!dladdr(&tn__overlay_library, &self) || !self.dli_fname)
		return -ENOENT;
	return join(tn__overlay_library.self, self.dli_fname, "") ? 0 : -ENAMETOOLONG;
}

/* The program may change its environment, and may empty that of its children: ours is kept for them. */
static void
keep_environment(void)
{
	static char kept[8192];
	size_t used = 0, slots = sizeof(tn__overlay_library.environment) / sizeof(tn__overlay_library.environment[0]);

	for (char **variable = environ; variable && *variable; variable++) {
		size_t length = strlen(*variable) + 1;
		if (strncmp(*variable, "TONNAGE_", 8) || length > sizeof(kept) - used ||
		    tn__overlay_library.environment_count == (int)slots)
			continue;
		memcpy(kept + used, *variable, length);
		tn__overlay_library.environment[tn__overlay_library.environment_count++] = kept + used;
		used += length;
	}
}

static enum tn__mode
set_up(void)
{
	const char *run = getenv("TONNAGE_RUN"), *writes = getenv("TONNAGE_WRITES");
	const char *what = "its own name";
	int result;

	if (!run || !*run) {
		tn__generation = &always_quiet;
		return TN__OFF;
	}
	keep_environment();
	result = find_self();
	if (writes && !strcmp(writes, "allow")) {
		tn__generation = &always_quiet;
		return TN__OFF; /* children get the variables back all the same: the network wall is another matter */
	}
	if (result == 0) {
		what = "the run folder";
		result = find_run_folder(run);
	}
	if (result == 0) {
		read_pass();
		result = make_folders();
	}
	if (result == 0) {
		what = "its index";
		result = map_index();
	}
	if (result < 0) {
		complain(what, -result);
		tn__generation = &always_quiet;
		return TN__BROKEN;
	}
	tn__generation = &shared_index->head.generation;
	return TN__ACTIVE;
}

static TN_SLOW enum tn__mode
set_up_once(void)
{
	int mode, expected = 0;

	if (atomic_compare_exchange_strong(&setting_up, &expected, 1)) {
		mode = set_up();
		atomic_store_explicit(&current_mode, mode, memory_order_release);
		return mode;
	}
	while ((mode = atomic_load_explicit(&current_mode, memory_order_acquire)) == TN__UNKNOWN)
		(void)TN_CALL(SYS_sched_yield, 0);
	return mode;
}

enum tn__mode
tn__mode(void)
{
	int mode = atomic_load_explicit(&current_mode, memory_order_acquire);
	return mode == TN__UNKNOWN ? set_up_once() : (enum tn__mode)mode;
}

int
tn__overlay_renew(void)
{
	if (shared_index)
		(void)TN_CALL(SYS_munmap, shared_index, sizeof(*shared_index));
	shared_index = NULL;
	tn__head = &no_head;
	tn__overlay_library.environment_count = 0;
	tn__generation = &not_set_up;
	atomic_store(&current_mode, TN__UNKNOWN);
	atomic_store(&setting_up, 0);
	return tn__mode() == TN__BROKEN ? -1 : 0;
}

/* Where a key is, or the free slot for it; NULL when neither is near. */
static _Atomic uint64_t *
find_slot(uint64_t key, uint64_t *found)
{
	for (unsigned probe = 0; probe < INDEX_PROBES; probe++) {
		_Atomic uint64_t *slot = &shared_index->slots[((key >> 32) + probe) & (TN__INDEX_SLOTS - 1)];
		*found = atomic_load_explicit(slot, memory_order_acquire);
		if (*found == 0 || (*found | FLAG_BITS) == (key | FLAG_BITS))
			return slot;
	}
	return NULL;
}

unsigned
tn__index_get(uint64_t key)
{
	uint64_t found;
	return find_slot(key, &found) ? (unsigned)(found & FLAG_BITS) : 0;
}

int
tn__index_add(uint64_t key, unsigned flags)
{
	uint64_t found;
	_Atomic uint64_t *slot;

	while ((slot = find_slot(key, &found))) {
		uint64_t wanted = (key & ~FLAG_BITS) | (found & FLAG_BITS) | flags;
		if (found == wanted)
			return 0;
		if (atomic_compare_exchange_strong(slot, &found, wanted)) {
			atomic_fetch_add_explicit(&shared_index->head.generation, 1, memory_order_release);
			return 0;
		}
	}
	return -ENOSPC;
}

static long
missing_function(void)
{
	errno = ENOSYS;
	return -1;
}

void *
tn__next(const char *name, void *_Atomic *slot)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		found = (void *)missing_function;
	atomic_store_explicit(slot, found, memory_order_release);
	return found;
}
