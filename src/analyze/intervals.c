/* SPDX-License-Identifier: Apache-2.0
 *
 * When each block and each segment lived: allocations are paired with frees by address, and with what the snapshot
 * says of the end. The trace may have lost its oldest events, and a recorder may have left some out: what is freed
 * without having been allocated was there before.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/error.h"

/* What an action means to a track. */
enum role { NOTHING, BEGIN, ASK, END };

static const uint8_t block_roles[TN_ACTION_OTHER + 1] = {
	[TN_ACTION_ALLOC] = BEGIN, [TN_ACTION_FREE_REQUESTED] = ASK, [TN_ACTION_FREE_COMPLETED] = END
};
static const uint8_t segment_roles[TN_ACTION_OTHER + 1] = {
	[TN_ACTION_SEGMENT_ALLOC] = BEGIN, [TN_ACTION_SEGMENT_FREE] = END
};

/* A block or segment of the snapshot itself. */
struct last {
	uint64_t address, size, requested;
	tn_stack stack;
	bool pending;
};

struct pairing {
	struct tn_analysis *analysis;
	struct tn_track *track;
	const uint8_t *roles;
	uint32_t *open;  /* by place: the interval that lives there now */
	uint32_t *since; /* by place: the state in which the last one had gone */
	struct last *lasts;
	size_t last_count, last_capacity;
	bool asks;              /* the trace holds requests to free */
	size_t same, different; /* frees with the stack of their allocation, and with another */
};

static bool
is_event(const struct pairing *pairing, size_t event)
{
	const struct tn_event_columns *events = &pairing->analysis->events;
	return pairing->roles[events->actions[event]] != NOTHING && events->addresses[event] != TN_UNKNOWN;
}

/* ---- what there is ---- */

static tn_status
add_last(struct pairing *pairing, struct last last)
{
	if (last.size == 0 || last.address == TN_UNKNOWN)
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn__grow(&pairing->analysis->budget, &pairing->lasts, &pairing->last_capacity,
	                             pairing->last_count + 1, sizeof(*pairing->lasts)));
	pairing->lasts[pairing->last_count++] = last;
	return TN_OK;
}

static tn_status
add_blocks(struct pairing *pairing, const struct tn_segment *segment)
{
	const struct tn_block *blocks;
	tn_snapshot_blocks(pairing->analysis->snapshot, &blocks);
	for (size_t index = segment->first_block; index < segment->first_block + segment->blocks; index++) {
		const struct tn_block *block = &blocks[index];
		if (block->state != TN_BLOCK_LIVE && block->state != TN_BLOCK_PENDING)
			continue;
		TN_FORWARD_IF_ERROR(add_last(pairing, (struct last){ .address = block->address,
		                                                     .size = block->size,
		                                                     .requested = block->requested,
		                                                     .stack = block->stack,
		                                                     .pending = block->state == TN_BLOCK_PENDING }));
	}
	return TN_OK;
}

/* The rows of the snapshot that belong to the track. */
static tn_status
gather_lasts(struct pairing *pairing)
{
	const struct tn_segment *segments;
	size_t count = tn_snapshot_segments(pairing->analysis->snapshot, &segments);
	bool blocks = pairing->roles == block_roles;
	for (size_t index = 0; index < count; index++) {
		const struct tn_segment *segment = &segments[index];
		if (segment->device != pairing->analysis->device || segment->host)
			continue;
		if (blocks)
			TN_FORWARD_IF_ERROR(add_blocks(pairing, segment));
		else if (!segment->expandable && segment->total != TN_UNKNOWN)
			TN_FORWARD_IF_ERROR(add_last(pairing, (struct last){ .address = segment->address,
			                                                     .size = segment->total,
			                                                     .requested = segment->total,
			                                                     .stack = segment->stack }));
	}
	return TN_OK;
}

static tn_status
gather_places(struct pairing *pairing)
{
	const struct tn_event_columns *events = &pairing->analysis->events;
	size_t count = pairing->last_count;
	for (size_t event = 0; event < events->count; event++)
		count += is_event(pairing, event);
	TN_RETURN_IF(count >= TN_NO_ADDRESS, TN_LIMIT, "more than 2^32 blocks");
	uint64_t *addresses = malloc((count + 1) * sizeof(*addresses));
	TN_RETURN_IF(!addresses, TN_NO_MEMORY, "no host memory for %zu addresses", count);
	size_t at = 0;
	for (size_t event = 0; event < events->count; event++) {
		if (is_event(pairing, event))
			addresses[at++] = events->addresses[event];
		pairing->asks = pairing->asks || pairing->roles[events->actions[event]] == ASK;
	}
	for (size_t index = 0; index < pairing->last_count; index++)
		addresses[at++] = pairing->lasts[index].address;
	tn__address_index_take(&pairing->track->places, addresses, at);
	pairing->open = malloc((pairing->track->places.count + (size_t)1) * sizeof(*pairing->open));
	pairing->since = calloc(pairing->track->places.count + (size_t)1, sizeof(*pairing->since));
	TN_RETURN_IF(!pairing->open || !pairing->since, TN_NO_MEMORY, "no host memory for %zu places", at);
	memset(pairing->open, 0xff, (pairing->track->places.count + (size_t)1) * sizeof(*pairing->open));
	return TN_OK;
}

/* ---- events ---- */

static tn_status
add_interval(struct pairing *pairing, struct tn_interval interval)
{
	struct tn_track *track = pairing->track;
	TN_FORWARD_IF_ERROR(tn__grow(&pairing->analysis->budget, &track->intervals, &track->capacity, track->count + 1,
	                             sizeof(*track->intervals)));
	interval.address = track->places.addresses[interval.place];
	pairing->open[interval.place] = (uint32_t)track->count;
	track->intervals[track->count++] = interval;
	return TN_OK;
}

static void
close_place(struct pairing *pairing, uint32_t place, uint32_t state)
{
	if (pairing->open[place] != TN_NO_INTERVAL) {
		struct tn_interval *interval = &pairing->track->intervals[pairing->open[place]];
		interval->gone = state;
		interval->until = interval->until < state ? interval->until : state;
	}
	pairing->open[place] = TN_NO_INTERVAL;
	pairing->since[place] = state;
}

static uint64_t
size_of_event(const struct tn_event_columns *events, size_t event)
{
	return events->sizes[event] == TN_UNKNOWN ? 0 : events->sizes[event];
}

static tn_status
begin(struct pairing *pairing, size_t event, uint32_t place)
{
	const struct tn_event_columns *events = &pairing->analysis->events;
	uint32_t state = (uint32_t)event + 1;
	close_place(pairing, place, state); /* its free was left out */
	return add_interval(pairing, (struct tn_interval){ .requested = size_of_event(events, event),
	                                                   .from = state,
	                                                   .until = TN_NEVER,
	                                                   .gone = TN_NEVER,
	                                                   .stack = events->stacks[event],
	                                                   .place = place,
	                                                   .begun = true });
}

/* Whether frees carry the stack of their allocation is a setting that no snapshot holds. */
static void
compare_stacks(struct pairing *pairing, const struct tn_interval *interval, tn_stack stack)
{
	if (!interval->begun || interval->stack == 0)
		return;
	pairing->same += interval->stack == stack;
	pairing->different += interval->stack != stack;
}

static tn_status
end(struct pairing *pairing, size_t event, uint32_t place, bool gone)
{
	const struct tn_event_columns *events = &pairing->analysis->events;
	uint32_t state = (uint32_t)event + 1;
	if (pairing->open[place] == TN_NO_INTERVAL)
		TN_FORWARD_IF_ERROR(add_interval(
			pairing, (struct tn_interval){ .requested = size_of_event(events, event),
		                                   .from = pairing->since[place],
		                                   .until = gone && pairing->asks ? pairing->since[place] : TN_NEVER,
		                                   .gone = TN_NEVER,
		                                   .stack = events->stacks[event],
		                                   .place = place }));
	struct tn_interval *interval = &pairing->track->intervals[pairing->open[place]];
	pairing->analysis->by_event[event] = pairing->open[place];
	compare_stacks(pairing, interval, events->stacks[event]);
	if (interval->until == TN_NEVER)
		interval->until = state;
	if (gone)
		close_place(pairing, place, state);
	return TN_OK;
}

static tn_status
pair_events(struct pairing *pairing)
{
	const struct tn_event_columns *events = &pairing->analysis->events;
	for (size_t event = 0; event < events->count; event++) {
		if (!is_event(pairing, event))
			continue;
		uint32_t place = tn__place_of(&pairing->track->places, events->addresses[event]);
		enum role role = (enum role)pairing->roles[events->actions[event]];
		TN_FORWARD_IF_ERROR(role == BEGIN ? begin(pairing, event, place) : end(pairing, event, place, role == END));
		if (role == BEGIN)
			pairing->analysis->by_event[event] = pairing->open[place];
	}
	return TN_OK;
}

/* ---- the end ---- */

static uint64_t
requested_of(const struct last *last, const struct tn_interval *interval)
{
	uint64_t requested = last->requested != TN_UNKNOWN ? last->requested : interval->requested;
	return requested == TN_UNKNOWN || requested > last->size ? last->size : requested;
}

/* Finds or makes the interval of a row of the snapshot. */
static tn_status
settle_last(struct pairing *pairing, const struct last *last)
{
	uint32_t count = (uint32_t)pairing->analysis->events.count;
	uint32_t place = tn__place_of(&pairing->track->places, last->address), number = pairing->open[place];
	struct tn_interval *interval = number == TN_NO_INTERVAL ? NULL : &pairing->track->intervals[number];
	if (interval && interval->size)
		return TN_OK; /* two rows with one address: the first counts */
	if (interval && !last->pending && interval->until != TN_NEVER) {
		close_place(pairing, place, count); /* allocated again, unseen */
		interval = NULL;
	}
	if (!interval) {
		uint32_t since = pairing->since[place];
		TN_FORWARD_IF_ERROR(add_interval(pairing, (struct tn_interval){ .requested = TN_UNKNOWN,
		                                                                .from = since,
		                                                                .until = last->pending ? since : TN_NEVER,
		                                                                .gone = TN_NEVER,
		                                                                .place = place }));
		interval = &pairing->track->intervals[pairing->open[place]];
	}
	if (last->pending && interval->until == TN_NEVER)
		interval->until = count;
	interval->size = last->size;
	interval->requested = requested_of(last, interval);
	if (!interval->begun || interval->stack == 0)
		interval->stack = last->stack;
	return TN_OK;
}

/* What the snapshot does not know of any more was freed without a trace. */
static void
close_the_lost(struct pairing *pairing)
{
	for (uint32_t place = 0; place < pairing->track->places.count; place++) {
		uint32_t number = pairing->open[place];
		if (number != TN_NO_INTERVAL && pairing->track->intervals[number].size == 0)
			close_place(pairing, place, (uint32_t)pairing->analysis->events.count);
	}
}

/* Where frees have stacks of their own, those of blocks from before the trace are not known. */
static void
forget_stacks(struct pairing *pairing)
{
	if (pairing->different <= pairing->same)
		return;
	for (size_t index = 0; index < pairing->track->count; index++) {
		struct tn_interval *interval = &pairing->track->intervals[index];
		if (!interval->begun && interval->size == 0)
			interval->stack = 0;
	}
}

static tn_status
pair(struct pairing *pairing)
{
	TN_FORWARD_IF_ERROR(gather_lasts(pairing));
	TN_FORWARD_IF_ERROR(gather_places(pairing));
	TN_FORWARD_IF_ERROR(pair_events(pairing));
	for (size_t index = 0; index < pairing->last_count; index++)
		TN_FORWARD_IF_ERROR(settle_last(pairing, &pairing->lasts[index]));
	close_the_lost(pairing);
	forget_stacks(pairing);
	return TN_OK;
}

static tn_status
find(struct tn_analysis *analysis, struct tn_track *track, const uint8_t *roles)
{
	struct pairing pairing = { .analysis = analysis, .track = track, .roles = roles };
	tn_status status = pair(&pairing);
	free(pairing.open);
	free(pairing.since);
	tn__release(&analysis->budget, &pairing.lasts, &pairing.last_capacity, sizeof(*pairing.lasts));
	return status;
}

tn_status
tn__find_intervals(struct tn_analysis *analysis)
{
	analysis->by_event = malloc((analysis->events.count + 1) * sizeof(*analysis->by_event));
	TN_RETURN_IF(!analysis->by_event, TN_NO_MEMORY, "no host memory for %zu events", analysis->events.count);
	memset(analysis->by_event, 0xff, (analysis->events.count + 1) * sizeof(*analysis->by_event));
	TN_FORWARD_IF_ERROR(find(analysis, &analysis->blocks, block_roles));
	TN_FORWARD_IF_ERROR(find(analysis, &analysis->segments, segment_roles));
	for (size_t index = 0; index < analysis->segments.count; index++) {
		struct tn_interval *segment = &analysis->segments.intervals[index];
		if (segment->size == 0)
			segment->size = segment->requested;
	}
	return TN_OK;
}
