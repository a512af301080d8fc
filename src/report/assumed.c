/* SPDX-License-Identifier: Apache-2.0
 *
 * Assumptions of a report as JSON; src/verdict/run_reader_parts.c reads them back.
 */
#include "report/assumed.h"

#include "report/json_parts.h"

json_t *
tn__assumptions_json(const struct tn_assumed_list *list)
{
	json_t *array = json_array();
	for (size_t i = 0; i < list->count; i++) {
		const struct tn_assumption *item = &list->items[i];
		json_t *bytes = item->bytes == TN_NO_FIGURE ? json_null() : json_integer((json_int_t)item->bytes);
		json_array_append_new(array, json_pack("{s:s, s:I, s:s, s:s, s:o}", "file", item->place.file, "line",
		                                       (json_int_t)item->place.line, "what", item->what, "value", item->value,
		                                       "bytes_hanging", bytes));
	}
	return array;
}

json_t *
tn__assumption_passed_json(const struct tn_assumed_list *list)
{
	if (list->runs == 0 || list->passed >= list->count)
		return json_null();
	const struct tn_assumption *item = &list->items[list->passed];
	return json_pack("{s:i, s:s, s:I, s:s, s:s}", "runs", list->runs, "file", item->place.file, "line",
	                 (json_int_t)item->place.line, "what", item->what, "value", item->value);
}

json_t *
tn__bound_json(enum tn_peak_bound bound)
{
	return bound == TN_PEAK_MEASURED ? json_null() : json_string(bound == TN_PEAK_LOWER ? "lower" : "upper");
}
