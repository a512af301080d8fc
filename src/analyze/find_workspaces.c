/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspaces of libraries that take a notable share.
 */
#include "analyze/findings.h"

#define LEAST ((uint64_t)256 << 20)

static bool
is_workspace(const struct tn_analysis *analysis, const struct tn_site *site)
{
	return site->category == TN_CATEGORY_workspaces;
}

tn_status
tn__find_workspaces(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	struct tn_site_sum sum = tn__sum_sites(around, is_workspace);
	char a[40];
	if (!tn__is_worth_saying(around, sum.bytes, LEAST, 10))
		return TN_OK;
	const char *library = sum.largest->label && *sum.largest->label ? sum.largest->label : "of an unknown one";
	struct tn_trace_finding *found = tn__found(list, TN_FINDING_library_workspaces, sum.bytes,
	                                           "libraries hold %s as working memory, most of it %.80s",
	                                           tn__found_size(sum.bytes, a), library);
	if (found)
		found->at = tn__line_of_origin(&sum.largest->origin);
	return TN_OK;
}
