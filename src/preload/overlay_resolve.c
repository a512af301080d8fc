/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a path leads in the merged tree.
 *
 * A walk over the components, like the kernel's: the index says by name where an upper file may be, symbolic links
 * are read from the file that counts. Below a folder that the index does not know only lower files can be, so nothing
 * is looked up there; that a lower name is no symbolic link is remembered by process (nothing in the run changes
 * lower files). Invariant: a wrong answer can misread, never harm, since what is changed is always an upper file.
 */
#include "preload/overlay.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LINKS 40
#define PLAIN_SLOTS 8192u

/* Hashes of lower names seen to be no symbolic links; a colliding newcomer replaces the older. */
static _Atomic uint64_t plain[PLAIN_SLOTS];

struct walk {
	struct tn__place *place;
	unsigned how;
	int links;
	size_t trusted; /* bytes at the start of rest that are known to hold no links */
	size_t length;
	char rest[PATH_MAX];
	char link[PATH_MAX];
};

#define ROOT_HASH 0xcbf29ce484222325ull /* FNV-1a's offset basis */

static uint64_t
add_to_hash(uint64_t hash, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3ull;
	return hash;
}

/* FNV-1a spreads its last bytes badly; this (a permutation, so that no two paths are made equal) mends it. */
static uint64_t
finish_hash(uint64_t hash)
{
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdull;
	hash ^= hash >> 33;
	hash *= 0xc4ceb9fe1a85ec53ull;
	return hash ^ (hash >> 33);
}

uint64_t
tn__place_key(const struct tn__place *place)
{
	return finish_hash(place->hash);
}

void
tn__go_to_root(struct tn__place *place)
{
	place->length = 0;
	place->path[0] = 0;
	place->hash = ROOT_HASH;
	place->flags = TN__MERGED;
	place->lower = true;
}

static bool
is_below(const char *path, const char *folder, size_t length)
{
	return !strncmp(path, folder, length) && (path[length] == '/' || path[length] == 0);
}

/* Is the place a file directly in /dev/shm that the run has made? The index does not know these. */
static bool
is_own_shared(const struct tn__place *place)
{
	char upper[TN__NAME];
	struct stat about;

	if (!tn__overlay_library.shared_length || place->flags ||
	    strncmp(place->path, TN__SHARED "/", sizeof(TN__SHARED)) || strchr(place->path + sizeof(TN__SHARED), '/'))
		return false;
	tn__upper_name(place, upper);
	return TN_CALL(SYS_newfstatat, AT_FDCWD, upper, &about, AT_SYMLINK_NOFOLLOW) == 0;
}

bool
tn__place_enter(struct tn__place *place, const char *name, size_t name_length)
{
	bool merged = tn__is_merged(place);

	if (place->length + 1 + name_length >= PATH_MAX)
		return false;
	place->path[place->length] = '/';
	memcpy(place->path + place->length + 1, name, name_length);
	place->hash = add_to_hash(place->hash, place->path + place->length, name_length + 1);
	place->length += name_length + 1;
	place->path[place->length] = 0;
	place->flags = merged ? tn__index_get(finish_hash(place->hash)) : 0;
	if ((place->flags & TN__OPAQUE) || (merged && is_own_shared(place)))
		place->lower = false;
	return true;
}

void
tn__leave(struct tn__place *place, size_t length)
{
	size_t at = 0;
	char kept[PATH_MAX];

	memcpy(kept, place->path, length);
	kept[length] = 0;
	tn__go_to_root(place);
	while (at < length) {
		const char *name = kept + at + 1;
		const char *end = strchrnul(name, '/');
		(void)tn__place_enter(place, name, (size_t)(end - name));
		at = (size_t)(end - kept);
	}
}

static size_t
parent_length(const struct tn__place *place)
{
	const char *slash = memrchr(place->path, '/', place->length);
	return slash ? (size_t)(slash - place->path) : 0;
}

#define FILES "/files"

bool
tn__strip_upper(char *path)
{
	size_t shared = tn__overlay_library.shared_length;

	if (shared && is_below(path, tn__overlay_library.shared, shared) && is_below(path + shared, FILES, strlen(FILES))) {
		shared += strlen(FILES);
		memmove(path + strlen(TN__SHARED), path + shared, strlen(path + shared) + 1);
		memcpy(path, TN__SHARED, strlen(TN__SHARED));
		return true;
	}
	if (!is_below(path, tn__overlay_library.upper, tn__overlay_library.upper_length))
		return false;
	memmove(path, path + tn__overlay_library.upper_length, strlen(path + tn__overlay_library.upper_length) + 1);
	if (!*path)
		memcpy(path, "/", 2);
	return true;
}

void
tn__upper_name(const struct tn__place *place, char *buffer)
{
	if (tn__overlay_library.shared_length && is_below(place->path, TN__SHARED, strlen(TN__SHARED))) {
		memcpy(buffer, tn__overlay_library.shared, tn__overlay_library.shared_length);
		memcpy(buffer + tn__overlay_library.shared_length, FILES, strlen(FILES));
		strcpy(buffer + tn__overlay_library.shared_length + strlen(FILES), place->path + strlen(TN__SHARED));
		return;
	}
	memcpy(buffer, tn__overlay_library.upper, tn__overlay_library.upper_length);
	memcpy(buffer + tn__overlay_library.upper_length, place->path, place->length + 1);
}

void
tn__real_name(const struct tn__place *place, char *buffer)
{
	if (!place->lower)
		tn__upper_name(place, buffer);
	else if (place->length == 0)
		memcpy(buffer, "/", 2);
	else
		memcpy(buffer, place->path, place->length + 1);
}

/* ---- /proc, whose links lead where their text cannot ---- */

/* Is the place /proc/<this process>/fd/<number> (or of one of its threads) with a descriptor open for writing? */
static bool
is_own_writable_descriptor(const char *path)
{
	char *end;
	long pid = strtol(path + 6, &end, 10), fd;

	if (end == path + 6 || pid != getpid())
		return false;
	if (!strncmp(end, "/task/", 6))
		(void)strtol(end + 6, &end, 10);
	if (strncmp(end, "/fd/", 4))
		return false;
	fd = strtol(end + 4, &end, 10);
	if (*end)
		return false;
	long flags = TN_CALL(SYS_fcntl, fd, F_GETFL, 0);
	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH);
}

/* A link below /proc was read. True: the kernel alone can follow it, so the place is left there and passes. */
static bool
is_kernel_link(struct walk *walk)
{
	struct tn__place *place = walk->place;

	if (strncmp(place->path, "/proc/", 6))
		return false;
	if (walk->link[0] != '/') /* /proc/self and the like are ordinary; "pipe:[1]" is no name */
		return parent_length(place) != 5;
	if (walk->length == 0 && (!(walk->how & TN__WRITE) || is_own_writable_descriptor(place->path)))
		return true;
	if (tn__strip_upper(walk->link))
		place->moved = true;
	return false;
}

/* ---- the walk ---- */

/* The text of the link at the place, or why there is none (-EINVAL: it is something else). */
static long
read_link(struct walk *walk)
{
	struct tn__place *place = walk->place;
	char upper[TN__NAME];
	uint64_t hash;
	_Atomic uint64_t *known;
	long result;

	if (!place->lower) {
		tn__upper_name(place, upper);
		return TN_CALL(SYS_readlinkat, AT_FDCWD, upper, walk->link, PATH_MAX - 1);
	}
	if (place->flags & TN__MERGED)
		return -EINVAL;
	hash = finish_hash(place->hash);
	known = &plain[hash & (PLAIN_SLOTS - 1)];
	if (walk->length && atomic_load_explicit(known, memory_order_relaxed) == hash)
		return -EINVAL;
	result = TN_CALL(SYS_readlinkat, AT_FDCWD, place->path, walk->link, PATH_MAX - 1);
	if (result == -EINVAL && walk->length)
		atomic_store_explicit(known, hash, memory_order_relaxed);
	return result;
}

/* Puts the link's text before what is left to walk: 1, or a negative error. */
static int
put_before_rest(struct walk *walk, size_t link_length)
{
	bool slash = walk->length && walk->rest[0] != '/';

	if (++walk->links > MAX_LINKS)
		return -ELOOP;
	if (link_length + slash + walk->length >= PATH_MAX)
		return -ENAMETOOLONG;
	memmove(walk->rest + link_length + slash, walk->rest, walk->length + 1);
	memcpy(walk->rest, walk->link, link_length);
	if (slash)
		walk->rest[link_length] = '/';
	walk->length += link_length + slash;
	if (walk->link[0] == '/')
		tn__go_to_root(walk->place);
	else
		tn__leave(walk->place, parent_length(walk->place));
	return 1;
}

static void
drop_from_rest(struct walk *walk, size_t length)
{
	walk->length -= length;
	memmove(walk->rest, walk->rest + length, walk->length + 1);
	walk->trusted = walk->trusted > length ? walk->trusted - length : 0;
}

/* One component. 1: go on, 0: arrived, negative: no such place. */
static int
walk_step(struct walk *walk, const char *name, size_t name_length, bool trusted)
{
	struct tn__place *place = walk->place;
	long link_length;

	if (name_length == 1 && name[0] == '.')
		return 1;
	if (name_length == 2 && name[0] == '.' && name[1] == '.') {
		tn__leave(place, parent_length(place));
		return 1;
	}
	if (!tn__place_enter(place, name, name_length))
		return -ENAMETOOLONG;
	if (!place->lower)
		place->moved = true;
	if (trusted || (walk->length == 0 && !(walk->how & TN__FOLLOW)))
		return 1;
	link_length = read_link(walk);
	if (link_length <= 0)
		return 1;
	walk->link[link_length] = 0;
	if (is_kernel_link(walk))
		return 0;
	return put_before_rest(walk, strlen(walk->link));
}

static int
walk_all(struct walk *walk)
{
	int result = 1;

	while (result == 1 && walk->length) {
		char name[NAME_MAX + 1];
		size_t slashes = strspn(walk->rest, "/");
		size_t length = (size_t)(strchrnul(walk->rest + slashes, '/') - walk->rest) - slashes;
		bool trusted = walk->trusted >= slashes + length;

		if (length == 0)
			break;
		if (length > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, walk->rest + slashes, length);
		drop_from_rest(walk, slashes + length);
		result = walk_step(walk, name, length, trusted);
	}
	return result < 0 ? result : 0;
}

bool
tn__passes(const char *path)
{
	return is_below(path, tn__overlay_library.run, tn__overlay_library.run_length) || is_below(path, "/proc", 5) ||
	       is_below(path, "/sys", 4) ||
	       (tn__overlay_library.shared_length &&
	        is_below(path, tn__overlay_library.shared, tn__overlay_library.shared_length));
}

static void
resolve_rest(struct walk *walk)
{
	struct tn__place *place = walk->place;

	tn__go_to_root(place);
	place->error = walk_all(walk);
	if (place->lower && tn__passes(place->path))
		place->pass = true;
}

/* The logical name of a descriptor's file, or of the working folder, put into rest. */
static int
name_of_descriptor(struct walk *walk, int dirfd)
{
	char link[32] = "/proc/self/fd/";
	long length;

	if (dirfd == AT_FDCWD) {
		length = TN_CALL(SYS_getcwd, walk->rest, PATH_MAX);
		length = length > 0 ? length - 1 : length;
	} else {
		char *end = link + 14;
		if (dirfd < 0)
			return -EBADF;
		for (int rest = dirfd; rest || end == link + 14; rest /= 10)
			end++;
		*end = 0;
		for (int rest = dirfd; end > link + 14; rest /= 10)
			*--end = (char)('0' + rest % 10);
		length = TN_CALL(SYS_readlinkat, AT_FDCWD, link, walk->rest, PATH_MAX - 1);
	}
	if (length < 0)
		return (int)length;
	walk->rest[length] = 0;
	if (walk->rest[0] != '/')
		return -ENOTDIR;
	if (tn__strip_upper(walk->rest))
		walk->place->moved = true;
	walk->trusted = walk->length = strlen(walk->rest);
	return 0;
}

static void
clear(struct walk *walk, struct tn__place *place, unsigned how)
{
	walk->place = place;
	walk->how = how;
	walk->links = 0;
	walk->trusted = walk->length = 0;
	place->moved = place->pass = place->slash = false;
	place->error = 0;
	tn__go_to_root(place);
}

void
tn__resolve(int dirfd, const char *path, unsigned how, struct tn__place *place)
{
	struct walk walk;
	size_t length = strlen(path);

	clear(&walk, place, how);
	place->slash = length > 1 && path[length - 1] == '/';
	if (length == 0)
		place->error = -ENOENT;
	else if (length >= PATH_MAX)
		place->error = -ENAMETOOLONG;
	else if (path[0] != '/')
		place->error = name_of_descriptor(&walk, dirfd);
	if (place->error)
		return;
	if (walk.length + 1 + length >= PATH_MAX) {
		place->error = -ENAMETOOLONG;
		return;
	}
	if (walk.length)
		walk.rest[walk.length++] = '/';
	memcpy(walk.rest + walk.length, path, length + 1);
	walk.length += length;
	resolve_rest(&walk);
}

void
tn__resolve_descriptor(int fd, struct tn__place *place)
{
	struct walk walk;

	clear(&walk, place, 0);
	place->error = name_of_descriptor(&walk, fd);
	if (!place->error)
		resolve_rest(&walk);
}

/* ---- stat ---- */

static bool
is_later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

void
tn__merge_stat(const struct tn__place *place, struct stat *st)
{
	char upper[TN__NAME];
	struct stat own;

	tn__upper_name(place, upper);
	st->st_nlink = 1; /* "unknown": tools that count subfolders by it must not trust it */
	if (TN_CALL(SYS_newfstatat, AT_FDCWD, upper, &own, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (is_later(own.st_mtim, st->st_mtim))
		st->st_mtim = own.st_mtim;
	if (is_later(own.st_ctim, st->st_ctim))
		st->st_ctim = own.st_ctim;
	if (place->flags & TN__ATTRIBUTES) {
		st->st_mode = own.st_mode;
		st->st_uid = own.st_uid;
		st->st_gid = own.st_gid;
		st->st_mtim = own.st_mtim;
		st->st_atim = own.st_atim;
	}
}

int
tn__place_stat(const struct tn__place *place, struct stat *st)
{
	char name[TN__NAME];
	long result;

	tn__real_name(place, name);
	result = TN_CALL(SYS_newfstatat, AT_FDCWD, name, st, AT_SYMLINK_NOFOLLOW);
	if (result == 0 && tn__is_merged(place))
		tn__merge_stat(place, st);
	return (int)result;
}
