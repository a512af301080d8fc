/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that make, remove, rename and link names.
 *
 * Invariant: libc is given upper names only, or what is not ours. Must not know how the overlay works.
 */
#include "preload/overlay.h"

#include <stdio.h>

/* ---- removing and renaming ---- */

static int
remove_name(int dirfd, const char *path, int flags)
{
	int result = tn__check_broken(dirfd, path);

	if (result == 0 && tn__mode() == TN__ACTIVE)
		result = tn__remove(dirfd, path, flags);
	else if (result == 0)
		result = (int)TN_PASS_CALL(SYS_unlinkat, dirfd, path, flags, 0L, 0L);
	return tn__result(result);
}

TN_ENTRY int
unlink(const char *path)
{
	return tn__mode() == TN__OFF ? TN_NEXT(unlink)(path) : remove_name(AT_FDCWD, path, 0);
}

TN_ENTRY int
unlinkat(int dirfd, const char *path, int flags)
{
	return tn__mode() == TN__OFF ? TN_NEXT(unlinkat)(dirfd, path, flags) : remove_name(dirfd, path, flags);
}

TN_ENTRY int
rmdir(const char *path)
{
	return tn__mode() == TN__OFF ? TN_NEXT(rmdir)(path) : remove_name(AT_FDCWD, path, AT_REMOVEDIR);
}

TN_ENTRY int
remove(const char *path)
{
	int saved = errno;

	if (tn__mode() == TN__OFF)
		return TN_NEXT(remove)(path);
	if (remove_name(AT_FDCWD, path, 0) == 0)
		return 0;
	if (errno != EISDIR)
		return -1;
	errno = saved;
	return remove_name(AT_FDCWD, path, AT_REMOVEDIR);
}

static int
rename_name(int old_dirfd, const char *old_path, int new_dirfd, const char *new_path, unsigned flags)
{
	int result = tn__check_broken(old_dirfd, old_path);

	if (result == 0)
		result = tn__check_broken(new_dirfd, new_path);
	if (result == 0 && tn__mode() == TN__ACTIVE)
		result = tn__rename(old_dirfd, old_path, new_dirfd, new_path, flags);
	else if (result == 0)
		result = (int)TN_PASS_CALL(SYS_renameat2, old_dirfd, old_path, new_dirfd, new_path, flags);
	return tn__result(result);
}

TN_ENTRY int
rename(const char *old_path, const char *new_path)
{
	if (tn__mode() == TN__OFF)
		return TN_NEXT(rename)(old_path, new_path);
	return rename_name(AT_FDCWD, old_path, AT_FDCWD, new_path, 0);
}

TN_ENTRY int
renameat(int old_dirfd, const char *old_path, int new_dirfd, const char *new_path)
{
	if (tn__mode() == TN__OFF)
		return TN_NEXT(renameat)(old_dirfd, old_path, new_dirfd, new_path);
	return rename_name(old_dirfd, old_path, new_dirfd, new_path, 0);
}

TN_ENTRY int
renameat2(int old_dirfd, const char *old_path, int new_dirfd, const char *new_path, unsigned flags)
{
	if (tn__mode() == TN__OFF)
		return TN_NEXT(renameat2)(old_dirfd, old_path, new_dirfd, new_path, flags);
	return rename_name(old_dirfd, old_path, new_dirfd, new_path, flags);
}

/* ---- making ---- */

/* Defines a call that makes something at `path`, in terms of a system call with the target's arguments. */
#define MAKE(name, parameters, folder, call)                 \
	TN_ENTRY int name parameters                             \
	{                                                        \
		struct tn__target target;                            \
		if (tn__result(tn__map_make(folder, path, &target))) \
			return -1;                                       \
		return tn__result(call);                             \
	}
#define MAKE_FOLDER(name, parameters, folder) \
	MAKE(name, parameters, folder, TN_PASS_CALL(SYS_mkdirat, target.dirfd, target.path, mode, 0L, 0L))
MAKE_FOLDER(mkdir, (const char *path, mode_t mode), AT_FDCWD)
MAKE_FOLDER(mkdirat, (int dirfd, const char *path, mode_t mode), dirfd)

#define MAKE_NODE(name, parameters, folder, kind, number) \
	MAKE(name, parameters, folder, TN_PASS_CALL(SYS_mknodat, target.dirfd, target.path, kind, number, 0L))
MAKE_NODE(mkfifo, (const char *path, mode_t mode), AT_FDCWD, mode | S_IFIFO, 0L)
MAKE_NODE(mkfifoat, (int dirfd, const char *path, mode_t mode), dirfd, mode | S_IFIFO, 0L)
MAKE_NODE(mknod, (const char *path, mode_t mode, dev_t device), AT_FDCWD, mode, device)
MAKE_NODE(mknodat, (int dirfd, const char *path, mode_t mode, dev_t device), dirfd, mode, device)

#define MAKE_LINK(name, parameters, folder) \
	MAKE(name, parameters, folder, TN_PASS_CALL(SYS_symlinkat, text, target.dirfd, target.path, 0L, 0L))
MAKE_LINK(symlink, (const char *text, const char *path), AT_FDCWD)
MAKE_LINK(symlinkat, (const char *text, int dirfd, const char *path), dirfd)

/* The names that programs built before glibc 2.33 call. */
int __xmknod(int version, const char *path, mode_t mode, dev_t *device);
MAKE_NODE(__xmknod, (int version, const char *path, mode_t mode, dev_t *device), AT_FDCWD, ((void)version, mode),
          *device)
int __xmknodat(int version, int dirfd, const char *path, mode_t mode, dev_t *device);
MAKE_NODE(__xmknodat, (int version, int dirfd, const char *path, mode_t mode, dev_t *device), dirfd,
          ((void)version, mode), *device)

/* A hard link to a lower file would be a way to write to it: what is linked is the copy. */
static int
link_name(int old_dirfd, const char *old_path, int new_dirfd, const char *new_path, int flags)
{
	struct tn__target from = { old_dirfd, old_path, "" }, to;
	int result = 0;

	if (!(flags & AT_EMPTY_PATH))
		result = tn__map_change(old_dirfd, old_path, flags & AT_SYMLINK_FOLLOW ? TN__FOLLOW : 0, TN__EITHER, &from);
	else if ((result = tn__map_descriptor(old_dirfd, TN__EITHER, &from)) == 1)
		flags &= ~AT_EMPTY_PATH, result = 0;
	if (result == 0)
		result = tn__map_make(new_dirfd, new_path, &to);
	if (result == 0)
		result = (int)TN_PASS_CALL(SYS_linkat, from.dirfd, from.path, to.dirfd, to.path, flags);
	return tn__result(result);
}

TN_ENTRY int
link(const char *old_path, const char *new_path)
{
	if (tn__mode() == TN__OFF)
		return TN_NEXT(link)(old_path, new_path);
	return link_name(AT_FDCWD, old_path, AT_FDCWD, new_path, 0);
}

TN_ENTRY int
linkat(int old_dirfd, const char *old_path, int new_dirfd, const char *new_path, int flags)
{
	if (tn__mode() == TN__OFF)
		return TN_NEXT(linkat)(old_dirfd, old_path, new_dirfd, new_path, flags);
	return link_name(old_dirfd, old_path, new_dirfd, new_path, flags);
}
