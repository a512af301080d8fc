/* SPDX-License-Identifier: Apache-2.0
 *
 * What Landlock refuses of raw calls, foretold: Landlock itself tells nobody. A call is counted when the file's permissions
 * would have allowed it and Landlock does not.
 *
 * Invariant: the caller's own call goes on in any case, and what is found here decides nothing but a count. So it does not
 * matter that the caller's memory, or the tree, may change meanwhile. Names are looked up as the kernel would for the caller,
 * by way of its root and its folders in /proc: a raw call does not see what the run has made.
 */
#include "preload/raw_counted.h"

#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

#include "preload/overlay.h"

enum change { OPEN, CUT, MAKE, REMOVE, REMOVE_FOLDER };

struct wish {
	enum change change;
	int dirfd;
	uint64_t at;    /* the name, in the caller's memory */
	uint64_t flags; /* of an open */
};

bool
tn__raw_is_counted(const struct seccomp_notif *call)
{
	enum tn__raw_call which = tn__raw_which(call);
	return which == TN__RAW_open || which == TN__RAW_openat || which == TN__RAW_openat2 || which == TN__RAW_creat ||
	       which == TN__RAW_truncate || which == TN__RAW_truncate64 || which == TN__RAW_unlink ||
	       which == TN__RAW_unlinkat || which == TN__RAW_rmdir || which == TN__RAW_mkdir || which == TN__RAW_mkdirat ||
	       which == TN__RAW_symlink || which == TN__RAW_symlinkat;
}

static bool
read_wish(const struct tn__raw_caller *caller, struct wish *wish)
{
	const __u64 *a = caller->call->data.args;
	struct open_how how = { .flags = 0 };

	switch (tn__raw_which(caller->call)) {
	case TN__RAW_open:
		*wish = (struct wish){ OPEN, AT_FDCWD, a[0], (uint32_t)a[1] };
		return true;
	case TN__RAW_openat:
		*wish = (struct wish){ OPEN, (int)a[0], a[1], (uint32_t)a[2] };
		return true;
	case TN__RAW_openat2:
		if (tn__raw_read(caller, a[2], &how.flags, sizeof(how.flags)))
			return false;
		*wish = (struct wish){ OPEN, (int)a[0], a[1], how.flags };
		return true;
	case TN__RAW_creat:
		*wish = (struct wish){ OPEN, AT_FDCWD, a[0], O_WRONLY | O_CREAT | O_TRUNC };
		return true;
	case TN__RAW_truncate:
	case TN__RAW_truncate64:
		*wish = (struct wish){ CUT, AT_FDCWD, a[0], 0 };
		return true;
	case TN__RAW_unlink:
		*wish = (struct wish){ REMOVE, AT_FDCWD, a[0], 0 };
		return true;
	case TN__RAW_unlinkat:
		*wish = (struct wish){ a[2] & AT_REMOVEDIR ? REMOVE_FOLDER : REMOVE, (int)a[0], a[1], 0 };
		return true;
	case TN__RAW_rmdir:
		*wish = (struct wish){ REMOVE_FOLDER, AT_FDCWD, a[0], 0 };
		return true;
	case TN__RAW_mkdir:
		*wish = (struct wish){ MAKE, AT_FDCWD, a[0], 0 };
		return true;
	case TN__RAW_symlink:
		*wish = (struct wish){ MAKE, AT_FDCWD, a[1], 0 };
		return true;
	case TN__RAW_mkdirat:
		*wish = (struct wish){ MAKE, (int)a[0], a[1], 0 };
		return true;
	case TN__RAW_symlinkat:
		*wish = (struct wish){ MAKE, (int)a[1], a[2], 0 };
		return true;
	default:
		return false;
	}
}

/* ---- the caller's names ---- */

/* The name by which we get to what the caller means. */
static bool
name_for_us(const struct tn__raw_caller *caller, const struct wish *wish, char *name, size_t size)
{
	char text[PATH_MAX];
	unsigned process = caller->call->pid;
	int length;

	if (tn__raw_read_text(caller, wish->at, text, sizeof(text)) || !text[0])
		return false;
	if (!strncmp(text, "/proc/self/", 11) || !strncmp(text, "/proc/thread-self/", 18))
		length = snprintf(name, size, "/proc/%u%s", process, strchr(text + 6, '/'));
	else if (text[0] == '/')
		length = snprintf(name, size, "/proc/%u/root%s", process, text);
	else if (wish->dirfd == AT_FDCWD)
		length = snprintf(name, size, "/proc/%u/cwd/%s", process, text);
	else
		length = snprintf(name, size, "/proc/%u/fd/%d/%s", process, wish->dirfd, text);
	return length > 0 && (size_t)length < size;
}

/* What an open descriptor leads to, by its name; false where it has none. */
static bool
name_of(long fd, char *path)
{
	char link[64];
	long length;

	snprintf(link, sizeof(link), "/proc/self/fd/%ld", fd);
	length = TN_CALL(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
	path[length > 0 ? length : 0] = 0;
	return path[0] == '/';
}

static bool
may(long fd, int right)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%ld", fd);
	return TN_CALL(SYS_faccessat, AT_FDCWD, link, right) == 0;
}

/* Landlock allows files that the program was handed open for writing; we were handed the same. */
static bool
was_inherited(const struct stat *about)
{
	struct stat own;

	for (int fd = 0; fd <= 2; fd++) {
		long flags = TN_CALL(SYS_fcntl, fd, F_GETFL, 0L);
		if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && TN_CALL(SYS_fstat, fd, &own) == 0 &&
		    own.st_dev == about->st_dev && own.st_ino == about->st_ino)
			return true;
	}
	return false;
}

/* ---- what would become of them ---- */

/* May the caller make and remove names in the folder of `name`? The name is cut. */
static bool
changes_folder(char *name, char *path)
{
	size_t length = strlen(name);
	const char *last;
	long folder;
	bool result;

	while (length > 1 && name[length - 1] == '/')
		name[--length] = 0;
	last = strrchr(name, '/') + 1;
	if (!strcmp(last, ".") || !strcmp(last, ".."))
		return false;
	name[last - name - 1] = 0;
	folder = TN_CALL(SYS_openat, AT_FDCWD, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0L);
	if (folder < 0)
		return false;
	result = name_of(folder, path) && may(folder, W_OK | X_OK);
	(void)TN_CALL(SYS_close, folder);
	length = strlen(path);
	if (length + strlen(last) + 2 > PATH_MAX)
		return false;
	path[length] = '/';
	strcpy(path + length + 1, last);
	return result;
}

static bool
changes_file(long fd, const struct stat *about, const struct wish *wish)
{
	bool writes = (wish->flags & O_ACCMODE) != O_RDONLY || (wish->flags & O_TRUNC);

	if (about->st_nlink == 0 || was_inherited(about))
		return false;
	if (S_ISDIR(about->st_mode)) /* a file without a name */
		return wish->change == OPEN && (wish->flags & O_TMPFILE) == O_TMPFILE && may(fd, W_OK | X_OK);
	if (wish->change == OPEN && (!writes || ((wish->flags & O_CREAT) && (wish->flags & O_EXCL))))
		return false;
	return (S_ISREG(about->st_mode) ||
	        (wish->change == OPEN && (S_ISFIFO(about->st_mode) || S_ISBLK(about->st_mode)))) &&
	       may(fd, W_OK);
}

/* What of the wish is about something that is there. */
static bool
changes_what_is_there(long fd, const struct wish *wish, char *name, char *path)
{
	struct stat about;

	if (TN_CALL(SYS_fstat, fd, &about))
		return false;
	switch (wish->change) {
	case OPEN:
	case CUT:
		return name_of(fd, path) && changes_file(fd, &about, wish);
	case REMOVE:
	case REMOVE_FOLDER:
		return (bool)S_ISDIR(about.st_mode) == (wish->change == REMOVE_FOLDER) && changes_folder(name, path);
	default:
		return false;
	}
}

static bool
follows(const struct wish *wish)
{
	if (wish->change == OPEN)
		return !(wish->flags & O_NOFOLLOW) && (wish->flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
	return wish->change == CUT;
}

bool
tn__raw_would_change(const struct tn__raw_caller *caller, char *path)
{
	char name[TN__NAME];
	struct wish wish;
	bool result;
	long fd;

	path[0] = 0;
	if (caller->memory < 0 || !read_wish(caller, &wish) || (wish.flags & O_PATH) ||
	    !name_for_us(caller, &wish, name, sizeof(name)))
		return false;
	fd = TN_CALL(SYS_openat, AT_FDCWD, name, O_PATH | O_CLOEXEC | (follows(&wish) ? 0 : O_NOFOLLOW), 0L);
	if (fd >= 0) {
		result = changes_what_is_there(fd, &wish, name, path);
		(void)TN_CALL(SYS_close, fd);
	} else {
		result = fd == -ENOENT && (wish.change == MAKE || (wish.change == OPEN && (wish.flags & O_CREAT))) &&
		         changes_folder(name, path);
	}
	return result && !tn__passes(path) && tn__raw_still_waits(caller);
}
