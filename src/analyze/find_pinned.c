/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned memory of the host: it cannot be swapped out, and PyTorch rounds each piece up to a power of two.
 */
#include <stdlib.h>

#include "analyze/findings.h"
#include "base/error.h"

#define LEAST ((uint64_t)256 << 20)
#define HOST (-1)

tn_status
tn__find_pinned(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	struct tn_snapshot_totals totals = tn_snapshot_sum(around->analysis->snapshot, HOST);
	struct tn_holder *holders;
	size_t count;
	char a[40], b[40];
	if (totals.reserved < LEAST)
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn_snapshot_holders(around->analysis->snapshot, HOST, &holders, &count));
	struct tn_trace_finding *found = tn__found(list, TN_FINDING_pinned_host_memory, totals.reserved,
	                                           "%s of the computer's memory is pinned, for %s of tensors",
	                                           tn__found_size(totals.reserved, a), tn__found_size(totals.requested, b));
	if (found && count && holders[0].file)
		found->at = (struct tn_line){ .file = holders[0].file,
			                          .function = holders[0].function,
			                          .line = holders[0].line };
	if (found)
		found->advice = "pin_few"; /* nothing tells of a loader */
	free(holders);
	return TN_OK;
}
