/* SPDX-License-Identifier: Apache-2.0
 *
 * What Inductor and Triton have compiled, kept between runs and trials (doc/design/0005-guest-hook.md, "Compiled code").
 *
 * The program is told of a folder of Tonnage's own cache, one for each Python, card, script and model of times (Inductor
 * keeps what it chose by them). It reads there as anywhere; what it writes lands in the run's scratch folder as everything
 * does, and the supervisor moves it over once the program has ended. So the overlay has no hole, the user's own caches see
 * nothing that was tuned by times that no kernel took, and runs side by side only ever see whole files.
 * Invariant: below the cache folder only regular files and folders are made, and never more than LARGEST bytes kept.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gpu/roofline.h"
#include "supervise/internal.h"

#define LARGEST (2LL << 30)
#define DEEPEST 16
#define PIECE (64 << 10)

/* ---- the key ---- */

static uint64_t
mix(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ULL;
	return hash * 1099511628211ULL; /* "ab" "c" is not "a" "bc" */
}

/* The script: the first argument that is a file, else the working folder (-m, -c). */
static void
find_script(char *const *arguments, char path[PATH_MAX])
{
	struct stat status;
	for (size_t i = 1; arguments[0] != NULL && arguments[i] != NULL; i++)
		if (stat(arguments[i], &status) == 0 && S_ISREG(status.st_mode) && realpath(arguments[i], path) != NULL)
			return;
	if (getcwd(path, PATH_MAX) == NULL)
		path[0] = '\0';
}

const char *
tn__compile_cache(const struct tn_run_options *options, char path[PATH_MAX])
{
	char script[PATH_MAX], cudnn[PATH_MAX];
	if (tn__helper_cache(cudnn) == NULL || options->arguments == NULL || options->arguments[0] == NULL)
		return NULL;
	*strrchr(cudnn, '/') = '\0';
	find_script(options->arguments, script);
	const char *parts[] = { options->arguments[0], options->gpu != NULL ? options->gpu : "", script,
		                    TN_ROOFLINE_MODEL };
	uint64_t hash = 1469598103934665603ULL;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		hash = mix(hash, parts[i]);
	int length = snprintf(path, PATH_MAX, "%s/compile/%016llx", cudnn, (unsigned long long)hash);
	return length < PATH_MAX ? path : NULL;
}

/* ---- moving ---- */

static int
open_folder(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Opens a folder, with those above it, which it makes where they are missing; -1 when that cannot be done. */
static int
make_folders(const char *path)
{
	char part[PATH_MAX];
	for (size_t i = 1; path[i] != '\0'; i++)
		if (path[i] == '/') {
			snprintf(part, sizeof(part), "%.*s", (int)i, path);
			(void)mkdir(part, 0700);
		}
	(void)mkdir(path, 0700);
	return open_folder(AT_FDCWD, path);
}

static bool
copy_bytes(int from, int to)
{
	char *piece = malloc(PIECE);
	ssize_t got = piece != NULL ? read(from, piece, PIECE) : -1;
	while (got > 0 && write(to, piece, (size_t)got) == got)
		got = read(from, piece, PIECE);
	free(piece);
	return got == 0;
}

/* By way of a name that nobody looks for, so that no reader sees half of it. */
static void
move_file(int from, int to, const char *name)
{
	struct stat status;
	char part[64];
	if (renameat(from, name, to, name) == 0 || errno != EXDEV)
		return;
	snprintf(part, sizeof(part), ".tonnage-%d", (int)getpid());
	int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int out = in >= 0 && fstat(in, &status) == 0
	              ? openat(to, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, status.st_mode & 0700)
	              : -1;
	bool good = out >= 0 && copy_bytes(in, out);
	if (in >= 0)
		close(in);
	if (out >= 0)
		good = close(out) == 0 && good;
	if (!good || renameat(to, part, to, name) != 0)
		(void)unlinkat(to, part, 0);
}

/* Moves the regular files below a folder of the run; what is left there is removed with the run. */
static void
move_below(int from, int to, int depth)
{
	DIR *listing = fdopendir(dup(from));
	struct dirent *entry;
	struct stat status;
	if (listing != NULL)
		rewinddir(listing);
	while (listing != NULL && (entry = readdir(listing)) != NULL) {
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (S_ISREG(status.st_mode)) {
			move_file(from, to, name);
		} else if (S_ISDIR(status.st_mode) && depth < DEEPEST) {
			(void)mkdirat(to, name, 0700);
			int inner = open_folder(from, name), outer = open_folder(to, name);
			if (inner >= 0 && outer >= 0)
				move_below(inner, outer, depth + 1);
			if (inner >= 0)
				close(inner);
			if (outer >= 0)
				close(outer);
		}
	}
	if (listing != NULL)
		closedir(listing);
}

/* ---- its size ---- */

struct kept {
	char name[32];
	time_t used;
	int64_t bytes;
};

static int64_t
bytes_below(int folder, int depth)
{
	DIR *listing = fdopendir(dup(folder));
	struct dirent *entry;
	struct stat status;
	int64_t bytes = 0;
	if (listing != NULL)
		rewinddir(listing); /* the duplicate shares its position */
	while (listing != NULL && (entry = readdir(listing)) != NULL) {
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		bytes += S_ISDIR(status.st_mode) ? 0 : (int64_t)status.st_blocks * 512;
		int inner = S_ISDIR(status.st_mode) && depth < DEEPEST ? open_folder(folder, name) : -1;
		if (inner >= 0) {
			bytes += bytes_below(inner, depth + 1);
			close(inner);
		}
	}
	if (listing != NULL)
		closedir(listing);
	return bytes;
}

static int
by_use(const void *a, const void *b)
{
	time_t first = ((const struct kept *)a)->used, second = ((const struct kept *)b)->used;
	return (first < second) - (first > second); /* the newest first */
}

/* Removes what was used longest ago until the rest is small enough. */
static void
keep_small(const char *all, int folder)
{
	struct kept rows[256];
	struct stat status;
	struct dirent *entry;
	char path[PATH_MAX];
	size_t count = 0;
	int64_t bytes = 0;
	DIR *listing = fdopendir(dup(folder));
	while (listing != NULL && (entry = readdir(listing)) != NULL && count < sizeof(rows) / sizeof(rows[0])) {
		int inner = strlen(entry->d_name) == 16 ? open_folder(folder, entry->d_name) : -1;
		if (inner >= 0 && fstat(inner, &status) == 0) {
			rows[count] = (struct kept){ .used = status.st_mtime, .bytes = bytes_below(inner, 0) };
			memcpy(rows[count++].name, entry->d_name, 17); /* its length is 16 */
		}
		if (inner >= 0)
			close(inner);
	}
	if (listing != NULL)
		closedir(listing);
	qsort(rows, count, sizeof(rows[0]), by_use);
	for (size_t i = 0; i < count; i++) {
		bytes += rows[i].bytes;
		if (bytes > LARGEST && snprintf(path, sizeof(path), "%s/%s", all, rows[i].name) < (int)sizeof(path))
			tn__folder_remove_tree(path);
	}
}

/* ---- after a run ---- */

/* Removes empty folders from `path` upwards, as far as `top`. */
static void
remove_empty(char *path, const char *top)
{
	while (strlen(path) > strlen(top) && rmdir(path) == 0)
		*strrchr(path, '/') = '\0';
}

void
tn__compile_cache_keep(const struct tn_run_options *options, const struct tn_folder *folder)
{
	char cache[PATH_MAX], all[PATH_MAX], files[PATH_MAX], written[PATH_MAX], lock[PATH_MAX];
	if (tn__compile_cache(options, cache) == NULL ||
	    snprintf(written, sizeof(written), "%s%s", tn__folder_path(folder, "scratch/files", files), cache) >= PATH_MAX)
		return;
	int from = open_folder(AT_FDCWD, written);
	int to = from >= 0 && bytes_below(from, 0) > 0 ? make_folders(cache) : -1; /* folders alone are no cache */
	if (from >= 0 && to >= 0) {
		snprintf(all, sizeof(all), "%s", cache);
		*strrchr(all, '/') = '\0';
		int locked = snprintf(lock, sizeof(lock), "%s/lock", all) < PATH_MAX
		                 ? open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600)
		                 : -1;
		if (locked >= 0 && flock(locked, LOCK_EX) == 0) {
			move_below(from, to, 0);
			(void)futimens(to, NULL);
			int whole = open_folder(AT_FDCWD, all);
			if (whole >= 0) {
				keep_small(all, whole);
				close(whole);
			}
		}
		if (locked >= 0)
			close(locked);
	}
	if (to >= 0)
		close(to);
	if (from >= 0) {
		close(from);
		tn__folder_remove_tree(written);
		if (options->then_count > 0 || options->after != NULL) { /* the next command's index may say that it is there */
			(void)mkdir(written, 0700);
			return;
		}
		*strrchr(written, '/') = '\0';
		remove_empty(written, files);
	}
}
