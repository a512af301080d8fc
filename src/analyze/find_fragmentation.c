/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is reserved, and free, in pieces: how much, which block pins most of it, and what expandable segments
 * would give back, which unmap whole pages of 2 MiB that no block touches.
 */
#include "analyze/findings.h"

#define MIB ((uint64_t)1 << 20)
#define PAGE (2 * MIB)
#define LEAST (256 * MIB)

/* The segment with the most free bytes that something alive keeps from going. */
static const struct tn_layout_segment *
worst_pinned(const struct tn_layout *layout)
{
	const struct tn_layout_segment *worst = NULL;
	for (size_t index = 0; index < layout->segment_count; index++) {
		const struct tn_layout_segment *segment = &layout->segments[index];
		if (segment->live && !segment->expandable && (!worst || segment->free > worst->free))
			worst = segment;
	}
	return worst;
}

static const struct tn_layout_block *
largest_live(const struct tn_layout *layout, const struct tn_layout_segment *segment)
{
	const struct tn_layout_block *largest = NULL;
	for (size_t index = segment->first_block; index < segment->first_block + segment->blocks; index++) {
		const struct tn_layout_block *block = &layout->blocks[index];
		if (block->interval != TN_NO_INTERVAL && !block->pending && (!largest || block->size > largest->size))
			largest = block;
	}
	return largest;
}

tn_status
tn__find_fragmentation(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	const struct tn_layout *layout = &around->layout;
	uint64_t idle = 0, pinned = 0, pages = 0, largest = 0;
	size_t pieces = 0;
	char a[40], b[40], c[40];
	for (size_t index = 0; index < layout->segment_count; index++) {
		const struct tn_layout_segment *segment = &layout->segments[index];
		idle += segment->free;
		pinned += segment->live && !segment->expandable ? segment->free : 0;
		largest = segment->largest_free > largest ? segment->largest_free : largest;
		for (size_t block = segment->first_block; block < segment->first_block + segment->blocks; block++) {
			bool gap = layout->blocks[block].interval == TN_NO_INTERVAL;
			pieces += gap;
			pages += gap && !segment->expandable ? layout->blocks[block].size / PAGE * PAGE : 0;
		}
	}
	if (!tn__is_worth_saying(around, pinned, LEAST, 5))
		return TN_OK;
	const struct tn_layout_segment *worst = worst_pinned(layout);
	const struct tn_layout_block *block = worst ? largest_live(layout, worst) : NULL;
	struct tn_trace_finding *found = tn__found(
		list, TN_FINDING_fragmentation, pinned,
		"%s of what PyTorch reserved lies unused in %zu pieces, the largest %s; %s of it is in segments that "
		"live tensors hold",
		tn__found_size(idle, a), pieces, tn__found_size(largest, b), tn__found_size(pinned, c));
	if (found && block) {
		struct tn_origin origin = tn__origin_of_interval(around->analysis,
		                                                 &around->analysis->blocks.intervals[block->interval]);
		found->at = tn__line_of_origin(&origin);
	}
	if (found && pages < pinned / 2)
		found->advice = ""; /* what a setting can do is too little */
	return TN_OK;
}
