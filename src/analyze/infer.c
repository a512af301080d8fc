/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots without metadata: what a block was for, guessed from its stack and from how long it lived.
 *
 * Autograd allocates without a Python stack, so that the trace falls into turns: allocations with stacks, and backward
 * passes without. What a module made and a backward freed was an activation; what a backward made and left behind is a
 * gradient. It is said to be a guess.
 */
#include <stdlib.h>

#include "analyze/analysis.h"
#include "base/error.h"

/* Turns are counted from 0; in odd ones allocations have no stack. */
struct turns {
	struct tn_analysis *analysis;
	uint32_t *turn; /* by event */
	uint32_t last;  /* of the trace */
};

static uint8_t
traits_of(const struct tn_analysis *analysis, const struct tn_interval *block)
{
	return analysis->traits[block->stack];
}

static void
count_turns(struct turns *turns)
{
	const struct tn_event_columns *events = &turns->analysis->events;
	for (size_t event = 0; event < events->count; event++) {
		bool python = turns->analysis->traits[events->stacks[event]] & TN_STACK_PYTHON;
		if (events->actions[event] == TN_ACTION_ALLOC && python == (turns->last & 1))
			turns->last++;
		turns->turn[event] = turns->last;
	}
}

/* The turn in which a block was freed; UINT32_MAX when it lives. */
static uint32_t
turn_of_free(const struct turns *turns, const struct tn_interval *block)
{
	if (block->until > turns->analysis->events.count || block->until == 0)
		return UINT32_MAX;
	return turns->turn[block->until - 1];
}

static uint8_t
guess_without_stack(const struct turns *turns, const struct tn_interval *block)
{
	uint32_t freed = turn_of_free(turns, block);
	if (block->begun)
		return freed > turns->turn[block->from - 1] ? TN_CATEGORY_gradients : TN_CATEGORY_temporaries;
	return freed == UINT32_MAX ? TN_CATEGORY_gradients : TN_CATEGORY_temporaries;
}

static bool
is_activation(const struct turns *turns, const struct tn_interval *block)
{
	uint32_t freed = turn_of_free(turns, block);
	uint32_t made = block->begun ? turns->turn[block->from - 1] : 0;
	if (freed == UINT32_MAX) /* no backward came any more */
		return block->begun && made == turns->last;
	return freed > made && freed % 2 == 1;
}

static uint8_t
guess(const struct turns *turns, const struct tn_interval *block)
{
	uint8_t traits = traits_of(turns->analysis, block);
	if (!(traits & TN_STACK_PYTHON))
		return guess_without_stack(turns, block);
	if (traits & TN_STACK_OPTIMIZER)
		return turn_of_free(turns, block) == UINT32_MAX ? TN_CATEGORY_optimizer_state : TN_CATEGORY_temporaries;
	if (traits & TN_STACK_MODULE)
		return is_activation(turns, block) ? TN_CATEGORY_activations : TN_CATEGORY_temporaries;
	return traits & TN_STACK_BUILD ? TN_CATEGORY_parameters : TN_CATEGORY_temporaries;
}

/* Work of a backward has the line of the activation that is freed next, in the same turn. */
static void
name_backward(const struct turns *turns)
{
	struct tn_analysis *analysis = turns->analysis;
	uint32_t nearest = TN_NO_INTERVAL, turn = UINT32_MAX;
	for (size_t event = analysis->events.count; event-- > 0;) {
		uint32_t number = analysis->by_event[event];
		uint8_t action = analysis->events.actions[event];
		if (turns->turn[event] != turn)
			nearest = TN_NO_INTERVAL;
		turn = turns->turn[event];
		if (number == TN_NO_INTERVAL || turn % 2 == 0)
			continue;
		if (action == TN_ACTION_ALLOC)
			analysis->guesses[number].named_by = nearest;
		else if (action == TN_ACTION_FREE_REQUESTED && analysis->guesses[number].category == TN_CATEGORY_activations)
			nearest = number;
	}
}

static bool
has_python(const struct tn_analysis *analysis)
{
	for (size_t number = 0; number < analysis->blocks.count; number++) {
		if (traits_of(analysis, &analysis->blocks.intervals[number]) & TN_STACK_PYTHON)
			return true;
	}
	return false;
}

tn_status
tn__guess_categories(struct tn_analysis *analysis)
{
	struct turns turns = { .analysis = analysis };
	bool python = has_python(analysis);
	analysis->guesses = malloc((analysis->blocks.count + 1) * sizeof(*analysis->guesses));
	turns.turn = malloc((analysis->events.count + 1) * sizeof(*turns.turn));
	if (!analysis->guesses || !turns.turn) {
		free(turns.turn);
		return tn__fail(TN_NO_MEMORY, "no host memory for %zu blocks", analysis->blocks.count);
	}
	count_turns(&turns);
	for (size_t number = 0; number < analysis->blocks.count; number++)
		analysis->guesses[number] = (struct tn_guess){
			.named_by = TN_NO_INTERVAL,
			.category = python ? guess(&turns, &analysis->blocks.intervals[number]) : TN_CATEGORY_temporaries
		};
	name_backward(&turns);
	free(turns.turn);
	return TN_OK;
}
