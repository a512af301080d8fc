/* SPDX-License-Identifier: Apache-2.0
 *
 * The object of a page: its words, which are those of the text report, and what others make of the trace.
 */
#include "report/inspection_writers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "report/assumed.h"
#include "report/json_parts.h"
#include "report/page_course.h"
#include "report/page_object.h"
#include "report/text.h"
#include "verdict/paths.h"

#define MOST_LINES 2000
#define MOST_ASSUMED 200

/* ---- words ---- */

/* What a part of the text report says, a line an item. */
static json_t *
lines_of(const struct tn_inspection *inspection, tn_inspection_speaker *say)
{
	char *text = tn__inspection_words(inspection, say), *rest = text;
	json_t *array = json_array();
	for (char *line = text != NULL ? strtok_r(text, "\n", &rest) : NULL; line != NULL;
	     line = strtok_r(NULL, "\n", &rest))
		json_array_append_new(array, tn__json_text(line + strspn(line, " ")));
	free(text);
	return array;
}

/* The way to the failure, outermost first; else the place that made the moment. */
static json_t *
places_of(const struct tn_inspection *inspection)
{
	const struct tn_place_list *stack = &inspection->report.oom.stack;
	const struct tn_report_moment *moment = tn__inspection_moment(inspection);
	json_t *array = json_array();
	bool oom = inspection->snapshot == NULL || inspection->of_run || inspection->named[0].name == TN_MOMENT_OOM;
	for (size_t i = stack->count; oom && i-- > 0;)
		if (tn__is_outside_torch(stack->items[i].file))
			json_array_append_new(array, tn__json_place(&stack->items[i]));
	const struct tn_place *at = oom && inspection->report.oom.at != NULL ? inspection->report.oom.at : moment->at;
	if (json_array_size(array) == 0 && at != NULL)
		json_array_append_new(array, tn__json_place(at));
	return array;
}

/* Lines without the one that shows the places in words. */
static void
drop_chain(const struct tn_inspection *inspection, json_t *lines)
{
	char *chain = tn__place_chain(&inspection->report, (struct tn_style){ .utf8 = true });
	for (size_t i = 0; chain != NULL && i < json_array_size(lines); i++)
		if (strcmp(json_string_value(json_array_get(lines, i)), chain) == 0)
			json_array_remove(lines, i--);
	free(chain);
}

static json_t *
headline(const struct tn_inspection *inspection)
{
	const struct tn_finding *reason = tn__inspection_reason(inspection);
	bool run = inspection->snapshot == NULL || inspection->of_run;
	json_t *lines = lines_of(inspection, tn__inspection_head), *advice = json_array();
	json_t *title = json_array_size(lines) > 0 ? json_incref(json_array_get(lines, 0)) : json_string("");
	json_array_remove(lines, 0);
	drop_chain(inspection, lines);
	tn__page_add_line(advice, reason != NULL ? reason->advice : NULL);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "verdict",
	                 run ? json_string(tn__verdict_text(inspection->report.verdict)) : json_null(), "title", title,
	                 "lines", lines, "at", places_of(inspection), "why",
	                 tn__json_text(reason != NULL ? reason->what : NULL), "do", advice);
}

static json_t *
about(const struct tn_inspection *inspection)
{
	const struct tn_report *report = &inspection->report;
	char number[64];
	json_t *array = json_array();
	tn__page_add_fact(array, "input", inspection->path);
	tn__page_add_fact(array, "command", report->command);
	tn__page_add_fact(array, "PyTorch", report->torch);
	tn__page_add_fact(array, "CUDA", report->cuda);
	if (inspection->snapshot != NULL) {
		snprintf(number, sizeof(number), "%zu", inspection->analysis->events.count);
		tn__page_add_fact(array, "events", number);
	}
	if (inspection->first_us > 0) {
		time_t seconds = (time_t)(inspection->first_us / 1000000);
		struct tm parts;
		if (gmtime_r(&seconds, &parts) != NULL && strftime(number, sizeof(number), "%Y-%m-%d %H:%M:%S UTC", &parts) > 0)
			tn__page_add_fact(array, "first event", number);
	}
	return array;
}

static json_t *
card(const struct tn_inspection *inspection)
{
	const struct tn_report *report = &inspection->report;
	bool run = inspection->snapshot == NULL || inspection->of_run;
	const struct tn_report_split *split = inspection->snapshot == NULL ? &report->at_peak.split : &inspection->card;
	int64_t total = run ? (int64_t)report->gpu.total_bytes : inspection->card_total;
	int64_t context = split->context != TN_NO_FIGURE || !run ? split->context : (int64_t)report->gpu.context_bytes;
	char name[32];
	if (total <= 0)
		return json_null();
	snprintf(name, sizeof(name), "GPU %d", inspection->device);
	return json_pack("{s:o, s:I, s:o, s:o, s:o, s:o}", "name", tn__json_text(run ? report->gpu.name : name),
	                 "total_bytes", (json_int_t)total, "context_bytes", tn__json_figure(context), "libraries_bytes",
	                 tn__json_figure(split->libraries), "communication_bytes", tn__json_figure(split->communication),
	                 "other_processes_bytes", tn__json_figure(split->other_processes));
}

static json_t *
findings(const struct tn_inspection *inspection)
{
	json_t *array = tn__json_findings(&inspection->report);
	for (size_t i = 0; i < json_array_size(array); i++)
		json_object_set_new(json_array_get(array, i), "column", json_null());
	return array;
}

/* Findings are about the first of the named moments; a run says more than its recording shows. */
static void
lead_to_their_moment(const struct tn_inspection *inspection, json_t *object)
{
	json_t *column = json_object_get(json_array_get(json_object_get(object, "moments"), 0), "column");
	const json_t *array = json_object_get(object, "findings");
	for (size_t i = 0; i < json_array_size(array) && inspection->analysis != NULL && column != NULL; i++)
		json_object_set_new(json_array_get(array, i), "column", json_copy(column));
}

/* What a run took for granted, the lines that bytes hang on first; of a recording alone nothing is known. */
static json_t *
assumptions(const struct tn_inspection *inspection)
{
	json_t *rows = json_array(), *all = tn__assumptions_json(&inspection->report.assumptions);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < json_array_size(all) && json_array_size(rows) < MOST_ASSUMED; i++) {
			json_t *item = json_array_get(all, i),
				   *at = json_pack("{s:O, s:O, s:n, s:b}", "file", json_object_get(item, "file"), "line",
			                       json_object_get(item, "line"), "function", "backward", 0);
			json_t *bytes = json_object_get(item, "bytes_hanging");
			if ((json_integer_value(bytes) > 0) == (pass == 0))
				json_array_append_new(rows,
				                      json_pack("{s:o, s:O, s:O, s:O}", "at", at, "what", json_object_get(item, "what"),
				                                "value", json_object_get(item, "value"), "bytes_hanging", bytes));
			else
				json_decref(at);
		}
	json_decref(all);
	return rows;
}

static json_t *
network(const struct tn_inspection *inspection)
{
	bool run = (inspection->snapshot == NULL || inspection->of_run) && !inspection->report.real_gpu;
	return run ? tn__json_network(&inspection->report) : json_null();
}

static json_t *
devices(const struct tn_inspection *inspection)
{
	json_t *array = json_array();
	for (size_t i = 0; i < inspection->device_count; i++)
		json_array_append_new(array, json_integer(inspection->devices[i]));
	if (inspection->device_count == 0)
		json_array_append_new(array, json_integer(0));
	return array;
}

/* ---- comparison ---- */

static json_t *
category_bytes(const struct tn_report_moment *moment)
{
	json_t *array = json_array();
	for (int i = 0; i < TN_CATEGORIES; i++)
		json_array_append_new(array, json_integer(moment->by_category[i] > 0 ? moment->by_category[i] : 0));
	return array;
}

static json_t *
comparison_lines(const struct tn_comparison *comparison, struct tn_page_tables *tables)
{
	json_t *category = json_array(), *at = json_array(), *user = json_array(), *backward = json_array();
	json_t *before = json_array(), *after = json_array(), *before_blocks = json_array(), *after_blocks = json_array();
	for (size_t i = 0; i < comparison->count && i < MOST_LINES; i++) {
		const struct tn_change *change = &comparison->changes[i];
		const struct tn_place *place = change->after_at != NULL ? change->after_at : change->before_at;
		json_array_append_new(category, json_integer((json_int_t)change->category));
		json_array_append_new(at, json_integer(tn__page_frame(tables, place)));
		json_array_append_new(user, json_integer(-1));
		json_array_append_new(backward, json_integer(place->backward));
		json_array_append_new(before, json_integer(change->before));
		json_array_append_new(after, json_integer(change->after));
		json_array_append_new(before_blocks, json_integer(change->before_blocks > 0 ? change->before_blocks : 0));
		json_array_append_new(after_blocks, json_integer(change->after_blocks > 0 ? change->after_blocks : 0));
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "category", category, "at", at, "user", user,
	                 "backward", backward, "before", before, "after", after, "before_blocks", before_blocks,
	                 "after_blocks", after_blocks);
}

static json_t *
comparison_object(const struct tn_comparison *comparison, struct tn_page_tables *tables)
{
	if (comparison == NULL)
		return json_null();
	return json_pack("{s:o, s:o, s:{s:o, s:o}, s:o}", "before", tn__json_text(comparison->before->path), "after",
	                 tn__json_text(comparison->after->path), "bytes", "before",
	                 category_bytes(tn__inspection_moment(comparison->before)), "after",
	                 category_bytes(tn__inspection_moment(comparison->after)), "lines",
	                 comparison_lines(comparison, tables));
}

/* ---- the whole ---- */

static tn_status
fill(const struct tn_inspection *inspection, const struct tn_comparison *comparison, struct tn_page_tables *tables,
     json_t *object)
{
	const struct {
		const char *name;
		json_t *value;
	} fields[] = {
		{ "about", about(inspection) },
		{ "headline", headline(inspection) },
		{ "notes", lines_of(inspection, tn__inspection_scope) },
		{ "inferred", json_boolean(tn__inspection_moment(inspection)->inferred) },
		{ "device", json_integer(inspection->device) },
		{ "devices", devices(inspection) },
		{ "card", card(inspection) },
		{ "findings", findings(inspection) },
		{ "regions", tn__json_regions(&inspection->report) },
		{ "assumptions", assumptions(inspection) },
		{ "network", network(inspection) },
		{ "comparison", comparison_object(comparison, tables) },
	};
	bool complete = true;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (json_object_set_new(object, fields[i].name, fields[i].value) != 0)
			complete = false;
	TN_RETURN_IF(!complete, TN_NO_MEMORY, "out of host memory for the page");
	TN_FORWARD_IF_ERROR(tn__page_course(inspection, tables, object));
	lead_to_their_moment(inspection, object);
	TN_RETURN_IF(!tn__page_tables_write(tables, object), TN_NO_MEMORY, "out of host memory for the page");
	return TN_OK;
}

tn_status
tn__inspection_page(const struct tn_shown_inspection *shown, FILE *out)
{
	const struct tn_inspection *inspection = shown->inspection;
	struct tn_page_tables *tables = tn__page_tables_new(inspection);
	json_t *object = tn__page_new(tn__file_name(inspection->path));
	tn_status status = tables != NULL && object != NULL ? TN_OK : tn__fail(TN_NO_MEMORY, "out of host memory");
	if (status == TN_OK)
		status = fill(inspection, shown->comparison, tables, object);
	tn__page_tables_free(tables);
	if (status == TN_OK)
		status = tn__page_put(object, out);
	json_decref(object);
	return status;
}

tn_status
tn__report_page(const struct tn_report *report, FILE *out)
{
	struct tn_inspection inspection;
	TN_FORWARD_IF_ERROR(tn__inspection_of_run(report, &inspection));
	tn_status status = tn__inspection_page(&(struct tn_shown_inspection){ .inspection = &inspection }, out);
	tn__inspection_free(&inspection);
	return status;
}
