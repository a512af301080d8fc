/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-tensor optimizers work on all parameters at once, with temporaries as large as these.
 */
#include "analyze/findings.h"

#define LEAST ((uint64_t)256 << 20)

tn_status
tn__find_foreach(const struct tn_look_around *around, struct tn_found_list *list)
{
	uint64_t bytes = 0;
	const struct tn_site *largest = NULL;
	char a[40];
	for (size_t index = 0; index < around->site_count; index++) {
		const struct tn_site *site = &around->sites[index];
		bool optimizer = around->analysis->traits[site->origin.stack] & TN_STACK_OPTIMIZER;
		if (!optimizer || site->category != TN_CATEGORY_temporaries)
			continue;
		bytes += site->bytes;
		largest = largest ? largest : site;
	}
	if (bytes < LEAST || bytes < around->analysis->reserved[around->state] / 10)
		return TN_OK;
	struct tn_found *found =
		tn__found(list, "foreach_temporaries", TN_WEIGHT_HINT, bytes,
	              "the optimizer works on all parameters at once, with %s of temporaries at this moment",
	              tn__found_size(bytes, a));
	if (found) {
		found->at = tn__line_of_origin(&largest->origin);
		found->advice = "foreach=False or fused=True among the optimizer's arguments";
	}
	return TN_OK;
}
