/* SPDX-License-Identifier: Apache-2.0
 *
 * What DataParallel gathers on one card: the outputs of all of them.
 */
#include <string.h>

#include "analyze/findings.h"
#include "base/strings.h"

#define LEAST ((uint64_t)64 << 20)

static bool
gathers(struct tn_frame frame)
{
	return tn__ends_with(frame.file, "torch/nn/parallel/scatter_gather.py") && strcmp(frame.function, "gather") == 0;
}

enum side { BEFORE, GATHERED, OUTSIDE };

/* By the stack: below the function of DataParallel that brings outputs together, whatever calls it; at other work of DataParallel's; or
 * outside of it. */
static enum side
side_of(const struct tn_analysis *analysis, tn_stack stack)
{
	const uint32_t *frames;
	size_t count = tn_snapshot_stack(analysis->snapshot, stack, &frames);
	enum side side = count > 0 ? OUTSIDE : BEFORE;
	for (size_t i = 0; i < count; i++) {
		struct tn_frame frame = tn_snapshot_frame(analysis->snapshot, frames[i]);
		if (gathers(frame))
			return GATHERED;
		if (strstr(frame.file, "torch/nn/parallel/") != NULL)
			side = BEFORE;
	}
	return side;
}

/* Whether DataParallel is used at all: there are far fewer frames than blocks. */
static bool
has_gathering(const struct tn_snapshot *snapshot)
{
	for (size_t i = 0; i < tn_snapshot_frames(snapshot); i++)
		if (gathers(tn_snapshot_frame(snapshot, (uint32_t)i)))
			return true;
	return false;
}

static bool
is_gathered(const struct tn_analysis *analysis, const struct tn_site *site)
{
	return side_of(analysis, site->origin.stack) == GATHERED;
}

/* The state after the last allocation that gathered outputs, up to one; 0: there was none. */
static uint32_t
last_gathering(const struct tn_analysis *analysis, uint32_t state)
{
	uint32_t last = 0;
	for (uint32_t i = 0; i < analysis->blocks.count; i++) {
		const struct tn_interval *block = &analysis->blocks.intervals[i];
		if (block->begun && block->from > last && block->from <= state && side_of(analysis, block->stack) == GATHERED)
			last = block->from;
	}
	return last;
}

/* What passes, was made after outputs had been gathered, and outside of DataParallel: the loss and its backward pass. */
static uint64_t
computed_after(const struct tn_look_around *around, uint32_t gathering, uint32_t *largest)
{
	const struct tn_analysis *analysis = around->analysis;
	uint64_t bytes = 0, most = 0;
	for (size_t i = 0; i < around->parts->count; i++) {
		const struct tn_part *part = &around->parts->items[i];
		const struct tn_interval *block = &analysis->blocks.intervals[part->interval];
		bool passes = part->category == TN_CATEGORY_activations || part->category == TN_CATEGORY_temporaries;
		if (!passes || block->from <= gathering || !tn__is_alive(block, around->state))
			continue;
		struct tn_origin origin = tn__origin_of_interval(analysis, block);
		if (side_of(analysis, origin.stack) != OUTSIDE)
			continue;
		bytes += part->bytes;
		if (part->bytes > most) {
			most = part->bytes;
			*largest = part->interval;
		}
	}
	return bytes;
}

tn_status
tn__find_gathered_outputs(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	if (!has_gathering(around->analysis->snapshot))
		return TN_OK;
	struct tn_site_sum sum = tn__sum_sites(around, is_gathered);
	uint32_t gathering = last_gathering(around->analysis, around->state), largest = TN_NO_INTERVAL;
	uint64_t after = gathering > 0 ? computed_after(around, gathering, &largest) : 0;
	char a[40];
	if (!tn__is_worth_saying(around, sum.bytes + after, LEAST, 10))
		return TN_OK;
	/* With the loss inside each card computes its own part: of two cards half, of more of them less. */
	struct tn_trace_finding *found = tn__found(
		list, TN_FINDING_gathered_outputs, sum.bytes + after / 2,
		"DataParallel gathers the outputs of all cards on card %d: %s%s take%s %s", around->analysis->device,
		sum.bytes > 0 ? "they" : "what is computed from them",
		sum.bytes > 0 && after > 0 ? " and what is computed from them" : "", sum.bytes > 0 ? "" : "s",
		tn__found_size(sum.bytes + after, a));
	if (!found)
		return TN_OK;
	found->avoidable = true;
	if (sum.largest) {
		found->at = tn__line_of_origin(&sum.largest->origin);
	} else {
		struct tn_origin origin = tn__origin_of_interval(around->analysis,
		                                                 &around->analysis->blocks.intervals[largest]);
		found->at = tn__line_of_origin(&origin);
	}
	return TN_OK;
}
