/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a baseline, written; verdict/baseline.c reads it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/json_parts.h"
#include "report/report.h"
#include "verdict/gate.h"

static json_t *
write_versions(const struct tn_report *report)
{
	char *versions[TN_VERSIONS];
	json_t *object = json_object();
	if (tn__versions_of(report, versions) != TN_OK)
		return NULL;
	for (size_t i = 0; i < TN_VERSIONS; i++) {
		json_object_set_new(object, tn__version_names[i], tn__json_text(versions[i]));
		free(versions[i]);
	}
	return object;
}

static json_t *
write_line(const struct tn_held_line *line)
{
	char code[17];
	snprintf(code, sizeof(code), "%016" PRIx64, line->code);
	return json_pack("{s:I, s:o}", "bytes", (json_int_t)line->bytes, "code",
	                 tn__json_text(line->code != 0 ? code : NULL));
}

static json_t *
write_held(const struct tn_held *held)
{
	json_t *lines = json_array();
	for (size_t i = 0; i < held->line_count; i++)
		json_array_append_new(lines, write_line(&held->lines[i]));
	return json_pack("{s:s, s:o, s:o, s:b, s:I, s:o}", "category", tn__category_name(held->category), "file",
	                 tn__json_text(held->file), "function", tn__json_text(held->function), "backward", held->backward,
	                 "bytes", (json_int_t)held->bytes, "lines", lines);
}

/* What has a line; the rest follows from the categories. */
static json_t *
write_holders(const struct tn_report *report)
{
	struct tn_held_list list;
	json_t *array = json_array();
	if (tn__held_of_report(report, &list) != TN_OK) {
		json_decref(array);
		return NULL;
	}
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].file != NULL)
			json_array_append_new(array, write_held(&list.items[i]));
	tn__held_free(&list);
	return array;
}

tn_status
tn__baseline_write(const struct tn_report *report, FILE *out)
{
	bool detailed = report->at_peak.detailed;
	json_t *gpu = json_pack("{s:o, s:i}", "name", tn__json_text(report->gpu.name), "count",
	                        report->gpus > 1 ? report->gpus : 1);
	json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "schema", TN_BASELINE_SCHEMA, "versions",
	                           write_versions(report), "gpu", gpu, "peak", tn__json_peak(report), "by_category",
	                           detailed ? tn__json_categories(&report->at_peak) : json_null(), "holders",
	                           detailed ? write_holders(report) : json_array());
	TN_RETURN_IF(object == NULL, TN_NO_MEMORY, "out of host memory while writing the baseline");
	bool written = tn__json_write(object, out, JSON_INDENT(1)) == 0 && fputc('\n', out) != EOF && fflush(out) == 0;
	json_decref(object);
	TN_RETURN_IF(!written, TN_IO, "the baseline could not be written: %s", strerror(errno));
	return TN_OK;
}
