/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields `budget` and `baseline` of `tonnage run --json`; src/verdict/run_reader_parts.c reads them back.
 */
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
		json_array_append_new(
			array, json_pack("{s:s, s:o, s:o, s:o, s:b, s:I, s:I}", "category", tn__category_name(drift->category),
		                     "file", tn__json_text(drift->at.file), "line", tn__json_figure(drift->at.line), "function",
		                     tn__json_text(drift->at.function), "backward", drift->at.backward, "before_bytes",
		                     (json_int_t)drift->before, "after_bytes", (json_int_t)drift->after));
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
