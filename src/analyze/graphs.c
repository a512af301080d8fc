/* SPDX-License-Identifier: Apache-2.0
 *
 * What autograd kept for a graph that no backward pass has used: allocated during the call that made the graph, and given back with it.
 * Nobody walked such a graph; the metadata say when its call began and ended, and when it was freed.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/error.h"

enum { MOST_AT_ONCE = 8 }; /* calls from outside, each in a thread of its own */

const char *const tn__label_of_unused_graph = "no backward pass used it";

/* One graph, in states of the trace. */
struct life {
	uint32_t began, ended;
	uint32_t after, before; /* its memory was given back between these states; `after` TN_NEVER: it is there still */
	const char *label;
};

/* The states around a free in which nothing is allocated. */
static void
find_quiet(const struct tn_analysis *analysis, uint32_t freed, struct life *life)
{
	const uint8_t *actions = analysis->events.actions;
	life->after = life->before = freed;
	while (life->after > life->ended && actions[life->after - 1] != TN_ACTION_ALLOC)
		life->after--;
	while (life->before < analysis->events.count && actions[life->before] != TN_ACTION_ALLOC)
		life->before++;
}

static struct life
life_of(const struct tn_analysis *analysis, const struct tn_metadata_graph *graph)
{
	struct life life = { .began = tn__state_at(analysis, graph->time),
		                 .ended = tn__state_at(analysis, graph->ended),
		                 .after = TN_NEVER,
		                 .label = *graph->file ? tn__label_of_unused_graph : "" };
	if (graph->freed)
		find_quiet(analysis, tn__state_at(analysis, graph->freed), &life);
	return life;
}

/* True for a block of the call that was given back with the graph. */
static bool
is_kept_for(const struct life *life, const struct tn_interval *block)
{
	if (block->until <= life->ended)
		return false;
	if (life->after == TN_NEVER || block->until == TN_NEVER)
		return life->after == TN_NEVER && block->until == TN_NEVER;
	return block->until > life->after && block->until <= life->before;
}

/* True for a block that one of the first `count` claims, which are sorted, says something else of. */
static bool
is_something_else(const struct tn_analysis *analysis, uint32_t number, size_t count)
{
	const struct tn_claim *claims;
	size_t own = tn__claims_of(analysis, count, number, &claims);
	for (size_t index = 0; index < own; index++) {
		if (claims[index].category != TN_CATEGORY_activations || *claims[index].label)
			return true;
	}
	return false;
}

static tn_status
claim(struct tn_analysis *analysis, const struct life *life, size_t sorted, uint8_t *taken)
{
	for (uint32_t event = life->began; event < life->ended; event++) {
		uint32_t number = analysis->by_event[event];
		if (analysis->events.actions[event] != TN_ACTION_ALLOC || number == TN_NO_INTERVAL || taken[number])
			continue;
		const struct tn_interval *block = &analysis->blocks.intervals[number];
		if (!is_kept_for(life, block) || is_something_else(analysis, number, sorted))
			continue;
		TN_FORWARD_IF_ERROR(tn__grow(&analysis->budget, &analysis->claims, &analysis->claim_capacity,
		                             analysis->claim_count + 1, sizeof(*analysis->claims)));
		taken[number] = 1;
		analysis->claims[analysis->claim_count++] = (struct tn_claim){ 0, block->requested, life->label, number,
			                                                           TN_CATEGORY_activations };
	}
	return TN_OK;
}

/* A pass that makes a graph itself and has not ended as the snapshot is taken, as a graph that is there still: nobody could walk it. */
static bool
find_cut_pass(const struct tn_analysis *analysis, struct life *life)
{
	const struct tn_metadata *metadata = &analysis->metadata;
	const struct tn_metadata_phase *phase = tn__phase_at(metadata, INT64_MAX);
	if (metadata->passes_count == 0 || metadata->ooms_count == 0 || !phase || strcmp(phase->name, "backward") != 0)
		return false;
	const struct tn_metadata_backward *pass = &metadata->passes[metadata->passes_count - 1];
	uint32_t end = (uint32_t)analysis->events.count;
	*life = (struct life){ .began = tn__state_at(analysis, pass->time), .ended = end, .after = TN_NEVER, .label = "" };
	return pass->creates && metadata->ooms[metadata->ooms_count - 1].time >= pass->time;
}

tn_status
tn__claim_graphs(struct tn_analysis *analysis)
{
	const struct tn_metadata *metadata = &analysis->metadata;
	size_t sorted = analysis->claim_count;
	struct life cut;
	bool is_cut = find_cut_pass(analysis, &cut);
	if (metadata->graphs_count == 0 && !is_cut)
		return TN_OK;
	uint8_t *taken = calloc(analysis->blocks.count + 1, sizeof(*taken));
	TN_RETURN_IF(!taken, TN_NO_MEMORY, "no host memory for %zu blocks", analysis->blocks.count);
	tn_status status = TN_OK;
	for (size_t index = metadata->graphs_count;
	     index-- > 0 && status == TN_OK;) { /* of calls in calls, the inner one */
		struct life life = life_of(analysis, &metadata->graphs[index]);
		status = claim(analysis, &life, sorted, taken);
	}
	if (is_cut && status == TN_OK)
		status = claim(analysis, &cut, sorted, taken);
	free(taken);
	if (analysis->claim_count > sorted)
		qsort(analysis->claims, analysis->claim_count, sizeof(*analysis->claims), tn__compare_claims);
	return status;
}

const struct tn_metadata_graph *
tn__unused_graph_of(const struct tn_analysis *analysis, const struct tn_interval *block)
{
	const struct tn_metadata *metadata = &analysis->metadata;
	if (!block->begun)
		return NULL;
	int64_t time = analysis->events.times[block->from - 1];
	size_t began = tn__rows_until(metadata->graphs, metadata->graphs_count, sizeof(*metadata->graphs), time);
	for (size_t back = 0; back < MOST_AT_ONCE && back < began; back++) {
		const struct tn_metadata_graph *graph = &metadata->graphs[began - 1 - back];
		if (tn__state_at(analysis, graph->time) < block->from && block->from <= tn__state_at(analysis, graph->ended))
			return graph;
	}
	return NULL;
}
