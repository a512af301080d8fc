/* SPDX-License-Identifier: Apache-2.0
 *
 * Making and removing run folders.
 *
 * A folder becomes an orphan the moment its lock is free, so the lock file gets its name only after it is locked. One
 * that has nothing but, at most, the lock's first name is an orphan too, of a process that was killed between: it may be
 * taken from a living one, which then makes another.
 */
#include "supervise/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "preload/index.h"

#define MOST_TRIES 8
#define SHARED_FOLDER "/dev/shm"

static const char *
temporary_folder(void)
{
	const char *named = getenv("TMPDIR");
	struct stat about;
	if (named != NULL && named[0] == '/' && stat(named, &about) == 0 && S_ISDIR(about.st_mode) &&
	    access(named, W_OK) == 0)
		return named;
	return "/tmp";
}

static const char *
in_folder(const char *folder, const char *name, char buffer[PATH_MAX])
{
	if (snprintf(buffer, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
		buffer[PATH_MAX - 1] = '\0';
	return buffer;
}

const char *
tn__folder_path(const struct tn_folder *folder, const char *name, char buffer[PATH_MAX])
{
	return in_folder(folder->path, name, buffer);
}

static tn_status
take_lock(struct tn_folder *folder)
{
	char early[PATH_MAX], final[PATH_MAX];
	tn__folder_path(folder, "lock.new", early);
	tn__folder_path(folder, "lock", final);
	folder->lock = open(early, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	TN_RETURN_IF(folder->lock < 0 || flock(folder->lock, LOCK_EX | LOCK_NB) != 0 || rename(early, final) != 0, TN_IO,
	             "the run folder %s cannot be locked: %s", folder->path, strerror(errno));
	return TN_OK;
}

/* A folder with its lock and nothing else. */
static tn_status
make_locked(struct tn_folder *folder)
{
	int length = snprintf(folder->path, sizeof(folder->path), "%s/tonnage-%u-XXXXXX", temporary_folder(),
	                      (unsigned)getuid());
	TN_RETURN_IF(length >= PATH_MAX - 256, TN_IO, "the name of the temporary folder is too long");
	TN_RETURN_IF(mkdtemp(folder->path) == NULL, TN_IO, "no run folder can be made in %s: %s", temporary_folder(),
	             strerror(errno));
	tn_status status = take_lock(folder);
	if (status != TN_OK)
		tn__folder_remove(folder, false);
	return status;
}

/* The write overlay's index, with all its blocks: a full disk or a limit on the size of files is said here, before anything
 * is started, and never ends a program by a signal. */
static tn_status
make_index(const struct tn_folder *folder)
{
	char path[PATH_MAX];
	int file = open(tn__folder_path(folder, "state/index", path), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	TN_RETURN_IF(file < 0, TN_IO, "%s cannot be made: %s", path, strerror(errno));
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	sigaction(SIGXFSZ, &ignore, &before);
	int error = posix_fallocate(file, 0, (off_t)TN__INDEX_BYTES);
	struct tn__index_head head = { .magic = TN__INDEX_MAGIC };
	if (error == 0 && (getrandom(&head.pass, sizeof(head.pass), 0) != (ssize_t)sizeof(head.pass) ||
	                   pwrite(file, &head, sizeof(head), 0) != (ssize_t)sizeof(head)))
		error = errno;
	sigaction(SIGXFSZ, &before, NULL);
	close(file);
	TN_RETURN_IF(error == EFBIG, TN_IO,
	             "the limit on the size of files (ulimit -f) is too small: a run needs files of %zu MiB",
	             (TN__INDEX_BYTES >> 20) + 1);
	TN_RETURN_IF(
		error == ENOSPC || error == EDQUOT, TN_IO,
		"the disk of the temporary folder %s is full: a run needs %zu MiB there, and what the program writes; set "
		"TMPDIR to another folder, or free some with tonnage clean",
		temporary_folder(), (TN__INDEX_BYTES >> 20) + 1);
	TN_RETURN_IF(error != 0, TN_IO, "%s cannot be made: %s", path, strerror(error));
	return TN_OK;
}

/* Programs make sockets below their temporary folder, whose whole names take 107 bytes (unix(7)); Ray adds 68 of them. */
#define LONGEST_TEMPORARY 38

/* The run's own part of /dev/shm; <run>/shm leads there, and back from there `run` leads here and `tmp` to the
 * program's temporary folder. Without it what is shared
 * lies in the scratch folder. */
static void
make_shared(const struct tn_folder *folder)
{
	char shared[PATH_MAX], link[PATH_MAX];
	const char *name = strrchr(folder->path, '/') + 1;
	if (snprintf(shared, sizeof(shared), "%s/%s", SHARED_FOLDER, name) >= (int)sizeof(shared) ||
	    mkdir(shared, 0700) != 0)
		return;
	static const char *const parts[] = { "files", "state" };
	bool good = true;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		good = good && snprintf(link, sizeof(link), "%s/%s", shared, parts[i]) < (int)sizeof(link) &&
		       mkdir(link, i == 0 ? 01777 : 0700) == 0;
	good = good && snprintf(link, sizeof(link), "%s/run", shared) < (int)sizeof(link) &&
	       symlink(folder->path, link) == 0;
	char temporary[PATH_MAX];
	good = good && snprintf(link, sizeof(link), "%s/tmp", shared) < (int)sizeof(link) &&
	       symlink(tn__folder_path(folder, "scratch/tmp", temporary), link) == 0;
	if (!good || symlink(shared, tn__folder_path(folder, "shm", link)) != 0)
		tn__folder_remove_tree(shared);
}

const char *
tn__folder_temporary(const struct tn_folder *folder, char buffer[PATH_MAX])
{
	char link[PATH_MAX];
	tn__folder_path(folder, "scratch/tmp", buffer);
	if (strlen(buffer) <= LONGEST_TEMPORARY)
		return buffer;
	ssize_t length = readlink(tn__folder_path(folder, "shm", link), buffer, PATH_MAX - 5);
	if (length <= 0)
		return tn__folder_path(folder, "scratch/tmp", buffer);
	strcpy(buffer + length, "/tmp");
	return buffer;
}

/* What belongs to a run folder outside of it. */
static void
remove_shared(const struct tn_folder *folder)
{
	char link[PATH_MAX], shared[PATH_MAX];
	ssize_t length = readlink(tn__folder_path(folder, "shm", link), shared, sizeof(shared) - 1);
	if (length <= 0)
		return;
	shared[length] = '\0';
	if (strncmp(shared, SHARED_FOLDER "/tonnage-", sizeof(SHARED_FOLDER "/tonnage-") - 1) == 0 &&
	    strstr(shared, "/..") == NULL)
		tn__folder_remove_tree(shared);
}

static tn_status
make_parts(const struct tn_folder *folder)
{
	static const char *const parts[] = { "guest", "kernels", "scratch", "scratch/files", "scratch/tmp", "state" };
	char path[PATH_MAX];
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		TN_RETURN_IF(mkdir(tn__folder_path(folder, parts[i], path), 0700) != 0, TN_IO, "%s cannot be made: %s", path,
		             strerror(errno));
	TN_FORWARD_IF_ERROR(make_index(folder));
	make_shared(folder);
	return TN_OK;
}

tn_status
tn__folder_create(struct tn_folder *out)
{
	struct tn_folder folder = { .lock = -1 };
	tn_status status = make_locked(&folder);
	for (int tries = 1; status != TN_OK && tries < MOST_TRIES; tries++)
		status = make_locked(&folder); /* another start may have taken the folder for an orphan before it had a lock */
	TN_FORWARD_IF_ERROR(status);
	status = make_parts(&folder);
	if (status != TN_OK) {
		tn__folder_remove(&folder, false);
		return status;
	}
	*out = folder;
	return TN_OK;
}

/* ---- removing ---- */

static void remove_entries(int folder, int depth);

static void
remove_entry(int folder, const char *name, int depth)
{
	if (unlinkat(folder, name, 0) == 0 || (errno != EISDIR && errno != EPERM && errno != EACCES))
		return;
	int below = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0 && errno == EACCES && fchmodat(folder, name, 0700, 0) == 0)
		below = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0)
		return;
	remove_entries(below, depth + 1);
	unlinkat(folder, name, AT_REMOVEDIR);
}

/* Closes the descriptor. The depth is bounded, since each level holds one. */
static void
remove_entries(int folder, int depth)
{
	fchmod(folder, 0700);
	DIR *listing = depth < 512 ? fdopendir(folder) : NULL;
	const struct dirent *item;
	if (listing == NULL) {
		close(folder);
		return;
	}
	while ((item = readdir(listing)) != NULL)
		if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
			remove_entry(folder, item->d_name, depth);
	closedir(listing);
}

void
tn__folder_remove_tree(const char *path)
{
	remove_entry(AT_FDCWD, path, 0);
}

/* True when anything but folders lies below. */
static bool
holds_files(const char *path)
{
	char below[PATH_MAX];
	struct stat about;
	const struct dirent *item;
	bool found = false;
	DIR *listing = opendir(path);
	if (listing == NULL)
		return false;
	while (!found && (item = readdir(listing)) != NULL) {
		if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0 ||
		    snprintf(below, sizeof(below), "%s/%s", path, item->d_name) >= PATH_MAX || lstat(below, &about) != 0)
			continue;
		found = S_ISDIR(about.st_mode) ? holds_files(below) : true;
	}
	closedir(listing);
	return found;
}

tn_status
tn__folder_limit(const struct tn_folder *folder, uint64_t bytes)
{
	char path[PATH_MAX];
	int file = open(tn__folder_path(folder, "state/index", path), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t written = file < 0 ? -1 : pwrite(file, &bytes, sizeof(bytes), offsetof(struct tn__index_head, limit));
	if (file >= 0)
		close(file);
	TN_RETURN_IF(written != (ssize_t)sizeof(bytes), TN_IO, "%s cannot be written: %s", path, strerror(errno));
	return TN_OK;
}

void
tn__folder_size(const char *path, int64_t *bytes, int64_t *disk_bytes)
{
	char below[PATH_MAX];
	struct stat about;
	const struct dirent *item;
	DIR *listing = opendir(path);
	while (listing != NULL && (item = readdir(listing)) != NULL) {
		if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0 ||
		    snprintf(below, sizeof(below), "%s/%s", path, item->d_name) >= PATH_MAX || lstat(below, &about) != 0)
			continue;
		*disk_bytes += (int64_t)about.st_blocks * 512;
		if (S_ISREG(about.st_mode))
			*bytes += about.st_size;
		if (S_ISDIR(about.st_mode))
			tn__folder_size(below, bytes, disk_bytes);
	}
	if (listing != NULL)
		closedir(listing);
}

bool
tn__folder_owns(const struct tn_folder *folder, const char *path)
{
	size_t length = strlen(folder->path);
	return strncmp(path, folder->path, length) == 0 && path[length] == '/' && strstr(path, "/../") == NULL &&
	       access(path, R_OK) == 0;
}

bool
tn__folder_has_files(const struct tn_folder *folder)
{
	char path[PATH_MAX];
	return holds_files(tn__folder_path(folder, "scratch/files", path));
}

/* Removes everything directly in a folder but the entry `kept`. */
static void
remove_all_but(const char *path, const char *kept)
{
	char below[PATH_MAX];
	const struct dirent *item;
	DIR *listing = opendir(path);
	if (listing == NULL)
		return;
	while ((item = readdir(listing)) != NULL)
		if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0 && strcmp(item->d_name, kept) != 0 &&
		    snprintf(below, sizeof(below), "%s/%s", path, item->d_name) < PATH_MAX)
			tn__folder_remove_tree(below);
	closedir(listing);
}

void
tn__folder_remove(struct tn_folder *folder, bool keep_files)
{
	char path[PATH_MAX];
	remove_shared(folder);
	if (keep_files) {
		remove_all_but(tn__folder_path(folder, "scratch", path), "files");
		remove_all_but(folder->path, "scratch"); /* the lock, too: without it the folder is nobody's orphan */
	} else {
		tn__folder_remove_tree(folder->path);
	}
	if (folder->lock >= 0)
		close(folder->lock);
	folder->lock = -1;
}

/* True when the folder's lock is there and free; it is then held by the returned descriptor. */
static bool
take_orphan(const char *path, int *lock)
{
	char name[PATH_MAX];
	struct stat about;
	if (lstat(path, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != getuid() ||
	    snprintf(name, sizeof(name), "%s/lock", path) >= PATH_MAX)
		return false;
	*lock = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (*lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) == 0)
		return true;
	if (*lock >= 0)
		close(*lock);
	return false;
}

/* Removes a folder that never came to its lock; one that holds anything else stays. */
static bool
remove_unborn(const char *path)
{
	char name[PATH_MAX];
	if (snprintf(name, sizeof(name), "%s/lock.new", path) >= PATH_MAX)
		return false;
	int lock = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
		unlink(name);
	if (lock >= 0)
		close(lock);
	return rmdir(path) == 0;
}

/* The run folder that a part of /dev/shm belongs to has ended, or is not there any more. */
static bool
is_shared_orphan(const char *shared)
{
	char link[PATH_MAX], run[PATH_MAX];
	struct stat about;
	int lock = -1;
	if (lstat(shared, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != getuid() ||
	    snprintf(link, sizeof(link), "%s/run", shared) >= (int)sizeof(link))
		return false;
	ssize_t length = readlink(link, run, sizeof(run) - 1);
	if (length <= 0)
		return false; /* it may be in the making */
	run[length] = '\0';
	if (take_orphan(run, &lock)) {
		close(lock);
		return true;
	}
	return lstat(in_folder(run, "lock", link), &about) != 0 && errno == ENOENT &&
	       lstat(in_folder(run, "lock.new", link), &about) != 0;
}

static void
remove_shared_orphans(const char *beginning)
{
	char path[PATH_MAX];
	const struct dirent *item;
	DIR *listing = opendir(SHARED_FOLDER);
	while (listing != NULL && (item = readdir(listing)) != NULL)
		if (strncmp(item->d_name, beginning, strlen(beginning)) == 0 &&
		    snprintf(path, sizeof(path), SHARED_FOLDER "/%s", item->d_name) < (int)sizeof(path) &&
		    is_shared_orphan(path))
			tn__folder_remove_tree(path);
	if (listing != NULL)
		closedir(listing);
}

int
tn__folder_remove_orphans(void)
{
	char beginning[64], path[PATH_MAX];
	int removed = 0, lock;
	const struct dirent *item;
	DIR *listing = opendir(temporary_folder());
	if (listing == NULL)
		return 0;
	snprintf(beginning, sizeof(beginning), "tonnage-%u-", (unsigned)getuid());
	while ((item = readdir(listing)) != NULL) {
		if (strncmp(item->d_name, beginning, strlen(beginning)) != 0 ||
		    snprintf(path, sizeof(path), "%s/%s", temporary_folder(), item->d_name) >= PATH_MAX)
			continue;
		if (take_orphan(path, &lock)) {
			struct tn_folder orphan = { .lock = lock };
			strcpy(orphan.path, path);
			tn__folder_remove(&orphan, false);
			removed++;
		} else {
			removed += remove_unborn(path);
		}
	}
	closedir(listing);
	remove_shared_orphans(beginning);
	return removed;
}

/* ---- looking ---- */

static enum tn_left
kind_of(const char *path)
{
	char name[PATH_MAX];
	struct stat about;
	int lock;
	if (lstat(path, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != getuid())
		return TN_LEFT_NONE;
	if (take_orphan(path, &lock)) {
		close(lock);
		return TN_LEFT_ORPHAN;
	}
	if (lstat(in_folder(path, "lock", name), &about) == 0)
		return TN_LEFT_RUNNING;
	return lstat(in_folder(path, "lock.new", name), &about) != 0 && lstat(in_folder(path, "scratch", name), &about) == 0
	           ? TN_LEFT_SCRATCH
	           : TN_LEFT_NONE;
}

tn_status
tn__folder_each(void (*each)(void *context, const char *path, enum tn_left kind), void *context)
{
	char beginning[64], path[PATH_MAX];
	const struct dirent *item;
	DIR *listing = opendir(temporary_folder());
	TN_RETURN_IF(listing == NULL, TN_IO, "%s cannot be read: %s", temporary_folder(), strerror(errno));
	snprintf(beginning, sizeof(beginning), "tonnage-%u-", (unsigned)getuid());
	while ((item = readdir(listing)) != NULL) {
		if (strncmp(item->d_name, beginning, strlen(beginning)) != 0 ||
		    snprintf(path, sizeof(path), "%s/%s", temporary_folder(), item->d_name) >= (int)sizeof(path))
			continue;
		enum tn_left kind = kind_of(path);
		if (kind != TN_LEFT_NONE)
			each(context, path, kind);
	}
	closedir(listing);
	listing = opendir(SHARED_FOLDER);
	while (listing != NULL && (item = readdir(listing)) != NULL)
		if (strncmp(item->d_name, beginning, strlen(beginning)) == 0 &&
		    snprintf(path, sizeof(path), SHARED_FOLDER "/%s", item->d_name) < (int)sizeof(path) &&
		    is_shared_orphan(path))
			each(context, path, TN_LEFT_ORPHAN);
	if (listing != NULL)
		closedir(listing);
	return TN_OK;
}
