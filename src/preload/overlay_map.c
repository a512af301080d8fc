/* SPDX-License-Identifier: Apache-2.0
 *
 * From the arguments that the program gave to those that libc is to be given.
 *
 * Invariant: what comes out for a change names a file of the upper or one that is not ours (the run folder,
 * /proc, /sys, an existing pipe, socket or device); never a lower file.
 */
#include "preload/overlay.h"

#include <string.h>

#include "preload/write_overlay.h"

/* ---- helpers ---- */

static void
keep(int dirfd, const char *path, struct tn__target *target)
{
	target->dirfd = dirfd;
	target->path = path;
}

/* `upper`: the upper file, also of a merged folder. */
static void
use_place(const struct tn__place *place, bool upper, struct tn__target *target)
{
	size_t length;

	if (upper)
		tn__upper_name(place, target->buffer);
	else
		tn__real_name(place, target->buffer);
	length = strlen(target->buffer);
	if (place->slash && length > 1 && length + 1 < sizeof(target->buffer))
		memcpy(target->buffer + length, "/", 2);
	keep(AT_FDCWD, target->buffer, target);
}

/* What leads to the file that counts: the caller's own arguments where they do. */
static void
use_real(const struct tn__place *place, int dirfd, const char *path, struct tn__target *target)
{
	if (place->moved)
		use_place(place, false, target);
	else
		keep(dirfd, path, target);
}

static bool
is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	return length && !strncmp(path, folder, length) && (path[length] == '/' || path[length] == 0) &&
	       !strstr(path, "/..");
}

int
tn__check_broken(int dirfd, const char *path)
{
	struct stat st;

	if (tn__mode() != TN__BROKEN || is_below(path, "/proc") || is_below(path, "/sys") ||
	    is_below(path, tn__overlay_library.run))
		return 0;
	if (TN_CALL(SYS_newfstatat, dirfd, path, &st, 0) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	return -EROFS;
}

/* ---- reading ---- */

static TN_SLOW void
map_read(int dirfd, const char *path, unsigned how, struct tn__target *target)
{
	struct tn__place place;

	if (tn__mode() != TN__ACTIVE || tn__quiet())
		return;
	tn__resolve(dirfd, path, how, &place);
	if (!place.error)
		use_real(&place, dirfd, path, target);
}

void
tn__map_read(int dirfd, const char *path, unsigned how, struct tn__target *target)
{
	keep(dirfd, path, target);
	if (!tn__quiet() && path && *path)
		map_read(dirfd, path, how, target);
}

const char *
tn__overlay_path_for_reading(const char *path, char *buffer, size_t size)
{
	struct tn__target target;
	size_t length;

	tn__map_read(AT_FDCWD, path, TN__FOLLOW, &target);
	if (target.path == path)
		return path;
	length = strlen(target.path);
	if (length >= size)
		return path;
	memcpy(buffer, target.path, length + 1);
	return buffer;
}

/* ---- opening for a change ---- */

static int
open_new(struct tn__place *place, int flags, struct tn__target *target)
{
	int result;

	if (!(flags & O_CREAT))
		return -ENOENT;
	if (place->slash)
		return -EISDIR;
	result = tn__may_change_parent(place);
	if (result == 0)
		result = tn__make_parents(place);
	if (result == 0)
		result = tn__made(place); /* now, since there is nothing to hide: who sees the file must find it */
	if (result == 0)
		use_place(place, true, target);
	return result;
}

static int
open_regular(struct tn__place *place, int flags, struct tn__target *target)
{
	int result;

	if (place->lower) {
		result = tn__place_access(place, (flags & O_ACCMODE) == O_RDWR ? R_OK | W_OK : W_OK);
		if (result == 0)
			result = tn__copy_up(place, flags & O_TRUNC);
		if (result)
			return result;
	}
	use_place(place, true, target);
	return 0;
}

/* A nameless file in a folder. */
static int
open_nameless(struct tn__place *place, struct tn__target *target)
{
	int result = tn__place_access(place, W_OK | X_OK);

	if (result == 0)
		result = tn__copy_up(place, false);
	if (result == 0)
		use_place(place, true, target);
	return result;
}

static int
map_open(struct tn__place *place, int dirfd, const char *path, int flags, struct tn__target *target)
{
	struct stat st;
	int result = tn__place_stat(place, &st);

	if (result == -ENOENT)
		return open_new(place, flags, target);
	if (result)
		return result;
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if (S_ISDIR(st.st_mode) && (flags & O_TMPFILE) == O_TMPFILE)
		return open_nameless(place, target);
	if (S_ISREG(st.st_mode) && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC)))
		return open_regular(place, flags, target);
	use_real(place, dirfd, path, target);
	return 0;
}

int
tn__map_open(int dirfd, const char *path, int flags, struct tn__target *target)
{
	struct tn__place place;
	unsigned how = TN__WRITE;

	keep(dirfd, path, target);
	if (!path || !*path)
		return 0; /* libc knows the error */
	if (tn__mode() != TN__ACTIVE)
		return tn__check_broken(dirfd, path);
	if (!(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL))
		how |= TN__FOLLOW;
	tn__resolve(dirfd, path, how, &place);
	if (place.error)
		return place.error;
	if (!place.pass)
		return map_open(&place, dirfd, path, flags, target);
	use_real(&place, dirfd, path, target);
	return 0;
}

/* ---- making ---- */

int
tn__map_make(int dirfd, const char *path, struct tn__target *target)
{
	struct tn__place place;
	struct stat st;
	int result;

	keep(dirfd, path, target);
	if (!path || !*path)
		return 0;
	if (tn__mode() != TN__ACTIVE)
		return tn__check_broken(dirfd, path);
	tn__resolve(dirfd, path, TN__WRITE, &place);
	if (place.error)
		return place.error;
	if (place.pass) {
		use_real(&place, dirfd, path, target);
		return 0;
	}
	result = tn__place_stat(&place, &st);
	if (result != -ENOENT)
		return result ? result : -EEXIST;
	result = tn__may_change_parent(&place);
	if (result == 0)
		result = tn__make_parents(&place);
	if (result == 0)
		result = tn__made(&place);
	if (result == 0)
		use_place(&place, true, target);
	return result;
}

/* ---- changing what is there ---- */

static int
check_right(const struct tn__place *place, const struct stat *st, enum tn__right right)
{
	uid_t user = geteuid();

	if (right == TN__CONTENT && S_ISDIR(st->st_mode))
		return -EISDIR;
	if (right != TN__CONTENT && (user == 0 || user == st->st_uid))
		return 0;
	if (right == TN__OWNER)
		return -EPERM;
	return tn__place_access(place, W_OK);
}

/* From here on a merged folder's mode, owner and times are the upper folder's. */
static int
own_attributes(struct tn__place *place, const struct stat *st)
{
	char upper[TN__NAME];
	struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (place->flags & TN__ATTRIBUTES)
		return 0;
	tn__upper_name(place, upper);
	(void)TN_PASS_CALL(SYS_fchmodat, AT_FDCWD, upper, st->st_mode & 07777, 0L, 0L);
	(void)TN_PASS_CALL(SYS_utimensat, AT_FDCWD, upper, times, AT_SYMLINK_NOFOLLOW, 0L);
	return tn__index_add(tn__place_key(place), TN__ATTRIBUTES);
}

static int
change_place(struct tn__place *place, enum tn__right right, struct tn__target *target)
{
	struct stat st;
	int result = tn__place_stat(place, &st);

	if (result)
		return result;
	if (place->length == 0)
		return -EROFS;
	if (place->lower) {
		result = check_right(place, &st, right);
		if (result == 0)
			result = tn__copy_up(place, false);
		if (result == 0 && tn__is_merged(place))
			result = own_attributes(place, &st);
	}
	if (result == 0)
		use_place(place, true, target);
	return result;
}

int
tn__map_change(int dirfd, const char *path, unsigned how, enum tn__right right, struct tn__target *target)
{
	struct tn__place place;

	keep(dirfd, path, target);
	if (!path || !*path)
		return 0;
	if (tn__mode() != TN__ACTIVE)
		return tn__check_broken(dirfd, path);
	tn__resolve(dirfd, path, how | TN__WRITE, &place);
	if (place.error)
		return place.error;
	if (!place.pass)
		return change_place(&place, right, target);
	use_real(&place, dirfd, path, target);
	return 0;
}

int
tn__map_descriptor(int fd, enum tn__right right, struct tn__target *target)
{
	struct tn__place place;
	struct stat st;
	int result;

	if (tn__mode() == TN__OFF || TN_CALL(SYS_fstat, fd, &st) < 0)
		return 0;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	if (tn__mode() == TN__BROKEN)
		return -EROFS;
	tn__resolve_descriptor(fd, &place);
	if (place.error)
		return place.error == -ENOTDIR ? 0 : -EROFS;
	if (place.pass || st.st_nlink == 0)
		return 0;
	result = change_place(&place, right, target);
	return result ? result : 1;
}
