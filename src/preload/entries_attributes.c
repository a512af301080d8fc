/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that change size, mode, owner, times and extended attributes, by name and by descriptor.
 *
 * A descriptor of a lower file, open for reading, could change these: then the call is made by name on the copy
 * instead. Invariant: libc is given upper names only, or what is not ours. Must not know how the overlay works.
 */
#include "preload/overlay.h"

#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#define FOLLOW_UNLESS(flag) ((flag) ? 0 : TN__FOLLOW)

/* Defines a call that changes `path`, in terms of libc's call of the same name with the target's arguments. */
#define CHANGE(name, parameters, dirfd, how, right, ...)                                \
	TN_ENTRY int name parameters                                                        \
	{                                                                                   \
		struct tn__target target;                                                       \
		if (tn__result(tn__map_change(dirfd, path, how, right, &target)))               \
			return -1;                                                                  \
		return TN_NEXT(name)(__VA_ARGS__);                                              \
	}

CHANGE(truncate, (const char *path, off_t size), AT_FDCWD, TN__FOLLOW, TN__CONTENT, target.path, size)
CHANGE(truncate64, (const char *path, off64_t size), AT_FDCWD, TN__FOLLOW, TN__CONTENT, target.path, size)

CHANGE(chmod, (const char *path, mode_t mode), AT_FDCWD, TN__FOLLOW, TN__OWNER, target.path, mode)
CHANGE(lchmod, (const char *path, mode_t mode), AT_FDCWD, 0, TN__OWNER, target.path, mode)
CHANGE(fchmodat, (int dirfd, const char *path, mode_t mode, int flags), dirfd,
       FOLLOW_UNLESS(flags & AT_SYMLINK_NOFOLLOW), TN__OWNER, target.dirfd, target.path, mode, flags)

CHANGE(chown, (const char *path, uid_t user, gid_t group), AT_FDCWD, TN__FOLLOW, TN__OWNER, target.path, user, group)
CHANGE(lchown, (const char *path, uid_t user, gid_t group), AT_FDCWD, 0, TN__OWNER, target.path, user, group)

CHANGE(utime, (const char *path, const struct utimbuf *times), AT_FDCWD, TN__FOLLOW, TN__EITHER, target.path, times)
CHANGE(utimes, (const char *path, const struct timeval times[2]), AT_FDCWD, TN__FOLLOW, TN__EITHER, target.path, times)
CHANGE(lutimes, (const char *path, const struct timeval times[2]), AT_FDCWD, 0, TN__EITHER, target.path, times)

CHANGE(setxattr, (const char *path, const char *name, const void *value, size_t size, int flags), AT_FDCWD, TN__FOLLOW,
       TN__EITHER, target.path, name, value, size, flags)
CHANGE(lsetxattr, (const char *path, const char *name, const void *value, size_t size, int flags), AT_FDCWD, 0,
       TN__EITHER, target.path, name, value, size, flags)
CHANGE(removexattr, (const char *path, const char *name), AT_FDCWD, TN__FOLLOW, TN__EITHER, target.path, name)
CHANGE(lremovexattr, (const char *path, const char *name), AT_FDCWD, 0, TN__EITHER, target.path, name)

/* Defines a call that changes the file of `fd`; the call by name that takes its place follows no link. */
#define CHANGE_DESCRIPTOR(name, parameters, right, by_name, ...)                        \
	TN_ENTRY int name parameters                                                        \
	{                                                                                   \
		struct tn__target target;                                                       \
		int mapped = tn__map_descriptor(fd, right, &target);                            \
		if (mapped == 1)                                                                \
			return tn__result(by_name);                                                 \
		return mapped ? tn__result(mapped) : TN_NEXT(name)(__VA_ARGS__);                \
	}

CHANGE_DESCRIPTOR(fchmod, (int fd, mode_t mode), TN__OWNER, TN_CALL(SYS_fchmodat, AT_FDCWD, target.path, mode), fd,
                  mode)
CHANGE_DESCRIPTOR(fchown, (int fd, uid_t user, gid_t group), TN__OWNER,
                  TN_CALL(SYS_fchownat, AT_FDCWD, target.path, user, group, AT_SYMLINK_NOFOLLOW), fd, user, group)
CHANGE_DESCRIPTOR(futimens, (int fd, const struct timespec times[2]), TN__EITHER,
                  TN_CALL(SYS_utimensat, AT_FDCWD, target.path, times, AT_SYMLINK_NOFOLLOW), fd, times)
CHANGE_DESCRIPTOR(fsetxattr, (int fd, const char *name, const void *value, size_t size, int flags), TN__EITHER,
                  TN_CALL(SYS_lsetxattr, target.path, name, value, size, flags), fd, name, value, size, flags)
CHANGE_DESCRIPTOR(fremovexattr, (int fd, const char *name), TN__EITHER,
                  TN_CALL(SYS_lremovexattr, target.path, name), fd, name)

static long
set_times(const char *name, const struct timeval times[2])
{
	struct timespec precise[2];

	for (int i = 0; times && i < 2; i++) {
		precise[i].tv_sec = times[i].tv_sec;
		precise[i].tv_nsec = times[i].tv_usec * 1000;
	}
	return TN_CALL(SYS_utimensat, AT_FDCWD, name, times ? precise : NULL, AT_SYMLINK_NOFOLLOW);
}
CHANGE_DESCRIPTOR(futimes, (int fd, const struct timeval times[2]), TN__EITHER, set_times(target.path, times), fd,
                  times)

/* An empty path means the descriptor itself. */
TN_ENTRY int
fchownat(int dirfd, const char *path, uid_t user, gid_t group, int flags)
{
	struct tn__target target;

	if ((flags & AT_EMPTY_PATH) && !*path && dirfd != AT_FDCWD)
		return fchown(dirfd, user, group);
	if (tn__result(tn__map_change(dirfd, path, FOLLOW_UNLESS(flags & AT_SYMLINK_NOFOLLOW), TN__OWNER, &target)))
		return -1;
	return TN_NEXT(fchownat)(target.dirfd, target.path, user, group, flags);
}

/* A null path means the descriptor itself, to these two. */
TN_ENTRY int
futimesat(int dirfd, const char *path, const struct timeval times[2])
{
	struct tn__target target;
	const char *volatile name = path; /* declared as never null */

	if (!name)
		return futimes(dirfd, times);
	if (tn__result(tn__map_change(dirfd, path, TN__FOLLOW, TN__EITHER, &target)))
		return -1;
	return TN_NEXT(futimesat)(target.dirfd, target.path, times);
}

TN_ENTRY int
utimensat(int dirfd, const char *path, const struct timespec times[2], int flags)
{
	struct tn__target target;
	const char *volatile name = path;

	if (!name || ((flags & AT_EMPTY_PATH) && !*path && dirfd != AT_FDCWD))
		return futimens(dirfd, times);
	if (tn__result(
		    tn__map_change(dirfd, path, FOLLOW_UNLESS(flags & AT_SYMLINK_NOFOLLOW), TN__EITHER, &target)))
		return -1;
	return TN_NEXT(utimensat)(target.dirfd, target.path, times, flags);
}
