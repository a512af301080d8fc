/* SPDX-License-Identifier: Apache-2.0
 *
 * A run that begins with what another one left in its scratch folder (doc/design/0035-then.md): a copy, so that the same may be
 * had again. Holes stay holes, and files are cloned where the file system can.
 *
 * Files with several names become as many files; sockets and pipes, which somebody would have to serve, are left out. The depth
 * is bounded, since each level holds two descriptors.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/error.h"
#include "preload/index.h"
#include "supervise/folder.h"

#define DEEPEST 256
#define CHUNK (1 << 20)
#define LONGEST_LIST 4096 /* of the names of attributes */

static bool copy_entries(int from, int to, int depth);

/* ---- one file ---- */

static bool
copy_bytes(int in, int out, off_t from, off_t until)
{
	char buffer[1 << 16];
	while (from < until) {
		off_t at = from, there = from;
		size_t wanted = until - from < CHUNK ? (size_t)(until - from) : CHUNK;
		ssize_t got = copy_file_range(in, &at, out, &there, wanted, 0);
		if (got <= 0) {
			got = pread(in, buffer, wanted < sizeof(buffer) ? wanted : sizeof(buffer), from);
			if (got <= 0 || pwrite(out, buffer, (size_t)got, from) != got)
				return false;
		}
		from += got;
	}
	return true;
}

static bool
copy_content(int in, int out, off_t length)
{
	if (ioctl(out, FICLONE, in) == 0)
		return true;
	for (off_t at = 0; at < length;) {
		off_t data = lseek(in, at, SEEK_DATA);
		if (data < 0)
			break; /* a hole up to the end */
		off_t hole = lseek(in, data, SEEK_HOLE);
		hole = hole < 0 || hole > length ? length : hole;
		if (!copy_bytes(in, out, data, hole))
			return false;
		at = hole;
	}
	return ftruncate(out, length) == 0;
}

/* Extended attributes, as far as this process may set them. */
static void
copy_attributes(int in, int out)
{
	char names[LONGEST_LIST], value[LONGEST_LIST];
	ssize_t length = flistxattr(in, names, sizeof(names));
	for (const char *name = names; length > 0 && name < names + length; name += strlen(name) + 1) {
		ssize_t size = fgetxattr(in, name, value, sizeof(value));
		if (size >= 0)
			(void)fsetxattr(out, name, value, (size_t)size, 0);
	}
}

/* Owner, mode and times, last: an owner that is changed takes bits of the mode with it. */
static void
copy_facts(int in, int out, const struct stat *about)
{
	const struct timespec times[2] = { about->st_atim, about->st_mtim };
	copy_attributes(in, out);
	(void)(fchown(out, about->st_uid, about->st_gid) == 0); /* without privileges files are of who writes them */
	(void)fchmod(out, about->st_mode & 07777);
	(void)futimens(out, times);
}

/* Closes both, of which each may be -1; `good`, which it returns: the content is there. */
static bool
finish_copy(int in, int out, const struct stat *about, bool good)
{
	if (good)
		copy_facts(in, out, about);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return good;
}

static bool
copy_file(int from, int to, const char *name, const struct stat *about)
{
	int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (in < 0 && errno == EACCES && fchmodat(from, name, 0600, 0) == 0) {
		in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		(void)fchmodat(from, name, about->st_mode & 07777, 0);
	}
	int out = in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return finish_copy(in, out, about, out >= 0 && copy_content(in, out, about->st_size));
}

/* ---- folders and links ---- */

static bool
copy_link(int from, int to, const char *name, const struct stat *about)
{
	char target[PATH_MAX];
	const struct timespec times[2] = { about->st_atim, about->st_mtim };
	ssize_t length = readlinkat(from, name, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	if (symlinkat(target, to, name) != 0)
		return false;
	(void)(fchownat(to, name, about->st_uid, about->st_gid, AT_SYMLINK_NOFOLLOW) == 0);
	(void)utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
	return true;
}

static bool
copy_folder(int from, int to, const char *name, const struct stat *about, int depth)
{
	const int way = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	int in = openat(from, name, way);
	if (in < 0 && errno == EACCES && fchmodat(from, name, 0700, 0) == 0)
		in = openat(from, name, way);
	int out = in >= 0 && mkdirat(to, name, 0700) == 0 ? openat(to, name, way) : -1;
	return finish_copy(in, out, about, out >= 0 && copy_entries(in, out, depth + 1));
}

static bool
copy_entry(int from, int to, const char *name, int depth)
{
	struct stat about;
	if (fstatat(from, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT;
	if (S_ISDIR(about.st_mode))
		return copy_folder(from, to, name, &about, depth);
	if (S_ISREG(about.st_mode))
		return copy_file(from, to, name, &about);
	return S_ISLNK(about.st_mode) ? copy_link(from, to, name, &about) : true;
}

static bool
copy_entries(int from, int to, int depth)
{
	int listed = depth < DEEPEST ? fcntl(from, F_DUPFD_CLOEXEC, 3) : -1;
	DIR *listing = listed >= 0 ? fdopendir(listed) : NULL;
	const struct dirent *item;
	bool good = listing != NULL;
	if (listing == NULL && listed >= 0)
		close(listed);
	while (good && (item = readdir(listing)) != NULL)
		if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
			good = copy_entry(from, to, item->d_name, depth);
	if (listing != NULL)
		closedir(listing);
	return good;
}

/* ---- the whole ---- */

static bool
copy_tree(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), out = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool good = in >= 0 && out >= 0 && copy_entries(in, out, 0);
	int error = errno;
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	errno = error;
	return good;
}

/* The table says which real files are replaced or hidden; the head is each run's own, but for the count of changes, which is 0
 * as long as nothing is. */
static bool
copy_index(const char *from, const char *to)
{
	struct tn__index_head old, new;
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_RDWR | O_CLOEXEC);
	bool good = in >= 0 && out >= 0 && read(in, &old, sizeof(old)) == (ssize_t)sizeof(old) &&
	            read(out, &new, sizeof(new)) == (ssize_t)sizeof(new);
	if (good) {
		new.generation = old.generation;
		new.spent = old.spent;
		new.holes = old.holes;
		good = pwrite(out, &new, sizeof(new), 0) == (ssize_t)sizeof(new) &&
		       copy_bytes(in, out, (off_t)sizeof(new), (off_t)TN__INDEX_BYTES);
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return good;
}

tn_status
tn__folder_inherit(const struct tn_folder *folder, const char *from)
{
	static const char *const trees[] = { "scratch/files", "scratch/tmp" };
	struct tn_folder before = { .lock = -1 };
	char old[PATH_MAX], new[PATH_MAX];
	TN_RETURN_IF(strlen(from) >= sizeof(before.path), TN_IO, "the name of the run folder is too long");
	strcpy(before.path, from);
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
		TN_RETURN_IF(
			!copy_tree(tn__folder_path(&before, trees[i], old), tn__folder_path(folder, trees[i], new)), TN_IO,
			"what the command before left cannot be copied for the next one (%s): set TMPDIR to a folder with room",
			strerror(errno));
	TN_RETURN_IF(!copy_index(tn__folder_path(&before, "state/index", old), tn__folder_path(folder, "state/index", new)),
	             TN_IO, "%s cannot be written: %s", new, strerror(errno));
	return TN_OK;
}
