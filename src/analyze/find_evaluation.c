/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluation that builds a graph: activations, kept for a backward pass that never runs.
 */
#include <string.h>

#include "analyze/findings.h"

#define LEAST ((uint64_t)64 << 20)

static bool
is_activation(const struct tn_analysis *analysis, const struct tn_site *site)
{
	return site->category == TN_CATEGORY_activations;
}

static bool
is_in_evaluation(const struct tn_look_around *around)
{
	const struct tn_event_columns *events = &around->analysis->events;
	bool inside = around->state < events->count && around->state > 0;
	const struct tn_metadata_phase *phase =
		tn__phase_at(&around->analysis->metadata, inside ? events->times[around->state - 1] : INT64_MAX);
	return phase && strcmp(phase->name, "evaluation") == 0;
}

tn_status
tn__find_evaluation_graph(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	struct tn_site_sum sum = tn__sum_sites(around, is_activation);
	char a[40];
	if (!is_in_evaluation(around) || !tn__is_worth_saying(around, sum.bytes, LEAST, 10))
		return TN_OK;
	struct tn_trace_finding *found = tn__found(list, TN_FINDING_evaluation_with_graph, sum.bytes,
	                                   "evaluation keeps %s of activations for a backward pass that never runs",
	                                   tn__found_size(sum.bytes, a));
	if (found)
		found->at = tn__line_of_origin(&sum.largest->origin);
	return TN_OK;
}
