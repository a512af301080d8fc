/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluation that builds a graph: activations, kept for a backward pass that never runs. A name that evaluation bound (its loss, its
 * outputs) may hold them until the next training step has run its forward pass. A network in eval() that is a part of a loss goes backward:
 * behind its call only what no pass has used counts.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/findings.h"
#include "base/error.h"

#define LEAST ((uint64_t)64 << 20)

static bool
is_in_evaluation(const struct tn_look_around *around)
{
	const struct tn_event_columns *events = &around->analysis->events;
	bool inside = around->state < events->count && around->state > 0;
	const struct tn_metadata_phase *phase = tn__phase_at(&around->analysis->metadata,
	                                                     inside ? events->times[around->state - 1] : INT64_MAX);
	return phase && strcmp(phase->name, "evaluation") == 0;
}

/* Of activations that are there, those of evaluations whose graphs no backward pass has used. */
static uint64_t
unused_bytes(const struct tn_look_around *around)
{
	const struct tn_analysis *analysis = around->analysis;
	uint64_t bytes = 0;
	for (size_t index = 0; index < around->parts->count; index++) {
		const struct tn_part *part = &around->parts->items[index];
		const struct tn_interval *block = &analysis->blocks.intervals[part->interval];
		if (part->category == TN_CATEGORY_activations && tn__is_alive(block, around->state) &&
		    tn__was_made_in(analysis, block, "evaluation") && tn__unused_graph_of(analysis, block))
			bytes += part->bytes;
	}
	return bytes;
}

tn_status
tn__find_evaluation_graph(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	struct tn_site *sites, *largest = NULL;
	size_t count;
	uint64_t bytes = 0;
	char a[40];
	bool inside = is_in_evaluation(around);
	TN_FORWARD_IF_ERROR(tn__sites_of(around->analysis, around->parts, around->state, "evaluation", &sites, &count));
	for (size_t index = 0; index < count; index++) { /* largest first */
		if (sites[index].category != TN_CATEGORY_activations)
			continue;
		bytes += sites[index].bytes;
		largest = largest ? largest : &sites[index];
	}
	if (!inside)
		bytes = unused_bytes(around);
	struct tn_trace_finding *found = NULL;
	if (tn__is_worth_saying(around, bytes, LEAST, 10))
		found = tn__found(list, TN_FINDING_evaluation_with_graph, bytes,
		                  inside
		                      ? "evaluation keeps %s of activations for a backward pass that never runs"
		                      : "%s of an evaluation's activations are still held, for a backward pass that never runs",
		                  tn__found_size(bytes, a));
	if (found) {
		found->avoidable = true;
		found->weighed = inside;
		found->at = tn__line_of_origin(&largest->origin);
	}
	free(sites);
	return TN_OK;
}
