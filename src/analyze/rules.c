/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of rules, and how they are asked.
 */
#include "analyze/findings.h"

#include <stdlib.h>

#include "base/error.h"

/* Most telling first: findings of one severity stay in this order. */
static tn_rule *const rules[] = {
	tn__find_growth,
	tn__find_zeroing,
	tn__find_evaluation_graph,
	tn__find_unused_graph,
	tn__find_caught,
	tn__find_labelled,
	tn__find_checkpoint,
	tn__find_copies,
	tn__find_buckets,
	tn__find_gathered_outputs,
	tn__find_growing_reallocations,
	tn__find_resident_data,
	tn__find_segment_churn,
	tn__find_fragmentation,
	tn__find_unused_cache,
	tn__find_gradients_in_forward,
	tn__find_foreach,
	tn__find_workspaces,
	tn__find_pinned,
	tn__find_churn,
};

static tn_status
ask_all(struct tn_look_around *around, struct tn_trace_findings *list)
{
	for (size_t state = 0; state <= around->analysis->events.count; state++) {
		uint64_t reserved = around->analysis->reserved[state];
		around->peak = reserved > around->peak ? reserved : around->peak;
	}
	TN_FORWARD_IF_ERROR(tn__layout_of(around->analysis, around->state, &around->layout));
	TN_FORWARD_IF_ERROR(
		tn__sites_of(around->analysis, around->parts, around->state, NULL, &around->sites, &around->site_count));
	for (size_t index = 0; index < sizeof(rules) / sizeof(rules[0]); index++)
		TN_FORWARD_IF_ERROR(rules[index](around, list));
	return TN_OK;
}

tn_status
tn__find_all(const struct tn_analysis *analysis, const struct tn_part_list *parts, uint32_t state,
             struct tn_trace_findings *list)
{
	struct tn_look_around around = { .analysis = analysis, .parts = parts, .state = state };
	list->count = 0;
	tn_status status = ask_all(&around, list);
	tn__layout_free(&around.layout);
	free(around.sites);
	return status;
}
