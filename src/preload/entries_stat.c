/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that look at a file by name or descriptor without opening it.
 *
 * Invariant: while nothing was redirected each costs two loads more than libc's.
 */
#include "preload/overlay.h"
#include "preload/weights.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

/* ---- stat ---- */

/* True where a folder was looked at that the overlay and the real file system share; `place` says which. */
static TN_SLOW bool
find_merged(int dirfd, const char *path, struct tn__place *place)
{
	if (path && *path)
		tn__resolve(dirfd, path, TN__FOLLOW, place);
	else
		tn__resolve_descriptor(dirfd, place);
	return !place->error && tn__is_merged(place);
}

static TN_SLOW int
slow_stat(int dirfd, const char *path, struct stat *st, int flags)
{
	struct tn__target target;
	struct tn__place place;
	long result;

	tn__map_read(dirfd, path, flags & AT_SYMLINK_NOFOLLOW ? 0 : TN__FOLLOW, &target);
	result = TN_CALL(SYS_newfstatat, target.dirfd, target.path, st, flags);
	if (result || !S_ISDIR(st->st_mode))
		return tn__result(result);
	if (find_merged(dirfd, path, &place))
		tn__merge_stat(&place, st);
	return 0;
}

static TN_SLOW int
slow_fstat(int fd, struct stat *st)
{
	struct tn__place place;
	long result = TN_CALL(SYS_fstat, fd, st);

	if (result || !S_ISDIR(st->st_mode))
		return tn__result(result);
	tn__resolve_descriptor(fd, &place);
	if (!place.error && tn__is_merged(&place))
		tn__merge_stat(&place, st);
	return 0;
}

/* Not libc's next function: before glibc 2.33 these names are in no library, only __xstat and its kin. */
static inline int
quick_stat(int dirfd, const char *path, struct stat *st, int flags)
{
	return tn__result(TN_CALL(SYS_newfstatat, dirfd, path, st, flags));
}

/* The length of a file of weights that is stood in for is the whole file's. */
static inline int
with_weights(int result, int dirfd, const char *path, struct stat *st)
{
	if (result == 0 && tn__weights_may_be(path))
		tn__weights_stat(dirfd, path, st);
	return result;
}

static inline int
with_weights_fd(int result, struct stat *st)
{
	if (result == 0 && tn__weights_met())
		(void)tn__weights_fstat(st);
	return result;
}

static int
any_stat(int dirfd, const char *path, struct stat *st, int flags)
{
	int result = tn__quiet() ? quick_stat(dirfd, path, st, flags) : slow_stat(dirfd, path, st, flags);
	return with_weights(result, dirfd, path, st);
}

static int
any_fstat(int fd, struct stat *st)
{
	return with_weights_fd(tn__quiet() ? tn__result(TN_CALL(SYS_fstat, fd, st)) : slow_fstat(fd, st), st);
}

/* On our machines struct stat64 is struct stat. */
#define STAT(name, type, flags)                                    \
	TN_ENTRY int name(const char *path, struct type *st)           \
	{                                                              \
		return any_stat(AT_FDCWD, path, (struct stat *)st, flags); \
	}
STAT(stat, stat, 0)
STAT(stat64, stat64, 0)
STAT(lstat, stat, AT_SYMLINK_NOFOLLOW)
STAT(lstat64, stat64, AT_SYMLINK_NOFOLLOW)

#define FSTAT(name, type)                        \
	TN_ENTRY int name(int fd, struct type *st)   \
	{                                            \
		return any_fstat(fd, (struct stat *)st); \
	}
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

#define FSTATAT(name, type)                                                    \
	TN_ENTRY int name(int dirfd, const char *path, struct type *st, int flags) \
	{                                                                          \
		return any_stat(dirfd, path, (struct stat *)st, flags);                \
	}
FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)

/* The names that programs built before glibc 2.33 call. */
#define XSTAT(name, type, flags)                                      \
	int name(int version, const char *path, struct type *st);         \
	TN_ENTRY int name(int version, const char *path, struct type *st) \
	{                                                                 \
		return any_stat(AT_FDCWD, path, (struct stat *)st, flags);    \
	}
XSTAT(__xstat, stat, 0)
XSTAT(__xstat64, stat64, 0)
XSTAT(__lxstat, stat, AT_SYMLINK_NOFOLLOW)
XSTAT(__lxstat64, stat64, AT_SYMLINK_NOFOLLOW)

#define FXSTAT(name, type)                                  \
	int name(int version, int fd, struct type *st);         \
	TN_ENTRY int name(int version, int fd, struct type *st) \
	{                                                       \
		return any_fstat(fd, (struct stat *)st);            \
	}
FXSTAT(__fxstat, stat)
FXSTAT(__fxstat64, stat64)

#define FXSTATAT(name, type)                                                                \
	int name(int version, int dirfd, const char *path, struct type *st, int flags);         \
	TN_ENTRY int name(int version, int dirfd, const char *path, struct type *st, int flags) \
	{                                                                                       \
		return any_stat(dirfd, path, (struct stat *)st, flags);                             \
	}
FXSTATAT(__fxstatat, stat)
FXSTATAT(__fxstatat64, stat64)

static void
merge_statx(const struct tn__place *place, struct statx *st)
{
	struct stat merged;

	if (tn__place_stat(place, &merged))
		return;
	st->stx_nlink = 1;
	st->stx_mode = (uint16_t)merged.st_mode;
	st->stx_uid = merged.st_uid;
	st->stx_gid = merged.st_gid;
	st->stx_mtime.tv_sec = merged.st_mtim.tv_sec;
	st->stx_mtime.tv_nsec = (uint32_t)merged.st_mtim.tv_nsec;
	st->stx_ctime.tv_sec = merged.st_ctim.tv_sec;
	st->stx_ctime.tv_nsec = (uint32_t)merged.st_ctim.tv_nsec;
}

static TN_SLOW int
slow_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st)
{
	struct tn__target target;
	struct tn__place place;
	long result;

	tn__map_read(dirfd, path, flags & AT_SYMLINK_NOFOLLOW ? 0 : TN__FOLLOW, &target);
	result = TN_CALL(SYS_statx, target.dirfd, target.path, flags, mask | STATX_TYPE, st);
	if (result || !S_ISDIR(st->stx_mode))
		return tn__result(result);
	if (find_merged(dirfd, path, &place))
		merge_statx(&place, st);
	return 0;
}

/* By way of stat, which knows. */
static TN_SLOW void
statx_weights(int dirfd, const char *path, int flags, struct statx *st)
{
	struct stat about;

	if (!path || !*path || (flags & AT_EMPTY_PATH && !*path)) {
		if (fstat(dirfd, &about))
			return;
	} else if (!tn__weights_may_be(path) || fstatat(dirfd, path, &about, flags & AT_SYMLINK_NOFOLLOW)) {
		return;
	}
	st->stx_size = (uint64_t)about.st_size;
	st->stx_ino = about.st_ino;
}

TN_ENTRY int
statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st)
{
	int result = tn__quiet() ? TN_NEXT(statx)(dirfd, path, flags, mask, st) : slow_statx(dirfd, path, flags, mask, st);

	if (result == 0 && S_ISREG(st->stx_mode) && (tn__weights_met() || tn__weights_may_be(path)))
		statx_weights(dirfd, path, flags, st);
	return result;
}

/* ---- access ---- */

/* Of a merged folder whose mode was changed the upper one counts. */
static TN_SLOW int
slow_access(int dirfd, const char *path, int mode, int flags)
{
	struct tn__target target;
	struct tn__place place;
	long result;

	tn__map_read(dirfd, path, flags & AT_SYMLINK_NOFOLLOW ? 0 : TN__FOLLOW, &target);
	if (path && *path) {
		tn__resolve(dirfd, path, TN__FOLLOW, &place);
		if (!place.error && tn__is_merged(&place) && (place.flags & TN__ATTRIBUTES)) {
			tn__upper_name(&place, target.buffer);
			target.path = target.buffer;
		}
	}
	result = TN_CALL(SYS_faccessat2, target.dirfd, target.path, mode, flags);
	if (result == -ENOSYS)
		return TN_NEXT(faccessat)(target.dirfd, target.path, mode, flags);
	return tn__result(result);
}

#define ACCESS(name, flags)                              \
	TN_ENTRY int name(const char *path, int mode)        \
	{                                                    \
		if (tn__quiet())                                 \
			return TN_NEXT(name)(path, mode);            \
		return slow_access(AT_FDCWD, path, mode, flags); \
	}
ACCESS(access, 0)
ACCESS(eaccess, AT_EACCESS)
ACCESS(euidaccess, AT_EACCESS)

TN_ENTRY int
faccessat(int dirfd, const char *path, int mode, int flags)
{
	if (tn__quiet())
		return TN_NEXT(faccessat)(dirfd, path, mode, flags);
	return slow_access(dirfd, path, mode, flags);
}

/* ---- links and real names ---- */

static TN_SLOW ssize_t
slow_readlink(int dirfd, const char *path, char *buffer, size_t size)
{
	struct tn__target target;
	char text[PATH_MAX];
	long length;

	tn__map_read(dirfd, path, 0, &target);
	length = TN_CALL(SYS_readlinkat, target.dirfd, target.path, text, sizeof(text) - 1);
	if (length < 0)
		return tn__result(length);
	text[length] = 0;
	if (tn__strip_upper(text)) /* the kernel's links in /proc know the upper names */
		length = (long)strlen(text);
	if ((size_t)length > size)
		length = (long)size;
	memcpy(buffer, text, (size_t)length);
	return length;
}

TN_ENTRY ssize_t
readlink(const char *path, char *buffer, size_t size)
{
	if (tn__quiet())
		return TN_NEXT(readlink)(path, buffer, size);
	return slow_readlink(AT_FDCWD, path, buffer, size);
}

TN_ENTRY ssize_t
readlinkat(int dirfd, const char *path, char *buffer, size_t size)
{
	if (tn__quiet())
		return TN_NEXT(readlinkat)(dirfd, path, buffer, size);
	return slow_readlink(dirfd, path, buffer, size);
}

ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room);
TN_ENTRY ssize_t
__readlink_chk(const char *path, char *buffer, size_t size, size_t room)
{
	if (tn__quiet() || size > room)
		return TN_NEXT(__readlink_chk)(path, buffer, size, room);
	return slow_readlink(AT_FDCWD, path, buffer, size);
}

ssize_t __readlinkat_chk(int dirfd, const char *path, char *buffer, size_t size, size_t room);
TN_ENTRY ssize_t
__readlinkat_chk(int dirfd, const char *path, char *buffer, size_t size, size_t room)
{
	if (tn__quiet() || size > room)
		return TN_NEXT(__readlinkat_chk)(dirfd, path, buffer, size, room);
	return slow_readlink(dirfd, path, buffer, size);
}

/* The old version of realpath does not allocate; dlsym's default finds the new one, which is what everybody has bound
 * since glibc 2.3. */
static TN_SLOW char *
slow_realpath(const char *path, char *resolved)
{
	struct tn__place place;
	struct stat st;
	int result;

	if (!path || !*path || tn__mode() != TN__ACTIVE)
		return TN_NEXT(realpath)(path, resolved);
	tn__resolve(AT_FDCWD, path, TN__FOLLOW, &place);
	if (!place.moved)
		return TN_NEXT(realpath)(path, resolved);
	result = place.error ? place.error : tn__place_stat(&place, &st);
	if (result == 0 && place.slash && !S_ISDIR(st.st_mode))
		result = -ENOTDIR;
	if (result) {
		errno = -result;
		return NULL;
	}
	if (place.length == 0)
		memcpy(place.path, "/", 2);
	return resolved ? strcpy(resolved, place.path) : strdup(place.path);
}

TN_ENTRY char *
realpath(const char *path, char *resolved)
{
	return tn__quiet() ? TN_NEXT(realpath)(path, resolved) : slow_realpath(path, resolved);
}

TN_ENTRY char *
canonicalize_file_name(const char *path)
{
	return tn__quiet() ? TN_NEXT(canonicalize_file_name)(path) : slow_realpath(path, NULL);
}

char *__realpath_chk(const char *path, char *resolved, size_t room);
TN_ENTRY char *
__realpath_chk(const char *path, char *resolved, size_t room)
{
	if (tn__quiet() || room < PATH_MAX)
		return TN_NEXT(__realpath_chk)(path, resolved, room);
	return slow_realpath(path, resolved);
}

/* ---- whatever else reads by name ---- */

/* As everywhere, the big buffer is kept out of the way past the overlay. */
#define READ_BY_NAME(result, name, how, parameters, ...)                            \
	static TN_SLOW result slow_##name parameters                                    \
	{                                                                               \
		struct tn__target target;                                                   \
		tn__map_read(AT_FDCWD, path, how, &target);                                 \
		path = target.path;                                                         \
		return TN_NEXT(name)(__VA_ARGS__);                                          \
	}                                                                               \
	TN_ENTRY result name parameters                                                 \
	{                                                                               \
		return tn__quiet() ? TN_NEXT(name)(__VA_ARGS__) : slow_##name(__VA_ARGS__); \
	}
READ_BY_NAME(int, statfs, TN__FOLLOW, (const char *path, struct statfs *st), path, st)
READ_BY_NAME(int, statfs64, TN__FOLLOW, (const char *path, struct statfs64 *st), path, st)
READ_BY_NAME(int, statvfs, TN__FOLLOW, (const char *path, struct statvfs *st), path, st)
READ_BY_NAME(int, statvfs64, TN__FOLLOW, (const char *path, struct statvfs64 *st), path, st)
READ_BY_NAME(long, pathconf, TN__FOLLOW, (const char *path, int name), path, name)
READ_BY_NAME(ssize_t, getxattr, TN__FOLLOW, (const char *path, const char *name, void *value, size_t size), path, name,
             value, size)
READ_BY_NAME(ssize_t, lgetxattr, 0, (const char *path, const char *name, void *value, size_t size), path, name, value,
             size)
READ_BY_NAME(ssize_t, listxattr, TN__FOLLOW, (const char *path, char *names, size_t size), path, names, size)
READ_BY_NAME(ssize_t, llistxattr, 0, (const char *path, char *names, size_t size), path, names, size)
READ_BY_NAME(int, inotify_add_watch, (mask & IN_DONT_FOLLOW) ? 0 : TN__FOLLOW,
             (int fd, const char *path, uint32_t mask), fd, path, mask)
