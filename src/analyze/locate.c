/* SPDX-License-Identifier: Apache-2.0
 *
 * From an address at a time to a block: one sweep over the trace answers all questions.
 */
#include <stdlib.h>

#include "analyze/analysis.h"
#include "base/error.h"

struct sweep {
	const struct tn_analysis *analysis;
	struct tn_set set;  /* places of blocks in use */
	uint32_t *block_at; /* by place: the interval */
};

static int
compare_queries(const void *left, const void *right)
{
	const struct tn_query *one = left, *other = right;
	if (one->state != other->state)
		return one->state < other->state ? -1 : 1;
	return (one->number > other->number) - (one->number < other->number);
}

static void
enter(struct sweep *sweep, uint32_t number)
{
	uint32_t place = sweep->analysis->blocks.intervals[number].place;
	tn__set_add(&sweep->set, place);
	sweep->block_at[place] = number;
}

static uint32_t
answer(const struct sweep *sweep, const struct tn_query *query)
{
	const struct tn_track *blocks = &sweep->analysis->blocks;
	uint32_t place = tn__place_below(&blocks->places, query->address);
	if (place != TN_NO_ADDRESS)
		place = tn__set_below(&sweep->set, place);
	if (place == TN_NO_ADDRESS)
		return TN_NO_INTERVAL;
	const struct tn_interval *block = &blocks->intervals[sweep->block_at[place]];
	bool inside = query->address - block->address < block->size;
	return inside && tn__is_alive(block, query->state) ? sweep->block_at[place] : TN_NO_INTERVAL;
}

static void
apply(struct sweep *sweep, size_t event)
{
	uint32_t number = sweep->analysis->by_event[event];
	if (number == TN_NO_INTERVAL)
		return;
	if (sweep->analysis->events.actions[event] == TN_ACTION_ALLOC)
		enter(sweep, number);
	else if (sweep->analysis->events.actions[event] == TN_ACTION_FREE_COMPLETED)
		tn__set_remove(&sweep->set, sweep->analysis->blocks.intervals[number].place);
}

static void
run(struct sweep *sweep, const struct tn_query *queries, size_t count, uint32_t *answers)
{
	const struct tn_analysis *analysis = sweep->analysis;
	size_t next = 0;
	for (uint32_t number = 0; number < analysis->blocks.count; number++) {
		if (tn__is_alive(&analysis->blocks.intervals[number], 0))
			enter(sweep, number);
	}
	for (size_t state = 0; state <= analysis->events.count && next < count; state++) {
		for (; next < count && queries[next].state == state; next++)
			answers[queries[next].number] = answer(sweep, &queries[next]);
		if (state < analysis->events.count)
			apply(sweep, state);
	}
}

tn_status
tn__locate(const struct tn_analysis *analysis, struct tn_query *queries, size_t count, uint32_t *answers)
{
	struct sweep sweep = { .analysis = analysis };
	if (count == 0)
		return TN_OK;
	qsort(queries, count, sizeof(*queries), compare_queries);
	TN_FORWARD_IF_ERROR(tn__set_make(&sweep.set, analysis->blocks.places.count));
	sweep.block_at = calloc(analysis->blocks.places.count + (size_t)1, sizeof(*sweep.block_at));
	if (sweep.block_at)
		run(&sweep, queries, count, answers);
	tn_status status = sweep.block_at ? TN_OK : tn__fail(TN_NO_MEMORY, "no host memory to locate blocks");
	tn__set_free(&sweep.set);
	free(sweep.block_at);
	return status;
}

/* ---- claims ---- */

int
tn__compare_claims(const void *left, const void *right)
{
	const struct tn_claim *one = left, *other = right;
	if (one->interval != other->interval)
		return one->interval < other->interval ? -1 : 1;
	if (one->offset != other->offset)
		return one->offset < other->offset ? -1 : 1;
	if (one->category != other->category)
		return one->category < other->category ? -1 : 1;
	return (one->bytes < other->bytes) - (one->bytes > other->bytes);
}

static void
ask(const struct tn_analysis *analysis, struct tn_query *queries)
{
	const struct tn_metadata *metadata = &analysis->metadata;
	uint32_t number = 0, look = UINT32_MAX, state = 0;
	for (size_t index = 0; index < metadata->holds_count; index++, number++) {
		if (metadata->holds[index].look != look) {
			look = metadata->holds[index].look;
			state = tn__state_at(analysis, metadata->looks[look].time);
		}
		queries[number] = (struct tn_query){ metadata->holds[index].address, state, number };
	}
	for (size_t index = 0; index < metadata->libraries_count; index++, number++)
		queries[number] = (struct tn_query){ metadata->libraries[index].address,
			                                 tn__state_at(analysis, metadata->libraries[index].time), number };
}

/* Adds a claim on the part of a block that was asked for. */
static void
add_claim(struct tn_analysis *analysis, uint32_t interval, uint64_t address, uint64_t bytes, uint8_t category,
          const char *label)
{
	if (interval == TN_NO_INTERVAL)
		return;
	const struct tn_interval *block = &analysis->blocks.intervals[interval];
	uint64_t offset = address - block->address;
	if (offset >= block->requested || bytes == 0)
		return;
	if (bytes > block->requested - offset)
		bytes = block->requested - offset;
	analysis->claims[analysis->claim_count++] = (struct tn_claim){ offset, bytes, label, interval, category };
}

/* A leaf of the graph that a module made itself (a mask, positions) is no input of the program. */
static uint8_t
category_of(const struct tn_analysis *analysis, uint32_t interval, uint8_t category)
{
	if (category != TN_CATEGORY_inputs || interval == TN_NO_INTERVAL)
		return category;
	bool inside = analysis->traits[analysis->blocks.intervals[interval].stack] & TN_STACK_MODULE;
	return inside ? TN_CATEGORY_activations : category;
}

static void
make_claims(struct tn_analysis *analysis, const uint32_t *answers)
{
	const struct tn_metadata *metadata = &analysis->metadata;
	for (size_t index = 0; index < metadata->holds_count; index++, answers++) {
		const struct tn_metadata_hold *hold = &metadata->holds[index];
		uint8_t category = category_of(analysis, *answers, hold->category);
		add_claim(analysis, *answers, hold->address, hold->bytes, category, hold->label);
	}
	for (size_t index = 0; index < metadata->libraries_count; index++, answers++) {
		const struct tn_metadata_library *library = &metadata->libraries[index];
		add_claim(analysis, *answers, library->address, library->bytes, TN_CATEGORY_workspaces, library->library);
	}
	if (analysis->claim_count)
		qsort(analysis->claims, analysis->claim_count, sizeof(*analysis->claims), tn__compare_claims);
}

tn_status
tn__find_claims(struct tn_analysis *analysis)
{
	size_t count = analysis->metadata.holds_count + analysis->metadata.libraries_count;
	TN_RETURN_IF(count >= UINT32_MAX, TN_LIMIT, "more than 2^32 lines of metadata");
	struct tn_query *queries = malloc((count + 1) * sizeof(*queries));
	uint32_t *answers = malloc((count + 1) * sizeof(*answers));
	tn_status status = queries && answers ? tn__grow(&analysis->budget, &analysis->claims, &analysis->claim_capacity,
	                                                 count + 1, sizeof(*analysis->claims))
	                                      : tn__fail(TN_NO_MEMORY, "no host memory for %zu lines of metadata", count);
	if (status == TN_OK) {
		ask(analysis, queries);
		status = tn__locate(analysis, queries, count, answers);
	}
	if (status == TN_OK)
		make_claims(analysis, answers);
	free(queries);
	free(answers);
	return status;
}
