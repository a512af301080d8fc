/* SPDX-License-Identifier: Apache-2.0
 *
 * What survives each step, by line: blocks made in a step and alive at its end, less older ones that went in it.
 */
#include <stdlib.h>

#include "analyze/history.h"
#include "base/error.h"

/* A change of what a line holds, in one step. */
struct change {
	struct tn_piece piece;
	uint32_t step;
	bool gone;
};

struct growth {
	const struct tn_analysis *analysis;
	struct tn_budget budget;
	uint32_t *ends; /* the states between which the steps lie */
	size_t end_count;
	struct change *changes;
	size_t count, capacity;
};

/* The states in which steps ended, each once. A window of history that our hook began, began with a step. */
static tn_status
list_ends(struct growth *growth)
{
	const struct tn_metadata *metadata = &growth->analysis->metadata;
	growth->ends = malloc((metadata->steps_count + 2) * sizeof(*growth->ends));
	TN_RETURN_IF(!growth->ends, TN_NO_MEMORY, "no host memory for %zu steps", metadata->steps_count);
	if (metadata->phases_count && tn__state_at(growth->analysis, metadata->phases[0].time) == 0)
		growth->ends[growth->end_count++] = 0;
	for (size_t index = 0; index < metadata->steps_count; index++) {
		uint32_t state = tn__state_at(growth->analysis, metadata->steps[index].time);
		if (growth->end_count == 0 || state > growth->ends[growth->end_count - 1])
			growth->ends[growth->end_count++] = state;
	}
	return TN_OK;
}

/* The step in which a state lies: after `ends[step]`, up to `ends[step + 1]`; end_count when in none. */
static size_t
step_of(const struct growth *growth, uint32_t state)
{
	size_t low = 0, high = growth->end_count; /* how many ends lie before the state */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (growth->ends[middle] < state)
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 || low == growth->end_count ? growth->end_count : low - 1;
}

static tn_status
add_change(struct growth *growth, const struct tn_interval *block, size_t step, bool gone)
{
	TN_FORWARD_IF_ERROR(
		tn__grow(&growth->budget, &growth->changes, &growth->capacity, growth->count + 1, sizeof(*growth->changes)));
	growth->changes[growth->count++] = (struct change){
		.piece = { .bytes = block->requested, .origin = tn__origin_of_interval(growth->analysis, block) },
		.step = (uint32_t)step,
		.gone = gone,
	};
	return TN_OK;
}

static tn_status
list_changes(struct growth *growth)
{
	for (size_t index = 0; index < growth->analysis->blocks.count; index++) {
		const struct tn_interval *block = &growth->analysis->blocks.intervals[index];
		if (block->until <= block->from)
			continue;
		size_t begun = block->from ? step_of(growth, block->from) : growth->end_count;
		size_t gone = block->until == TN_NEVER ? growth->end_count : step_of(growth, block->until);
		if (begun == gone)
			continue;
		if (begun != growth->end_count)
			TN_FORWARD_IF_ERROR(add_change(growth, block, begun, false));
		if (gone != growth->end_count)
			TN_FORWARD_IF_ERROR(add_change(growth, block, gone, true));
	}
	return TN_OK;
}

static int
compare_changes(const void *left, const void *right)
{
	const struct change *one = left, *other = right;
	int order = tn__compare_origins(&one->piece, &other->piece);
	return order ? order : (one->step > other->step) - (one->step < other->step);
}

/* What a line gained in all steps together; false unless it gained in more than half of them. */
static bool
sum_changes(const struct growth *growth, const struct change *changes, size_t count, struct tn_holding *holding)
{
	uint64_t bytes = 0, blocks = 0, of_step = 0; /* wrapping: the upper half is negative */
	size_t grew = 0, steps = growth->end_count - 1;
	for (size_t index = 0; index < count; index++) {
		const struct change *change = &changes[index];
		bytes += change->gone ? -change->piece.bytes : change->piece.bytes;
		of_step += change->gone ? -change->piece.bytes : change->piece.bytes;
		blocks += change->gone ? UINT64_MAX : 1;
		if (index + 1 < count && changes[index + 1].step == change->step)
			continue;
		grew += (int64_t)of_step > 0;
		of_step = 0;
	}
	if ((int64_t)bytes <= 0 || grew * 2 <= steps)
		return false;
	const struct tn_origin *origin = &changes->piece.origin;
	*holding = (struct tn_holding){ .category = TN_CATEGORY_temporaries,
		                            .bytes = bytes / steps,
		                            .blocks = (int64_t)blocks > 0 ? (blocks + steps - 1) / steps : 0,
		                            .at = origin->at,
		                            .user = origin->user,
		                            .alike = 1,
		                            .layers = growth->analysis->traits[origin->stack] & TN_STACK_NESTED,
		                            .stack = origin->stack };
	return true;
}

static tn_status
find(struct growth *growth, struct tn_holding **holdings, size_t *count)
{
	size_t end, found = 0;
	TN_FORWARD_IF_ERROR(list_ends(growth));
	if (growth->end_count > 1)
		TN_FORWARD_IF_ERROR(list_changes(growth));
	if (growth->count)
		qsort(growth->changes, growth->count, sizeof(*growth->changes), compare_changes);
	struct tn_holding *list = malloc((growth->count + 1) * sizeof(*list));
	TN_RETURN_IF(!list, TN_NO_MEMORY, "no host memory for %zu lines", growth->count);
	for (size_t first = 0; first < growth->count; first = end) {
		for (end = first + 1; end < growth->count &&
		                      tn__compare_origins(&growth->changes[first].piece, &growth->changes[end].piece) == 0;)
			end++;
		found += sum_changes(growth, &growth->changes[first], end - first, &list[found]);
	}
	tn__sort_holdings(list, found);
	*holdings = list;
	*count = found;
	return TN_OK;
}

tn_status
tn__growth_of(const struct tn_analysis *analysis, struct tn_holding **holdings, size_t *count)
{
	struct growth growth = { .analysis = analysis, .budget.limit = UINT64_MAX };
	tn_status status = find(&growth, holdings, count);
	free(growth.ends);
	free(growth.changes);
	return status;
}
