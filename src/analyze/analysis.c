/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes an analysis, pass by pass, and the two curves of it: bytes allocated and reserved in every state.
 */
#include "analyze/analysis.h"

#include <stdlib.h>

#include "base/error.h"

/* A trace without events where the snapshot holds none of that device. */
static struct tn_event_columns
events_of(const struct tn_snapshot *snapshot, int device)
{
	for (size_t trace = 0; trace < tn_snapshot_traces(snapshot); trace++) {
		if (tn_snapshot_trace_device(snapshot, trace) == device)
			return tn_snapshot_columns(snapshot, trace);
	}
	return (struct tn_event_columns){0};
}

/* ---- curves ---- */

/* Differences first, wrapping, then their sums. */
static void
sum_allocated(struct tn_analysis *analysis)
{
	size_t count = analysis->events.count;
	for (size_t index = 0; index < analysis->blocks.count; index++) {
		const struct tn_interval *block = &analysis->blocks.intervals[index];
		analysis->allocated[block->from] += block->size;
		if (block->until <= count)
			analysis->allocated[block->until > block->from ? block->until : block->from] -= block->size;
	}
	for (size_t state = 1; state <= count; state++)
		analysis->allocated[state] += analysis->allocated[state - 1];
}

static uint64_t
reserved_at_the_end(const struct tn_analysis *analysis)
{
	const struct tn_segment *segments;
	uint64_t sum = 0;
	size_t count = tn_snapshot_segments(analysis->snapshot, &segments);
	for (size_t index = 0; index < count; index++) {
		if (segments[index].device == analysis->device && !segments[index].host && segments[index].total != TN_UNKNOWN)
			sum += segments[index].total;
	}
	return sum;
}

/* Backward from the end, since the snapshot knows only that. */
static void
sum_reserved(struct tn_analysis *analysis)
{
	const struct tn_event_columns *events = &analysis->events;
	uint64_t reserved = reserved_at_the_end(analysis);
	analysis->reserved[events->count] = reserved;
	for (size_t event = events->count; event-- > 0;) {
		uint64_t size = events->sizes[event] == TN_UNKNOWN ? 0 : events->sizes[event];
		uint8_t action = events->actions[event];
		if (action == TN_ACTION_SEGMENT_ALLOC || action == TN_ACTION_SEGMENT_MAP)
			reserved -= size;
		else if (action == TN_ACTION_SEGMENT_FREE || action == TN_ACTION_SEGMENT_UNMAP)
			reserved += size;
		analysis->reserved[event] = reserved;
	}
}

static tn_status
find_curves(struct tn_analysis *analysis)
{
	size_t states = analysis->events.count + 1;
	analysis->allocated = calloc(states, sizeof(*analysis->allocated));
	analysis->reserved = malloc(states * sizeof(*analysis->reserved));
	TN_RETURN_IF(!analysis->allocated || !analysis->reserved, TN_NO_MEMORY, "no host memory for %zu events", states);
	sum_allocated(analysis);
	sum_reserved(analysis);
	return TN_OK;
}

uint32_t
tn__state_at(const struct tn_analysis *analysis, int64_t nanoseconds)
{
	/* An event of microsecond u may have come as late as u.999: in the microsecond of a mark it counts as after it. */
	int64_t microsecond = nanoseconds / 1000;
	size_t low = 0, high = analysis->events.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (analysis->events.times[middle] < microsecond)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)low;
}

/* ---- the whole ---- */

static tn_status
use_marks(struct tn_analysis *analysis)
{
	size_t length;
	const char *text = tn_snapshot_marks(analysis->snapshot, &length);
	analysis->marked = text != NULL;
	if (!text)
		return tn__guess_categories(analysis);
	TN_FORWARD_IF_ERROR(tn__marks_parse(text, length, &analysis->marks));
	TN_FORWARD_IF_ERROR(tn__find_claims(analysis));
	return tn__find_runs(analysis);
}

static tn_status
fill(struct tn_analysis *analysis)
{
	TN_FORWARD_IF_ERROR(tn__find_intervals(analysis));
	TN_FORWARD_IF_ERROR(tn__find_sizes(analysis));
	TN_FORWARD_IF_ERROR(find_curves(analysis));
	TN_FORWARD_IF_ERROR(tn__find_traits(analysis));
	TN_FORWARD_IF_ERROR(use_marks(analysis));
	return tn__find_visits(analysis);
}

tn_status
tn__analysis_open(const struct tn_snapshot *snapshot, int device, struct tn_analysis **analysis)
{
	TN_RETURN_IF(device < 0, TN_INVALID, "device %d cannot be analysed", device);
	struct tn_analysis *fresh = calloc(1, sizeof(*fresh));
	TN_RETURN_IF(!fresh, TN_NO_MEMORY, "no host memory for an analysis");
	fresh->snapshot = snapshot;
	fresh->device = device;
	fresh->budget.limit = UINT64_MAX;
	fresh->events = events_of(snapshot, device);
	tn_status status = fill(fresh);
	if (status == TN_OK)
		*analysis = fresh;
	else
		tn__analysis_close(fresh);
	return status;
}

static void
free_track(struct tn_track *track)
{
	free(track->places.addresses);
	free(track->intervals);
}

void
tn__analysis_close(struct tn_analysis *analysis)
{
	if (!analysis)
		return;
	free_track(&analysis->blocks);
	free_track(&analysis->segments);
	free(analysis->by_event);
	free(analysis->allocated);
	free(analysis->reserved);
	free(analysis->traits);
	free(analysis->visits);
	tn__marks_free(&analysis->marks);
	free(analysis->claims);
	free(analysis->run_stacks);
	free(analysis->guesses);
	free(analysis);
}
