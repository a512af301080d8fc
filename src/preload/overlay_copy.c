/* SPDX-License-Identifier: Apache-2.0
 *
 * Copying up: giving the upper what the lower has.
 *
 * Invariant: a copy is made under a name of its own in <run>/state and moved into place whole, without replacing
 * anything; only then does the index say that the lower file is hidden. So two processes may copy the same file, and
 * a killed one leaves nothing half done. The lower file is opened for reading only.
 */
#include "preload/overlay.h"

#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define UPPER_FOLDER_MODE 0700 /* what an upper folder's mode has besides the lower one's, so that we can work in it */

/* ---- folders ---- */

static void
copy_owner_and_times(const char *name, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	/* Without privileges a file belongs to who writes it. */
	(void)TN_PASS_CALL(SYS_fchownat, AT_FDCWD, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW);
	(void)TN_PASS_CALL(SYS_utimensat, AT_FDCWD, name, times, AT_SYMLINK_NOFOLLOW, 0L);
}

/* Makes the upper folder of a place that is a folder below; the index then says merged. */
static int
make_merged_folder(struct tn__place *place)
{
	char upper[TN__NAME];
	struct stat st;
	long result = TN_CALL(SYS_newfstatat, AT_FDCWD, place->path, &st, AT_SYMLINK_NOFOLLOW);

	if (result < 0)
		return (int)result;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	tn__upper_name(place, upper);
	result = TN_PASS_CALL(SYS_mkdirat, AT_FDCWD, upper, 0700, 0L, 0L);
	if (result == 0) {
		(void)TN_PASS_CALL(SYS_fchmodat, AT_FDCWD, upper, (st.st_mode & 07777) | UPPER_FOLDER_MODE, 0L, 0L);
		copy_owner_and_times(upper, &st);
	} else if (result != -EEXIST) {
		return (int)result;
	}
	result = tn__index_add(tn__place_key(place), TN__MERGED);
	if (result == 0)
		place->flags |= TN__MERGED;
	return (int)result;
}

/* Walks down to the place's parent, making upper folders of merged ones on the way. */
static int
walk_to_parent(const struct tn__place *place, struct tn__place *parent, bool make)
{
	const char *name = place->path;
	const char *last = memrchr(place->path, '/', place->length);

	tn__go_to_root(parent);
	while (name < last) {
		const char *end = strchr(name + 1, '/');
		(void)tn__place_enter(parent, name + 1, (size_t)(end - name - 1));
		if (make && parent->lower && !(parent->flags & TN__MERGED)) {
			int result = make_merged_folder(parent);
			if (result)
				return result;
		}
		name = end;
	}
	return 0;
}

int
tn__make_parents(const struct tn__place *place)
{
	struct tn__place parent;
	return walk_to_parent(place, &parent, true);
}

int
tn__place_access(const struct tn__place *place, int mode)
{
	char name[TN__NAME];
	long result;

	if (tn__is_merged(place) && (place->flags & TN__ATTRIBUTES))
		tn__upper_name(place, name);
	else
		tn__real_name(place, name);
	result = TN_CALL(SYS_faccessat2, AT_FDCWD, name, mode, AT_EACCESS);
	if (result == -ENOSYS)
		result = TN_CALL(SYS_faccessat, AT_FDCWD, name, mode);
	return (int)result;
}

int
tn__may_change_parent(const struct tn__place *place)
{
	struct tn__place parent;
	struct stat st;
	int result;

	(void)walk_to_parent(place, &parent, false);
	result = tn__place_stat(&parent, &st);
	if (result == 0 && !S_ISDIR(st.st_mode))
		result = -ENOTDIR;
	return result ? result : tn__place_access(&parent, W_OK | X_OK);
}

void
tn__touch_parent(const struct tn__place *place)
{
	struct tn__place parent;
	char upper[TN__NAME];

	(void)walk_to_parent(place, &parent, false);
	tn__upper_name(&parent, upper);
	(void)TN_PASS_CALL(SYS_utimensat, AT_FDCWD, upper, NULL, 0, 0L);
}

/* ---- files ---- */

/* A name in the state folder of the place's file system that nobody else uses. */
static void
temporary_name(const struct tn__place *place, char *name)
{
	static _Atomic unsigned counter;
	bool shared = tn__overlay_library.shared_length && !strncmp(place->path, TN__SHARED "/", sizeof(TN__SHARED));
	snprintf(name, TN__NAME, "%s/state/new-%ld-%u", shared ? tn__overlay_library.shared : tn__overlay_library.run,
	         (long)TN_CALL(SYS_gettid, 0), atomic_fetch_add(&counter, 1));
}

static int
copy_by_buffer(int from, int to, off_t at, off_t end)
{
	char buffer[16384];

	while (at < end) {
		size_t wanted = (size_t)(end - at) < sizeof(buffer) ? (size_t)(end - at) : sizeof(buffer);
		long got = TN_CALL(SYS_pread64, from, buffer, wanted, at);
		if (got == 0)
			return 0; /* the file became shorter */
		for (long put = 0; put < got;) {
			long result = TN_CALL(SYS_pwrite64, to, buffer + put, got - put, at + put);
			if (result < 0 && result != -EINTR)
				return (int)result;
			put += result > 0 ? result : 0;
		}
		if (got < 0 && got != -EINTR)
			return (int)got;
		at += got > 0 ? got : 0;
	}
	return 0;
}

static int
copy_range(int from, int to, off_t at, off_t end)
{
	while (at < end) {
		off_t in = at, out = at;
		long result = TN_CALL(SYS_copy_file_range, from, &in, to, &out, (size_t)(end - at), 0);
		if (result <= 0) /* not between these file systems, or nothing more: the plain way knows */
			return copy_by_buffer(from, to, at, end);
		at += result;
	}
	return 0;
}

/* Copies the bytes; holes stay holes. */
static int
copy_bytes(int from, int to, off_t size)
{
	off_t at = 0;

	if (TN_CALL(SYS_ioctl, to, FICLONE, from) == 0)
		return 0;
	while (at < size) {
		long data = TN_CALL(SYS_lseek, from, at, SEEK_DATA), hole;
		if (data == -ENXIO)
			break;
		if (data < 0)
			data = at;
		hole = TN_CALL(SYS_lseek, from, data, SEEK_HOLE);
		if (hole <= data)
			hole = size;
		int result = copy_range(from, to, data, hole);
		if (result)
			return result;
		at = hole;
	}
	return (int)TN_CALL(SYS_ftruncate, to, size);
}

static void
copy_attributes(int from, int to)
{
	char names[1024], value[1024];
	long length = TN_CALL(SYS_flistxattr, from, names, sizeof(names));

	for (char *name = names; length > 0 && name < names + length; name += strlen(name) + 1) {
		long size = TN_CALL(SYS_fgetxattr, from, name, value, sizeof(value));
		if (size >= 0) /* an attribute that the upper file system does not take is left out */
			(void)TN_PASS_CALL(SYS_fsetxattr, to, name, value, size, 0);
	}
}

static int
copy_regular(const char *lower, const char *temporary, const struct stat *st, bool empty)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	long from = -1, to, result = 0;

	if (!empty) {
		from = TN_CALL(SYS_openat, AT_FDCWD, lower, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
		if (from < 0)
			return (int)from;
	}
	to = TN_PASS_CALL(SYS_openat, AT_FDCWD, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600, 0L);
	if (to >= 0 && !empty) {
		result = copy_bytes((int)from, (int)to, st->st_size);
		copy_attributes((int)from, (int)to);
	}
	if (to >= 0) {
		(void)TN_PASS_CALL(SYS_fchown, to, st->st_uid, st->st_gid, 0L, 0L);
		(void)TN_PASS_CALL(SYS_fchmod, to, st->st_mode & 07777, 0L, 0L, 0L);
		if (!empty)
			(void)TN_PASS_CALL(SYS_utimensat, to, NULL, times, 0, 0L);
		(void)TN_CALL(SYS_close, to);
	}
	if (from >= 0)
		(void)TN_CALL(SYS_close, from);
	return (int)(to < 0 ? to : result);
}

static int
copy_link(const char *lower, const char *temporary, const struct stat *st)
{
	char target[PATH_MAX];
	long result = TN_CALL(SYS_readlinkat, AT_FDCWD, lower, target, sizeof(target) - 1);

	if (result < 0)
		return (int)result;
	target[result] = 0;
	result = TN_PASS_CALL(SYS_symlinkat, target, AT_FDCWD, temporary, 0L, 0L);
	if (result == 0)
		copy_owner_and_times(temporary, st);
	return (int)result;
}

static int
copy_file(const char *lower, const char *temporary, const struct stat *st, bool empty)
{
	if (S_ISREG(st->st_mode))
		return copy_regular(lower, temporary, st, empty);
	if (S_ISLNK(st->st_mode))
		return copy_link(lower, temporary, st);
	if (S_ISFIFO(st->st_mode))
		return (int)TN_PASS_CALL(SYS_mknodat, AT_FDCWD, temporary, st->st_mode, 0, 0L);
	return -EROFS; /* devices and sockets have no copy that means the same */
}

/* Moves a finished copy into place unless somebody was first. */
static int
put_in_place(const char *temporary, const char *upper)
{
	long result = TN_PASS_CALL(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, upper, RENAME_NOREPLACE);

	if (result == -EINVAL || result == -ENOSYS) /* a file system that cannot: a hard link does not replace, either */
		result = TN_PASS_CALL(SYS_linkat, AT_FDCWD, temporary, AT_FDCWD, upper, 0);
	else if (result == 0)
		return 0;
	(void)TN_PASS_CALL(SYS_unlinkat, AT_FDCWD, temporary, 0, 0L, 0L);
	return result == -EEXIST ? 0 : (int)result;
}

static int
copy_up_file(struct tn__place *place, const struct stat *st, bool empty)
{
	char temporary[TN__NAME], upper[TN__NAME];
	int result = tn__make_parents(place);

	if (result)
		return result;
	temporary_name(place, temporary);
	result = copy_file(place->path, temporary, st, empty);
	if (result) {
		(void)TN_PASS_CALL(SYS_unlinkat, AT_FDCWD, temporary, 0, 0L, 0L);
		return result;
	}
	tn__upper_name(place, upper);
	result = put_in_place(temporary, upper);
	return result ? result : tn__made(place);
}

/* A name of /dev/shm that hides no lower file. */
static bool
needs_no_index(const struct tn__place *place)
{
	struct stat about;

	return tn__overlay_library.shared_length && !strncmp(place->path, TN__SHARED "/", sizeof(TN__SHARED)) &&
	       !strchr(place->path + sizeof(TN__SHARED), '/') &&
	       TN_CALL(SYS_newfstatat, AT_FDCWD, place->path, &about, AT_SYMLINK_NOFOLLOW) == -ENOENT;
}

int
tn__made(const struct tn__place *place)
{
	if (needs_no_index(place))
		return 0;
	return place->lower && !place->pass ? tn__index_add(tn__place_key(place), TN__OPAQUE) : 0;
}

int
tn__copy_up(struct tn__place *place, bool empty)
{
	struct stat st;
	int result = tn__place_stat(place, &st);

	if (result || !place->lower || tn__is_merged(place))
		return result;
	if (S_ISDIR(st.st_mode)) {
		result = tn__make_parents(place);
		return result ? result : make_merged_folder(place);
	}
	result = copy_up_file(place, &st, empty);
	if (result == 0) {
		place->flags |= TN__OPAQUE;
		place->lower = false;
		place->moved = true;
	}
	return result;
}

static int
copy_up_entries(struct tn__place *place)
{
	struct tn__listing listing;
	size_t length = place->length;
	int result = tn__list(place, &listing);

	if (result)
		return result;
	for (size_t i = 0; i < listing.count && result == 0; i++) {
		const struct dirent64 *entry = (const void *)(listing.bytes + listing.at[i]);
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		result = tn__place_enter(place, entry->d_name, strlen(entry->d_name)) ? tn__copy_up_tree(place) : -ENAMETOOLONG;
		tn__leave(place, length);
	}
	tn__listing_free(&listing);
	return result;
}

/* A merged folder becomes whole: what is in it was copied, and its mode is its own from here on. */
int
tn__copy_up_tree(struct tn__place *place)
{
	char upper[TN__NAME];
	struct stat st;
	int result = tn__place_stat(place, &st);

	if (result || !place->lower)
		return result;
	result = tn__copy_up(place, false);
	if (result || !S_ISDIR(st.st_mode))
		return result;
	result = copy_up_entries(place);
	if (result)
		return result;
	tn__upper_name(place, upper);
	(void)TN_PASS_CALL(SYS_fchmodat, AT_FDCWD, upper, st.st_mode & 07777, 0L, 0L);
	copy_owner_and_times(upper, &st);
	return 0;
}
