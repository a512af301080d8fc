/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluation that builds a graph: activations, kept for a backward pass that does not come.
 */
#include <string.h>

#include "analyze/findings.h"

#define LEAST ((uint64_t)64 << 20)

tn_status
tn__find_evaluation_graph(const struct tn_look_around *around, struct tn_found_list *list)
{
	const struct tn_analysis *analysis = around->analysis;
	const struct tn_event_columns *events = &analysis->events;
	uint64_t bytes = 0;
	const struct tn_site *largest = NULL;
	char a[40];
	int64_t time = around->state < events->count && around->state > 0 ? events->times[around->state - 1] : INT64_MAX;
	const struct tn_mark_phase *phase = tn__phase_at(&analysis->marks, time);
	if (!phase || strcmp(phase->name, "evaluation") != 0)
		return TN_OK;
	for (size_t index = 0; index < around->site_count; index++) {
		if (around->sites[index].category != TN_CATEGORY_activations)
			continue;
		bytes += around->sites[index].bytes;
		largest = largest ? largest : &around->sites[index];
	}
	if (bytes < LEAST || bytes < analysis->reserved[around->state] / 10)
		return TN_OK;
	struct tn_found *found = tn__found(list, "evaluation_with_graph", TN_WEIGHT_WARNING, bytes,
	                                   "evaluation keeps %s of activations for a backward pass that does not come",
	                                   tn__found_size(bytes, a));
	if (found) {
		found->at = tn__line_of_origin(&largest->origin);
		found->advice = "with torch.no_grad(): around the evaluation";
	}
	return TN_OK;
}
