/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors that a line makes anew again and again, each a bit larger than the one that it replaces, as torch.cat in a loop
 * does: while it works, both are there, and the old one leaves a gap that the next does not fit into. Inside of a module
 * that is the cache of keys and values of a text that is being written.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/findings.h"
#include "base/error.h"

#define LEAST ((uint64_t)256 << 20)

enum {
	NEAR = 16,        /* events between the new one and the end of the old one, at the most */
	LEAST_TIMES = 12, /* that a line replaced one by a larger one */
};

struct anew {
	uint32_t last; /* the interval that this stack made last */
	uint32_t times;
};

/* Counts the replacements by stack. */
static void
count_times(const struct tn_analysis *analysis, struct anew *stacks)
{
	const struct tn_event_columns *events = &analysis->events;
	for (uint32_t event = 0; event < events->count; event++) {
		uint32_t number = analysis->by_event[event];
		bool made = events->actions[event] == TN_ACTION_ALLOC,
			 freed = events->actions[event] == TN_ACTION_FREE_REQUESTED;
		if (number == TN_NO_INTERVAL || !(made || freed))
			continue;
		const struct tn_interval *block = &analysis->blocks.intervals[number];
		struct anew *stack = &stacks[block->stack];
		if (made) { /* what shrinks in between is no such line */
			if (stack->last != TN_NO_INTERVAL && block->requested < analysis->blocks.intervals[stack->last].requested)
				stack->times = 0;
			stack->last = number;
			continue;
		}
		const struct tn_interval *next = stack->last != TN_NO_INTERVAL ? &analysis->blocks.intervals[stack->last]
		                                                               : block;
		stack->times += next->from > block->from && event - next->from < NEAR && next->requested > block->requested &&
		                next->requested < 2 * block->requested;
	}
}

/* Bytes alive of the stacks that do so, inside of modules or outside; the largest block in *largest. */
static uint64_t
alive(const struct tn_look_around *around, const struct anew *stacks, bool modules, const struct tn_interval **largest)
{
	const struct tn_analysis *analysis = around->analysis;
	uint64_t bytes = 0;
	*largest = NULL;
	for (size_t index = 0; index < analysis->blocks.count; index++) {
		const struct tn_interval *block = &analysis->blocks.intervals[index];
		bool inside = analysis->traits[block->stack] & TN_STACK_MODULE;
		if (block->stack == 0 || stacks[block->stack].times < LEAST_TIMES || inside != modules ||
		    !tn__is_alive(block, around->state))
			continue;
		bytes += block->requested;
		if (!*largest || block->requested > (*largest)->requested)
			*largest = block;
	}
	return bytes;
}

static void
tell(const struct tn_look_around *around, const struct anew *stacks, bool modules, struct tn_trace_findings *list)
{
	const struct tn_interval *largest;
	uint64_t bytes = alive(around, stacks, modules, &largest);
	char a[40];
	if (!tn__is_worth_saying(around, bytes, LEAST, 5))
		return;
	struct tn_trace_finding *found =
		modules
			? tn__found(
				  list, TN_FINDING_kv_cache, bytes,
				  "a cache inside the model, of %s, is reallocated, slightly larger, with each call (keys and values)",
				  tn__found_size(bytes, a))
			: tn__found(
				  list, TN_FINDING_growing_cat, bytes,
				  "a tensor of %s is reallocated, slightly larger, each time: for a moment the old and the new one are both allocated",
				  tn__found_size(bytes, a));
	if (!found)
		return;
	struct tn_origin origin = tn__origin_of_interval(around->analysis, largest);
	found->avoidable = found->grows = true;
	found->at = tn__line_of_origin(&origin);
}

tn_status
tn__find_growing_reallocations(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	size_t count = tn_snapshot_stacks(around->analysis->snapshot);
	struct anew *stacks = malloc((count + 1) * sizeof(*stacks));
	TN_RETURN_IF(!stacks, TN_NO_MEMORY, "no host memory for %zu stacks", count);
	for (size_t index = 0; index <= count; index++)
		stacks[index] = (struct anew){ .last = TN_NO_INTERVAL };
	count_times(around->analysis, stacks);
	tell(around, stacks, true, list);
	tell(around, stacks, false, list);
	free(stacks);
	return TN_OK;
}
