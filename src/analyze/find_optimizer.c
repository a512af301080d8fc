/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-tensor optimizers work on all parameters at once, with temporaries as large as these.
 */
#include "analyze/findings.h"

#define LEAST ((uint64_t)256 << 20)

static bool
is_wanted(const struct tn_analysis *analysis, const struct tn_site *site)
{
	return (analysis->traits[site->origin.stack] & TN_STACK_OPTIMIZER) && site->category == TN_CATEGORY_temporaries;
}

tn_status
tn__find_foreach(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	struct tn_site_sum sum = tn__sum_sites(around, is_wanted);
	char a[40];
	if (!tn__is_worth_saying(around, sum.bytes, LEAST, 10))
		return TN_OK;
	struct tn_trace_finding *found = tn__found(
		list, TN_FINDING_foreach_temporaries, sum.bytes,
		"the optimizer works on all parameters at once, with %s of temporaries at this moment",
		tn__found_size(sum.bytes, a));
	if (found)
		found->at = tn__line_of_origin(&sum.largest->origin);
	return TN_OK;
}
