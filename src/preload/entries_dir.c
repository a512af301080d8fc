/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading folders: opendir and its family over the merged tree.
 *
 * A DIR of a merged folder is libc's own DIR of the lower folder, so that its descriptor works everywhere; a table
 * here holds the merged listing that readdir gives instead, made when it is opened or rewound. Invariant: a DIR is in
 * the table only between opendir and closedir; each slot belongs to the thread that uses that DIR, as POSIX demands,
 * so slots need no lock.
 */
#include "preload/overlay.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPEN 512 /* merged folders that a process has open at a time */

struct merged {
	_Atomic(DIR *) dir;
	struct tn__listing listing;
	size_t next;
};

static struct merged table[MAX_OPEN];
static _Atomic int open_count;

static TN_SLOW struct merged *
search(DIR *dir)
{
	for (int i = 0; i < MAX_OPEN; i++)
		if (atomic_load_explicit(&table[i].dir, memory_order_acquire) == dir)
			return &table[i];
	return NULL;
}

static struct merged *
find(DIR *dir)
{
	return atomic_load_explicit(&open_count, memory_order_relaxed) ? search(dir) : NULL;
}

static struct merged *
claim(DIR *dir)
{
	for (int i = 0; i < MAX_OPEN; i++) {
		DIR *nobody = NULL;
		if (atomic_compare_exchange_strong(&table[i].dir, &nobody, dir)) {
			atomic_fetch_add(&open_count, 1);
			return &table[i];
		}
	}
	return NULL;
}

static void
release(struct merged *merged)
{
	tn__listing_free(&merged->listing);
	merged->next = 0;
	atomic_fetch_sub(&open_count, 1);
	atomic_store_explicit(&merged->dir, NULL, memory_order_release);
}

/* Gives a DIR of a merged folder its listing. */
static int
attach(DIR *dir, const struct tn__place *place)
{
	struct merged *merged;

	if (place->error || place->pass || !tn__is_merged(place))
		return 0;
	merged = claim(dir);
	if (!merged)
		return -EMFILE;
	int result = tn__list(place, &merged->listing);
	if (result)
		release(merged);
	return result;
}

static DIR *
attach_or_close(DIR *dir, const struct tn__place *place)
{
	int result = dir ? attach(dir, place) : 0;

	if (result) {
		TN_NEXT(closedir)(dir);
		errno = -result;
		return NULL;
	}
	return dir;
}

static TN_SLOW DIR *
slow_opendir(const char *path)
{
	struct tn__target target;
	struct tn__place place;

	tn__map_read(AT_FDCWD, path, TN__FOLLOW, &target);
	if (tn__mode() != TN__ACTIVE || !*path)
		return TN_NEXT(opendir)(path);
	tn__resolve(AT_FDCWD, path, TN__FOLLOW, &place);
	return attach_or_close(TN_NEXT(opendir)(target.path), &place);
}

TN_ENTRY DIR *
opendir(const char *path)
{
	return tn__quiet() ? TN_NEXT(opendir)(path) : slow_opendir(path);
}

static TN_SLOW DIR *
slow_fdopendir(int fd)
{
	struct tn__place place;

	if (tn__mode() != TN__ACTIVE)
		return TN_NEXT(fdopendir)(fd);
	tn__resolve_descriptor(fd, &place);
	return attach_or_close(TN_NEXT(fdopendir)(fd), &place);
}

TN_ENTRY DIR *
fdopendir(int fd)
{
	return tn__quiet() ? TN_NEXT(fdopendir)(fd) : slow_fdopendir(fd);
}

TN_ENTRY int
closedir(DIR *dir)
{
	struct merged *merged = find(dir);

	if (merged)
		release(merged);
	return TN_NEXT(closedir)(dir);
}

/* The next record, or NULL at the end. On our machines struct dirent64 is struct dirent. */
static void *
next_record(struct merged *merged)
{
	if (merged->next >= merged->listing.count)
		return NULL;
	return merged->listing.bytes + merged->listing.at[merged->next++];
}

#define READDIR(name, type)                                       \
	TN_ENTRY struct type *name(DIR *dir)                          \
	{                                                             \
		struct merged *merged = find(dir);                        \
		return merged ? next_record(merged) : TN_NEXT(name)(dir); \
	}
READDIR(readdir, dirent)
READDIR(readdir64, dirent64)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* programs still call it */
#define READDIR_R(name, type)                                                                        \
	TN_ENTRY int name(DIR *restrict dir, struct type *restrict entry, struct type **restrict result) \
	{                                                                                                \
		struct merged *merged = find(dir);                                                           \
		struct type *record;                                                                         \
		if (!merged)                                                                                 \
			return TN_NEXT(name)(dir, entry, result);                                                \
		record = next_record(merged);                                                                \
		if (record)                                                                                  \
			memcpy(entry, record, record->d_reclen);                                                 \
		*result = record ? entry : NULL;                                                             \
		return 0;                                                                                    \
	}
READDIR_R(readdir_r, dirent)
READDIR_R(readdir64_r, dirent64)
#pragma GCC diagnostic pop

TN_ENTRY void
rewinddir(DIR *dir)
{
	struct merged *merged = find(dir);
	struct tn__place place;

	TN_NEXT(rewinddir)(dir);
	if (tn__quiet() || tn__mode() != TN__ACTIVE)
		return;
	if (merged)
		release(merged);
	tn__resolve_descriptor(dirfd(dir), &place);
	(void)attach(dir, &place);
}

TN_ENTRY long
telldir(DIR *dir)
{
	struct merged *merged = find(dir);
	return merged ? (long)merged->next : TN_NEXT(telldir)(dir);
}

TN_ENTRY void
seekdir(DIR *dir, long position)
{
	struct merged *merged = find(dir);

	if (merged)
		merged->next = (size_t)position;
	else
		TN_NEXT(seekdir)(dir, position);
}

/* ---- scandir and glob call libc's own readdir inside ---- */

static void
free_names(struct dirent **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

/* Adds a copy of the entry; false without memory. */
static bool
add_name(struct dirent ***names, size_t count, const struct dirent *entry)
{
	struct dirent **grown = *names, *copy;

	if ((count & (count - 1)) == 0)
		grown = realloc(*names, (count ? count * 2 : 1) * sizeof(*grown));
	if (!grown)
		return false;
	*names = grown;
	copy = malloc(entry->d_reclen);
	if (!copy)
		return false;
	grown[count] = memcpy(copy, entry, entry->d_reclen);
	return true;
}

static TN_SLOW int
slow_scandir(DIR *dir, struct dirent ***out, int (*filter)(const struct dirent *),
             int (*compare)(const struct dirent **, const struct dirent **))
{
	struct dirent **names = NULL, *entry;
	size_t count = 0;
	bool complete = true;

	if (!dir)
		return -1;
	while (complete && (entry = readdir(dir))) {
		if (filter && !filter(entry))
			continue;
		complete = add_name(&names, count, entry);
		count += complete;
	}
	closedir(dir);
	if (!complete) {
		free_names(names, count);
		errno = ENOMEM;
		return -1;
	}
	if (compare && count)
		qsort(names, count, sizeof(*names), (int (*)(const void *, const void *))(void *)compare);
	*out = names;
	return (int)count;
}

#define SCANDIR(name, type)                                                                                          \
	TN_ENTRY int name(const char *restrict path, struct type ***restrict names, int (*filter)(const struct type *),  \
	                  int (*compare)(const struct type **, const struct type **))                                    \
	{                                                                                                                \
		if (tn__quiet())                                                                                             \
			return TN_NEXT(name)(path, names, filter, compare);                                                      \
		return slow_scandir(opendir(path), (struct dirent ***)names, (int (*)(const struct dirent *))(void *)filter, \
		                    (int (*)(const struct dirent **, const struct dirent **))(void *)compare);               \
	}
SCANDIR(scandir, dirent)
SCANDIR(scandir64, dirent64)

/* glob takes other functions for reading folders. */
#define GLOB(name, type)                                                                                              \
	TN_ENTRY int name(const char *restrict pattern, int flags, int (*error)(const char *, int), type *restrict found) \
	{                                                                                                                 \
		if (tn__quiet() || (flags & GLOB_ALTDIRFUNC))                                                                 \
			return TN_NEXT(name)(pattern, flags, error, found);                                                       \
		found->gl_opendir = (void *(*)(const char *))(void *)opendir;                                                 \
		found->gl_closedir = (void (*)(void *))(void *)closedir;                                                      \
		found->gl_readdir = (__typeof__(found->gl_readdir))(void *)readdir;                                           \
		found->gl_stat = (__typeof__(found->gl_stat))(void *)stat;                                                    \
		found->gl_lstat = (__typeof__(found->gl_lstat))(void *)lstat;                                                 \
		return TN_NEXT(name)(pattern, flags | GLOB_ALTDIRFUNC, error, found);                                         \
	}
GLOB(glob, glob_t)
GLOB(glob64, glob64_t)
