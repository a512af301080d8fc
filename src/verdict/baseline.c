/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a baseline, read; report/baseline_json.c writes it. It comes from a repository or a cache, so nothing in it is trusted: a field
 * that is missing or of another kind is an error with its name.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "verdict/gate.h"

#define LARGEST (INT64_C(1) << 48) /* bytes: sums of a few thousand stay far from overflow */
#define MOST_HELD 10000
#define MOST_LINES 10000

const char *const tn__version_names[TN_VERSIONS] = { "tonnage", "torch", "cuda", "cudnn" };

tn_status
tn__versions_of(const struct tn_report *report, char *out[TN_VERSIONS])
{
	char *cudnn = NULL;
	if (report->cudnn != TN_NO_FIGURE && asprintf(&cudnn, "%" PRId64, report->cudnn) < 0)
		cudnn = NULL;
	out[0] = strdup(TONNAGE_VERSION);
	out[1] = report->torch != NULL ? strdup(report->torch) : NULL;
	out[2] = report->cuda != NULL ? strdup(report->cuda) : NULL;
	out[3] = cudnn;
	TN_RETURN_IF(out[0] == NULL, TN_NO_MEMORY, "out of host memory");
	return TN_OK;
}

static tn_status
bad(const char *path, const char *field)
{
	return tn__fail(TN_FORMAT,
	                "%s is not a baseline that this version can read: \"%s\" is missing or not what it should be", path,
	                field);
}

static bool
is_size(int64_t value)
{
	return value != TN_NO_FIGURE && value <= LARGEST;
}

static tn_status
read_lines(const char *path, const json_t *array, struct tn_held *held)
{
	size_t count = json_array_size(array);
	if (!json_is_array(array) || count == 0 || count > MOST_LINES)
		return bad(path, "lines");
	held->lines = calloc(count, sizeof(*held->lines));
	TN_RETURN_IF(held->lines == NULL, TN_NO_MEMORY, "out of host memory");
	held->line_count = count;
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(array, i);
		const char *code = tn__json_borrow_text(item, "code");
		held->lines[i] = (struct tn_held_line){ tn__json_read_figure(item, "bytes"),
			                                    code != NULL ? strtoull(code, NULL, 16) : 0, NULL };
		if (!is_size(held->lines[i].bytes))
			return bad(path, "lines");
	}
	return TN_OK;
}

static tn_status
read_held(const char *path, const json_t *item, struct tn_held *held)
{
	int category = tn__category_of(tn__json_borrow_text(item, "category"));
	*held = (struct tn_held){ .category = (enum tn_category)category,
		                      .file = tn__json_borrow_text(item, "file"),
		                      .function = tn__json_borrow_text(item, "function"),
		                      .backward = tn__json_read_truth(item, "backward"),
		                      .bytes = tn__json_read_figure(item, "bytes") };
	if (category < 0)
		return bad(path, "category");
	if (held->file == NULL)
		return bad(path, "file");
	if (!is_size(held->bytes))
		return bad(path, "bytes");
	return read_lines(path, json_object_get(item, "lines"), held);
}

static tn_status
read_categories(const char *path, const json_t *object, int64_t by_category[TN_CATEGORIES])
{
	for (int i = 0; i < TN_CATEGORIES; i++) {
		const char *name = tn__category_name((enum tn_category)i);
		bool newer = i == TN_CATEGORY_gathered || i == TN_CATEGORY_communication; /* baselines of before have none */
		if (newer && json_object_get(object, name) == NULL) {
			by_category[i] = 0;
			continue;
		}
		by_category[i] = tn__json_read_figure(object, name);
		if (!is_size(by_category[i]) && !json_is_null(json_object_get(object, name)))
			return bad(path, name);
	}
	return TN_OK;
}

static tn_status
read_detail(struct tn_baseline *baseline)
{
	const json_t *object = json_object_get(baseline->document, "by_category");
	const json_t *holders = json_object_get(baseline->document, "holders");
	int64_t by_category[TN_CATEGORIES];
	baseline->detailed = json_is_object(object);
	if (!baseline->detailed)
		return json_is_null(object) ? TN_OK : bad(baseline->path, "by_category");
	if (!json_is_array(holders) || json_array_size(holders) > MOST_HELD)
		return bad(baseline->path, "holders");
	TN_FORWARD_IF_ERROR(read_categories(baseline->path, object, by_category));
	baseline->held.items = calloc(json_array_size(holders) + 1, sizeof(*baseline->held.items));
	TN_RETURN_IF(baseline->held.items == NULL, TN_NO_MEMORY, "out of host memory");
	for (size_t i = 0; i < json_array_size(holders); i++)
		TN_FORWARD_IF_ERROR(
			read_held(baseline->path, json_array_get(holders, i), &baseline->held.items[baseline->held.count++]));
	return tn__held_complete(&baseline->held, by_category);
}

static tn_status
read_all(struct tn_baseline *baseline)
{
	const json_t *root = baseline->document, *gpu = json_object_get(root, "gpu");
	const char *schema = tn__json_borrow_text(root, "schema");
	TN_RETURN_IF(schema == NULL || strcmp(schema, TN_BASELINE_SCHEMA) != 0, TN_FORMAT,
	             "%s is JSON, but not a baseline of tonnage run --write-baseline (schema %s)", baseline->path,
	             schema != NULL ? schema : "missing");
	baseline->gpu = tn__json_borrow_text(gpu, "name");
	baseline->gpus = tn__json_read_figure(gpu, "count");
	baseline->device_peak = tn__json_read_figure(json_object_get(root, "peak"), "device_bytes");
	if (baseline->gpu == NULL || baseline->gpus == TN_NO_FIGURE)
		return bad(baseline->path, "gpu");
	if (!is_size(baseline->device_peak))
		return bad(baseline->path, "device_bytes");
	if (!json_is_object(json_object_get(root, "versions")))
		return bad(baseline->path, "versions");
	return read_detail(baseline);
}

tn_status
tn__baseline_read(const char *path, struct tn_baseline **out)
{
	json_error_t error;
	FILE *in = fopen(path, "re");
	TN_RETURN_IF(in == NULL, TN_IO, "the baseline %s cannot be read: %s", path, strerror(errno));
	json_t *document = json_loadf(in, JSON_REJECT_DUPLICATES, &error);
	fclose(in);
	TN_RETURN_IF(document == NULL, TN_FORMAT, "%s is not a baseline: line %d: %s", path, error.line, error.text);
	struct tn_baseline *baseline = calloc(1, sizeof(*baseline));
	if (baseline == NULL || (baseline->path = strdup(path)) == NULL) {
		free(baseline);
		json_decref(document);
		return tn__fail(TN_NO_MEMORY, "out of host memory");
	}
	baseline->document = document;
	tn_status status = read_all(baseline);
	if (status == TN_OK)
		*out = baseline;
	else
		tn__baseline_free(baseline);
	return status;
}

void
tn__baseline_free(struct tn_baseline *baseline)
{
	if (baseline == NULL)
		return;
	tn__held_free(&baseline->held);
	json_decref(baseline->document);
	free(baseline->path);
	free(baseline);
}

tn_status
tn__baseline_is_of(const struct tn_baseline *baseline, const char *gpu, int gpus)
{
	TN_RETURN_IF(strcmp(baseline->gpu, gpu) != 0, TN_INVALID,
	             "the baseline %s was made on %.64s, this run is on %s: peaks on different cards cannot be compared",
	             baseline->path, baseline->gpu, gpu);
	TN_RETURN_IF(baseline->gpus != gpus, TN_INVALID,
	             "the baseline %s was made with --gpus %" PRId64 ", this run has %d", baseline->path, baseline->gpus,
	             gpus);
	return TN_OK;
}

/* ---- versions ---- */

/* Takes `now` over. */
static void
note_version(struct tn_report_gate *gate, size_t index, const json_t *object, char *now)
{
	char *before = tn__json_read_text(object, tn__version_names[index]);
	bool same = before == now || (before != NULL && now != NULL && strcmp(before, now) == 0);
	if (same) {
		free(before);
		free(now);
		return;
	}
	gate->versions[gate->version_count++] = (struct tn_version){ tn__version_names[index], before, now };
}

tn_status
tn__baseline_versions(const struct tn_baseline *baseline, struct tn_report *report)
{
	char *versions[TN_VERSIONS];
	const json_t *object = json_object_get(baseline->document, "versions");
	TN_FORWARD_IF_ERROR(tn__versions_of(report, versions));
	for (size_t i = 0; i < TN_VERSIONS; i++)
		note_version(&report->gate, i, object, versions[i]);
	return TN_OK;
}
