/* SPDX-License-Identifier: Apache-2.0
 *
 * What an out-of-memory that the program caught left behind: its exception holds the frames that it went through, and these their
 * tensors, while the program tries again.
 */
#include "analyze/findings.h"

#define LEAST ((uint64_t)64 << 20)

/* The state at the last out-of-memory on this card whose exception was there as the program tried again; 0: there was none. */
static uint32_t
last_caught(const struct tn_look_around *around)
{
	const struct tn_analysis *analysis = around->analysis;
	const struct tn_metadata *metadata = &analysis->metadata;
	for (size_t i = metadata->ooms_count; i-- > 0;) {
		const struct tn_metadata_oom *oom = &metadata->ooms[i];
		const struct tn_metadata_call *kept = tn__call_between(metadata, "exception_kept", oom->time, INT64_MAX);
		if (oom->device == analysis->device && kept && tn__state_at(analysis, kept->time) <= around->state)
			return tn__state_at(analysis, oom->time);
	}
	return 0;
}

tn_status
tn__find_caught(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	const struct tn_interval *blocks = around->analysis->blocks.intervals;
	uint32_t caught = last_caught(around), largest = TN_NO_INTERVAL;
	uint64_t bytes = 0, most = 0;
	char a[40];
	for (size_t i = 0; caught > 0 && i < around->parts->count; i++) {
		const struct tn_part *part = &around->parts->items[i];
		const struct tn_interval *block = &blocks[part->interval];
		if (part->category != TN_CATEGORY_activations || !block->begun || block->from > caught ||
		    !tn__is_alive(block, around->state))
			continue;
		bytes += part->bytes;
		if (part->bytes > most) {
			most = part->bytes;
			largest = part->interval;
		}
	}
	if (!tn__is_worth_saying(around, bytes, LEAST, 10))
		return TN_OK;
	struct tn_trace_finding *found = tn__found(
		list, TN_FINDING_held_by_exception, bytes,
		"%s of activations from before an out-of-memory that the program caught are still there as it tries again: the "
		"exception holds them",
		tn__found_size(bytes, a));
	if (!found)
		return TN_OK;
	struct tn_origin origin = tn__origin_of_interval(around->analysis, &blocks[largest]);
	found->avoidable = true;
	found->activations = true;
	found->at = tn__line_of_origin(&origin);
	found->sure = "inferred from when they were made";
	return TN_OK;
}
