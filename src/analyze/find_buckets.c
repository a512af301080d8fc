/* SPDX-License-Identifier: Apache-2.0
 *
 * The buckets that DistributedDataParallel sums gradients in: as large as these, and beside them unless asked otherwise.
 */
#include <string.h>

#include "analyze/findings.h"

#define LEAST ((uint64_t)256 << 20)

bool
tn__made_by_ddp(const struct tn_analysis *analysis, tn_stack stack)
{
	static const char ending[] = "torch/nn/parallel/distributed.py";
	const uint32_t *frames;
	if (tn_snapshot_stack(analysis->snapshot, stack, &frames) == 0)
		return false;
	const char *file = tn_snapshot_frame(analysis->snapshot, frames[0]).file;
	size_t length = strlen(file), wanted = sizeof(ending) - 1;
	return length >= wanted && strcmp(file + length - wanted, ending) == 0;
}

static bool
is_bucket(const struct tn_analysis *analysis, const struct tn_site *site)
{
	return site->category == TN_CATEGORY_communication && tn__made_by_ddp(analysis, site->origin.stack);
}

tn_status
tn__find_buckets(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	struct tn_site_sum sum = tn__sum_sites(around, is_bucket);
	char a[40];
	if (!tn__is_worth_saying(around, sum.bytes, LEAST, 20))
		return TN_OK;
	struct tn_trace_finding *found = tn__found(
		list, TN_FINDING_ddp_buckets, sum.bytes,
		"DistributedDataParallel keeps a second copy of the gradients, %s, in its buckets",
		tn__found_size(sum.bytes, a));
	if (found) {
		found->avoidable = true;
		found->at = tn__line_of_origin(&sum.largest->origin);
	}
	return TN_OK;
}
