/* SPDX-License-Identifier: Apache-2.0
 *
 * The two curves of an analysis, bytes allocated and reserved in every state, and the state at a time.
 */
#include "analyze/analysis.h"

#include <stdlib.h>

#include "base/error.h"

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

tn_status
tn__find_curves(struct tn_analysis *analysis)
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
