/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage.report/1 (doc/format/report.schema.json): the run's objects for the moment shown, and the course, the stacks
 * and the segments around it. Texts are escaped by jansson; what is not UTF-8 is replaced.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/json_parts.h"
#include "report/inspection_writers.h"

#define MOST_COLUMNS 2000
#define LISTED_SITES 1000
#define LISTED_FRAMES 64
#define LISTED_SEGMENTS 10000
#define LISTED_CHANGES 2000

static json_t *
bytes(uint64_t value)
{
	return value == TN_UNKNOWN || value > INT64_MAX ? json_null() : json_integer((json_int_t)value);
}

static json_t *
input(const struct tn_inspection *inspection)
{
	bool snapshot = inspection->snapshot != NULL;
	return json_pack("{s:o, s:s, s:o, s:o}", "file", tn__json_text(inspection->path), "kind",
	                 snapshot ? "snapshot" : "run", "events",
	                 snapshot ? json_integer((json_int_t)inspection->analysis->events.count) : json_null(), "marked",
	                 snapshot ? json_boolean(inspection->analysis->marked) : json_null());
}

static json_t *
gpu(const struct tn_inspection *inspection)
{
	const struct tn_gpu_figures *card = &inspection->report.gpu;
	if (inspection->snapshot == NULL)
		return json_pack("{s:o, s:I, s:I}", "name", tn__json_text(card->name), "total_bytes",
		                 (json_int_t)card->total_bytes, "context_bytes", (json_int_t)card->context_bytes);
	if (inspection->card_total == TN_NO_FIGURE)
		return json_null();
	return json_pack("{s:n, s:I, s:o}", "name", "total_bytes", (json_int_t)inspection->card_total, "context_bytes",
	                 tn__json_figure(inspection->card.context));
}

static json_t *
moment(const struct tn_inspection *inspection)
{
	if (inspection->snapshot == NULL)
		return json_null();
	const struct tn_moment *shown = &inspection->moment;
	return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:o}", "name", tn__moment_name_text(inspection->named[0].name),
	                 "state", (json_int_t)inspection->named[0].state, "time_us",
	                 shown->time_us > 0 ? json_integer(shown->time_us) : json_null(), "reserved_bytes",
	                 bytes(shown->reserved), "allocated_bytes", bytes(shown->allocated), "requested_bytes",
	                 bytes(shown->requested), "largest_free_block_bytes", bytes(shown->largest_free_block));
}

static json_t *
devices(const struct tn_inspection *inspection)
{
	json_t *array = json_array();
	for (size_t i = 0; i < inspection->device_count; i++)
		json_array_append_new(array, json_integer(inspection->devices[i]));
	return array;
}

/* ---- timeline ---- */

/* What the device held beside PyTorch's allocator is added; a category of which nothing is known is left out. */
static json_t *
category_columns(const struct tn_inspection *inspection, const struct tn_timeline *timeline)
{
	json_t *object = json_object();
	for (size_t category = 0; category < TN_CATEGORIES; category++) {
		bool constant = category > TN_CATEGORY_cached;
		int64_t beside = tn__inspection_beside(inspection, (enum tn_category)category);
		if (constant && beside == TN_NO_FIGURE)
			continue;
		beside = beside > 0 ? beside : 0;
		json_t *array = json_array();
		for (size_t i = 0; i < timeline->count; i++)
			json_array_append_new(array, constant ? tn__json_figure(beside)
			                                      : bytes(timeline->columns[i].bytes[category] + (uint64_t)beside));
		json_object_set_new(object, tn__category_name((enum tn_category)category), array);
	}
	return object;
}

static json_t *
fill_timeline(const struct tn_inspection *inspection, const struct tn_timeline *timeline)
{
	const struct tn_analysis *analysis = inspection->analysis;
	json_t *state = json_array(), *time = json_array(), *step = json_array(), *phase = json_array();
	json_t *reserved = json_array(), *allocated = json_array();
	for (size_t i = 0; i < timeline->count; i++) {
		const struct tn_column *column = &timeline->columns[i];
		json_array_append_new(state, json_integer(column->moment));
		json_array_append_new(time, column->time_us > 0 ? json_integer(column->time_us) : json_null());
		json_array_append_new(step, column->step > 0 ? json_integer(column->step) : json_null());
		json_array_append_new(phase, tn__json_text(column->phase));
		json_array_append_new(reserved, bytes(analysis->reserved[column->moment]));
		json_array_append_new(allocated, bytes(analysis->allocated[column->moment]));
	}
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "states", (json_int_t)timeline->states, "state", state,
	                 "time_us", time, "step", step, "phase", phase, "reserved_bytes", reserved, "allocated_bytes",
	                 allocated, "by_category", category_columns(inspection, timeline));
}

static tn_status
make_timeline(const struct tn_inspection *inspection, json_t **out)
{
	struct tn_timeline timeline;
	uint32_t named[4];
	if (inspection->snapshot == NULL) {
		*out = json_null();
		return TN_OK;
	}
	for (size_t i = 0; i < inspection->named_count; i++)
		named[i] = inspection->named[i].state;
	TN_FORWARD_IF_ERROR(tn__timeline_make(inspection->analysis, &inspection->parts, MOST_COLUMNS, named,
	                                      inspection->named_count, &timeline));
	*out = fill_timeline(inspection, &timeline);
	tn__timeline_free(&timeline);
	return TN_OK;
}

/* ---- sites ---- */

static json_t *
frames(const struct tn_inspection *inspection, tn_stack stack)
{
	const uint32_t *numbers;
	size_t count = tn_snapshot_stack(inspection->snapshot, stack, &numbers);
	json_t *array = json_array();
	for (size_t i = 0; i < count && i < LISTED_FRAMES; i++) {
		struct tn_frame frame = tn_snapshot_frame(inspection->snapshot, numbers[i]);
		json_array_append_new(array, json_pack("{s:o, s:I, s:o}", "file",
		                                       tn__json_text(tn__inspection_file(inspection, frame.file)), "line",
		                                       (json_int_t)frame.line, "function", tn__json_text(frame.function)));
	}
	return array;
}

static json_t *
line_object(const struct tn_inspection *inspection, const struct tn_line *line)
{
	if (line->file == NULL)
		return json_null();
	return json_pack("{s:o, s:I, s:o, s:b}", "file", tn__json_text(tn__inspection_file(inspection, line->file)), "line",
	                 (json_int_t)line->line, "function", tn__json_text(line->function), "backward", line->backward);
}

static tn_status
make_sites(const struct tn_inspection *inspection, size_t top, json_t **out)
{
	struct tn_site *sites;
	size_t count;
	*out = json_array();
	if (inspection->snapshot == NULL)
		return TN_OK;
	TN_FORWARD_IF_ERROR(
		tn__sites_of(inspection->analysis, &inspection->parts, inspection->named[0].state, NULL, &sites, &count));
	for (size_t i = 0; i < count && i < (top > 0 ? top : LISTED_SITES); i++) {
		const struct tn_site *site = &sites[i];
		json_array_append_new(
			*out, json_pack("{s:s, s:o, s:I, s:o, s:o, s:o}", "category", tn__category_name(site->category), "bytes",
		                    bytes(site->bytes), "blocks", (json_int_t)site->blocks, "at",
		                    line_object(inspection, &site->origin.at), "what",
		                    tn__json_text(site->label != NULL && site->label[0] != '\0' ? site->label : NULL), "stack",
		                    frames(inspection, site->origin.stack)));
	}
	free(sites);
	return TN_OK;
}

/* ---- segments ---- */

/* The largest live block: the segment cannot go before it does. */
static json_t *
pinned_by(const struct tn_inspection *inspection, const struct tn_layout *layout,
          const struct tn_layout_segment *segment)
{
	const struct tn_layout_block *largest = NULL;
	for (size_t i = segment->first_block; i < segment->first_block + segment->blocks; i++) {
		const struct tn_layout_block *block = &layout->blocks[i];
		if (block->interval != TN_NO_INTERVAL && (largest == NULL || block->size > largest->size))
			largest = block;
	}
	if (largest == NULL)
		return json_null();
	const struct tn_interval *interval = &inspection->analysis->blocks.intervals[largest->interval];
	struct tn_origin origin = tn__origin_of_interval(inspection->analysis, interval);
	return json_pack("{s:o, s:o}", "bytes", bytes(largest->size), "at", line_object(inspection, &origin.at));
}

static json_t *
segment_object(const struct tn_inspection *inspection, const struct tn_layout *layout,
               const struct tn_layout_segment *segment)
{
	size_t live = 0;
	for (size_t i = segment->first_block; i < segment->first_block + segment->blocks; i++)
		live += layout->blocks[i].interval != TN_NO_INTERVAL && !layout->blocks[i].pending;
	bool private = segment->pool[0] != TN_UNKNOWN && (segment->pool[0] != 0 || segment->pool[1] != 0);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:b, s:b, s:b, s:o, s:o}", "address", bytes(segment->address),
	                 "bytes", bytes(segment->size), "live_bytes", bytes(segment->live), "free_bytes",
	                 bytes(segment->free), "largest_free_bytes", bytes(segment->largest_free), "live_blocks",
	                 (json_int_t)live, "small", segment->small, "expandable", segment->expandable, "private", private,
	                 "stream", bytes(segment->stream), "pinned_by", pinned_by(inspection, layout, segment));
}

static tn_status
make_segments(const struct tn_inspection *inspection, json_t **out)
{
	struct tn_layout layout;
	*out = json_array();
	if (inspection->snapshot == NULL)
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn__layout_of(inspection->analysis, inspection->named[0].state, &layout));
	for (size_t i = 0; i < layout.segment_count && i < LISTED_SEGMENTS; i++)
		json_array_append_new(*out, segment_object(inspection, &layout, &layout.segments[i]));
	tn__layout_free(&layout);
	return TN_OK;
}

/* ---- comparison ---- */

static json_t *
comparison_object(const struct tn_comparison *comparison)
{
	if (comparison == NULL)
		return json_null();
	json_t *lines = json_array();
	for (size_t i = 0; i < comparison->count && i < LISTED_CHANGES; i++) {
		const struct tn_change *change = &comparison->changes[i];
		json_array_append_new(
			lines,
			json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "category", tn__category_name(change->category),
		              "before_at", tn__json_place(change->before_at), "after_at", tn__json_place(change->after_at),
		              "before_bytes", tn__json_figure(change->before), "after_bytes", tn__json_figure(change->after),
		              "before_blocks", tn__json_figure(change->before_blocks), "after_blocks",
		              tn__json_figure(change->after_blocks)));
	}
	return json_pack("{s:o, s:o, s:o, s:o}", "before", tn__json_text(comparison->before->path), "before_by_category",
	                 tn__json_categories(tn__inspection_moment(comparison->before)), "after_by_category",
	                 tn__json_categories(tn__inspection_moment(comparison->after)), "lines", lines);
}

/* ---- the whole ---- */

/* The run's objects list holders up to their own limit: `top` shortens that. */
static json_t *
shortened(json_t *object, size_t top)
{
	json_t *holders = json_object_get(object, "holders");
	while (top > 0 && json_array_size(holders) > top)
		json_array_remove(holders, json_array_size(holders) - 1);
	return object;
}

static bool
set_all(json_t *object, const struct tn_inspection *inspection, const struct tn_comparison *comparison, size_t top)
{
	const struct tn_report *report = &inspection->report;
	const struct {
		const char *name;
		json_t *value;
	} fields[] = {
		{ "schema", json_string("tonnage.report/1") },
		{ "input", input(inspection) },
		{ "device", inspection->snapshot != NULL ? json_integer(inspection->device) : json_null() },
		{ "devices", devices(inspection) },
		{ "gpu", gpu(inspection) },
		{ "verdict", inspection->snapshot == NULL ? json_string(tn__verdict_text(report->verdict)) : json_null() },
		{ "moment", moment(inspection) },
		{ "inferred", json_boolean(tn__inspection_moment(inspection)->inferred) },
		{ "peak", tn__json_peak(report) },
		{ "at_peak", shortened(tn__json_at_peak(report), top) },
		{ "out_of_memory", shortened(tn__json_out_of_memory(report), top) },
		{ "findings", tn__json_findings(report) },
		{ "regions", tn__json_regions(report) },
		{ "comparison", comparison_object(comparison) },
	};
	bool complete = true;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (json_object_set_new(object, fields[i].name, fields[i].value) != 0)
			complete = false;
	return complete;
}

static tn_status
fill(json_t *object, const struct tn_inspection *inspection, const struct tn_comparison *comparison, size_t top)
{
	json_t *timeline = NULL, *sites = NULL, *segments = NULL;
	bool complete = set_all(object, inspection, comparison, top);
	TN_FORWARD_IF_ERROR(make_timeline(inspection, &timeline));
	complete &= json_object_set_new(object, "timeline", timeline) == 0;
	TN_FORWARD_IF_ERROR(make_sites(inspection, top, &sites));
	complete &= json_object_set_new(object, "sites", sites) == 0;
	TN_FORWARD_IF_ERROR(make_segments(inspection, &segments));
	complete &= json_object_set_new(object, "segments", segments) == 0;
	TN_RETURN_IF(!complete, TN_NO_MEMORY, "out of host memory while writing JSON");
	return TN_OK;
}

tn_status
tn__inspection_json(const struct tn_shown_inspection *shown, FILE *out)
{
	json_t *object = json_object();
	TN_RETURN_IF(object == NULL, TN_NO_MEMORY, "out of host memory while writing JSON");
	tn_status status = fill(object, shown->inspection, shown->comparison, shown->top);
	if (status == TN_OK &&
	    (tn__json_write(object, out, JSON_INDENT(1)) != 0 || fputc('\n', out) == EOF || fflush(out) != 0))
		status = tn__fail(TN_STATE, "the JSON report could not be written: %s", strerror(errno));
	json_decref(object);
	return status;
}
