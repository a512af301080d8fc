/* SPDX-License-Identifier: Apache-2.0
 *
 * Churn: lines that make tensors only to drop them, over and over, in arithmetic of the program itself (what modules,
 * optimizers and backward passes make and drop is their nature); and segments that go back to the driver and are asked
 * for again, each of which waits for the device.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/findings.h"
#include "base/error.h"

#define MIB ((uint64_t)1 << 20)

enum {
	SHORT_LIFE = 64,     /* events */
	LEAST_TIMES = 100,   /* tensors of a line */
	TIMES_THE_PEAK = 50, /* that their bytes come to */
	LEAST_ROUNDS = 3,    /* of segments freed and asked for again */
	LEAST_SEGMENTS = 8,
};

/* ---- tensors ---- */

struct dropped {
	uint64_t bytes;
	size_t count;
	tn_stack stack;
};

static bool
is_dropped(const struct tn_analysis *analysis, const struct tn_interval *block)
{
	uint8_t traits = analysis->traits[block->stack];
	bool own = (traits & TN_STACK_PYTHON) && !(traits & (TN_STACK_MODULE | TN_STACK_OPTIMIZER | TN_STACK_BUILD));
	return own && block->begun && block->until != TN_NEVER && block->until - block->from <= SHORT_LIFE &&
	       block->requested >= MIB;
}

static int
compare_lines(const struct tn_line *one, const struct tn_line *other)
{
	if (one->file != other->file)
		return (uintptr_t)one->file < (uintptr_t)other->file ? -1 : 1;
	return (one->line > other->line) - (one->line < other->line);
}

/* Joins the stacks of one line into the first of them. */
static struct dropped
worst_line(const struct tn_analysis *analysis, struct dropped *stacks, size_t count)
{
	struct dropped worst = { 0 };
	for (size_t first = 0; first < count; first++) {
		if (stacks[first].count == 0)
			continue;
		struct tn_line line = tn__line_of_stack(analysis, stacks[first].stack);
		for (size_t other = first + 1; other < count; other++) {
			struct tn_line its = tn__line_of_stack(analysis, stacks[other].stack);
			if (stacks[other].count == 0 || compare_lines(&line, &its) != 0)
				continue;
			stacks[first].bytes += stacks[other].bytes;
			stacks[first].count += stacks[other].count;
			stacks[other].count = 0;
		}
		if (line.file && stacks[first].bytes > worst.bytes)
			worst = stacks[first];
	}
	return worst;
}

static int
compare_dropped(const void *left, const void *right)
{
	const struct dropped *one = left, *other = right;
	return (one->bytes < other->bytes) - (one->bytes > other->bytes);
}

tn_status
tn__find_churn(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	const struct tn_analysis *analysis = around->analysis;
	size_t count = tn_snapshot_stacks(analysis->snapshot);
	struct dropped *stacks = calloc(count + 1, sizeof(*stacks));
	char a[40], b[40];
	TN_RETURN_IF(!stacks, TN_NO_MEMORY, "no host memory for %zu stacks", count);
	for (size_t index = 0; index < analysis->blocks.count; index++) {
		const struct tn_interval *block = &analysis->blocks.intervals[index];
		if (!is_dropped(analysis, block))
			continue;
		stacks[block->stack].bytes += block->requested;
		stacks[block->stack].count++;
		stacks[block->stack].stack = block->stack;
	}
	qsort(stacks, count, sizeof(*stacks), compare_dropped);
	struct dropped worst = worst_line(analysis, stacks, count < 256 ? count : 256);
	free(stacks);
	if (worst.count < LEAST_TIMES || worst.bytes / TIMES_THE_PEAK < around->peak)
		return TN_OK;
	struct tn_trace_finding *found = tn__found(
		list, TN_FINDING_churn, worst.bytes / worst.count,
		"%zu tensors, %s in total, were allocated here and freed at once, %s each", worst.count,
		tn__found_size(worst.bytes, a), tn__found_size(worst.bytes / worst.count, b));
	if (found)
		found->at = tn__line_of_stack(analysis, worst.stack);
	return TN_OK;
}

/* ---- segments ---- */

struct rounds {
	size_t allocs, frees; /* of segments, behind the first step */
	size_t count;         /* of frees that were followed by asking again */
	uint64_t bytes;
	tn_stack stack; /* of a free by empty_cache, where frees have stacks; 0 */
};

static bool
calls_empty_cache(const struct tn_analysis *analysis, tn_stack stack)
{
	const uint32_t *frames;
	size_t count = tn_snapshot_stack(analysis->snapshot, stack, &frames);
	for (size_t index = 0; index < count; index++) {
		struct tn_frame frame = tn_snapshot_frame(analysis->snapshot, frames[index]);
		if (strcmp(frame.function, "empty_cache") == 0)
			return true;
	}
	return false;
}

static struct rounds
count_rounds(const struct tn_analysis *analysis, uint32_t from)
{
	const struct tn_event_columns *events = &analysis->events;
	struct rounds rounds = { 0 };
	bool freed = false;
	for (size_t event = from; event < events->count; event++) {
		uint64_t size = events->sizes[event] == TN_UNKNOWN ? 0 : events->sizes[event];
		if (events->actions[event] == TN_ACTION_SEGMENT_FREE) {
			rounds.frees++;
			rounds.bytes += size;
			if (!freed && rounds.stack == 0 && calls_empty_cache(analysis, events->stacks[event]))
				rounds.stack = events->stacks[event];
			freed = true;
		} else if (events->actions[event] == TN_ACTION_SEGMENT_ALLOC) {
			rounds.allocs++;
			rounds.count += freed;
			freed = false;
		}
	}
	return rounds;
}

/* Where the program empties the cache again and again; file NULL: nowhere. */
static struct tn_line
line_of_empty_cache(const struct tn_metadata *metadata)
{
	const struct tn_metadata_call *last = tn__call_between(metadata, "empty_cache", 0, INT64_MAX);
	size_t times = 0;
	for (size_t index = 0; index < metadata->calls_count && last; index++) {
		const struct tn_metadata_call *call = &metadata->calls[index];
		times += call->line == last->line && strcmp(call->name, last->name) == 0 && strcmp(call->file, last->file) == 0;
	}
	if (times < LEAST_ROUNDS)
		return (struct tn_line){ 0 };
	return (struct tn_line){ .file = last->file, .function = last->function, .line = last->line };
}

tn_status
tn__find_segment_churn(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	const struct tn_metadata *metadata = &around->analysis->metadata;
	uint32_t from = metadata->steps_count ? tn__state_at(around->analysis, metadata->steps[0].time) : 0;
	struct rounds rounds = count_rounds(around->analysis, from);
	char a[40];
	if (rounds.count < LEAST_ROUNDS || rounds.allocs < LEAST_SEGMENTS || rounds.frees < LEAST_SEGMENTS)
		return TN_OK;
	struct tn_line call = rounds.stack ? tn__line_of_stack(around->analysis, rounds.stack)
	                                   : line_of_empty_cache(metadata);
	struct tn_trace_finding *found = tn__found(
		list, call.file ? TN_FINDING_empty_cache_in_loop : TN_FINDING_segment_churn, rounds.bytes,
		"%zu times PyTorch returned segments to the driver and allocated new ones, %s in total; each time the GPU has to wait",
		rounds.count, tn__found_size(rounds.bytes, a));
	if (found && call.file)
		found->at = call;
	return TN_OK;
}
