/* SPDX-License-Identifier: Apache-2.0
 *
 * How large the blocks were that have gone: the trace holds only what was asked for.
 *
 * PyTorch rounds a request, takes a free block, and gives back the rest of it when the rest is worth it. A block of the
 * small pool or of an expandable segment always gives back the rest, so that the rounded request is its size. In the
 * large pool up to 1 MiB stays with the block; how much, the free block says, which reaches from the address to the
 * next block in use or to the segment's end. Blocks from before the trace are judged by the first block that was ever
 * seen behind them: since no block of the large pool is smaller than 1 MiB, a smaller gap was their own. A larger gap
 * leaves it open, and the rounded request is taken: such a block may be up to 1 MiB larger.
 *
 * Constants and rules are PyTorch's (c10/cuda/CUDACachingAllocator.cpp, c10/core/AllocatorConfig): 512 bytes, 1 MiB,
 * 2 MiB, and the settings max_split_size and roundup_power2_divisions, which the snapshot holds.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/error.h"

enum { SLOTS = 16, SLOT_SHIFT = 20 };

#define MIN_BLOCK ((uint64_t)512)
#define SMALL_LIMIT ((uint64_t)1 << 20) /* larger blocks are of the large pool */
#define SPLIT_REST ((uint64_t)1 << 20)  /* the large pool gives back a rest that is larger */
#define LARGEST ((uint64_t)1 << 60)     /* requests above are refused before they are rounded */

struct rules {
	uint64_t divisions[SLOTS];
	uint64_t max_split; /* UINT64_MAX: no limit */
};

struct sweep {
	struct tn_analysis *analysis;
	struct rules rules;
	struct tn_set blocks, segments;  /* places of those that are there */
	uint32_t *block_at, *segment_at; /* by place: the interval */
	uint64_t *reach;                 /* by place: of a block from before the trace, up to what was seen behind it */
};

/* ---- the allocator's settings ---- */

static void
read_division(struct rules *rules, const struct tn_setting *setting)
{
	static const char prefix[] = "roundup_power2_divisions.";
	if (strncmp(setting->name, prefix, sizeof(prefix) - 1) != 0 || setting->integer <= 0)
		return;
	unsigned long long boundary = strtoull(setting->name + sizeof(prefix) - 1, NULL, 10);
	if (boundary == 0 || boundary > (1u << (SLOTS - 1)))
		return;
	rules->divisions[63 - __builtin_clzll(boundary)] = (uint64_t)setting->integer;
}

static struct rules
read_rules(const struct tn_snapshot *snapshot)
{
	struct rules rules = { .max_split = UINT64_MAX };
	const struct tn_setting *settings;
	size_t count = tn_snapshot_settings(snapshot, &settings);
	for (size_t index = 0; index < count; index++) {
		if (settings[index].kind != TN_SETTING_INTEGER)
			continue;
		if (strcmp(settings[index].name, "max_split_size") == 0 && settings[index].integer > 0)
			rules.max_split = (uint64_t)settings[index].integer;
		read_division(&rules, &settings[index]);
	}
	return rules;
}

/* A request between two powers of two, rounded up to one of `divisions` steps between them. */
static uint64_t
round_to_division(uint64_t requested, uint64_t divisions)
{
	uint64_t power = (uint64_t)1 << (63 - __builtin_clzll(requested));
	uint64_t step = power >> (63 - __builtin_clzll(divisions));
	if (requested == power)
		return requested;
	return step ? (requested + step - 1) & ~(step - 1) : power << 1;
}

static uint64_t
rounded(const struct rules *rules, uint64_t requested)
{
	if (requested < MIN_BLOCK)
		return MIN_BLOCK;
	if (requested >= LARGEST)
		return requested;
	int slot = 63 - __builtin_clzll(requested) - SLOT_SHIFT;
	uint64_t divisions = rules->divisions[slot < 0 ? 0 : slot >= SLOTS ? SLOTS - 1 : slot];
	if (divisions > 1 && requested / MIN_BLOCK >= divisions && requested > MIN_BLOCK * divisions)
		return round_to_division(requested, divisions);
	return (requested + MIN_BLOCK - 1) & ~(MIN_BLOCK - 1);
}

/* ---- the sweep ---- */

/* Bytes from an address to the end of the cudaMalloc'ed segment that it lies in; 0 when it is in none. */
static uint64_t
left_in_segment(const struct sweep *sweep, uint64_t address)
{
	const struct tn_track *track = &sweep->analysis->segments;
	uint32_t place = tn__place_below(&track->places, address);
	if (place != TN_NO_ADDRESS)
		place = tn__set_below(&sweep->segments, place);
	if (place == TN_NO_ADDRESS)
		return 0;
	const struct tn_interval *segment = &track->intervals[sweep->segment_at[place]];
	uint64_t inside = address - segment->address;
	return inside < segment->size ? segment->size - inside : 0;
}

/* Bytes from a block's address to what lies behind it. */
static uint64_t
room(const struct sweep *sweep, const struct tn_interval *block)
{
	uint64_t left = left_in_segment(sweep, block->address);
	uint32_t next = tn__set_above(&sweep->blocks, block->place);
	if (next != TN_NO_ADDRESS && sweep->analysis->blocks.places.addresses[next] - block->address < left)
		left = sweep->analysis->blocks.places.addresses[next] - block->address;
	return left;
}

static void
enter_block(struct sweep *sweep, uint32_t number)
{
	uint32_t place = sweep->analysis->blocks.intervals[number].place;
	tn__set_add(&sweep->blocks, place);
	sweep->block_at[place] = number;
}

/* A new block tells how far the one before it can reach, if that is one whose size is not known yet. */
static void
bound_the_one_before(struct sweep *sweep, const struct tn_interval *block)
{
	uint32_t place = block->place ? tn__set_below(&sweep->blocks, block->place - 1) : TN_NO_ADDRESS;
	if (place == TN_NO_ADDRESS)
		return;
	const struct tn_interval *before = &sweep->analysis->blocks.intervals[sweep->block_at[place]];
	uint64_t distance = block->address - before->address;
	if (before->size == 0 && distance < sweep->reach[place])
		sweep->reach[place] = distance;
}

static void
allocate(struct sweep *sweep, uint32_t number)
{
	struct tn_interval *block = &sweep->analysis->blocks.intervals[number];
	uint64_t size = rounded(&sweep->rules, block->requested);
	bound_the_one_before(sweep, block);
	if (size > SMALL_LIMIT && block->size == 0) {
		uint64_t whole = room(sweep, block);
		bool split = size < sweep->rules.max_split && whole > size && whole - size > SPLIT_REST;
		size = whole > size && !split ? whole : size;
	}
	if (block->size == 0)
		block->size = size;
	enter_block(sweep, number);
}

static void
change_segment(struct sweep *sweep, uint32_t number, bool there)
{
	uint32_t place = sweep->analysis->segments.intervals[number].place;
	sweep->segment_at[place] = number;
	if (there)
		tn__set_add(&sweep->segments, place);
	else
		tn__set_remove(&sweep->segments, place);
}

static void
apply(struct sweep *sweep, uint8_t action, uint32_t number)
{
	switch (action) {
	case TN_ACTION_ALLOC:
		allocate(sweep, number);
		break;
	case TN_ACTION_FREE_COMPLETED:
		tn__set_remove(&sweep->blocks, sweep->analysis->blocks.intervals[number].place);
		break;
	case TN_ACTION_SEGMENT_ALLOC:
	case TN_ACTION_SEGMENT_FREE:
		change_segment(sweep, number, action == TN_ACTION_SEGMENT_ALLOC);
		break;
	default:
		break;
	}
}

static void
enter_first(struct sweep *sweep)
{
	struct tn_analysis *analysis = sweep->analysis;
	for (uint32_t number = 0; number < analysis->segments.count; number++) {
		if (analysis->segments.intervals[number].from == 0 && analysis->segments.intervals[number].gone > 0)
			change_segment(sweep, number, true);
	}
	for (uint32_t number = 0; number < analysis->blocks.count; number++) {
		if (analysis->blocks.intervals[number].from == 0 && analysis->blocks.intervals[number].gone > 0)
			enter_block(sweep, number);
	}
	for (uint32_t place = 0; place < analysis->blocks.places.count; place++)
		sweep->reach[place] = UINT64_MAX;
	for (uint32_t number = 0; number < analysis->blocks.count; number++) {
		const struct tn_interval *block = &analysis->blocks.intervals[number];
		if (block->from == 0 && block->gone > 0 && block->size == 0)
			sweep->reach[block->place] = room(sweep, block);
	}
}

/* Blocks that the trace did not see begin. */
static void
settle_the_rest(struct sweep *sweep)
{
	struct tn_analysis *analysis = sweep->analysis;
	for (size_t number = 0; number < analysis->blocks.count; number++) {
		struct tn_interval *block = &analysis->blocks.intervals[number];
		if (block->size)
			continue;
		block->size = rounded(&sweep->rules, block->requested);
		uint64_t reach = block->from == 0 ? sweep->reach[block->place] : UINT64_MAX;
		bool unsplit = block->size >= sweep->rules.max_split && reach != UINT64_MAX;
		if (block->size > SMALL_LIMIT && reach > block->size && (unsplit || reach - block->size <= SPLIT_REST))
			block->size = reach;
	}
}

static tn_status
make(struct sweep *sweep)
{
	size_t blocks = sweep->analysis->blocks.places.count, segments = sweep->analysis->segments.places.count;
	TN_FORWARD_IF_ERROR(tn__set_make(&sweep->blocks, (uint32_t)blocks));
	TN_FORWARD_IF_ERROR(tn__set_make(&sweep->segments, (uint32_t)segments));
	sweep->block_at = calloc(blocks + 1, sizeof(*sweep->block_at));
	sweep->segment_at = calloc(segments + 1, sizeof(*sweep->segment_at));
	sweep->reach = calloc(blocks + 1, sizeof(*sweep->reach));
	TN_RETURN_IF(!sweep->block_at || !sweep->segment_at || !sweep->reach, TN_NO_MEMORY, "no host memory for %zu blocks",
	             blocks);
	return TN_OK;
}

static void
run(struct sweep *sweep)
{
	const struct tn_analysis *analysis = sweep->analysis;
	sweep->rules = read_rules(analysis->snapshot);
	enter_first(sweep);
	for (size_t event = 0; event < analysis->events.count; event++) {
		if (analysis->by_event[event] != TN_NO_INTERVAL)
			apply(sweep, analysis->events.actions[event], analysis->by_event[event]);
	}
	settle_the_rest(sweep);
}

tn_status
tn__find_sizes(struct tn_analysis *analysis)
{
	struct sweep sweep = { .analysis = analysis };
	tn_status status = make(&sweep);
	if (status == TN_OK)
		run(&sweep);
	tn__set_free(&sweep.blocks);
	tn__set_free(&sweep.segments);
	free(sweep.block_at);
	free(sweep.segment_at);
	free(sweep.reach);
	return status;
}
