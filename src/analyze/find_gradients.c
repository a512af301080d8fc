/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients at the wrong time: that live through a forward pass and are then thrown away, or that are thrown away
 * without an update having used them.
 */
#include <string.h>

#include "analyze/findings.h"

#define LEAST ((uint64_t)64 << 20)

static bool
is_named(const struct tn_metadata_phase *phase, const char *name)
{
	return strcmp(phase->name, name) == 0;
}

/* Gradients that are alive at a state and gone before another one; the largest in *largest. */
static uint64_t
gone_between(const struct tn_look_around *around, uint32_t alive, uint32_t gone, uint32_t *largest)
{
	const struct tn_interval *blocks = around->analysis->blocks.intervals;
	uint64_t bytes = 0, most = 0;
	for (size_t index = 0; index < around->parts->count; index++) {
		const struct tn_part *part = &around->parts->items[index];
		const struct tn_interval *block = &blocks[part->interval];
		if (part->category != TN_CATEGORY_gradients || !tn__is_alive(block, alive) || block->until > gone)
			continue;
		bytes += part->bytes;
		if (part->bytes > most) {
			most = part->bytes;
			*largest = part->interval;
		}
	}
	return bytes;
}

/* The line that zeroed it, by the metadata; the line of the free, where the trace has it, else that of the allocation. */
static struct tn_line
line_of_end(const struct tn_analysis *analysis, uint32_t interval)
{
	const struct tn_interval *block = &analysis->blocks.intervals[interval];
	const struct tn_event_columns *events = &analysis->events;
	if (block->until > 0 && block->until <= events->count) {
		struct tn_line call = tn__line_of_call(analysis, "zero_grad", events->times[block->from] * 1000,
		                                       (events->times[block->until - 1] + 1) * 1000);
		if (call.file)
			return call;
	}
	if (block->until > 0 && block->until <= events->count) {
		tn_stack stack = events->stacks[block->until - 1];
		if (stack != block->stack && stack != 0)
			return tn__line_of_stack(analysis, stack);
	}
	struct tn_origin origin = tn__origin_of_interval(analysis, block);
	return tn__line_of_origin(&origin);
}

/* What a backward pass made, and left when it ended, that was gone when the next one began: gradients, since nothing else
 * outlives it. Their category may be unknown: the metadata name gradients as an update finds them. */
static uint64_t
lost_between(const struct tn_analysis *analysis, uint32_t begin, uint32_t end, uint32_t next, uint32_t *largest)
{
	uint64_t bytes = 0, most = 0;
	for (uint32_t number = 0; number < analysis->blocks.count; number++) {
		const struct tn_interval *block = &analysis->blocks.intervals[number];
		bool made = block->begun && block->from > begin && block->from <= end;
		if (!made || !tn__is_alive(block, end) || block->until > next || block->stack != 0)
			continue;
		bytes += block->requested;
		if (block->requested > most) {
			most = block->requested;
			*largest = number;
		}
	}
	return bytes;
}

static uint64_t
bytes_of_parameters(const struct tn_look_around *around)
{
	uint64_t bytes = 0;
	for (size_t index = 0; index < around->site_count; index++)
		bytes += around->sites[index].category == TN_CATEGORY_parameters ? around->sites[index].bytes : 0;
	return bytes;
}

/* Bounded: a few passes are enough to see it. */
enum { MOST_PASSES = 16 };

tn_status
tn__find_gradients_in_forward(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	const struct tn_analysis *analysis = around->analysis;
	const struct tn_metadata *metadata = &analysis->metadata;
	uint64_t most = 0;
	uint32_t at = TN_NO_INTERVAL;
	char a[40];
	for (size_t index = 0, passes = 0; index + 1 < metadata->phases_count && passes < MOST_PASSES; index++) {
		if (!is_named(&metadata->phases[index], "forward"))
			continue;
		size_t next = index + 1;
		while (next < metadata->phases_count && !is_named(&metadata->phases[next], "backward"))
			next++;
		if (next == metadata->phases_count)
			break;
		uint32_t largest = TN_NO_INTERVAL;
		uint32_t end = tn__state_at(analysis, metadata->phases[index + 1].time);
		uint64_t bytes = gone_between(around, end, tn__state_at(analysis, metadata->phases[next].time) + 1, &largest);
		if (bytes > most) {
			most = bytes;
			at = largest;
		}
		passes++;
	}
	if (most < LEAST || most < around->peak / 20)
		return TN_OK;
	struct tn_trace_finding *found = tn__found(
		list, TN_FINDING_gradients_live_through_forward, most,
		"%s of gradients are kept through the forward pass and dropped before the "
		"backward pass",
		tn__found_size(most, a));
	if (found)
		found->at = line_of_end(analysis, at);
	return TN_OK;
}

tn_status
tn__find_zeroing(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	const struct tn_analysis *analysis = around->analysis;
	const struct tn_metadata *metadata = &analysis->metadata;
	size_t lost = 0, passes = 0;
	uint64_t bytes = 0, model = bytes_of_parameters(around);
	uint32_t at = TN_NO_INTERVAL, begin = 0, end = 0;
	bool updated = true;
	for (size_t index = 0; index + 1 < metadata->phases_count && passes < MOST_PASSES; index++) {
		updated |= is_named(&metadata->phases[index], "optimizer");
		if (!is_named(&metadata->phases[index], "backward"))
			continue;
		uint32_t largest = TN_NO_INTERVAL, next = tn__state_at(analysis, metadata->phases[index].time);
		uint64_t gone = updated ? 0 : lost_between(analysis, begin, end, next, &largest);
		if (gone > 0 && gone >= model / 2) {
			lost++;
			bytes = gone;
			at = largest;
		}
		passes++;
		updated = false;
		begin = next;
		end = tn__state_at(analysis, metadata->phases[index + 1].time);
	}
	if (lost < 2 || model == 0)
		return TN_OK;
	struct tn_trace_finding *found = tn__found(
		list, TN_FINDING_zero_grad_every_micro_step, bytes,
		"the gradients of %zu of %zu backward passes were dropped before any update "
		"used them",
		lost, passes);
	if (found) {
		found->at = line_of_end(analysis, at);
		found->sure = "inferred from what a backward pass left behind";
	}
	return TN_OK;
}
