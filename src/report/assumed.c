/* SPDX-License-Identifier: Apache-2.0
 *
 * Assumptions of a report as JSON, there and back.
 */
#include "report/assumed.h"

#include <string.h>

#include "base/error.h"
#include "report/json_parts.h"
#include "verdict/model_fill.h"

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

static int64_t
whole(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return json_is_integer(value) ? (int64_t)json_integer_value(value) : TN_NO_FIGURE;
}

static void
read_passed(const json_t *passed, struct tn_assumed_list *list)
{
	const char *file = json_string_value(json_object_get(passed, "file"));
	const char *what = json_string_value(json_object_get(passed, "what"));
	if (file == NULL)
		return;
	list->runs = (int)whole(passed, "runs");
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].place.line == whole(passed, "line") && strcmp(list->items[i].place.file, file) == 0 &&
		    what != NULL && strcmp(list->items[i].what, what) == 0)
			list->passed = i;
}

tn_status
tn__assumptions_read(const json_t *root, struct tn_report *report)
{
	const char *bound = json_string_value(json_object_get(root, "bound"));
	const json_t *item;
	size_t i;
	json_array_foreach(json_object_get(root, "assumptions"), i, item) {
		const char *file = json_string_value(json_object_get(item, "file"));
		const char *what = json_string_value(json_object_get(item, "what"));
		const char *value = json_string_value(json_object_get(item, "value"));
		if (file == NULL || what == NULL || value == NULL)
			continue;
		const struct tn_assumption row = { .place = { (char *)(uintptr_t)file, whole(item, "line"), NULL, false },
			                               .what = (char *)(uintptr_t)what,
			                               .value = (char *)(uintptr_t)value,
			                               .reads = 1,
			                               .bytes = whole(item, "bytes_hanging") };
		TN_FORWARD_IF_ERROR(tn__report_add_assumption(report, &row));
	}
	read_passed(json_object_get(root, "retry"), &report->assumptions);
	report->bound = bound == NULL                  ? TN_PEAK_MEASURED
	                : strcmp(bound, "lower") == 0 ? TN_PEAK_LOWER
	                                              : TN_PEAK_UPPER;
	return TN_OK;
}
