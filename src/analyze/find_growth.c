/* SPDX-License-Identifier: Apache-2.0
 *
 * Growth: after each step of the trace more is allocated than after the one before, and a line is seen to leave it.
 */
#include <stdlib.h>

#include "analyze/findings.h"
#include "base/error.h"

enum { LEAST_STEPS = 4 };

#define LEAST ((uint64_t)1 << 20) /* with each step */

/* What each step left, at the least; 0 unless all left about as much: what grows with the work is no leak. The first
 * step of all makes what lasts. */
static uint64_t
grew_by(const struct tn_metadata *metadata)
{
	uint64_t least = UINT64_MAX, most = 0;
	for (size_t index = 1; index < metadata->steps_count; index++) {
		const struct tn_metadata_step *step = &metadata->steps[index], *before = step - 1;
		if (step->number != before->number + 1 || step->allocated <= before->allocated)
			return 0;
		uint64_t more = step->allocated - before->allocated;
		least = more < least ? more : least;
		most = more > most ? more : most;
	}
	return metadata->steps_count > LEAST_STEPS && most / 2 <= least ? least : 0;
}

tn_status
tn__find_growth(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	const struct tn_metadata *metadata = &around->analysis->metadata;
	struct tn_holding *lines;
	size_t count;
	char a[40];
	if (grew_by(metadata) < LEAST)
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn__growth_of(around->analysis, &lines, &count));
	const struct tn_metadata_step *first = &metadata->steps[0], *last = &metadata->steps[metadata->steps_count - 1];
	uint64_t each = (last->allocated - first->allocated) / (metadata->steps_count - 1);
	if (count == 0) {
		free(lines);
		return TN_OK;
	}
	struct tn_trace_finding *found = tn__found(
		list, TN_FINDING_growth, each, "memory that is never freed: %s more with each step", tn__found_size(each, a));
	if (found)
		found->at = lines[0].user.file ? lines[0].user : lines[0].at;
	free(lines);
	return TN_OK;
}
