/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of the JSON of a run, read back: gate, files of weights, assumptions.
 */
#include "verdict/run_reader_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "verdict/gate.h"
#include "verdict/model_fill.h"
#include "verdict/stand_ins.h"

int
tn__json_read_category(const json_t *object)
{
	return tn__category_of(tn__json_borrow_text(object, "category"));
}

/* ---- budget and baseline ---- */

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
		gate->drifts[gate->drift_count++] = (struct tn_drift){
			category >= 0 ? (enum tn_category)category : TN_CATEGORY_other,
			{ tn__json_read_text(item, "file"), tn__json_read_figure(item, "line"),
			  tn__json_read_text(item, "function"), tn__json_read_truth(item, "backward") },
			json_integer_value(json_object_get(item, "before_bytes")),
			json_integer_value(json_object_get(item, "after_bytes"))
		};
	}
	return TN_OK;
}

static void
read_versions(const json_t *array, struct tn_report_gate *gate)
{
	size_t room = sizeof(gate->versions) / sizeof(gate->versions[0]);
	for (size_t i = 0; i < json_array_size(array) && gate->version_count < room; i++) {
		const json_t *item = json_array_get(array, i);
		const char *name = tn__json_borrow_text(item, "name"); /* lives as long as the document */
		if (name != NULL)
			gate->versions[gate->version_count++] = (struct tn_version){ name, tn__json_read_text(item, "before"),
				                                                         tn__json_read_text(item, "now") };
	}
}

tn_status
tn__gate_read(const json_t *root, struct tn_report *report)
{
	struct tn_report_gate *gate = &report->gate;
	const json_t *budget = json_object_get(root, "budget"), *baseline = json_object_get(root, "baseline");
	gate->budget = tn__json_read_figure(budget, "bytes");
	gate->over_budget = tn__json_read_figure(budget, "over_bytes");
	gate->budget_narrowly = tn__json_read_truth(budget, "narrowly");
	gate->written = tn__json_read_text(root, "baseline_written");
	if (!json_is_object(baseline))
		return TN_OK;
	gate->path = tn__json_read_text(baseline, "file");
	gate->before = tn__json_read_figure(baseline, "peak_device_bytes");
	gate->tolerance = (int64_t)(json_number_value(json_object_get(baseline, "tolerance_percent")) * 10000 + 0.5);
	read_versions(json_object_get(baseline, "versions"), gate);
	return read_drifts(json_object_get(baseline, "holders"), gate);
}

/* ---- what stood in for weights and data ---- */

static enum tn_stand_in_kind
kind_of(const char *name)
{
	for (int i = 0; name != NULL && i < TN_STAND_IN_KINDS; i++)
		if (strcmp(tn__stand_in_name((enum tn_stand_in_kind)i), name) == 0)
			return (enum tn_stand_in_kind)i;
	return TN_STAND_IN_WEIGHTS;
}

static unsigned
assumed_of(const json_t *words)
{
	unsigned assumed = 0;
	size_t i;
	const json_t *word;
	json_array_foreach(words, i, word) {
		const char *text = json_is_string(word) ? json_string_value(word) : "";
		assumed |= strcmp(text, "rows") == 0      ? TN_ASSUMED_ROWS
		           : strcmp(text, "lengths") == 0 ? TN_ASSUMED_LENGTHS
		           : strcmp(text, "sizes") == 0   ? TN_ASSUMED_SIZES
		                                          : 0u;
	}
	return assumed;
}

tn_status
tn__stand_ins_read(const json_t *array, struct tn_stand_in_list *list)
{
	size_t i;
	const json_t *object;
	json_array_foreach(array, i, object) {
		char *kind = tn__json_read_text(object, "kind"), *path = tn__json_read_text(object, "path");
		struct tn_stand_in item = { .path = path != NULL ? path : (char[]){ "?" },
			                        .kind = kind_of(kind),
			                        .assumed = assumed_of(json_object_get(object, "assumed")),
			                        .count = tn__json_read_figure(object, "count"),
			                        .tensors = tn__json_read_figure(object, "tensors"),
			                        .bytes = tn__json_read_figure(object, "bytes"),
			                        .read_bytes = tn__json_read_figure(object, "read_bytes") };
		tn_status status = kind != NULL ? tn__stand_ins_add(list, &item) : TN_OK;
		free(kind);
		free(path);
		TN_FORWARD_IF_ERROR(status);
	}
	return TN_OK;
}

/* ---- assumptions ---- */

static void
read_passed(const json_t *passed, struct tn_assumed_list *list)
{
	const char *file = tn__json_borrow_text(passed, "file");
	const char *what = tn__json_borrow_text(passed, "what");
	if (file == NULL)
		return;
	list->runs = (int)tn__json_read_figure(passed, "runs");
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].place.line == tn__json_read_figure(passed, "line") &&
		    strcmp(list->items[i].place.file, file) == 0 && what != NULL && strcmp(list->items[i].what, what) == 0)
			list->passed = i;
}

tn_status
tn__assumptions_read(const json_t *root, struct tn_report *report)
{
	const char *bound = tn__json_borrow_text(root, "bound");
	const json_t *item;
	size_t i;
	json_array_foreach(json_object_get(root, "assumptions"), i, item) {
		const char *file = tn__json_borrow_text(item, "file");
		const char *what = tn__json_borrow_text(item, "what");
		const char *value = tn__json_borrow_text(item, "value");
		if (file == NULL || what == NULL || value == NULL)
			continue;
		const struct tn_assumption row = { .place = { (char *)(uintptr_t)file, tn__json_read_figure(item, "line"), NULL,
			                                          false },
			                               .what = (char *)(uintptr_t)what,
			                               .value = (char *)(uintptr_t)value,
			                               .reads = 1,
			                               .bytes = tn__json_read_figure(item, "bytes_hanging") };
		TN_FORWARD_IF_ERROR(tn__report_add_assumption(report, &row));
	}
	read_passed(json_object_get(root, "retry"), &report->assumptions);
	report->bound = bound == NULL ? TN_PEAK_MEASURED : strcmp(bound, "lower") == 0 ? TN_PEAK_LOWER : TN_PEAK_UPPER;
	return TN_OK;
}

void
tn__oom_input_read(const json_t *object, struct tn_oom_input *out)
{
	int64_t values = tn__json_read_figure(object, "values"), before = tn__json_read_figure(object, "values_before");
	int64_t calls = tn__json_read_figure(object, "calls_before");
	if (values <= 0 || before < 0 || calls <= 0)
		return;
	*out = (struct tn_oom_input){ .shape = tn__json_read_text(object, "shape"),
		                          .before = tn__json_read_text(object, "before"),
		                          .values = values,
		                          .values_before = before,
		                          .calls_before = calls };
}

void
tn__cards_read(const json_t *root, struct tn_report *report)
{
	const json_t *array = json_object_get(root, "cards"), *item;
	size_t i;
	if (json_array_size(json_object_get(root, "ranks")) > 0)
		return;
	json_array_foreach(array, i, item) {
		if (report->card_count == sizeof(report->cards) / sizeof(report->cards[0]))
			return;
		struct tn_card_held *card = &report->cards[report->card_count++];
		tn__report_init_moment(&card->at_peak);
		card->index = tn__json_read_figure(item, "index");
		card->at_peak.device_bytes = tn__json_read_figure(json_object_get(item, "peak"), "device_bytes");
		card->out_of_memory = tn__json_read_truth(item, "out_of_memory");
	}
}
