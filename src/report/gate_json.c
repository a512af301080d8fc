/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields `budget` and `baseline` of `tonnage run --json`, there and back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "verdict/gate.h"
#include "report/json_parts.h"

#define LISTED_DRIFTS 200

json_t *
tn__json_budget(const struct tn_report *report)
{
	const struct tn_report_gate *gate = &report->gate;
	if (gate->budget == TN_NO_FIGURE)
		return json_null();
	return json_pack("{s:I, s:o, s:b}", "bytes", (json_int_t)gate->budget, "over_bytes",
	                 tn__json_figure(gate->over_budget), "narrowly", gate->budget_narrowly);
}

static json_t *
holders(const struct tn_report_gate *gate)
{
	json_t *array = json_array();
	for (size_t i = 0; i < gate->drift_count && i < LISTED_DRIFTS; i++) {
		const struct tn_drift *drift = &gate->drifts[i];
		json_array_append_new(array, json_pack("{s:s, s:o, s:o, s:o, s:b, s:I, s:I}", "category",
		                                       tn__category_name(drift->category), "file", tn__json_text(drift->at.file),
		                                       "line", tn__json_figure(drift->at.line), "function",
		                                       tn__json_text(drift->at.function), "backward", drift->at.backward,
		                                       "before_bytes", (json_int_t)drift->before, "after_bytes",
		                                       (json_int_t)drift->after));
	}
	return array;
}

static json_t *
versions(const struct tn_report_gate *gate)
{
	json_t *array = json_array();
	for (size_t i = 0; i < gate->version_count; i++)
		json_array_append_new(array, json_pack("{s:s, s:o, s:o}", "name", gate->versions[i].name, "before",
		                                       tn__json_text(gate->versions[i].before), "now",
		                                       tn__json_text(gate->versions[i].now)));
	return array;
}

json_t *
tn__json_baseline(const struct tn_report *report)
{
	const struct tn_report_gate *gate = &report->gate;
	if (gate->path == NULL)
		return json_null();
	return json_pack("{s:o, s:o, s:I, s:f, s:o, s:o}", "file", tn__json_text(gate->path), "peak_device_bytes",
	                 tn__json_figure(gate->before), "more_bytes", (json_int_t)(report->device_peak - gate->before),
	                 "tolerance_percent", (double)gate->tolerance / 10000, "holders",
	                 gate->told ? holders(gate) : json_null(), "versions", versions(gate));
}

/* ---- and back ---- */

static tn_status
read_drifts(const json_t *array, struct tn_report_gate *gate)
{
	size_t count = json_array_size(array);
	gate->told = json_is_array(array);
	if (count == 0)
		return TN_OK;
	gate->drifts = calloc(count, sizeof(*gate->drifts));
	TN_RETURN_IF(gate->drifts == NULL, TN_NO_MEMORY, "out of host memory");
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(array, i);
		int category = tn__json_read_category(item);
		gate->drifts[gate->drift_count++] =
			(struct tn_drift){ category >= 0 ? (enum tn_category)category : TN_CATEGORY_other,
			                   { tn__json_read_text(item, "file"), tn__json_read_figure(item, "line"),
			                     tn__json_read_text(item, "function"), json_is_true(json_object_get(item, "backward")) },
			                   json_integer_value(json_object_get(item, "before_bytes")),
			                   json_integer_value(json_object_get(item, "after_bytes")) };
	}
	return TN_OK;
}

static void
read_versions(const json_t *array, struct tn_report_gate *gate)
{
	size_t room = sizeof(gate->versions) / sizeof(gate->versions[0]);
	for (size_t i = 0; i < json_array_size(array) && gate->version_count < room; i++) {
		const json_t *item = json_array_get(array, i);
		const char *name = json_string_value(json_object_get(item, "name")); /* lives as long as the document */
		if (name != NULL)
			gate->versions[gate->version_count++] =
				(struct tn_version){ name, tn__json_read_text(item, "before"), tn__json_read_text(item, "now") };
	}
}

tn_status
tn__gate_read(const json_t *root, struct tn_report *report)
{
	struct tn_report_gate *gate = &report->gate;
	const json_t *budget = json_object_get(root, "budget"), *baseline = json_object_get(root, "baseline");
	gate->budget = tn__json_read_figure(budget, "bytes");
	gate->over_budget = tn__json_read_figure(budget, "over_bytes");
	gate->budget_narrowly = json_is_true(json_object_get(budget, "narrowly"));
	gate->written = tn__json_read_text(root, "baseline_written");
	if (!json_is_object(baseline))
		return TN_OK;
	gate->path = tn__json_read_text(baseline, "file");
	gate->before = tn__json_read_figure(baseline, "peak_device_bytes");
	gate->tolerance = (int64_t)(json_number_value(json_object_get(baseline, "tolerance_percent")) * 10000 + 0.5);
	read_versions(json_object_get(baseline, "versions"), gate);
	return read_drifts(json_object_get(baseline, "holders"), gate);
}
