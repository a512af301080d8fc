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

tn_status
tn__find_buckets(const struct tn_look_around *around, struct tn_found_list *list)
{
	const struct tn_site *largest = NULL;
	uint64_t bytes = 0;
	char a[40];
	for (size_t index = 0; index < around->site_count; index++) {
		const struct tn_site *site = &around->sites[index];
		if (site->category != TN_CATEGORY_temporaries || !tn__made_by_ddp(around->analysis, site->origin.stack))
			continue;
		bytes += site->bytes;
		largest = largest ? largest : site;
	}
	if (bytes < LEAST || bytes < around->analysis->reserved[around->state] / 20)
		return TN_OK;
	struct tn_found *found = tn__found(list, "ddp_buckets", TN_WEIGHT_HINT, bytes,
	                                   "DistributedDataParallel keeps a second copy of the gradients, %s, in its buckets",
	                                   tn__found_size(bytes, a));
	if (found) {
		found->avoidable = true;
		found->at = tn__line_of_origin(&largest->origin);
		found->advice = "DistributedDataParallel(model, gradient_as_bucket_view=True): gradients lie in the buckets";
	}
	return TN_OK;
}
