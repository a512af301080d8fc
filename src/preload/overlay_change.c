/* SPDX-License-Identifier: Apache-2.0
 *
 * Removing and renaming in the merged tree.
 *
 * Invariant: the upper is changed first and the lower hidden afterwards, so that a reader sees the old file or the
 * new one.
 */
#include "preload/overlay.h"

#include <linux/fs.h>
#include <string.h>

/* A record of what the program removed, for people; the index alone counts. */
static void
note_removed(const struct tn__place *place)
{
	char name[TN__NAME];
	static const char file[] = "/state/removed";
	long fd;

	memcpy(name, tn__overlay_library.run, tn__overlay_library.run_length);
	memcpy(name + tn__overlay_library.run_length, file, sizeof(file));
	fd = TN_PASS_CALL(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600, 0L);
	if (fd < 0)
		return;
	memcpy(name, place->path, place->length);
	name[place->length] = '\n';
	(void)TN_CALL(SYS_write, fd, name, place->length + 1);
	(void)TN_CALL(SYS_close, fd);
}

int
tn__hide(const struct tn__place *place)
{
	int result = tn__make_parents(place);

	if (result == 0)
		result = tn__index_add(tn__place_key(place), TN__OPAQUE);
	if (result == 0) {
		note_removed(place);
		tn__touch_parent(place);
	}
	return result;
}

/* ---- removing ---- */

static int
check_removal(const struct tn__place *place, int flags)
{
	struct stat st;
	int result = tn__place_stat(place, &st);

	if (result)
		return result;
	if (flags & AT_REMOVEDIR) {
		if (!S_ISDIR(st.st_mode))
			return -ENOTDIR;
		result = tn__check_empty(place);
	} else if (S_ISDIR(st.st_mode)) {
		return -EISDIR;
	} else if (place->slash) {
		return -ENOTDIR;
	}
	return result ? result : tn__may_change_parent(place);
}

int
tn__remove(int dirfd, const char *path, int flags)
{
	struct tn__place place;
	char name[TN__NAME];
	int result;

	tn__resolve(dirfd, path, TN__WRITE, &place);
	if (place.error)
		return place.error;
	if (place.pass) {
		tn__real_name(&place, name);
		return (int)TN_PASS_CALL(SYS_unlinkat, place.moved ? AT_FDCWD : dirfd, place.moved ? name : path, flags, 0L,
		                         0L);
	}
	result = place.length ? check_removal(&place, flags) : -EBUSY;
	if (result)
		return result;
	tn__upper_name(&place, name);
	if (!place.lower)
		return (int)TN_PASS_CALL(SYS_unlinkat, AT_FDCWD, name, flags, 0L, 0L);
	result = tn__hide(&place);
	if (result == 0 && tn__is_merged(&place))
		(void)TN_PASS_CALL(SYS_unlinkat, AT_FDCWD, name, AT_REMOVEDIR, 0L, 0L);
	return result;
}

/* ---- renaming ---- */

struct end { /* one of the two names of a rename */
	struct tn__place place;
	struct stat st;
	int there; /* 0, or why there is nothing */
	char name[TN__NAME];
};

static int
find_end(int dirfd, const char *path, struct end *end)
{
	tn__resolve(dirfd, path, TN__WRITE, &end->place);
	if (end->place.error)
		return end->place.error;
	if (end->place.length == 0)
		return -EBUSY;
	end->there = tn__place_stat(&end->place, &end->st);
	return end->there && end->there != -ENOENT ? end->there : 0;
}

static bool
is_below_place(const struct tn__place *place, const struct tn__place *folder)
{
	return place->length > folder->length && !memcmp(place->path, folder->path, folder->length) &&
	       place->path[folder->length] == '/';
}

/* 0: go on; 1: both are the same file, nothing to do. */
static int
check_replacement(const struct end *from, const struct end *to, unsigned flags)
{
	bool folder = S_ISDIR(from->st.st_mode);

	if (is_below_place(&to->place, &from->place))
		return -EINVAL;
	if (!folder && (from->place.slash || to->place.slash))
		return -ENOTDIR;
	if (to->there)
		return flags & RENAME_EXCHANGE ? -ENOENT : 0;
	if (flags & RENAME_NOREPLACE)
		return -EEXIST;
	if (from->st.st_dev == to->st.st_dev && from->st.st_ino == to->st.st_ino)
		return 1;
	if (flags & RENAME_EXCHANGE)
		return is_below_place(&from->place, &to->place) ? -EINVAL : 0;
	if (folder != (bool)S_ISDIR(to->st.st_mode))
		return folder ? -ENOTDIR : -EISDIR;
	if (is_below_place(&from->place, &to->place))
		return -ENOTEMPTY;
	return folder ? tn__check_empty(&to->place) : 0;
}

/* Puts the end's file (or, of a name that is to be made, its parents) into the upper, and finds its name there. */
static int
raise_end(struct end *end, bool copy)
{
	int result;

	if (end->place.pass) {
		tn__real_name(&end->place, end->name);
		return 0;
	}
	result = tn__may_change_parent(&end->place);
	if (result == 0)
		result = tn__make_parents(&end->place);
	if (result == 0 && copy)
		result = tn__copy_up_tree(&end->place);
	tn__upper_name(&end->place, end->name);
	return result;
}

static int
move(struct end *from, struct end *to, unsigned flags)
{
	long result = raise_end(from, true);

	if (result == 0)
		result = raise_end(to, flags & RENAME_EXCHANGE);
	if (result == 0)
		result = TN_PASS_CALL(SYS_renameat2, AT_FDCWD, from->name, AT_FDCWD, to->name, flags);
	if (result == 0)
		result = tn__made(&to->place);
	if (result == 0 && (flags & RENAME_EXCHANGE))
		return tn__made(&from->place);
	return (int)result;
}

int
tn__rename(int old_dirfd, const char *old_path, int new_dirfd, const char *new_path, unsigned flags)
{
	struct end from, to;
	bool was_lower;
	int result = find_end(old_dirfd, old_path, &from);

	if (result == 0)
		result = find_end(new_dirfd, new_path, &to);
	if (result)
		return result;
	if (from.place.pass && to.place.pass) {
		tn__real_name(&from.place, from.name);
		tn__real_name(&to.place, to.name);
		return (int)TN_PASS_CALL(SYS_renameat2, AT_FDCWD, from.name, AT_FDCWD, to.name, flags);
	}
	if (from.there)
		return from.there;
	if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	result = check_replacement(&from, &to, flags);
	if (result)
		return result < 0 ? result : 0;
	was_lower = from.place.lower && !from.place.pass;
	result = move(&from, &to, flags);
	/* A file that was copied up is hidden already, a folder that was merged is not. */
	if (result == 0 && was_lower && !(flags & RENAME_EXCHANGE))
		result = tn__hide(&from.place);
	return result;
}
