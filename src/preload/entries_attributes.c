/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that change size, mode, owner, times and extended attributes, by name and by descriptor.
 *
 * A descriptor of a lower file, open for reading, could change these: then the call is made by name on the copy
 * instead. So it is with the calls of ioctl that set an inode's flags. Invariant: libc is given upper names only, or what is not ours. Must not know how the overlay works.
 */
#include "preload/overlay.h"

#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#define FOLLOW_UNLESS(flag) ((flag) ? 0 : TN__FOLLOW)

#ifndef SYS_fchmodat2 /* headers older than Linux 6.6 */
#define SYS_fchmodat2 452
#endif

/* Defines a call that changes `path`, in terms of a system call with the target's arguments. */
#define CHANGE(name, parameters, dirfd, how, right, call)                 \
	TN_ENTRY int name parameters                                          \
	{                                                                     \
		struct tn__target target;                                         \
		if (tn__result(tn__map_change(dirfd, path, how, right, &target))) \
			return -1;                                                    \
		return tn__result(call);                                          \
	}

CHANGE(truncate, (const char *path, off_t size), AT_FDCWD, TN__FOLLOW, TN__CONTENT,
       TN_PASS_CALL(SYS_truncate, target.path, size, 0L, 0L, 0L))
CHANGE(truncate64, (const char *path, off64_t size), AT_FDCWD, TN__FOLLOW, TN__CONTENT,
       TN_PASS_CALL(SYS_truncate, target.path, size, 0L, 0L, 0L))

/* Of a link itself older kernels cannot change the mode; Linux has none for links. */
static long
change_mode(int dirfd, const char *path, mode_t mode, int flags)
{
	struct stat about;
	long result;

	if (!flags)
		return TN_PASS_CALL(SYS_fchmodat, dirfd, path, mode, 0L, 0L);
	result = TN_PASS_CALL(SYS_fchmodat2, dirfd, path, mode, flags, 0L);
	if (result != -ENOSYS || flags != AT_SYMLINK_NOFOLLOW)
		return result == -ENOSYS ? -EINVAL : result;
	result = TN_CALL(SYS_newfstatat, dirfd, path, &about, AT_SYMLINK_NOFOLLOW);
	if (result == 0 && S_ISLNK(about.st_mode))
		return -EOPNOTSUPP;
	return result ? result : TN_PASS_CALL(SYS_fchmodat, dirfd, path, mode, 0L, 0L);
}
CHANGE(chmod, (const char *path, mode_t mode), AT_FDCWD, TN__FOLLOW, TN__OWNER,
       change_mode(target.dirfd, target.path, mode, 0))
CHANGE(lchmod, (const char *path, mode_t mode), AT_FDCWD, 0, TN__OWNER,
       change_mode(target.dirfd, target.path, mode, AT_SYMLINK_NOFOLLOW))

/* An empty path means the descriptor itself. */
TN_ENTRY int
fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
	struct tn__target target;

	if ((flags & AT_EMPTY_PATH) && !*path && dirfd != AT_FDCWD)
		return fchmod(dirfd, mode);
	if (tn__result(tn__map_change(dirfd, path, FOLLOW_UNLESS(flags & AT_SYMLINK_NOFOLLOW), TN__OWNER, &target)))
		return -1;
	return tn__result(change_mode(target.dirfd, target.path, mode, flags));
}

#define OWNER(flags) TN_PASS_CALL(SYS_fchownat, target.dirfd, target.path, user, group, flags)
CHANGE(chown, (const char *path, uid_t user, gid_t group), AT_FDCWD, TN__FOLLOW, TN__OWNER, OWNER(0L))
CHANGE(lchown, (const char *path, uid_t user, gid_t group), AT_FDCWD, 0, TN__OWNER, OWNER(AT_SYMLINK_NOFOLLOW))

static long
set_times(int dirfd, const char *name, const struct timeval times[2], int flags)
{
	struct timespec precise[2];

	for (int i = 0; times && i < 2; i++) {
		if (times[i].tv_usec < 0 || times[i].tv_usec > 999999)
			return -EINVAL;
		precise[i].tv_sec = times[i].tv_sec;
		precise[i].tv_nsec = times[i].tv_usec * 1000;
	}
	return TN_PASS_CALL(SYS_utimensat, dirfd, name, times ? precise : NULL, flags, 0L);
}

static long
set_seconds(int dirfd, const char *name, const struct utimbuf *times)
{
	struct timespec precise[2] = { { 0 }, { 0 } };

	if (times) {
		precise[0].tv_sec = times->actime;
		precise[1].tv_sec = times->modtime;
	}
	return TN_PASS_CALL(SYS_utimensat, dirfd, name, times ? precise : NULL, 0L, 0L);
}
CHANGE(utime, (const char *path, const struct utimbuf *times), AT_FDCWD, TN__FOLLOW, TN__EITHER,
       set_seconds(target.dirfd, target.path, times))
CHANGE(utimes, (const char *path, const struct timeval times[2]), AT_FDCWD, TN__FOLLOW, TN__EITHER,
       set_times(target.dirfd, target.path, times, 0))
CHANGE(lutimes, (const char *path, const struct timeval times[2]), AT_FDCWD, 0, TN__EITHER,
       set_times(target.dirfd, target.path, times, AT_SYMLINK_NOFOLLOW))

CHANGE(setxattr, (const char *path, const char *name, const void *value, size_t size, int flags), AT_FDCWD, TN__FOLLOW,
       TN__EITHER, TN_PASS_CALL(SYS_setxattr, target.path, name, value, size, flags))
CHANGE(lsetxattr, (const char *path, const char *name, const void *value, size_t size, int flags), AT_FDCWD, 0,
       TN__EITHER, TN_PASS_CALL(SYS_lsetxattr, target.path, name, value, size, flags))
CHANGE(removexattr, (const char *path, const char *name), AT_FDCWD, TN__FOLLOW, TN__EITHER,
       TN_PASS_CALL(SYS_removexattr, target.path, name, 0L, 0L, 0L))
CHANGE(lremovexattr, (const char *path, const char *name), AT_FDCWD, 0, TN__EITHER,
       TN_PASS_CALL(SYS_lremovexattr, target.path, name, 0L, 0L, 0L))

/* Defines a call that changes the file of `fd`; the call by name that takes its place follows no link. */
#define CHANGE_DESCRIPTOR(name, parameters, right, by_name, by_descriptor) \
	TN_ENTRY int name parameters                                           \
	{                                                                      \
		struct tn__target target;                                          \
		int mapped = tn__map_descriptor(fd, right, &target);               \
		if (mapped == 1)                                                   \
			return tn__result(by_name);                                    \
		return tn__result(mapped ? mapped : by_descriptor);                \
	}

CHANGE_DESCRIPTOR(fchmod, (int fd, mode_t mode), TN__OWNER, change_mode(AT_FDCWD, target.path, mode, 0),
                  TN_PASS_CALL(SYS_fchmod, fd, mode, 0L, 0L, 0L))
CHANGE_DESCRIPTOR(fchown, (int fd, uid_t user, gid_t group), TN__OWNER,
                  TN_PASS_CALL(SYS_fchownat, AT_FDCWD, target.path, user, group, AT_SYMLINK_NOFOLLOW),
                  TN_PASS_CALL(SYS_fchown, fd, user, group, 0L, 0L))
CHANGE_DESCRIPTOR(futimens, (int fd, const struct timespec times[2]), TN__EITHER,
                  TN_PASS_CALL(SYS_utimensat, AT_FDCWD, target.path, times, AT_SYMLINK_NOFOLLOW, 0L),
                  TN_PASS_CALL(SYS_utimensat, fd, NULL, times, 0L, 0L))
CHANGE_DESCRIPTOR(fsetxattr, (int fd, const char *name, const void *value, size_t size, int flags), TN__EITHER,
                  TN_PASS_CALL(SYS_lsetxattr, target.path, name, value, size, flags),
                  TN_PASS_CALL(SYS_fsetxattr, fd, name, value, size, flags))
CHANGE_DESCRIPTOR(fremovexattr, (int fd, const char *name), TN__EITHER,
                  TN_PASS_CALL(SYS_lremovexattr, target.path, name, 0L, 0L, 0L),
                  TN_PASS_CALL(SYS_fremovexattr, fd, name, 0L, 0L, 0L))
CHANGE_DESCRIPTOR(futimes, (int fd, const struct timeval times[2]), TN__EITHER,
                  set_times(AT_FDCWD, target.path, times, AT_SYMLINK_NOFOLLOW), set_times(fd, NULL, times, 0))

/* An empty path means the descriptor itself. */
TN_ENTRY int
fchownat(int dirfd, const char *path, uid_t user, gid_t group, int flags)
{
	struct tn__target target;

	if ((flags & AT_EMPTY_PATH) && !*path && dirfd != AT_FDCWD)
		return fchown(dirfd, user, group);
	if (tn__result(tn__map_change(dirfd, path, FOLLOW_UNLESS(flags & AT_SYMLINK_NOFOLLOW), TN__OWNER, &target)))
		return -1;
	return tn__result(OWNER(flags));
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
	return tn__result(set_times(target.dirfd, target.path, times, 0));
}

TN_ENTRY int
utimensat(int dirfd, const char *path, const struct timespec times[2], int flags)
{
	struct tn__target target;
	const char *volatile name = path;

	if (!name || ((flags & AT_EMPTY_PATH) && !*path && dirfd != AT_FDCWD))
		return futimens(dirfd, times);
	if (tn__result(tn__map_change(dirfd, path, FOLLOW_UNLESS(flags & AT_SYMLINK_NOFOLLOW), TN__EITHER, &target)))
		return -1;
	return tn__result(TN_PASS_CALL(SYS_utimensat, target.dirfd, target.path, times, flags, 0L));
}

/* ---- flags of the inode ---- */

static TN_SLOW int
change_flags(int fd, unsigned long request, void *argument)
{
	struct tn__target target;
	int mapped = tn__map_descriptor(fd, TN__OWNER, &target);
	long result, copy;

	if (mapped != 1)
		return tn__result(mapped ? mapped : TN_PASS_CALL(SYS_ioctl, fd, request, argument, 0L, 0L));
	copy = TN_CALL(SYS_openat, AT_FDCWD, target.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0L);
	if (copy < 0)
		return tn__result(copy);
	result = TN_PASS_CALL(SYS_ioctl, copy, request, argument, 0L, 0L);
	(void)TN_CALL(SYS_close, copy);
	return tn__result(result);
}

TN_ENTRY int
ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	switch ((unsigned)request) {
	case (unsigned)FS_IOC_SETFLAGS:
	case (unsigned)FS_IOC32_SETFLAGS:
	case (unsigned)FS_IOC_FSSETXATTR:
	case (unsigned)FS_IOC_SETVERSION:
	case (unsigned)FS_IOC32_SETVERSION:
		return change_flags(fd, request, argument);
	default:
		return tn__result(TN_CALL(SYS_ioctl, fd, request, argument));
	}
}
