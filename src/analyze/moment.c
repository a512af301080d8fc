/* SPDX-License-Identifier: Apache-2.0
 *
 * One moment: its blocks by category and line, what is free, and what made it.
 */
#include "analyze/moment.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/history.h"
#include "base/error.h"

/* ---- what was alive ---- */

struct pieces {
	struct tn_budget budget;
	struct tn_piece *items;
	size_t count, capacity;
};

/* How many steps had ended before a block was made. */
static uint32_t
steps_before(const struct tn_analysis *analysis, const struct tn_interval *block)
{
	const struct tn_metadata *metadata = &analysis->metadata;
	size_t low = 0, high = block->begun ? metadata->steps_count : 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (metadata->steps[middle].time / 1000 <= analysis->events.times[block->from - 1])
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)low;
}

static tn_status
add_block(const struct tn_analysis *analysis, uint32_t number, struct tn_scratch *scratch, struct pieces *pieces,
          struct tn_moment *moment)
{
	struct tn_parts parts;
	const struct tn_interval *block = &analysis->blocks.intervals[number];
	struct tn_origin origin = tn__origin_of_interval(analysis, block);
	TN_FORWARD_IF_ERROR(tn__split_interval(analysis, number, scratch, &parts));
	moment->requested += block->requested;
	if (block->begun && !tn__was_made_in(analysis, block, "evaluation"))
		moment->of_training += parts.bytes[TN_CATEGORY_activations];
	moment->named_bytes += origin.at.file ? block->requested : 0;
	for (size_t category = 0; category < TN_CATEGORIES; category++) {
		if (parts.bytes[category] == 0)
			continue;
		moment->by_category[category] += parts.bytes[category];
		TN_FORWARD_IF_ERROR(
			tn__grow(&pieces->budget, &pieces->items, &pieces->capacity, pieces->count + 1, sizeof(*pieces->items)));
		pieces->items[pieces->count++] = (struct tn_piece){
			.bytes = parts.bytes[category],
			.origin = origin,
			.label = parts.labels[category],
			.visit = block->begun ? analysis->visits[block->from - 1] : 0,
			.step = steps_before(analysis, block),
			.category = (uint8_t)category,
		};
	}
	return TN_OK;
}

static tn_status
add_blocks(const struct tn_analysis *analysis, uint32_t state, struct tn_scratch *scratch, struct pieces *pieces,
           struct tn_moment *moment)
{
	for (uint32_t number = 0; number < analysis->blocks.count; number++) {
		if (tn__is_alive(&analysis->blocks.intervals[number], state))
			TN_FORWARD_IF_ERROR(add_block(analysis, number, scratch, pieces, moment));
	}
	TN_FORWARD_IF_ERROR(tn__label_pieces(analysis, pieces->items, pieces->count));
	return tn__join_pieces(analysis, pieces->items, pieces->count, moment);
}

static tn_status
find_holders(const struct tn_analysis *analysis, uint32_t state, struct tn_moment *moment)
{
	struct tn_scratch scratch = { 0 };
	struct pieces pieces = { .budget.limit = UINT64_MAX };
	tn_status status = add_blocks(analysis, state, &scratch, &pieces, moment);
	tn__scratch_free(&scratch);
	free(pieces.items);
	return status;
}

/* ---- what made it ---- */

/* The last allocation or out-of-memory before a state; `count` of the trace when there is none. */
static size_t
cause_of(const struct tn_analysis *analysis, uint32_t state)
{
	for (size_t event = state; event-- > 0;) {
		uint8_t action = analysis->events.actions[event];
		if (action == TN_ACTION_ALLOC || action == TN_ACTION_OOM)
			return event;
	}
	return analysis->events.count;
}

static void
find_cause(const struct tn_analysis *analysis, uint32_t state, struct tn_moment *moment)
{
	size_t event = cause_of(analysis, state);
	if (event == analysis->events.count)
		return;
	uint32_t number = analysis->by_event[event];
	struct tn_origin origin = number == TN_NO_INTERVAL
	                              ? tn__origin_of_event(analysis, event)
	                              : tn__origin_of_interval(analysis, &analysis->blocks.intervals[number]);
	moment->at = origin.at;
	moment->at_user = origin.user;
}

/* The time of the last event before a state. At the end of the trace all metadata have been made. */
static tn_status
find_time(const struct tn_analysis *analysis, uint32_t state, struct tn_moment *moment)
{
	const struct tn_event_columns *events = &analysis->events;
	int64_t last = INT64_MAX;
	moment->step = -1;
	if (events->count)
		moment->time_us = events->times[state ? state - 1 : 0];
	if (state < events->count)
		last = moment->time_us;
	const struct tn_metadata_phase *phase = tn__phase_at(&analysis->metadata, last);
	if (!phase)
		return TN_OK;
	size_t size = strlen(phase->name) + 1;
	char *name = malloc(size);
	TN_RETURN_IF(!name, TN_NO_MEMORY, "no host memory for a phase");
	moment->step = phase->step;
	moment->phase = memcpy(name, phase->name, size);
	return TN_OK;
}

/* ---- what was free ---- */

static tn_status
find_largest_free(const struct tn_analysis *analysis, uint32_t state, struct tn_moment *moment)
{
	struct tn_layout layout;
	TN_FORWARD_IF_ERROR(tn__layout_of(analysis, state, &layout));
	for (size_t index = 0; index < layout.segment_count; index++) {
		if (layout.segments[index].largest_free > moment->largest_free_block)
			moment->largest_free_block = layout.segments[index].largest_free;
	}
	tn__layout_free(&layout);
	return TN_OK;
}

/* ---- the whole ---- */

static tn_status
fill(const struct tn_analysis *analysis, uint32_t state, struct tn_moment *moment)
{
	TN_FORWARD_IF_ERROR(find_holders(analysis, state, moment));
	TN_FORWARD_IF_ERROR(find_largest_free(analysis, state, moment));
	TN_FORWARD_IF_ERROR(find_time(analysis, state, moment));
	find_cause(analysis, state, moment);
	moment->by_category[TN_CATEGORY_rounding] = moment->allocated - moment->requested;
	moment->by_category[TN_CATEGORY_cached] = moment->reserved - moment->allocated;
	return TN_OK;
}

tn_status
tn__moment_of_state(const struct tn_analysis *analysis, uint32_t state, struct tn_moment *out)
{
	struct tn_moment moment = {
		.device = analysis->device,
		.reserved = analysis->reserved[state],
		.allocated = analysis->allocated[state],
		.inferred = !analysis->marked,
	};
	TN_RETURN_IF(moment.allocated > moment.reserved, TN_FORMAT,
	             "%llu bytes are allocated of %llu that are reserved: the trace is incomplete",
	             (unsigned long long)moment.allocated, (unsigned long long)moment.reserved);
	tn_status status = fill(analysis, state, &moment);
	if (status == TN_OK)
		*out = moment;
	else
		tn__moment_free(&moment);
	return status;
}

void
tn__moment_free(struct tn_moment *moment)
{
	free(moment->holders);
	free(moment->labels);
	free((char *)moment->phase);
	moment->holders = NULL;
	moment->labels = NULL;
	moment->phase = NULL;
	moment->holder_count = 0;
}

/* The most that was reserved while no more than that was allocated. */
static uint64_t
most_reserved(const struct tn_analysis *analysis)
{
	uint64_t most = 0;
	for (size_t state = 0; state <= analysis->events.count; state++) {
		bool possible = analysis->allocated[state] <= analysis->reserved[state];
		if (possible && analysis->reserved[state] > most)
			most = analysis->reserved[state];
	}
	return most;
}

tn_status
tn__find_peak_state(const struct tn_analysis *analysis, uint64_t reserved, uint32_t *peak)
{
	bool found = false;
	uint32_t best = 0;
	if (reserved == TN_UNKNOWN)
		reserved = most_reserved(analysis);
	for (size_t state = 0; state <= analysis->events.count; state++) {
		uint64_t allocated = analysis->allocated[state];
		if (analysis->reserved[state] != reserved || allocated > reserved)
			continue;
		if (!found || allocated > analysis->allocated[best])
			best = (uint32_t)state;
		found = true;
	}
	TN_RETURN_IF(!found, TN_NOT_FOUND, "at no moment of the trace were %llu bytes reserved",
	             (unsigned long long)reserved);
	*peak = best;
	return TN_OK;
}

tn_status
tn__moment_of_peak(const struct tn_analysis *analysis, uint64_t reserved, struct tn_moment *out)
{
	uint32_t peak;
	TN_FORWARD_IF_ERROR(tn__find_peak_state(analysis, reserved, &peak));
	return tn__moment_of_state(analysis, peak, out);
}

tn_status
tn__moment_of_allocated(const struct tn_analysis *analysis, uint64_t allocated, struct tn_moment *out)
{
	for (size_t state = 0; state <= analysis->events.count; state++)
		if (analysis->allocated[state] == allocated && analysis->reserved[state] >= allocated)
			return tn__moment_of_state(analysis, (uint32_t)state, out);
	return tn__fail(TN_NOT_FOUND, "at no moment of the trace were %llu bytes allocated", (unsigned long long)allocated);
}

tn_status
tn__moment_of_end(const struct tn_analysis *analysis, struct tn_moment *out)
{
	return tn__moment_of_state(analysis, (uint32_t)analysis->events.count, out);
}
