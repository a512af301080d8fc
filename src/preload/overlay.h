/* SPDX-License-Identifier: Apache-2.0
 *
 * The write overlay's inside: an overlay file system at the level of libc.
 *
 * Names. The *logical* path is what the program sees: absolute, without symbolic links, "." or "..". The *lower* file
 * of a logical path is the real one, by the same name; it is never changed. The *upper* file is
 * $TONNAGE_RUN/scratch/files followed by the logical path; below /dev/shm it is the run's own folder there, so that shared
 * memory stays memory. Names in /dev/shm come and go by the thousand: there the upper file counts wherever it exists,
 * and the index learns a name only when there is a lower file to hide.
 *
 * The index, one table in a file that all processes of the run map shared, says of a logical path
 *   nothing          only the lower file can be there, and below it only lower files
 *   TN__MERGED       a folder that exists in both; what is in it must be looked up by name
 *   TN__OPAQUE       the lower file, and everything below it, is hidden: what the upper holds is all there is
 *   TN__ATTRIBUTES   (of a merged folder) mode and owner are the upper folder's
 * Flags are only ever added, each by one atomic operation, so no lock is needed and a killed process leaves nothing
 * torn. A flag that hides a lower file is set after the upper file is in place.
 *
 * Everything here is thread-safe, keeps errno unless it says otherwise, and allocates nothing unless it says so.
 * Errors are negative errno numbers.
 */
#ifndef TN_PRELOAD_OVERLAY_H
#define TN_PRELOAD_OVERLAY_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/index.h"

#define TN_ENTRY __attribute__((visibility("default")))
#define TN_SLOW __attribute__((noinline, cold))

/* ---- state of this process (overlay_state.c) ---- */

enum tn__mode {
	TN__UNKNOWN, /* not set up yet */
	TN__OFF,     /* no run, or --writes allow: everything passes */
	TN__ACTIVE,
	TN__BROKEN /* could not be set up: reading passes, changing fails with EROFS */
};

struct tn__overlay_library {
	char run[PATH_MAX];                             /* canonical run folder */
	char upper[PATH_MAX];                           /* <run>/scratch/files */
	char self[PATH_MAX];                            /* this library, absolute */
	char shared[PATH_MAX];                          /* the run's own folder below /dev/shm */
	size_t run_length, upper_length, shared_length; /* shared_length 0: there is none */
	int environment_count;
	const char *environment[32]; /* the TONNAGE_* variables that the process was started with */
};
extern struct tn__overlay_library tn__overlay_library;
/* Not zero: reading must be mapped (or nothing is set up yet). Points at a word that all processes of the run share. */
extern _Atomic uint64_t *tn__generation;
/* The index's head; of no run's, all zeros, while there is none. */
extern struct tn__index_head *tn__head;

/* True while no process of the run has redirected anything: reading goes straight to libc. */
static inline bool
tn__quiet(void)
{
	return atomic_load_explicit(tn__generation, memory_order_acquire) == 0;
}

/* Sets the overlay up on the first call. Never fails: a overlay that cannot be set up says so on stderr and is
   TN__BROKEN. */
enum tn__mode tn__mode(void);

/* For a process that was forked into another run: the environment says which, and its folder and index are taken from now
 * on. 0, or -1 when they cannot be. Not thread-safe: to be called right after the fork. */
int tn__overlay_renew(void);
int tn_preload_renew(void); /* the same, for the guest */

/* Flags of a path by its key; 0 when there are none. */
unsigned tn__index_get(uint64_t key);
/* Adds flags, and wakes readers up. -ENOSPC when the table is full. */
int tn__index_add(uint64_t key, unsigned flags);
#define TN__MERGED 1u
#define TN__OPAQUE 2u
#define TN__ATTRIBUTES 4u

/* The next definition of a libc function after ours; never NULL (a function that fails with ENOSYS takes a missing
   one's * place). */
void *tn__next(const char *name, void *_Atomic *slot);
#define TN_NEXT(name)                                                                  \
	((__typeof__(&name))({                                                             \
		static void *_Atomic tn_slot;                                                  \
		void *tn_trace_finding = atomic_load_explicit(&tn_slot, memory_order_acquire); \
		tn_trace_finding ? tn_trace_finding : tn__next(#name, &tn_slot);               \
	}))

#define TN__SHARED "/dev/shm"

/*
 * A system call that leaves errno alone: the result, or a negative errno number. Each argument is made a long first.
 * syscall() reads longs: of an int that is handed on the stack (the sixth, mmap's offset) it would read four bytes that
 * nobody wrote.
 */
#define TN_CALL(...) TN_CALL_PICK(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)(__VA_ARGS__)
#define TN_CALL_PICK(number, a, b, c, d, e, f, count, ...) TN_CALL_JOIN(count)
#define TN_CALL_JOIN(count) TN_CALL_##count
#define TN_CALL_1(number, a) tn__call(number, (long)(a), 0, 0, 0, 0, 0)
#define TN_CALL_2(number, a, b) tn__call(number, (long)(a), (long)(b), 0, 0, 0, 0)
#define TN_CALL_3(number, a, b, c) tn__call(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define TN_CALL_4(number, a, b, c, d) tn__call(number, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define TN_CALL_5(number, a, b, c, d, e) tn__call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define TN_CALL_6(number, a, b, c, d, e, f) \
	tn__call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline long
tn__call(long number, long a, long b, long c, long d, long e, long f)
{
	int saved = errno;
	long result = syscall(number, a, b, c, d, e, f);

	if (result == -1)
		result = -errno;
	errno = saved;
	return result;
}

/* The same for calls that the filter below the overlay traps (raw.h): the pass word lies in the sixth register, which
 * none of them uses. Five arguments, zeros where the call has fewer. */
#define TN_PASS_CALL(number, a, b, c, d, e) TN_CALL(number, a, b, c, d, e, tn__head->pass)

/* Turns one of our results into libc's: sets errno and returns -1 for a negative one. */
static inline int
tn__result(long result)
{
	if (result >= 0)
		return (int)result;
	if (result == -ENOSPC || result == -EDQUOT)
		atomic_fetch_add(&tn__head->full, 1);
	errno = (int)-result;
	return -1;
}

/* The same for calls that read or write bytes, which count a full disk themselves. */
static inline ssize_t
tn__moved(long result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

#define TN__AT_OFFSET (-1) /* in the place of a position: the file's own */

/* ---- where a path leads (overlay_resolve.c) ---- */

struct tn__place {
	size_t length;  /* of path; the root is "" */
	uint64_t hash;  /* of the path so far; the index wants tn__place_key */
	unsigned flags; /* what the index says of this very path */
	bool lower;     /* the lower file is not hidden */
	bool moved;     /* the kernel would not get to the right file by the caller's arguments */
	bool pass;      /* not ours: the run folder, /proc, /sys */
	bool slash;     /* the caller's path ended with a slash */
	int error;      /* 0 or a negative errno number: there is no such place */
	char path[PATH_MAX];
};

#define TN__FOLLOW 1u /* a symbolic link at the end is followed */
#define TN__WRITE 2u  /* something is to be changed */

/* Walks the path like the kernel would walk the merged tree. Never fails; see tn__place.error. */
void tn__resolve(int dirfd, const char *path, unsigned how, struct tn__place *place);
/* The place of an open descriptor. */
void tn__resolve_descriptor(int fd, struct tn__place *place);
/* Goes to an entry of the folder, back to its parent (`length` as it was there). False: the name is too long. */
bool tn__place_enter(struct tn__place *place, const char *name, size_t name_length);
void tn__leave(struct tn__place *place, size_t length);
/* The place's key in the index. */
uint64_t tn__place_key(const struct tn__place *place);
/* A place at the root, to start from. */
void tn__go_to_root(struct tn__place *place);

/* The upper file's name, and the name of the file that counts (upper or lower), written into buffer of TN__NAME
   bytes. */
#define TN__NAME (2 * PATH_MAX)
void tn__upper_name(const struct tn__place *place, char *buffer);
void tn__real_name(const struct tn__place *place, char *buffer);
/* A folder that exists in both. */
static inline bool
tn__is_merged(const struct tn__place *place)
{
	return place->lower && (place->flags & TN__MERGED);
}
/* lstat of the place as the program must see it. */
int tn__place_stat(const struct tn__place *place, struct stat *st);
/* Makes a lower folder's stat that of the merged one. */
void tn__merge_stat(const struct tn__place *place, struct stat *st);
/* A real path that is not ours: the run folder, the run's part of /dev/shm, /proc, /sys. */
bool tn__passes(const char *path);
/* Takes the upper folder's name off a path, in place; true when it was there. */
bool tn__strip_upper(char *path);

/* ---- what is to be given to libc instead (overlay_map.c) ---- */

struct tn__target {
	int dirfd;
	const char *path; /* the caller's, or buffer */
	char buffer[TN__NAME];
};

/* For reading: the arguments that lead to the file which counts; how: TN__FOLLOW or 0. Never fails. */
void tn__map_read(int dirfd, const char *path, unsigned how, struct tn__target *target);
/* For open with these flags, of a file that may be created or changed: parents are made, an existing file is copied
   up. */
int tn__map_open(int dirfd, const char *path, int flags, struct tn__target *target);
/* For making something new: EEXIST, or the parents are there and the index knows the name. */
int tn__map_make(int dirfd, const char *path, struct tn__target *target);
/* For changing what is there (mode, owner, times, size, attributes): it is copied up. how: TN__FOLLOW or 0. */
/* What the kernel asks for: to own the file, or to have the permission to write it. */
enum tn__right { TN__OWNER, TN__CONTENT, TN__EITHER };
int tn__map_change(int dirfd, const char *path, unsigned how, enum tn__right right, struct tn__target *target);
/* The same for a descriptor. 0: pass the call to libc with the descriptor; 1: use target, no links followed. */
int tn__map_descriptor(int fd, enum tn__right right, struct tn__target *target);
/* For what the overlay decides itself, when it is not TN__ACTIVE: 0, or -EROFS where it is broken. */
int tn__check_broken(int dirfd, const char *path);

/* ---- changing the upper (overlay_copy.c, overlay_change.c) ---- */

/* Says in the index that the upper file is the one that counts. */
int tn__made(const struct tn__place *place);
/* Makes the upper folders above the place. */
int tn__make_parents(const struct tn__place *place);
/* May the caller make and remove entries in the place's parent folder? 0 or the error that the kernel would give. */
int tn__may_change_parent(const struct tn__place *place);
/* access(2) of the place as the program must see it. */
int tn__place_access(const struct tn__place *place, int mode);
/* Makes sure that the upper file is there, a copy of the lower one (empty: without its bytes); folders without
   contents. */
int tn__copy_up(struct tn__place *place, bool empty);
/* The same with everything below; allocates. */
int tn__copy_up_tree(struct tn__place *place);
/* The place's parent folder got or lost an entry that the upper folder does not show. */
void tn__touch_parent(const struct tn__place *place);

/* Hides the lower file of the place, and notes its name in <run>/state/removed. */
int tn__hide(const struct tn__place *place);
/* unlinkat and renameat2 in the merged tree. */
int tn__remove(int dirfd, const char *path, int flags);
int tn__rename(int old_dirfd, const char *old_path, int new_dirfd, const char *new_path, unsigned flags);

/* Notes in <run>/state/unseen the name of a program that is about to be started and calls the kernel itself. Uses the
 * stack alone. */
void tn__note_program(const char *run, const char *path);

/* ---- listings (overlay_list.c) ---- */

struct tn__listing {
	char *bytes; /* struct dirent64 records, d_off = number of the next */
	size_t used, size;
	size_t count;
	size_t *at; /* offset of each record */
	size_t at_size;
};
/* Lists a place, "." and ".." included. Allocates; free with tn__listing_free. */
int tn__list(const struct tn__place *place, struct tn__listing *listing);
void tn__listing_free(struct tn__listing *listing);
/* 0 when the folder is empty, -ENOTEMPTY, or why it cannot be read. */
int tn__check_empty(const struct tn__place *place);

#endif
