/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs that training makes in vain: the output of a call is only looked at, and what autograd keeps for it stays as long as the output.
 */
#include "analyze/findings.h"

#define LEAST ((uint64_t)64 << 20)

tn_status
tn__find_unused_graph(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	const struct tn_analysis *analysis = around->analysis;
	const struct tn_part *largest = NULL;
	uint64_t bytes = 0;
	char a[40];
	for (size_t index = 0; index < around->parts->count; index++) {
		const struct tn_part *part = &around->parts->items[index];
		const struct tn_interval *block = &analysis->blocks.intervals[part->interval];
		if (part->category != TN_CATEGORY_activations || part->label != tn__label_of_unused_graph ||
		    !tn__is_alive(block, around->state) ||
		    tn__was_made_in(analysis, block, "evaluation")) /* find_evaluation.c tells of it */
			continue;
		bytes += part->bytes;
		largest = largest && largest->bytes >= part->bytes ? largest : part;
	}
	if (!tn__is_worth_saying(around, bytes, LEAST, 20))
		return TN_OK;
	struct tn_trace_finding *found = tn__found(list, TN_FINDING_unused_graph, bytes,
	                                           "%s of activations are kept for a result that no backward pass has used",
	                                           tn__found_size(bytes, a));
	if (found) {
		found->avoidable = true;
		found->activations = true;
		const struct tn_metadata_graph *graph = tn__unused_graph_of(analysis,
		                                                            &analysis->blocks.intervals[largest->interval]);
		if (graph && *graph->file)
			found->at = (struct tn_line){ .file = graph->file, .function = graph->function, .line = graph->line };
	}
	return TN_OK;
}
