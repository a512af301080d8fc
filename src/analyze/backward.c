/* SPDX-License-Identifier: Apache-2.0
 *
 * Which forward each node of a backward pass belongs to, so that its work has a line.
 *
 * Nodes in the order of forward and the allocations of forward are two lists that run side by side. Where a tensor is
 * known to be a node's result the two are tied together (an anchor); between anchors a node takes the next allocation
 * of its result's size; what is left shares the line of the node before it. A view makes nothing: what it is tied to
 * was made by the node whose result it shows.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/error.h"

enum { REACH = 8 }; /* nodes that a view looks back for the one it shows */

/* An allocation of forward, to be found by its size. */
struct made {
	uint64_t requested;
	uint32_t from;
	uint32_t interval;
};

/* A node by a number of its own. */
struct key {
	int64_t number;
	uint32_t node;
};

struct alignment {
	const struct tn_analysis *analysis;
	struct made *made; /* by size, then time */
	size_t made_count;
	uint32_t *results; /* by node: the interval that its forward made; TN_NO_INTERVAL */
	tn_stack *stacks;  /* by node: of the forward; 0: unknown */
	struct key *order; /* nodes of one pass in the order of forward */
	uint32_t *before;  /* by place in it: the next anchor's `from` */
	size_t count;
	struct key *by_id; /* all nodes */
};

static int
compare_keys(const void *left, const void *right)
{
	const struct key *one = left, *other = right;
	if (one->number != other->number)
		return one->number < other->number ? -1 : 1;
	return (one->node > other->node) - (one->node < other->node);
}

static int
compare_made(const void *left, const void *right)
{
	const struct made *one = left, *other = right;
	if (one->requested != other->requested)
		return one->requested < other->requested ? -1 : 1;
	return (one->from > other->from) - (one->from < other->from);
}

static const struct tn_interval *
result_of(const struct alignment *alignment, uint32_t node)
{
	uint32_t result = alignment->results[node];
	return result == TN_NO_INTERVAL ? NULL : &alignment->analysis->blocks.intervals[result];
}

static bool
has_line(const struct tn_analysis *analysis, tn_stack stack)
{
	uint32_t frame;
	return tn_snapshot_outside_frame(analysis->snapshot, stack, &frame);
}

/* ---- allocations of forward by size ---- */

static tn_status
list_made(struct alignment *alignment)
{
	const struct tn_track *blocks = &alignment->analysis->blocks;
	alignment->made = malloc((blocks->count + 1) * sizeof(*alignment->made));
	TN_RETURN_IF(!alignment->made, TN_NO_MEMORY, "no host memory for %zu blocks", blocks->count);
	for (uint32_t number = 0; number < blocks->count; number++) {
		const struct tn_interval *block = &blocks->intervals[number];
		if (block->begun && has_line(alignment->analysis, block->stack))
			alignment->made[alignment->made_count++] = (struct made){ block->requested, block->from, number };
	}
	if (alignment->made_count)
		qsort(alignment->made, alignment->made_count, sizeof(*alignment->made), compare_made);
	return TN_OK;
}

/* How many are smaller, or as large and made before a state. */
static size_t
made_before(const struct alignment *alignment, uint64_t bytes, uint32_t from)
{
	struct made wanted = { .requested = bytes, .from = from };
	size_t low = 0, high = alignment->made_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_made(&alignment->made[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first allocation of so many bytes with after < from < before. */
static uint32_t
next_made(const struct alignment *alignment, uint64_t bytes, uint32_t after, uint32_t before)
{
	size_t index = made_before(alignment, bytes, after + 1);
	if (index == alignment->made_count || alignment->made[index].requested != bytes ||
	    alignment->made[index].from >= before)
		return TN_NO_INTERVAL;
	return alignment->made[index].interval;
}

/* The last one. */
static uint32_t
previous_made(const struct alignment *alignment, uint64_t bytes, uint32_t after, uint32_t before)
{
	size_t index = made_before(alignment, bytes, before);
	if (index == 0 || alignment->made[index - 1].requested != bytes || alignment->made[index - 1].from <= after)
		return TN_NO_INTERVAL;
	return alignment->made[index - 1].interval;
}

/* ---- one pass ---- */

static const struct tn_metadata_node *
node_at(const struct alignment *alignment, size_t place)
{
	return &alignment->analysis->metadata.nodes[alignment->order[place].node];
}

static void
order_nodes(struct alignment *alignment, const struct tn_metadata_backward *pass)
{
	alignment->count = 0;
	for (size_t index = 0; index < pass->nodes; index++) {
		uint32_t node = (uint32_t)(pass->first_node + index);
		int64_t sequence = alignment->analysis->metadata.nodes[node].sequence;
		if (sequence >= 0)
			alignment->order[alignment->count++] = (struct key){ sequence, node };
	}
	if (alignment->count)
		qsort(alignment->order, alignment->count, sizeof(*alignment->order), compare_keys);
}

/* What a view is tied to belongs to the node before it that made something of that size. */
static void
hand_upstream(struct alignment *alignment, size_t place)
{
	const struct tn_interval *shown = result_of(alignment, alignment->order[place].node);
	if (!shown || !shown->begun)
		return;
	for (size_t back = 1; back <= REACH && back <= place; back++) {
		uint32_t node = alignment->order[place - back].node;
		const struct tn_metadata_node *above = node_at(alignment, place - back);
		if (above->view)
			continue;
		if (alignment->results[node] == TN_NO_INTERVAL && (above->bytes == 0 || above->bytes == shown->requested)) {
			alignment->results[node] = (uint32_t)(shown - alignment->analysis->blocks.intervals);
			return;
		}
		if (above->bytes == 0 || above->bytes == shown->requested)
			return;
	}
}

/* Finds the anchors: results whose time goes on rising. Sets `before` of every place; returns the first one's place, or
 * the count. */
static size_t
find_anchors(struct alignment *alignment, uint32_t end)
{
	uint32_t latest = 0;
	size_t first = alignment->count;
	for (size_t place = 0; place < alignment->count; place++) {
		const struct tn_interval *result = result_of(alignment, alignment->order[place].node);
		alignment->before[place] = end;
		bool tied = result && result->begun && !node_at(alignment, place)->view;
		if (!tied || result->from <= latest || result->from >= end)
			continue;
		latest = alignment->before[place] = result->from;
		first = first == alignment->count ? place : first;
	}
	for (size_t place = alignment->count; place-- > 1;) {
		if (alignment->before[place - 1] > alignment->before[place])
			alignment->before[place - 1] = alignment->before[place];
	}
	return first;
}

static bool
is_open(const struct alignment *alignment, size_t place)
{
	const struct tn_metadata_node *node = node_at(alignment, place);
	return alignment->results[alignment->order[place].node] == TN_NO_INTERVAL && !node->view && node->bytes > 0;
}

/* From a place on, each open node takes the next allocation of its size before the next anchor. */
static void
align_forward(struct alignment *alignment, size_t place, uint32_t after)
{
	for (; place < alignment->count; place++) {
		uint32_t node = alignment->order[place].node, before = alignment->before[place];
		const struct tn_interval *result = result_of(alignment, node);
		if (result && result->begun && result->from == before)
			after = before;
		if (!is_open(alignment, place))
			continue;
		alignment->results[node] = next_made(alignment, node_at(alignment, place)->bytes, after, before);
		result = result_of(alignment, node);
		after = result ? result->from : after;
	}
}

/* Before the first anchor it goes backward. */
static void
align_backward(struct alignment *alignment, size_t place, uint32_t after)
{
	uint32_t before = place < alignment->count ? alignment->before[place] : 0;
	while (place-- > 0) {
		uint32_t node = alignment->order[place].node;
		if (!is_open(alignment, place))
			continue;
		alignment->results[node] = previous_made(alignment, node_at(alignment, place)->bytes, after, before);
		const struct tn_interval *result = result_of(alignment, node);
		before = result ? result->from : before;
	}
}

/* Stacks of the nodes; one without a result has its neighbour's. */
static void
name_nodes(struct alignment *alignment)
{
	tn_stack last = 0;
	for (size_t place = 0; place < alignment->count; place++) {
		const struct tn_interval *result = result_of(alignment, alignment->order[place].node);
		last = result ? result->stack : last;
		alignment->stacks[alignment->order[place].node] = last;
	}
	for (size_t place = alignment->count; place-- > 0;) {
		uint32_t node = alignment->order[place].node;
		last = alignment->stacks[node] ? alignment->stacks[node] : last;
		alignment->stacks[node] = last;
	}
}

static void
align_pass(struct alignment *alignment, const struct tn_metadata_backward *pass, uint32_t begin)
{
	uint32_t end = tn__state_at(alignment->analysis, pass->time) + 1;
	order_nodes(alignment, pass);
	for (size_t place = 0; place < alignment->count; place++) {
		if (node_at(alignment, place)->view)
			hand_upstream(alignment, place);
	}
	size_t first = find_anchors(alignment, end);
	if (first == alignment->count) {
		align_forward(alignment, 0, begin);
	} else {
		align_backward(alignment, first, begin);
		align_forward(alignment, first, 0);
	}
	name_nodes(alignment);
}

/* ---- all passes ---- */

/* Ties nodes to the blocks that their evidence lay in; blocks without a line are of no use. */
static tn_status
take_evidence(struct alignment *alignment)
{
	const struct tn_metadata *metadata = &alignment->analysis->metadata;
	size_t count = 0;
	struct tn_query *queries = malloc((metadata->nodes_count + 1) * sizeof(*queries));
	TN_RETURN_IF(!queries, TN_NO_MEMORY, "no host memory for %zu nodes", metadata->nodes_count);
	for (size_t pass = 0; pass < metadata->passes_count; pass++) {
		uint32_t state = tn__state_at(alignment->analysis, metadata->passes[pass].time);
		for (size_t index = 0; index < metadata->passes[pass].nodes; index++) {
			uint32_t node = (uint32_t)(metadata->passes[pass].first_node + index);
			if (metadata->nodes[node].evidence)
				queries[count++] = (struct tn_query){ metadata->nodes[node].evidence, state, node };
		}
	}
	tn_status status = tn__locate(alignment->analysis, queries, count, alignment->results);
	free(queries);
	for (uint32_t node = 0; node < metadata->nodes_count; node++) {
		const struct tn_interval *result = result_of(alignment, node);
		if (result && !has_line(alignment->analysis, result->stack))
			alignment->results[node] = TN_NO_INTERVAL;
		else if (result)
			alignment->stacks[node] = result->stack;
	}
	return status;
}

static tn_stack
stack_of_node(const struct alignment *alignment, int64_t id)
{
	size_t low = 0, high = alignment->analysis->metadata.nodes_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (alignment->by_id[middle].number < id)
			low = middle + 1;
		else
			high = middle;
	}
	bool found = low < alignment->analysis->metadata.nodes_count && alignment->by_id[low].number == id;
	return found ? alignment->stacks[alignment->by_id[low].node] : 0;
}

/* A run of a node that no forward made (it adds up a gradient) belongs to the one before it, in its pass. */
static void
name_runs(const struct alignment *alignment, tn_stack *run_stacks)
{
	const struct tn_metadata *metadata = &alignment->analysis->metadata;
	size_t pass = 0;
	for (size_t run = 0; run < metadata->runs_count; run++) {
		bool same_pass = run > 0;
		for (; pass < metadata->passes_count && metadata->passes[pass].time <= metadata->runs[run].time; pass++)
			same_pass = false;
		run_stacks[run] = stack_of_node(alignment, metadata->runs[run].id);
		if (run_stacks[run] == 0 && same_pass)
			run_stacks[run] = run_stacks[run - 1];
	}
}

static tn_status
make(struct alignment *alignment)
{
	size_t nodes = alignment->analysis->metadata.nodes_count + 1;
	alignment->results = malloc(nodes * sizeof(*alignment->results));
	alignment->stacks = calloc(nodes, sizeof(*alignment->stacks));
	alignment->order = malloc(nodes * sizeof(*alignment->order));
	alignment->before = malloc(nodes * sizeof(*alignment->before));
	alignment->by_id = malloc(nodes * sizeof(*alignment->by_id));
	TN_RETURN_IF(!alignment->results || !alignment->stacks || !alignment->order || !alignment->before ||
	                 !alignment->by_id,
	             TN_NO_MEMORY, "no host memory for %zu nodes", nodes);
	memset(alignment->results, 0xff, nodes * sizeof(*alignment->results));
	for (uint32_t node = 0; node < nodes - 1; node++)
		alignment->by_id[node] = (struct key){ alignment->analysis->metadata.nodes[node].id, node };
	qsort(alignment->by_id, nodes - 1, sizeof(*alignment->by_id), compare_keys);
	return TN_OK;
}

static tn_status
align(struct alignment *alignment, tn_stack *run_stacks)
{
	const struct tn_metadata *metadata = &alignment->analysis->metadata;
	uint32_t begin = 0;
	TN_FORWARD_IF_ERROR(make(alignment));
	TN_FORWARD_IF_ERROR(take_evidence(alignment));
	if (metadata->nodes_count)
		TN_FORWARD_IF_ERROR(list_made(alignment));
	for (size_t pass = 0; pass < metadata->passes_count; pass++) {
		if (metadata->passes[pass].nodes > 0)
			align_pass(alignment, &metadata->passes[pass], begin);
		begin = tn__state_at(alignment->analysis, metadata->passes[pass].time);
	}
	name_runs(alignment, run_stacks);
	return TN_OK;
}

tn_status
tn__find_runs(struct tn_analysis *analysis)
{
	struct alignment alignment = { .analysis = analysis };
	analysis->run_stacks = calloc(analysis->metadata.runs_count + 1, sizeof(*analysis->run_stacks));
	TN_RETURN_IF(!analysis->run_stacks, TN_NO_MEMORY, "no host memory for %zu nodes", analysis->metadata.runs_count);
	tn_status status = align(&alignment, analysis->run_stacks);
	free(alignment.made);
	free(alignment.results);
	free(alignment.stacks);
	free(alignment.order);
	free(alignment.before);
	free(alignment.by_id);
	return status;
}

/* ---- at a time ---- */

/* True when a pass began between a run and an event: a pass that nobody looked into has no runs. */
static bool
began_between(const struct tn_metadata *metadata, int64_t run_time, int64_t microsecond)
{
	size_t passes = tn__rows_until(metadata->passes, metadata->passes_count, sizeof(*metadata->passes), microsecond);
	return passes > 0 && metadata->passes[passes - 1].time > run_time;
}

size_t
tn__run_at(const struct tn_analysis *analysis, size_t event)
{
	const struct tn_metadata *metadata = &analysis->metadata;
	int64_t time = analysis->events.times[event];
	size_t runs = tn__rows_until(metadata->runs, metadata->runs_count, sizeof(*metadata->runs), time);
	const struct tn_metadata_phase *phase = tn__phase_at(metadata, time);
	if (runs == 0)
		return metadata->runs_count;
	int64_t begun = metadata->runs[runs - 1].time;
	bool over = phase && phase->time >= begun && strcmp(phase->name, "backward") != 0;
	return over || began_between(metadata, begun, time) ? metadata->runs_count : runs - 1;
}
