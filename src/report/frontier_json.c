/* SPDX-License-Identifier: Apache-2.0
 *
 * `fit --vary` as JSON (doc/format/frontier.schema.json) and as a page.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/error.h"
#include "report/frontier.h"
#include "report/json_parts.h"
#include "report/page_object.h"

static json_t *
axes(const struct tn_frontier *frontier)
{
	json_t *array = json_array();
	for (size_t i = 0; i < frontier->axis_count; i++) {
		const struct tn_frontier_axis *axis = &frontier->axes[i];
		json_t *values = json_array();
		for (size_t j = 0; j < axis->value_count; j++)
			json_array_append_new(values, json_integer(axis->values[j]));
		json_array_append_new(array, json_pack("{s:o, s:o, s:o}", "name", tn__json_text(axis->name), "values", values,
		                                       "memory_grows_with_power",
		                                       axis->power > 0 ? json_real(axis->power) : json_null()));
	}
	return array;
}

/* The values of all axes but the first. */
static json_t *
row_values(const struct tn_frontier *frontier, int row)
{
	json_t *array = json_array();
	for (size_t i = 1; i < frontier->axis_count; i++)
		json_array_append_new(array, json_integer(tn__frontier_value(frontier, row, i)));
	return array;
}

static json_t *
accumulation(const struct tn_frontier_row *row)
{
	if (row->micro_batch == 0)
		return json_null();
	return json_pack("{s:i, s:i}", "micro_batch", row->micro_batch, "steps", row->steps);
}

static json_t *
rows(const struct tn_frontier *frontier, const struct tn_frontier_card *card)
{
	json_t *array = json_array();
	for (int i = 0; i < frontier->rows; i++) {
		const struct tn_frontier_row *row = &card->rows[i];
		json_array_append_new(array,
		                      json_pack("{s:o, s:o, s:b, s:o, s:o, s:b, s:o}", "values", row_values(frontier, i),
		                                "largest", row->largest < 0 ? json_null() : json_integer(row->largest),
		                                "unbounded", row->unbounded, "peak_device_bytes",
		                                tn__json_figure(row->device_peak), "margin_bytes", tn__json_figure(row->margin),
		                                "narrowly", row->margin != TN_NO_FIGURE && row->margin < row->uncertain,
		                                "accumulation", accumulation(row)));
	}
	return array;
}

static json_t *
points(const struct tn_frontier *frontier, const struct tn_frontier_card *card)
{
	static const char *const verdicts[] = { "undecided", "fits", "out_of_memory", "failed" };
	json_t *array = json_array();
	int columns = (int)frontier->axes[0].value_count;
	for (int i = 0; i < frontier->rows * columns; i++) {
		const struct tn_frontier_point *point = &card->points[i];
		json_t *values = row_values(frontier, i / columns);
		json_array_insert_new(values, 0, json_integer(frontier->axes[0].values[i % columns]));
		json_array_append_new(array,
		                      json_pack("{s:o, s:s, s:b, s:o, s:o}", "values", values, "verdict",
		                                verdicts[point->outcome], "tried", point->tried, "peak_device_bytes",
		                                tn__json_figure(point->device_peak), "why_not", tn__json_text(point->why_not)));
	}
	return array;
}

static json_t *
cards(const struct tn_frontier *frontier)
{
	json_t *array = json_array();
	for (size_t i = 0; i < frontier->card_count; i++) {
		const struct tn_frontier_card *card = &frontier->cards[i];
		json_array_append_new(array,
		                      json_pack("{s:o, s:o, s:I, s:I, s:o, s:o}", "gpu", tn__json_text(card->asked), "name",
		                                tn__json_text(card->gpu.name), "total_bytes", (json_int_t)card->gpu.total_bytes,
		                                "margin_wanted_bytes", (json_int_t)card->margin_wanted, "rows",
		                                rows(frontier, card), "points", points(frontier, card)));
	}
	return array;
}

tn_status
tn__frontier_json(const struct tn_frontier *frontier, FILE *out)
{
	json_t *object = json_pack(
		"{s:s, s:o, s:o, s:o, s:i, s:i, s:o, s:f, s:b}", "schema", "tonnage.frontier/1", "axes", axes(frontier),
		"cards", cards(frontier), "batch", frontier->batch > 0 ? json_integer(frontier->batch) : json_null(), "trials",
		frontier->trials, "forked_trials", frontier->forked, "not_forked_because", tn__json_text(frontier->not_forked),
		"seconds", frontier->seconds, "interrupted", frontier->interrupted);
	TN_RETURN_IF(object == NULL, TN_NO_MEMORY, "out of host memory");
	bool good = tn__json_write(object, out, JSON_INDENT(1)) == 0 && fputc('\n', out) != EOF && fflush(out) == 0;
	json_decref(object);
	TN_RETURN_IF(!good, TN_IO, "the table could not be written: %s", strerror(errno));
	return TN_OK;
}

/* ---- the page ---- */

static bool
some_fit(const struct tn_frontier *frontier)
{
	for (size_t i = 0; i < frontier->card_count; i++)
		for (int row = 0; row < frontier->rows; row++)
			if (frontier->cards[i].rows[row].largest > 0)
				return true;
	return false;
}

static json_t *
headline(const struct tn_frontier *frontier, const char *title)
{
	char words[TN_WORDS_ROOM];
	json_t *lines = json_array();
	tn__page_add_line(lines, frontier->interrupted ? TN_INTERRUPTED_WORDS : NULL);
	tn__page_add_line(lines, tn__frontier_growth(frontier, words));
	return json_pack("{s:s, s:s, s:o, s:[], s:n, s:[]}", "verdict", some_fit(frontier) ? "fits" : "out_of_memory",
	                 "title", title, "lines", lines, "at", "why", "do");
}

static json_t *
shown_rows(const struct tn_frontier *frontier, const struct tn_frontier_card *card)
{
	char name[TN_WORDS_ROOM], largest[TN_WORDS_ROOM], plan[TN_WORDS_ROOM];
	json_t *array = json_array();
	int columns = (int)frontier->axes[0].value_count;
	for (int i = 0; i < frontier->rows; i++) {
		const struct tn_frontier_row *row = &card->rows[i];
		json_t *cells = json_array();
		for (int j = 0; j < columns; j++) {
			static const char *const outcomes[] = { "unknown", "fits", "out_of_memory", "failed" };
			const struct tn_frontier_point *point = &card->points[i * columns + j];
			json_array_append_new(cells,
			                      json_pack("{s:s, s:b, s:o, s:o}", "outcome", outcomes[point->outcome], "tried",
			                                point->tried, "peak_device_bytes", tn__json_figure(point->device_peak),
			                                "why_not", tn__json_text(point->why_not)));
		}
		json_array_append_new(
			array, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "name", tn__frontier_row_words(frontier, i, name),
		                     "largest", tn__frontier_largest(row, largest), "peak_device_bytes",
		                     tn__json_figure(row->device_peak), "margin_bytes", tn__json_figure(row->margin), "plan",
		                     tn__json_text(tn__frontier_plan(frontier, row, plan)), "cells", cells));
	}
	return array;
}

static json_t *
shown(const struct tn_frontier *frontier)
{
	json_t *list = json_array(), *columns = json_array();
	for (size_t i = 0; i < frontier->axes[0].value_count; i++)
		json_array_append_new(columns, json_integer(frontier->axes[0].values[i]));
	for (size_t i = 0; i < frontier->card_count; i++)
		json_array_append_new(list, json_pack("{s:s, s:I, s:o}", "name", frontier->cards[i].gpu.name, "total_bytes",
		                                      (json_int_t)frontier->cards[i].gpu.total_bytes, "rows",
		                                      shown_rows(frontier, &frontier->cards[i])));
	return json_pack("{s:o, s:o, s:o, s:o}", "axis", tn__json_text(frontier->axes[0].name), "columns", columns, "batch",
	                 frontier->batch > 0 ? json_integer(frontier->batch) : json_null(), "cards", list);
}

static tn_status
fill(const struct tn_frontier *frontier, const char *title, json_t *page)
{
	char words[TN_WORDS_ROOM];
	json_t *about = json_array();
	tn__page_add_fact(about, "command", frontier->command);
	tn__page_add_fact(about, "search", tn__trials_words(frontier->trials, frontier->seconds, -1, words));
	TN_FORWARD_IF_ERROR(tn__page_set(page, "about", about));
	TN_FORWARD_IF_ERROR(tn__page_set(page, "headline", headline(frontier, title)));
	return tn__page_set(page, "frontier", shown(frontier));
}

tn_status
tn__frontier_page(const struct tn_frontier *frontier, FILE *out)
{
	char title[TN_WORDS_ROOM];
	snprintf(title, sizeof(title), "The largest %s that fits", frontier->axes[0].name);
	json_t *page = tn__page_new(title);
	tn_status status = page != NULL ? fill(frontier, title, page) : tn__fail(TN_NO_MEMORY, "out of host memory");
	if (status == TN_OK)
		status = tn__page_put(page, out);
	json_decref(page);
	return status;
}
