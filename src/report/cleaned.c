/* SPDX-License-Identifier: Apache-2.0
 *
 * What was found and removed, for a person and as JSON.
 */
#include "report/cleaned.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain.h"
#include "report/json_parts.h"

void
tn__cleaned_free(struct tn_cleaned *cleaned)
{
	for (size_t i = 0; i < cleaned->count; i++)
		free(cleaned->folders[i].path);
	free(cleaned->folders);
	*cleaned = (struct tn_cleaned){ 0 };
}

static const char *
kind_name(enum tn_cleaned_kind kind)
{
	static const char *const names[] = { "running", "orphan", "scratch", "cache" };
	return names[kind];
}

static const char *
result_words(const struct tn_cleaned_folder *folder, bool dry_run)
{
	if (folder->removed)
		return "removed";
	if (folder->removable)
		return dry_run ? "would be removed" : "could not be removed";
	return folder->kind == TN_CLEANED_CACHE ? "kept (--caches removes it)" : "in use";
}

tn_status
tn__cleaned_text(const struct tn_cleaned *cleaned, struct tn_style style, FILE *out)
{
	char bytes[32];
	(void)style; /* neither colour nor pictures: the lines are for grep, too */
	for (size_t i = 0; i < cleaned->count; i++) {
		const struct tn_cleaned_folder *folder = &cleaned->folders[i];
		char *path = strdup(folder->path);
		TN_RETURN_IF(path == NULL, TN_NO_MEMORY, "out of host memory");
		tn__make_plain(path, '?');
		fprintf(out, "%-8s %10s  %s  %s\n", kind_name(folder->kind), tn__human_bytes(folder->disk_bytes, bytes), path,
		        result_words(folder, cleaned->dry_run));
		free(path);
	}
	if (cleaned->count == 0)
		fputs("earlier runs left nothing behind\n", out);
	else
		fprintf(out, "%s %s\n", tn__human_bytes(cleaned->freed, bytes), cleaned->dry_run ? "would be freed" : "freed");
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "the list could not be written");
	return TN_OK;
}

static json_t *
all_folders(const struct tn_cleaned *cleaned)
{
	json_t *array = json_array();
	for (size_t i = 0; i < cleaned->count; i++) {
		const struct tn_cleaned_folder *folder = &cleaned->folders[i];
		json_array_append_new(array, json_pack("{s:o, s:s, s:I, s:b, s:b}", "path", tn__json_text(folder->path), "kind",
		                                       kind_name(folder->kind), "disk_bytes", (json_int_t)folder->disk_bytes,
		                                       "removable", folder->removable, "removed", folder->removed));
	}
	return array;
}

tn_status
tn__cleaned_json(const struct tn_cleaned *cleaned, FILE *out)
{
	json_t *object = json_pack("{s:s, s:b, s:o, s:I}", "schema", "tonnage.clean/1", "dry_run", cleaned->dry_run,
	                           "folders", all_folders(cleaned), "freed_bytes", (json_int_t)cleaned->freed);
	TN_RETURN_IF(object == NULL, TN_NO_MEMORY, "out of host memory");
	bool good = tn__json_write(object, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF && fflush(out) == 0;
	json_decref(object);
	TN_RETURN_IF(!good, TN_IO, "the JSON could not be written");
	return TN_OK;
}
