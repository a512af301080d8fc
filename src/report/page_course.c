/* SPDX-License-Identifier: Apache-2.0
 *
 * Level of detail is decided here: the numbers of columns, rows and changes are bounded, and what is left out is the
 * smallest.
 */
#include "report/page_course.h"

#include <stdlib.h>

#include "base/error.h"
#include "report/page_course_parts.h"

#define MOST_COLUMNS 2000

/* ---- the timeline ---- */

/* What PyTorch's allocator does not hold of a category. */
static int64_t
beside(const struct tn_inspection *inspection, size_t category)
{
	int64_t bytes = tn__inspection_beside(inspection, (enum tn_category)category);
	return bytes > 0 ? bytes : 0;
}

/* The column of a category, which is taken over; one of nothing but zeros is left out. */
static void
set_category(json_t *object, size_t category, json_t *column, bool any)
{
	if (any)
		json_object_set_new(object, tn__category_name((enum tn_category)category), column);
	else
		json_decref(column);
}

static json_t *
bytes_by_category(const struct tn_inspection *inspection, const struct tn_timeline *timeline)
{
	json_t *object = json_object();
	for (size_t category = 0; category < TN_CATEGORIES; category++) {
		struct tn_page_steps column = tn__page_steps();
		bool any = false;
		for (size_t i = 0; i < timeline->count; i++) {
			json_int_t value = beside(inspection, category);
			if (category <= TN_CATEGORY_cached)
				value += tn__page_counted(timeline->columns[i].bytes[category]);
			any |= value != 0;
			tn__page_step(&column, value);
		}
		set_category(object, category, column.array, any);
	}
	return object;
}

static json_t *
timeline_object(const struct tn_inspection *inspection, const struct tn_timeline *timeline,
                struct tn_page_tables *tables)
{
	struct tn_page_steps first = tn__page_steps(), time = tn__page_steps(), number = tn__page_steps();
	struct tn_page_steps low = tn__page_steps();
	json_t *at = json_array(), *phase = json_array();
	for (size_t i = 0; i < timeline->count; i++) {
		const struct tn_column *column = &timeline->columns[i];
		tn__page_step(&first, column->first);
		tn__page_push(at, column->moment - column->first);
		tn__page_step(&time, column->time_us > inspection->first_us ? column->time_us - inspection->first_us : 0);
		tn__page_step(&number, column->step > 0 ? column->step : 0);
		tn__page_push(phase, tn__page_string(tables, column->phase));
		tn__page_step(&low, tn__page_counted(column->low));
	}
	if (inspection->last_us == 0) {
		json_decref(time.array);
		time.array = json_null();
	}
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "states", (json_int_t)timeline->states, "first",
	                 first.array, "at", at, "time_us", time.array, "step", number.array, "phase", phase, "bytes",
	                 bytes_by_category(inspection, timeline), "low", low.array);
}

static json_t *
moment_object(const struct tn_inspection *inspection, enum tn_moment_name name, size_t column)
{
	static const char *const words[] = { "Peak", "Out of memory", "End", "Asked for" };
	const struct tn_report_oom *oom = &inspection->report.oom;
	bool failed = name == TN_MOMENT_OOM && oom->seen;
	return json_pack(
		"{s:s, s:s, s:I, s:o, s:o, s:o}", "name", tn__moment_name_text(name), "words", words[name], "column",
		(json_int_t)column, "requested_bytes",
		failed && oom->requested_bytes >= 0 ? json_integer(oom->requested_bytes) : json_null(), "free_bytes",
		failed && oom->free_bytes >= 0 ? json_integer(oom->free_bytes) : json_null(), "largest_free_block_bytes",
		failed && oom->largest_free_block_bytes >= 0 ? json_integer(oom->largest_free_block_bytes) : json_null());
}

/* ---- the whole, of a snapshot ---- */

static tn_status
write_course(const struct tn_inspection *inspection, const struct tn_timeline *timeline, struct tn_page_tables *tables,
             json_t *object)
{
	json_t *moments = json_array();
	struct tn_page_alive alive = { .inspection = inspection, .timeline = timeline, .tables = tables };
	for (size_t i = 0; i < inspection->named_count; i++)
		json_array_append_new(moments, moment_object(inspection, inspection->named[i].name,
		                                             tn__column_of(timeline, inspection->named[i].state)));
	TN_FORWARD_IF_ERROR(tn__page_set(object, "moments", moments));
	TN_FORWARD_IF_ERROR(tn__page_set(object, "timeline", timeline_object(inspection, timeline, tables)));
	tn_status status = tn__page_write_alive(&alive, object);
	tn__page_alive_free(&alive);
	return status == TN_OK ? tn__page_write_segments(inspection, tables, object) : status;
}

static tn_status
write_snapshot(const struct tn_inspection *inspection, struct tn_page_tables *tables, json_t *object)
{
	struct tn_timeline timeline;
	uint32_t named[4];
	for (size_t i = 0; i < inspection->named_count; i++)
		named[i] = inspection->named[i].state;
	TN_FORWARD_IF_ERROR(tn__timeline_make(inspection->analysis, &inspection->parts, MOST_COLUMNS, named,
	                                      inspection->named_count, &timeline));
	tn_status status = write_course(inspection, &timeline, tables, object);
	tn__timeline_free(&timeline);
	return status;
}

/* ---- the JSON of a run: single moments ---- */

struct single {
	const struct tn_report_moment *moment;
	enum tn_moment_name name;
};

static int64_t
held(const struct tn_report_moment *moment, size_t category)
{
	return moment->by_category[category] > 0 ? moment->by_category[category] : 0;
}

/* Of that what PyTorch's allocator holds. */
static int64_t
held_by_pytorch(const struct tn_report_moment *moment, size_t category)
{
	int64_t beside = category == TN_CATEGORY_communication ? moment->split.communication : 0;
	return held(moment, category) - (beside > 0 ? beside : 0);
}

static json_t *
single_bytes(const struct single *singles, size_t count)
{
	json_t *object = json_object();
	for (size_t category = 0; category < TN_CATEGORIES; category++) {
		struct tn_page_steps column = tn__page_steps();
		bool any = false;
		for (size_t i = 0; i < count; i++) {
			any |= held(singles[i].moment, category) > 0;
			tn__page_step(&column, held(singles[i].moment, category));
		}
		set_category(object, category, column.array, any);
	}
	return object;
}

static json_t *
single_timeline(const struct single *singles, size_t count, struct tn_page_tables *tables)
{
	struct tn_page_steps first = tn__page_steps(), number = tn__page_steps(), low = tn__page_steps();
	json_t *at = json_array(), *phase = json_array();
	for (size_t i = 0; i < count; i++) {
		int64_t allocated = 0;
		for (size_t category = 0; category < TN_CATEGORY_cached; category++)
			allocated += held_by_pytorch(singles[i].moment, category);
		tn__page_step(&first, (json_int_t)i);
		tn__page_push(at, 0);
		tn__page_step(&number, singles[i].moment->step > 0 ? singles[i].moment->step : 0);
		tn__page_push(phase, tn__page_string(tables, singles[i].moment->phase));
		tn__page_step(&low, allocated);
	}
	return json_pack("{s:I, s:o, s:o, s:n, s:o, s:o, s:o, s:o}", "states", (json_int_t)count, "first", first.array,
	                 "at", at, "time_us", "step", number.array, "phase", phase, "bytes", single_bytes(singles, count),
	                 "low", low.array);
}

/* What the holders of a moment hold, and what is left of each category. */
static tn_status
list_single(struct tn_page_alive *alive, const struct single *single, uint32_t column)
{
	const struct tn_report_moment *moment = single->moment;
	size_t room = alive->change_count + 2 * (moment->holder_count + TN_CATEGORY_rounding);
	struct tn_page_change *changes = reallocarray(alive->changes, room, sizeof(*changes));
	int64_t rest[TN_CATEGORIES];
	TN_RETURN_IF(changes == NULL, TN_NO_MEMORY, "out of host memory for the page");
	alive->changes = changes;
	size_t first = alive->change_count;
	for (size_t category = 0; category < TN_CATEGORIES; category++)
		rest[category] = held_by_pytorch(moment, category);
	for (size_t i = 0; i < moment->holder_count; i++) {
		const struct tn_report_holder *holder = &moment->holders[i];
		if (holder->category >= TN_CATEGORY_rounding || holder->bytes <= 0 || holder->bytes > rest[holder->category])
			continue;
		rest[holder->category] -= holder->bytes;
		changes[alive->change_count++] = (struct tn_page_change){ .site = tn__page_site_of_place(alive->tables,
			                                                                                     &holder->at),
			                                                      .bytes = holder->bytes,
			                                                      .blocks = holder->blocks > 0 ? holder->blocks : 1,
			                                                      .column = column,
			                                                      .label = tn__page_string(alive->tables, holder->what),
			                                                      .category = (uint8_t)holder->category };
	}
	for (size_t category = 0; category < TN_CATEGORY_other; category++)
		if (rest[category] > 0)
			changes[alive->change_count++] = (struct tn_page_change){ .site = TN_PAGE_MANY_SITES,
				                                                      .bytes = rest[category],
				                                                      .blocks = 1,
				                                                      .column = column,
				                                                      .category = (uint8_t)category };
	size_t end = alive->change_count;
	for (size_t i = first; i < end && column + 1 < alive->timeline->count; i++) {
		struct tn_page_change gone = changes[i];
		gone.bytes = -gone.bytes;
		gone.blocks = -gone.blocks;
		gone.column = column + 1;
		changes[alive->change_count++] = gone;
	}
	return TN_OK;
}

static tn_status
write_single(const struct single *singles, size_t count, struct tn_page_alive *alive, json_t *object)
{
	json_t *moments = json_array();
	size_t shown = count > 1 ? 1 : 0; /* the out-of-memory is more important */
	for (size_t i = 0; i < count; i++) {
		size_t column = i == 0 ? shown : 0;
		json_array_append_new(moments, moment_object(alive->inspection, singles[column].name, column));
	}
	TN_FORWARD_IF_ERROR(tn__page_set(object, "moments", moments));
	TN_FORWARD_IF_ERROR(tn__page_set(object, "timeline", single_timeline(singles, count, alive->tables)));
	TN_FORWARD_IF_ERROR(tn__page_set(object, "intervals", tn__page_intervals(alive, 0)));
	for (size_t i = 0; i < count; i++)
		TN_FORWARD_IF_ERROR(list_single(alive, &singles[i], (uint32_t)i));
	tn__page_join_changes(alive);
	return tn__page_set(object, "small", tn__page_small(alive));
}

static tn_status
write_run(const struct tn_inspection *inspection, struct tn_page_tables *tables, json_t *object)
{
	const struct tn_report *report = &inspection->report;
	struct single singles[2];
	size_t count = 0;
	if (tn__report_is_told(&report->at_peak))
		singles[count++] = (struct single){ &report->at_peak, TN_MOMENT_PEAK };
	if (report->oom.seen && tn__report_is_told(&report->at_oom))
		singles[count++] = (struct single){ &report->at_oom, TN_MOMENT_OOM };
	struct tn_timeline timeline = { .count = count };
	struct tn_page_alive alive = { .inspection = inspection, .timeline = &timeline, .tables = tables };
	tn_status status = count > 0 ? write_single(singles, count, &alive, object) : TN_OK;
	tn__page_alive_free(&alive);
	return status;
}

tn_status
tn__page_course(const struct tn_inspection *inspection, struct tn_page_tables *tables, json_t *object)
{
	tn_status status = inspection->snapshot != NULL ? write_snapshot(inspection, tables, object)
	                                                : write_run(inspection, tables, object);
	TN_RETURN_IF(status == TN_OK && tn__page_tables_failed(tables), TN_NO_MEMORY, "out of host memory for the page");
	return status;
}
