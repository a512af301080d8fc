/* SPDX-License-Identifier: Apache-2.0
 *
 * What held the memory at the end of a snapshot: sums, holders by line of the program, the last out-of-memory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/columns.h"

static bool
is_of(const struct tn_segment *segment, int device)
{
	return device == TN_ALL_DEVICES ? segment->device >= 0 && !segment->host : segment->device == device;
}

static bool
is_active(const struct tn_block *block)
{
	return block->state == TN_BLOCK_LIVE || block->state == TN_BLOCK_PENDING;
}

static uint64_t
requested_of(const struct tn_block *block)
{
	return block->requested == TN_UNKNOWN ? block->size : block->requested;
}

static void
count_block(struct tn_snapshot_totals *totals, const struct tn_block *block)
{
	totals->blocks++;
	if (block->state == TN_BLOCK_LIVE) {
		totals->live_blocks++;
		totals->allocated += block->size;
	}
	if (is_active(block)) {
		totals->active += block->size;
		totals->requested += requested_of(block);
	}
	if (block->state == TN_BLOCK_FREE && block->size > totals->largest_free_block)
		totals->largest_free_block = block->size;
}

struct tn_snapshot_totals
tn_snapshot_sum(const struct tn_snapshot *snapshot, int device)
{
	struct tn_snapshot_totals totals = { 0 };
	for (size_t index = 0; index < snapshot->segment_count; index++) {
		const struct tn_segment *segment = &snapshot->segments[index];
		if (!is_of(segment, device))
			continue;
		totals.segments++;
		totals.reserved += segment->total == TN_UNKNOWN ? 0 : segment->total;
		for (size_t block = 0; block < segment->blocks; block++)
			count_block(&totals, &snapshot->blocks[segment->first_block + block]);
	}
	return totals;
}

/* ---- holders ---- */

struct sum {
	uint64_t bytes, requested, largest;
	size_t blocks;
	tn_stack stack;
};

static void
add_block(struct sum *sum, const struct tn_block *block)
{
	if (sum->blocks == 0 || block->size > sum->largest) {
		sum->largest = block->size;
		sum->stack = block->stack;
	}
	sum->bytes += block->size;
	sum->requested += requested_of(block);
	sum->blocks++;
}

/* Adds every live block to the sum of its user frame; those without one to the last sum. */
static void
add_segment(const struct tn_snapshot *snapshot, const struct tn_segment *segment, struct sum *sums)
{
	for (size_t index = 0; index < segment->blocks; index++) {
		const struct tn_block *block = &snapshot->blocks[segment->first_block + index];
		uint32_t frame;
		if (!is_active(block))
			continue;
		if (!tn_snapshot_user_frame(snapshot, block->stack, &frame))
			frame = (uint32_t)snapshot->frames.count;
		add_block(&sums[frame], block);
	}
}

static int
compare_texts(const char *left, const char *right)
{
	if (!left || !right)
		return (left != NULL) - (right != NULL);
	return strcmp(left, right);
}

/* By place: file, line, function. */
static int
compare_places(const void *left, const void *right)
{
	const struct tn_holder *one = left, *other = right;
	int order = compare_texts(one->file, other->file);
	if (order == 0)
		order = (one->line > other->line) - (one->line < other->line);
	return order ? order : compare_texts(one->function, other->function);
}

static int
compare_bytes(const void *left, const void *right)
{
	const struct tn_holder *one = left, *other = right;
	if (one->bytes != other->bytes)
		return one->bytes < other->bytes ? 1 : -1;
	return compare_places(left, right);
}

/* Turns the sums that hold something into holders; returns how many. */
static size_t
make_holders(const struct tn_snapshot *snapshot, const struct sum *sums, struct tn_holder *holders)
{
	size_t count = 0;
	for (size_t index = 0; index <= snapshot->frames.count; index++) {
		if (sums[index].blocks == 0)
			continue;
		struct tn_frame frame = { 0 };
		if (index < snapshot->frames.count)
			frame = tn_snapshot_frame(snapshot, (uint32_t)index);
		holders[count++] = (struct tn_holder){ .bytes = sums[index].bytes,
			                                   .requested = sums[index].requested,
			                                   .blocks = sums[index].blocks,
			                                   .file = frame.file,
			                                   .function = frame.function,
			                                   .line = frame.line,
			                                   .stack = sums[index].stack };
	}
	return count;
}

/* Joins holders of one place, which frames that differ in torch.fx's fields make. The holders are sorted by place. */
static size_t
join_holders(struct tn_holder *holders, size_t count)
{
	size_t kept = 0;
	for (size_t index = 0; index < count; index++) {
		if (kept && compare_places(&holders[kept - 1], &holders[index]) == 0) {
			holders[kept - 1].bytes += holders[index].bytes;
			holders[kept - 1].requested += holders[index].requested;
			holders[kept - 1].blocks += holders[index].blocks;
		} else {
			holders[kept++] = holders[index];
		}
	}
	return kept;
}

static size_t
count_used(const struct sum *sums, size_t count)
{
	size_t used = 0;
	for (size_t index = 0; index < count; index++)
		used += sums[index].blocks != 0;
	return used;
}

tn_status
tn_snapshot_holders(const struct tn_snapshot *snapshot, int device, struct tn_holder **holders, size_t *count)
{
	size_t places = snapshot->frames.count + 1;
	struct sum *sums = calloc(places, sizeof(*sums));
	TN_RETURN_IF(!sums, TN_NO_MEMORY, "no host memory for the holders");
	for (size_t index = 0; index < snapshot->segment_count; index++) {
		if (is_of(&snapshot->segments[index], device))
			add_segment(snapshot, &snapshot->segments[index], sums);
	}
	struct tn_holder *list = malloc((count_used(sums, places) + 1) * sizeof(*list));
	if (!list) {
		free(sums);
		return tn__fail(TN_NO_MEMORY, "no host memory for the holders");
	}
	size_t made = make_holders(snapshot, sums, list);
	free(sums);
	qsort(list, made, sizeof(*list), compare_places);
	*count = join_holders(list, made);
	qsort(list, *count, sizeof(*list), compare_bytes);
	*holders = list;
	return TN_OK;
}

/* ---- out of memory ---- */

/* Index of the last out-of-memory of a trace, or the trace's count. */
static size_t
last_of(const struct tn_event_columns *columns)
{
	for (size_t index = columns->count; index-- > 0;) {
		if (columns->actions[index] == TN_ACTION_OOM)
			return index;
	}
	return columns->count;
}

bool
tn_snapshot_out_of_memory(const struct tn_snapshot *snapshot, int device, size_t *trace, size_t *index)
{
	bool found = false;
	int64_t latest = 0;
	for (size_t each = 0; each < snapshot->trace_count; each++) {
		int of = snapshot->traces[each].device;
		if (device == TN_ALL_DEVICES ? of < 0 : of != device)
			continue;
		struct tn_event_columns columns = tn_snapshot_columns(snapshot, each);
		size_t last = last_of(&columns);
		if (last == columns.count || (found && columns.times[last] < latest))
			continue;
		found = true;
		latest = columns.times[last];
		*trace = each;
		*index = last;
	}
	return found;
}
