/* SPDX-License-Identifier: Apache-2.0
 *
 * The course of the memory in a bounded number of columns. Each is one real moment, so that its figures can be asked
 * about; peaks stay, since a column's moment is its own peak.
 */
#include <stdlib.h>

#include "analyze/history.h"
#include "base/error.h"

struct sharing {
	const struct tn_analysis *analysis;
	uint32_t *edges; /* first states of the columns, then the number of states */
	size_t count;    /* of columns */
};

static uint64_t
held(const struct tn_analysis *analysis, uint32_t state)
{
	uint64_t allocated = analysis->allocated[state], reserved = analysis->reserved[state];
	return allocated > reserved ? allocated : reserved;
}

static bool
holds_more(const struct tn_analysis *analysis, uint32_t state, uint32_t than)
{
	uint64_t left = held(analysis, state), right = held(analysis, than);
	return left != right ? left > right : analysis->allocated[state] > analysis->allocated[than];
}

static uint32_t
moment_of(const struct tn_analysis *analysis, uint32_t first, uint32_t end)
{
	uint32_t best = first;
	for (uint32_t state = first + 1; state < end; state++) {
		if (holds_more(analysis, state, best))
			best = state;
	}
	return best;
}

/* ---- columns ---- */

static int
compare_states(const void *left, const void *right)
{
	const uint32_t *one = left, *other = right;
	return (*one > *other) - (*one < *other);
}

static void
drop_doubles(struct sharing *sharing, size_t count)
{
	size_t kept = 0;
	qsort(sharing->edges, count, sizeof(*sharing->edges), compare_states);
	for (size_t index = 0; index < count; index++) {
		if (kept == 0 || sharing->edges[index] != sharing->edges[kept - 1])
			sharing->edges[kept++] = sharing->edges[index];
	}
	sharing->count = kept - 1;
}

/* Cuts a column before and after a state that is not its moment. */
static void
cut_at(struct sharing *sharing, uint32_t state)
{
	size_t column = 0;
	while (column + 1 < sharing->count && sharing->edges[column + 1] <= state)
		column++;
	if (moment_of(sharing->analysis, sharing->edges[column], sharing->edges[column + 1]) == state)
		return;
	sharing->edges[sharing->count + 1] = state;
	sharing->edges[sharing->count + 2] = state + 1;
	drop_doubles(sharing, sharing->count + 3);
}

static tn_status
share_out(struct sharing *sharing, size_t most, const uint32_t *named, size_t named_count)
{
	size_t states = sharing->analysis->events.count + 1;
	sharing->count = states < most ? states : most;
	sharing->edges = malloc((sharing->count + 1 + 2 * named_count) * sizeof(*sharing->edges));
	TN_RETURN_IF(!sharing->edges, TN_NO_MEMORY, "no host memory for %zu columns", sharing->count);
	for (size_t column = 0; column <= sharing->count; column++)
		sharing->edges[column] = (uint32_t)(column * states / sharing->count);
	for (size_t index = 0; index < named_count; index++)
		cut_at(sharing, named[index]);
	return TN_OK;
}

/* ---- what each holds ---- */

static void
set_time(const struct tn_analysis *analysis, struct tn_column *column)
{
	const struct tn_event_columns *events = &analysis->events;
	int64_t last = INT64_MAX;
	if (events->count)
		column->time_us = events->times[column->moment ? column->moment - 1 : 0];
	if (column->moment < events->count)
		last = column->time_us;
	const struct tn_metadata_phase *phase = tn__phase_at(&analysis->metadata, last);
	column->phase = phase ? phase->name : NULL;
	column->step = phase && phase->step > 0 ? phase->step : 0;
}

static void
set_column(const struct sharing *sharing, size_t index, struct tn_column *column)
{
	const struct tn_analysis *analysis = sharing->analysis;
	uint32_t end = sharing->edges[index + 1];
	column->first = sharing->edges[index];
	column->moment = moment_of(analysis, column->first, end);
	column->low = UINT64_MAX;
	for (uint32_t state = column->first; state < end; state++)
		column->low = analysis->allocated[state] < column->low ? analysis->allocated[state] : column->low;
	set_time(analysis, column);
}

/* Differences first, wrapping, then their sums. */
static void
add_parts(const struct tn_analysis *analysis, const struct tn_part_list *parts, struct tn_timeline *timeline)
{
	for (size_t index = 0; index < parts->count; index++) {
		const struct tn_part *part = &parts->items[index];
		const struct tn_interval *block = &analysis->blocks.intervals[part->interval];
		size_t begin = tn__column_from(timeline, block->from), end = tn__column_from(timeline, block->until);
		if (begin >= end)
			continue;
		timeline->columns[begin].bytes[part->category] += part->bytes;
		if (end < timeline->count)
			timeline->columns[end].bytes[part->category] -= part->bytes;
	}
	for (size_t column = 1; column < timeline->count; column++) {
		for (size_t category = 0; category < TN_CATEGORIES; category++)
			timeline->columns[column].bytes[category] += timeline->columns[column - 1].bytes[category];
	}
}

static void
add_rest(const struct tn_analysis *analysis, struct tn_column *column)
{
	uint64_t requested = 0, allocated = analysis->allocated[column->moment];
	for (size_t category = 0; category < TN_CATEGORY_rounding; category++)
		requested += column->bytes[category];
	column->bytes[TN_CATEGORY_rounding] = allocated > requested ? allocated - requested : 0;
	column->bytes[TN_CATEGORY_cached] = held(analysis, column->moment) - allocated;
}

static tn_status
fill(const struct sharing *sharing, const struct tn_part_list *parts, struct tn_timeline *timeline)
{
	timeline->count = sharing->count;
	timeline->states = (uint32_t)sharing->analysis->events.count + 1;
	timeline->columns = calloc(sharing->count, sizeof(*timeline->columns));
	TN_RETURN_IF(!timeline->columns, TN_NO_MEMORY, "no host memory for %zu columns", sharing->count);
	for (size_t index = 0; index < timeline->count; index++)
		set_column(sharing, index, &timeline->columns[index]);
	add_parts(sharing->analysis, parts, timeline);
	for (size_t index = 0; index < timeline->count; index++)
		add_rest(sharing->analysis, &timeline->columns[index]);
	return TN_OK;
}

tn_status
tn__timeline_make(const struct tn_analysis *analysis, const struct tn_part_list *parts, size_t most,
                  const uint32_t *named, size_t named_count, struct tn_timeline *out)
{
	struct sharing sharing = { .analysis = analysis };
	struct tn_timeline timeline = { 0 };
	tn_status status = share_out(&sharing, most, named, named_count);
	if (status == TN_OK)
		status = fill(&sharing, parts, &timeline);
	free(sharing.edges);
	if (status == TN_OK)
		*out = timeline;
	else
		tn__timeline_free(&timeline);
	return status;
}

void
tn__timeline_free(struct tn_timeline *timeline)
{
	free(timeline->columns);
	*timeline = (struct tn_timeline){ 0 };
}

size_t
tn__column_from(const struct tn_timeline *timeline, uint32_t state)
{
	size_t low = 0, high = timeline->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (timeline->columns[middle].moment < state)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t
tn__column_of(const struct tn_timeline *timeline, uint32_t state)
{
	size_t low = 0, high = timeline->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (timeline->columns[middle].first <= state)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : 0;
}
