/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that open files: open and its family, stdio, temporary files.
 *
 * Invariant: an open that may create or change goes through tn__map_open. Must not know how the overlay works.
 */
#include "preload/overlay.h"
#include "preload/write_overlay.h"
#include "preload/weights.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static bool
may_change(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE;
}

/* What an open for a change is: with O_PATH nothing is opened. */
static bool
changes(int flags)
{
	return may_change(flags) && !(flags & O_PATH);
}

static bool
takes_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

/* The arguments for libc's open; 0 or -1 with errno. */
static TN_SLOW int
map(int dirfd, const char *path, int flags, struct tn__target *target)
{
	if (changes(flags))
		return tn__result(tn__map_open(dirfd, path, flags, target));
	tn__map_read(dirfd, path, flags & O_NOFOLLOW ? 0 : TN__FOLLOW, target);
	return 0;
}

/* A change that the file's permissions allow, and the kernel's sandbox does not: it is counted for the report. */
static TN_SLOW void
note_refusal(const struct tn__target *target)
{
	if (TN_CALL(SYS_faccessat, target->dirfd, target->path, W_OK) == 0)
		atomic_fetch_add(&tn__head->refused, 1);
	errno = EACCES;
}

/* Opens for a change what was mapped. Not libc's: it cannot carry the pass word, and the reaper would look at each. */
static TN_SLOW int
open_to_change(const struct tn__target *target, int flags, mode_t mode)
{
	int kind, fd;

	(void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &kind); /* libc's are cancellation points, too */
	fd = tn__result(TN_PASS_CALL(SYS_openat, target->dirfd, target->path, flags, mode, 0L));
	(void)pthread_setcanceltype(kind, &kind);
	if (fd < 0 && errno == EACCES)
		note_refusal(target);
	return fd;
}

/* Is it the overlay that opens it? */
static bool
is_ours(int flags)
{
	return changes(flags) && tn__mode() == TN__ACTIVE;
}

static bool
passes(int flags)
{
	tn__watch_python();
	return tn__quiet() && !may_change(flags);
}

/* A file of weights that was opened for reading may be stood in for. */
static int
with_weights(int fd, const char *path, int flags)
{
	if (fd >= 0 && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_PATH) && tn__weights_may_be(path))
		tn__weights_open(fd);
	return fd;
}

#define READ_MODE(flags, mode)                  \
	do {                                        \
		if (takes_mode(flags)) {                \
			va_list arguments;                  \
			va_start(arguments, flags);         \
			(mode) = va_arg(arguments, mode_t); \
			va_end(arguments);                  \
		}                                       \
	} while (0)

/* Each call keeps its big buffers in a function of its own: the way past the overlay must fit on a signal stack. */
#define OPEN(name)                                                                                  \
	static TN_SLOW int slow_##name(const char *path, int flags, mode_t mode)                        \
	{                                                                                               \
		struct tn__target target;                                                                   \
		if (map(AT_FDCWD, path, flags, &target))                                                    \
			return -1;                                                                              \
		if (is_ours(flags))                                                                         \
			return open_to_change(&target, flags, mode);                                            \
		return TN_NEXT(name)(target.path, flags, mode);                                             \
	}                                                                                               \
	TN_ENTRY int name(const char *path, int flags, ...)                                             \
	{                                                                                               \
		mode_t mode = 0;                                                                            \
		READ_MODE(flags, mode);                                                                     \
		int fd = passes(flags) ? TN_NEXT(name)(path, flags, mode) : slow_##name(path, flags, mode); \
		return with_weights(fd, path, flags);                                                       \
	}
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                              \
	static TN_SLOW int slow_##name(int dirfd, const char *path, int flags, mode_t mode)                           \
	{                                                                                                             \
		struct tn__target target;                                                                                 \
		if (map(dirfd, path, flags, &target))                                                                     \
			return -1;                                                                                            \
		if (is_ours(flags))                                                                                       \
			return open_to_change(&target, flags, mode);                                                          \
		return TN_NEXT(name)(target.dirfd, target.path, flags, mode);                                             \
	}                                                                                                             \
	TN_ENTRY int name(int dirfd, const char *path, int flags, ...)                                                \
	{                                                                                                             \
		mode_t mode = 0;                                                                                          \
		READ_MODE(flags, mode);                                                                                   \
		int fd = passes(flags) ? TN_NEXT(name)(dirfd, path, flags, mode) : slow_##name(dirfd, path, flags, mode); \
		return with_weights(fd, path, flags);                                                                     \
	}
OPENAT(openat)
OPENAT(openat64)

#define CREAT(name)                                                 \
	TN_ENTRY int name(const char *path, mode_t mode)                \
	{                                                               \
		return slow_open(path, O_WRONLY | O_CREAT | O_TRUNC, mode); \
	}
CREAT(creat)
CREAT(creat64)

/* What fortified programs call when they give no mode. */
#define OPEN_2(name, plain)                                                                                      \
	int name(const char *path, int flags);                                                                       \
	TN_ENTRY int name(const char *path, int flags)                                                               \
	{                                                                                                            \
		int fd = passes(flags) || takes_mode(flags) ? TN_NEXT(name)(path, flags) : slow_##plain(path, flags, 0); \
		return with_weights(fd, path, flags);                                                                    \
	}
OPEN_2(__open_2, open)
OPEN_2(__open64_2, open64)

#define OPENAT_2(name, plain)                                                                   \
	int name(int dirfd, const char *path, int flags);                                           \
	TN_ENTRY int name(int dirfd, const char *path, int flags)                                   \
	{                                                                                           \
		if (passes(flags) || takes_mode(flags)) /* libc ends a program that forgets the mode */ \
			return with_weights(TN_NEXT(name)(dirfd, path, flags), path, flags);                \
		return with_weights(slow_##plain(dirfd, path, flags, 0), path, flags);                  \
	}
OPENAT_2(__openat_2, openat)
OPENAT_2(__openat64_2, openat64)

/* ---- stdio ---- */

/* An unknown mode is libc's to refuse. */
static bool
is_known_mode(const char *mode)
{
	return mode[0] == 'r' || mode[0] == 'w' || mode[0] == 'a';
}

/* The open flags of a stdio mode. */
static int
flags_of_mode(const char *mode)
{
	bool both = strchr(mode, '+') != NULL;
	int flags = both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;

	if (mode[0] == 'w')
		flags |= O_CREAT | O_TRUNC;
	else if (mode[0] == 'a')
		flags |= O_CREAT;
	if (strchr(mode, 'x'))
		flags |= O_EXCL;
	return flags;
}

/* fopen for a change, of what was mapped. libc's fdopen appends, and goes to the end, as its fopen does. */
static TN_SLOW FILE *
open_stream(const struct tn__target *target, const char *mode, int flags)
{
	FILE *file;
	int error, fd = open_to_change(target, flags | (strchr(mode, 'e') ? O_CLOEXEC : 0), 0666);

	if (fd < 0)
		return NULL;
	file = fdopen(fd, mode);
	if (!file) {
		error = errno;
		(void)TN_CALL(SYS_close, fd);
		errno = error;
	}
	return file;
}

/* Modes whose rest fdopen does not know: a character set, and no cancellation. */
static bool
is_plain_mode(const char *mode)
{
	return !strchr(mode, 'c') && strlen(mode) <= 5;
}

#define FOPEN(name)                                                                          \
	static TN_SLOW FILE *slow_##name(const char *path, const char *mode, int flags)          \
	{                                                                                        \
		struct tn__target target;                                                            \
		if (map(AT_FDCWD, path, flags, &target))                                             \
			return NULL;                                                                     \
		if (is_ours(flags) && is_plain_mode(mode))                                           \
			return open_stream(&target, mode, flags);                                        \
		return TN_NEXT(name)(target.path, mode);                                             \
	}                                                                                        \
	TN_ENTRY FILE *name(const char *path, const char *mode)                                  \
	{                                                                                        \
		int flags = flags_of_mode(mode);                                                     \
		FILE *file = passes(flags) || !is_known_mode(mode) ? TN_NEXT(name)(path, mode)       \
		                                                   : slow_##name(path, mode, flags); \
		if (file)                                                                            \
			(void)with_weights(fileno(file), path, flags);                                   \
		return file;                                                                         \
	}
FOPEN(fopen)
FOPEN(fopen64)

/* A NULL path reopens the stream's own file, which may be a lower one, with other rights. */
static TN_SLOW int
map_reopen(const char *path, FILE *stream, int flags, struct tn__target *target)
{
	struct tn__place place;

	if (path || !may_change(flags) || tn__mode() != TN__ACTIVE)
		return map(AT_FDCWD, path, flags, target);
	target->path = NULL;
	tn__resolve_descriptor(fileno(stream), &place);
	if (place.error || place.pass || !place.lower)
		return 0;
	return map(AT_FDCWD, place.path, flags, target);
}

#define FREOPEN(name)                                                     \
	TN_ENTRY FILE *name(const char *path, const char *mode, FILE *stream) \
	{                                                                     \
		int flags = flags_of_mode(mode);                                  \
		if (passes(flags))                                                \
			return TN_NEXT(name)(path, mode, stream);                     \
		struct tn__target target;                                         \
		if (map_reopen(path, stream, flags, &target)) {                   \
			int error = errno;                                            \
			fclose(stream); /* as libc does when it fails */              \
			errno = error;                                                \
			return NULL;                                                  \
		}                                                                 \
		return TN_NEXT(name)(target.path, mode, stream);                  \
	}
FREOPEN(freopen)
FREOPEN(freopen64)

/* ---- temporary files: libc makes the names and opens them inside, so it is done here ---- */

#define ATTEMPTS 10000
#define FOLDER (-1) /* instead of open flags */

static bool
fill_in(char *at)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	unsigned char random[6];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return false;
	for (int i = 0; i < 6; i++)
		at[i] = letters[random[i] % (sizeof(letters) - 1)];
	return true;
}

static TN_SLOW int
make_temporary(char *template, int suffix, int flags)
{
	size_t length = strlen(template);
	char *at = template + length - (size_t)suffix - 6;
	int result, error = errno;

	if (suffix < 0 || length < (size_t)suffix + 6 || memcmp(at, "XXXXXX", 6)) {
		errno = EINVAL;
		return -1;
	}
	for (int attempt = 0; attempt < ATTEMPTS && fill_in(at); attempt++) {
		if (flags == FOLDER)
			result = mkdir(template, 0700);
		else
			result = open(template, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600);
		if (result >= 0)
			errno = error;
		if (result >= 0 || errno != EEXIST)
			return result;
	}
	return -1;
}

#define MKSTEMP(name, parameters, suffix, flags)        \
	TN_ENTRY int name parameters                        \
	{                                                   \
		return make_temporary(template, suffix, flags); \
	}
MKSTEMP(mkstemp, (char *template), 0, 0)
MKSTEMP(mkstemp64, (char *template), 0, 0)
MKSTEMP(mkostemp, (char *template, int flags), 0, flags)
MKSTEMP(mkostemp64, (char *template, int flags), 0, flags)
MKSTEMP(mkstemps, (char *template, int suffix), suffix, 0)
MKSTEMP(mkstemps64, (char *template, int suffix), suffix, 0)
MKSTEMP(mkostemps, (char *template, int suffix, int flags), suffix, flags)
MKSTEMP(mkostemps64, (char *template, int suffix, int flags), suffix, flags)

TN_ENTRY char *
mkdtemp(char *template)
{
	return make_temporary(template, 0, FOLDER) < 0 ? NULL : template;
}

/* libc's goes to /tmp, whatever TMPDIR says. */
static TN_SLOW FILE *
open_nameless(void)
{
	char name[PATH_MAX + 32];
	FILE *file;
	int fd, error;

	snprintf(name, sizeof(name), "%s/state/tmpfile-XXXXXX", tn__overlay_library.run);
	fd = make_temporary(name, 0, 0);
	if (fd < 0)
		return NULL;
	(void)TN_PASS_CALL(SYS_unlinkat, AT_FDCWD, name, 0, 0L, 0L);
	file = fdopen(fd, "w+");
	if (!file) {
		error = errno;
		close(fd);
		errno = error;
	}
	return file;
}

#define TMPFILE(name)                                                        \
	TN_ENTRY FILE *name(void)                                                \
	{                                                                        \
		return tn__mode() == TN__ACTIVE ? open_nameless() : TN_NEXT(name)(); \
	}
TMPFILE(tmpfile)
TMPFILE(tmpfile64)
