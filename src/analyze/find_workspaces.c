/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspaces of libraries that take a share worth speaking of.
 */
#include "analyze/findings.h"

#define LEAST ((uint64_t)256 << 20)

tn_status
tn__find_workspaces(const struct tn_look_around *around, struct tn_found_list *list)
{
	uint64_t bytes = 0;
	const struct tn_site *largest = NULL;
	char a[40];
	for (size_t index = 0; index < around->site_count; index++) {
		if (around->sites[index].category != TN_CATEGORY_workspaces)
			continue;
		bytes += around->sites[index].bytes;
		largest = largest ? largest : &around->sites[index];
	}
	if (bytes < LEAST || bytes < around->analysis->reserved[around->state] / 10)
		return TN_OK;
	struct tn_found *found = tn__found(list, "library_workspaces", TN_WEIGHT_HINT, bytes,
	                                   "libraries hold %s as working memory, most of it %.80s", tn__found_size(bytes, a),
	                                   largest->label && *largest->label ? largest->label : "of an unknown one");
	if (found) {
		found->at = tn__line_of_origin(&largest->origin);
		found->advice = "torch.backends.cudnn.benchmark = False, or CUBLAS_WORKSPACE_CONFIG, limits it";
	}
	return TN_OK;
}
