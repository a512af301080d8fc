/* SPDX-License-Identifier: Apache-2.0
 *
 * tn_clean: what runs have left, and what it frees.
 *
 * Invariant: a folder whose lock somebody holds is never touched, and of the cache only the folders that are named here.
 */
#include "tonnage/clean.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "report/cleaned.h"
#include "report/document.h"
#include "supervise/internal.h"

/* Below the folder that holds the answers of cuDNN. */
static const char *const cache_folders[] = { "cudnn", "compile", "hub" };

struct cleaning {
	const struct tn_clean_options *options;
	struct tn_cleaned found;
	size_t failed;
	bool no_memory; /* something was found that is not in the list */
};

/* True where the folder is gone. */
static bool
remove_folder(const char *path)
{
	struct stat about;
	struct tn_folder folder = { .lock = -1 };
	if (strlen(path) >= sizeof(folder.path))
		return false;
	strcpy(folder.path, path);
	tn__folder_remove(&folder, false);
	return lstat(path, &about) != 0;
}

/* Adds a row, and removes the folder where that is wanted. */
static void
take(struct cleaning *cleaning, const char *path, enum tn_cleaned_kind kind, bool removable)
{
	struct tn_cleaned *found = &cleaning->found;
	struct tn_cleaned_folder row = { .path = strdup(path), .kind = kind, .removable = removable };
	int64_t bytes = 0;
	if (row.path == NULL ||
	    !tn__array_room(&found->folders, &found->capacity, found->count + 1, sizeof(row), SIZE_MAX)) {
		free(row.path);
		cleaning->no_memory = true;
		return;
	}
	tn__folder_size(path, &bytes, &row.disk_bytes);
	if (removable && !found->dry_run) {
		row.removed = remove_folder(path);
		cleaning->failed += !row.removed;
	}
	if (row.removed || (removable && found->dry_run))
		found->freed += row.disk_bytes;
	found->folders[found->count++] = row;
}

static void
take_run_folder(void *context, const char *path, enum tn_left left)
{
	static const enum tn_cleaned_kind kinds[] = { [TN_LEFT_RUNNING] = TN_CLEANED_RUNNING,
		                                          [TN_LEFT_ORPHAN] = TN_CLEANED_ORPHAN,
		                                          [TN_LEFT_SCRATCH] = TN_CLEANED_SCRATCH };
	take(context, path, kinds[left], left != TN_LEFT_RUNNING);
}

static void
take_caches(struct cleaning *cleaning)
{
	char cudnn[PATH_MAX], path[PATH_MAX];
	struct stat about;
	if (tn__helper_cache(cudnn) == NULL)
		return;
	*strrchr(cudnn, '/') = '\0';
	for (size_t i = 0; i < sizeof(cache_folders) / sizeof(cache_folders[0]); i++)
		if (snprintf(path, sizeof(path), "%s/%s", cudnn, cache_folders[i]) < (int)sizeof(path) &&
		    lstat(path, &about) == 0 && S_ISDIR(about.st_mode))
			take(cleaning, path, TN_CLEANED_CACHE, cleaning->options->caches);
}

static tn_status
say(const struct cleaning *cleaning)
{
	const struct tn_clean_options *options = cleaning->options;
	const struct tn_document *kind = &tn__clean_document;
	return options->json ? kind->json(&cleaning->found, options->output)
	                     : kind->text(&cleaning->found, tn__style_of(options->output), options->output);
}

tn_status
tn_clean(const struct tn_clean_options *options)
{
	struct cleaning cleaning = { .options = options, .found.dry_run = options->dry_run };
	tn_status status = tn__folder_each(take_run_folder, &cleaning);
	if (status == TN_OK) {
		take_caches(&cleaning);
		status = say(&cleaning);
	}
	if (status == TN_OK && cleaning.no_memory)
		status = tn__fail(TN_NO_MEMORY, "out of host memory");
	if (status == TN_OK && cleaning.failed > 0)
		status = tn__fail(TN_IO, "%zu folder%s could not be removed", cleaning.failed, cleaning.failed == 1 ? "" : "s");
	tn__cleaned_free(&cleaning.found);
	return status;
}
