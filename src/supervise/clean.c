/* SPDX-License-Identifier: Apache-2.0
 *
 * tn_clean: what runs have left, and what it frees.
 *
 * Invariant: a folder whose lock somebody holds is never touched, and of the cache only the folders that are named here.
 */
#include "tonnage/clean.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "report/report.h"
#include "supervise/internal.h"

/* Below the folder that holds the answers of cuDNN. */
static const char *const cache_folders[] = { "cudnn", "compile" };

struct cleaning {
	const struct tn_clean_options *options;
	json_t *folders; /* what was found, each with its result */
	int64_t freed;
	size_t failed, removed;
};

static const char *
name_of_kind(enum tn_left kind)
{
	static const char *const names[] = { "none", "running", "orphan", "scratch" };
	return names[kind];
}

/* Adds a row, and removes the folder where that is wanted. */
static void
take(struct cleaning *cleaning, const char *path, const char *kind, bool removable)
{
	int64_t bytes = 0, disk = 0;
	struct stat about;
	struct tn_folder folder = { .lock = -1 };
	bool removed = false;
	tn__folder_size(path, &bytes, &disk);
	if (removable && !cleaning->options->dry_run && strlen(path) < sizeof(folder.path)) {
		strcpy(folder.path, path);
		tn__folder_remove(&folder, false);
		removed = lstat(path, &about) != 0;
		cleaning->failed += !removed;
	}
	cleaning->removed += removed;
	if (removed || (removable && cleaning->options->dry_run))
		cleaning->freed += disk;
	json_array_append_new(cleaning->folders,
	                      json_pack("{s:s, s:s, s:I, s:b, s:b}", "path", path, "kind", kind, "disk_bytes",
	                                (json_int_t)disk, "removable", removable, "removed", removed));
}

static void
take_run_folder(void *context, const char *path, enum tn_left kind)
{
	take(context, path, name_of_kind(kind), kind != TN_LEFT_RUNNING);
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
			take(cleaning, path, "cache", cleaning->options->caches);
}

/* ---- saying it ---- */

static void
print_row(const struct cleaning *cleaning, const json_t *row)
{
	const char *kind = json_string_value(json_object_get(row, "kind"));
	bool removable = json_is_true(json_object_get(row, "removable"));
	const char *result = json_is_true(json_object_get(row, "removed"))      ? "removed"
	                     : removable && cleaning->options->dry_run          ? "would be removed"
	                     : removable                                        ? "could not be removed"
	                     : strcmp(kind, "cache") == 0 ? "kept (--caches removes it)"
	                                                  : "in use";
	char bytes[32];
	fprintf(cleaning->options->output, "%-8s %10s  %s  %s\n", kind,
	        tn__human_bytes(json_integer_value(json_object_get(row, "disk_bytes")), bytes),
	        json_string_value(json_object_get(row, "path")), result);
}

static void
print_text(const struct cleaning *cleaning)
{
	char bytes[32];
	size_t i;
	const json_t *row;
	json_array_foreach(cleaning->folders, i, row)
		print_row(cleaning, row);
	if (json_array_size(cleaning->folders) == 0)
		fputs("nothing is left of earlier runs\n", cleaning->options->output);
	else
		fprintf(cleaning->options->output, cleaning->options->dry_run ? "%s would be freed\n" : "%s freed\n",
		        tn__human_bytes(cleaning->freed, bytes));
}

static tn_status
print_json(const struct cleaning *cleaning)
{
	json_t *document = json_pack("{s:s, s:b, s:O, s:I}", "schema", "tonnage.clean/1", "dry_run",
	                             cleaning->options->dry_run, "folders", cleaning->folders, "freed_bytes",
	                             (json_int_t)cleaning->freed);
	int failed = document == NULL || json_dumpf(document, cleaning->options->output, JSON_INDENT(2)) != 0 ||
	             fputc('\n', cleaning->options->output) == EOF;
	json_decref(document);
	TN_RETURN_IF(failed, TN_IO, "the JSON could not be written");
	return TN_OK;
}

tn_status
tn_clean(const struct tn_clean_options *options)
{
	struct cleaning cleaning = { .options = options, .folders = json_array() };
	TN_RETURN_IF(cleaning.folders == NULL, TN_NO_MEMORY, "out of host memory");
	tn_status status = tn__folder_each(take_run_folder, &cleaning);
	if (status == TN_OK) {
		take_caches(&cleaning);
		if (options->json)
			status = print_json(&cleaning);
		else
			print_text(&cleaning);
	}
	if (status == TN_OK && fflush(options->output) != 0)
		status = tn__fail(TN_IO, "the list could not be written");
	if (status == TN_OK && cleaning.failed > 0)
		status = tn__fail(TN_IO, "%zu folder%s could not be removed", cleaning.failed, cleaning.failed == 1 ? "" : "s");
	json_decref(cleaning.folders);
	return status;
}
