/* SPDX-License-Identifier: Apache-2.0
 *
 * What DataParallel gathers on one card: the outputs of all of them.
 */
#include <string.h>

#include "analyze/findings.h"

#define LEAST ((uint64_t)64 << 20)

static bool
ends_with(const char *text, const char *ending)
{
	size_t length = strlen(text), wanted = strlen(ending);
	return length >= wanted && strcmp(text + length - wanted, ending) == 0;
}

/* Allocated below the function of DataParallel that brings outputs together, whatever calls it. */
static bool
is_gathered(const struct tn_analysis *analysis, const struct tn_site *site)
{
	const uint32_t *frames;
	size_t count = tn_snapshot_stack(analysis->snapshot, site->origin.stack, &frames);
	for (size_t i = 0; i < count; i++) {
		struct tn_frame frame = tn_snapshot_frame(analysis->snapshot, frames[i]);
		if (ends_with(frame.file, "torch/nn/parallel/scatter_gather.py") && strcmp(frame.function, "gather") == 0)
			return true;
	}
	return false;
}

tn_status
tn__find_gathered_outputs(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	struct tn_site_sum sum = tn__sum_sites(around, is_gathered);
	char a[40];
	if (!tn__is_worth_saying(around, sum.bytes, LEAST, 10))
		return TN_OK;
	struct tn_trace_finding *found = tn__found(list, TN_FINDING_gathered_outputs, sum.bytes,
	                                           "DataParallel gathers the outputs of all cards on one, %s",
	                                           tn__found_size(sum.bytes, a));
	if (found) {
		found->avoidable = true;
		found->at = tn__line_of_origin(&sum.largest->origin);
	}
	return TN_OK;
}
