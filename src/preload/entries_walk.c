/* SPDX-License-Identifier: Apache-2.0
 *
 * ftw and nftw: libc's read folders inside, where nobody can put the merged listing in, so that they are done here.
 *
 * Invariant: only calls that the overlay answers are used. Used once something was redirected; libc's own until then.
 */
#include "preload/overlay.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>

typedef int (*old_visitor)(const char *, const struct stat *, int);
typedef int (*new_visitor)(const char *, const struct stat *, int, struct FTW *);

struct tree_walk {
	old_visitor old; /* one of the two */
	new_visitor new;
	int flags;
	dev_t device; /* of the root: FTW_MOUNT stays on it */
	char path[PATH_MAX];
};

struct ancestor { /* the chain of folders that the walk is in, so that links cannot make it endless */
	const struct ancestor *parent;
	dev_t device;
	ino_t inode;
};

static int
tell(struct tree_walk *walk, const struct stat *st, int kind, int base, int level)
{
	struct FTW where = { .base = base, .level = level };

	if (walk->new)
		return walk->new(walk->path, st, kind, &where);
	return walk->old(walk->path, st, kind == FTW_SLN ? FTW_SL : kind);
}

static int
find_kind(struct tree_walk *walk, struct stat *st)
{
	bool links = walk->flags & FTW_PHYS;

	if ((links ? lstat(walk->path, st) : stat(walk->path, st)) == 0)
		return S_ISDIR(st->st_mode) ? FTW_D : S_ISLNK(st->st_mode) ? FTW_SL : FTW_F;
	if (!links && lstat(walk->path, st) == 0 && S_ISLNK(st->st_mode))
		return FTW_SLN;
	memset(st, 0, sizeof(*st));
	return FTW_NS;
}

static bool
is_ancestor(const struct ancestor *ancestor, const struct stat *st)
{
	for (; ancestor; ancestor = ancestor->parent)
		if (ancestor->device == st->st_dev && ancestor->inode == st->st_ino)
			return true;
	return false;
}

static int visit(struct tree_walk *walk, size_t base, int level, const struct ancestor *parent);

static int
visit_entries(struct tree_walk *walk, DIR *dir, int level, const struct ancestor *self)
{
	size_t length = strlen(walk->path);
	const struct dirent *entry;
	int result = 0;

	while (result == 0 && (entry = readdir(dir))) {
		size_t name = strlen(entry->d_name);
		bool slash = walk->path[length - 1] != '/';
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (length + slash + name >= sizeof(walk->path)) {
			errno = ENAMETOOLONG;
			result = -1;
			break;
		}
		if (slash)
			walk->path[length] = '/';
		memcpy(walk->path + length + slash, entry->d_name, name + 1);
		result = visit(walk, length + slash, level + 1, self);
		walk->path[length] = 0;
		if ((walk->flags & FTW_ACTIONRETVAL) && result == FTW_SKIP_SIBLINGS)
			return 0;
	}
	return result;
}

static int
visit_folder(struct tree_walk *walk, const struct stat *st, size_t base, int level, const struct ancestor *parent)
{
	struct ancestor self = { parent, st->st_dev, st->st_ino };
	bool folder_last = walk->flags & FTW_DEPTH;
	DIR *dir = opendir(walk->path);
	int result = 0, error;

	if (!dir && errno == EACCES)
		return tell(walk, st, FTW_DNR, (int)base, level);
	if (!dir)
		return -1;
	if (!folder_last)
		result = tell(walk, st, FTW_D, (int)base, level);
	if ((walk->flags & FTW_ACTIONRETVAL) && result == FTW_SKIP_SUBTREE) {
		closedir(dir);
		return 0;
	}
	if (result == 0)
		result = visit_entries(walk, dir, level, &self);
	error = errno;
	closedir(dir);
	errno = error;
	return result == 0 && folder_last ? tell(walk, st, FTW_DP, (int)base, level) : result;
}

static int
visit(struct tree_walk *walk, size_t base, int level, const struct ancestor *parent)
{
	struct stat st;
	int kind = find_kind(walk, &st);

	if (kind == FTW_NS && level == 0)
		return -1;
	if (level == 0)
		walk->device = st.st_dev;
	if ((walk->flags & FTW_MOUNT) && kind != FTW_NS && st.st_dev != walk->device)
		return 0;
	if (kind != FTW_D)
		return tell(walk, &st, kind, (int)base, level);
	return is_ancestor(parent, &st) ? 0 : visit_folder(walk, &st, base, level, parent);
}

static TN_SLOW int
start(const char *path, old_visitor old, new_visitor new, int flags)
{
	struct tree_walk walk = { .old = old, .new = new, .flags = flags };
	size_t length = strlen(path);
	const char *slash;

	if (length == 0 || length >= sizeof(walk.path)) {
		errno = length ? ENAMETOOLONG : ENOENT;
		return -1;
	}
	memcpy(walk.path, path, length + 1);
	while (length > 1 && walk.path[length - 1] == '/')
		walk.path[--length] = 0;
	slash = strrchr(walk.path, '/');
	return visit(&walk, slash && slash[1] ? (size_t)(slash + 1 - walk.path) : 0, 0, NULL);
}

#define FTW(name, type)                                                                                          \
	TN_ENTRY int name(const char *path, int (*visitor)(const char *, const struct type *, int), int descriptors) \
	{                                                                                                            \
		if (tn__quiet())                                                                                         \
			return TN_NEXT(name)(path, visitor, descriptors);                                                    \
		return start(path, (old_visitor)(void *)visitor, NULL, 0);                                               \
	}
FTW(ftw, stat)
FTW(ftw64, stat64)

/* With FTW_CHDIR libc's is used: it sees lower files only, and changes nothing itself. */
#define NFTW(name, type)                                                                                      \
	TN_ENTRY int name(const char *path, int (*visitor)(const char *, const struct type *, int, struct FTW *), \
	                  int descriptors, int flags)                                                             \
	{                                                                                                         \
		if (tn__quiet() || (flags & FTW_CHDIR))                                                               \
			return TN_NEXT(name)(path, visitor, descriptors, flags);                                          \
		return start(path, NULL, (new_visitor)(void *)visitor, flags);                                        \
	}
NFTW(nftw, stat)
NFTW(nftw64, stat64)
