/* SPDX-License-Identifier: Apache-2.0
 *
 * Cache that nobody needs: reserved at the end, although no moment of the last two steps used it.
 */
#include "analyze/findings.h"

#define LEAST ((uint64_t)512 << 20)

tn_status
tn__find_unused_cache(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	const struct tn_analysis *analysis = around->analysis;
	const struct tn_metadata *metadata = &analysis->metadata;
	uint64_t most = 0, reserved = analysis->reserved[analysis->events.count];
	char a[40];
	if (metadata->steps_count < 3)
		return TN_OK;
	uint32_t first = tn__state_at(analysis, metadata->steps[metadata->steps_count - 3].time);
	for (size_t event = first; event < analysis->events.count; event++) {
		if (analysis->events.actions[event] == TN_ACTION_OOM) /* then it was needed */
			return TN_OK;
	}
	for (size_t state = first; state <= analysis->events.count; state++)
		most = analysis->allocated[state] > most ? analysis->allocated[state] : most;
	if (reserved < most || reserved - most < LEAST || reserved - most < reserved / 3)
		return TN_OK;
	tn__found(list, TN_FINDING_unused_cache, reserved - most, "PyTorch keeps %s that the last two steps never used",
	          tn__found_size(reserved - most, a));
	return TN_OK;
}
