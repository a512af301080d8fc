/* SPDX-License-Identifier: Apache-2.0
 *
 * How the memory was cut up in one state: segments, and the blocks and gaps that fill them. Segments of the expandable
 * kind are known by their end and by what was mapped and unmapped since, so that is undone.
 */
#include <stdlib.h>

#include "analyze/history.h"
#include "base/error.h"

#define SMALL_SEGMENT ((uint64_t)2 << 20) /* of the pool for small blocks (c10/cuda/CUDACachingAllocator.cpp) */

/* Where expandable memory began (change 1) or ended (change -1) to be mapped. */
struct edge {
	uint64_t address;
	int64_t change;
};

struct drawing {
	const struct tn_analysis *analysis;
	uint32_t state;
	struct tn_budget budget;
	struct edge *edges;
	size_t edge_count, edge_capacity;
	uint32_t *blocks; /* intervals that are there, by address */
	size_t block_count, block_capacity;
	const struct tn_segment **lasts; /* the segments of the snapshot itself, by address */
	size_t last_count;
	struct tn_layout *layout;
};

/* ---- what the snapshot says of its segments ---- */

static int
compare_lasts(const void *left, const void *right)
{
	const struct tn_segment *const *one = left, *const *other = right;
	return ((*one)->address > (*other)->address) - ((*one)->address < (*other)->address);
}

static tn_status
list_lasts(struct drawing *drawing)
{
	const struct tn_segment *segments;
	size_t count = tn_snapshot_segments(drawing->analysis->snapshot, &segments);
	drawing->lasts = malloc((count + 1) * sizeof(const struct tn_segment *));
	TN_RETURN_IF(!drawing->lasts, TN_NO_MEMORY, "no host memory for %zu segments", count);
	for (size_t index = 0; index < count; index++) {
		const struct tn_segment *segment = &segments[index];
		if (segment->device == drawing->analysis->device && !segment->host && segment->address != TN_UNKNOWN &&
		    segment->total != TN_UNKNOWN)
			drawing->lasts[drawing->last_count++] = segment;
	}
	if (drawing->last_count)
		qsort(drawing->lasts, drawing->last_count, sizeof(const struct tn_segment *), compare_lasts);
	return TN_OK;
}

/* The segment that an address lies in at the end; NULL. */
static const struct tn_segment *
last_at(const struct drawing *drawing, uint64_t address)
{
	size_t low = 0, high = drawing->last_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (drawing->lasts[middle]->address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	const struct tn_segment *segment = low ? drawing->lasts[low - 1] : NULL;
	return segment && address - segment->address < segment->total ? segment : NULL;
}

/* ---- segments ---- */

static tn_status
add_segment(struct drawing *drawing, struct tn_layout_segment segment)
{
	struct tn_layout *layout = drawing->layout;
	if (segment.size == 0)
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn__grow(&drawing->budget, &layout->segments, &layout->segment_capacity,
	                             layout->segment_count + 1, sizeof(*layout->segments)));
	layout->segments[layout->segment_count++] = segment;
	return TN_OK;
}

static void
take_last(struct tn_layout_segment *segment, const struct tn_segment *last)
{
	segment->small = last->small;
	segment->stream = last->stream;
	segment->pool[0] = last->pool[0];
	segment->pool[1] = last->pool[1];
}

static tn_status
add_edge(struct drawing *drawing, uint64_t address, int64_t change)
{
	TN_FORWARD_IF_ERROR(tn__grow(&drawing->budget, &drawing->edges, &drawing->edge_capacity, drawing->edge_count + 1,
	                             sizeof(*drawing->edges)));
	drawing->edges[drawing->edge_count++] = (struct edge){ address, change };
	return TN_OK;
}

static tn_status
list_edges(struct drawing *drawing)
{
	const struct tn_event_columns *events = &drawing->analysis->events;
	for (size_t index = 0; index < drawing->last_count; index++) {
		const struct tn_segment *last = drawing->lasts[index];
		if (!last->expandable)
			continue;
		TN_FORWARD_IF_ERROR(add_edge(drawing, last->address, 1));
		TN_FORWARD_IF_ERROR(add_edge(drawing, last->address + last->total, -1));
	}
	for (size_t event = drawing->state; event < events->count; event++) {
		uint8_t action = events->actions[event];
		if (action != TN_ACTION_SEGMENT_MAP && action != TN_ACTION_SEGMENT_UNMAP)
			continue;
		int64_t undo = action == TN_ACTION_SEGMENT_MAP ? -1 : 1;
		TN_FORWARD_IF_ERROR(add_edge(drawing, events->addresses[event], undo));
		TN_FORWARD_IF_ERROR(add_edge(drawing, events->addresses[event] + events->sizes[event], -undo));
	}
	return TN_OK;
}

static int
compare_edges(const void *left, const void *right)
{
	const struct edge *one = left, *other = right;
	return (one->address > other->address) - (one->address < other->address);
}

static tn_status
add_stretch(struct drawing *drawing, uint64_t address, uint64_t size)
{
	struct tn_layout_segment segment = {
		.address = address, .size = size, .stream = TN_UNKNOWN, .pool = { TN_UNKNOWN, TN_UNKNOWN }, .expandable = true
	};
	const struct tn_segment *last = last_at(drawing, address);
	if (last)
		take_last(&segment, last);
	return add_segment(drawing, segment);
}

static tn_status
add_mapped(struct drawing *drawing)
{
	int64_t depth = 0;
	uint64_t from = 0;
	size_t end;
	TN_FORWARD_IF_ERROR(list_edges(drawing));
	if (drawing->edge_count)
		qsort(drawing->edges, drawing->edge_count, sizeof(*drawing->edges), compare_edges);
	for (size_t first = 0; first < drawing->edge_count; first = end) {
		int64_t before = depth;
		uint64_t address = drawing->edges[first].address;
		for (end = first; end < drawing->edge_count && drawing->edges[end].address == address; end++)
			depth += drawing->edges[end].change;
		if (before == 0)
			from = address;
		else if (depth == 0)
			TN_FORWARD_IF_ERROR(add_stretch(drawing, from, address - from));
	}
	return TN_OK;
}

static bool
is_there(const struct drawing *drawing, const struct tn_interval *interval)
{
	return interval->from <= drawing->state && drawing->state < interval->gone;
}

static tn_status
add_whole(struct drawing *drawing, const struct tn_interval *interval)
{
	struct tn_layout_segment segment = { .address = interval->address,
		                                 .size = interval->size,
		                                 .stream = TN_UNKNOWN,
		                                 .pool = { TN_UNKNOWN, TN_UNKNOWN },
		                                 .small = interval->size == SMALL_SEGMENT };
	const struct tn_segment *last = interval->gone == TN_NEVER ? last_at(drawing, interval->address) : NULL;
	if (last) {
		take_last(&segment, last);
	} else if (interval->begun) {
		uint32_t context = drawing->analysis->events.contexts[interval->from - 1];
		struct tn_event event = tn_snapshot_context(drawing->analysis->snapshot, context);
		segment.stream = event.stream;
		segment.pool[0] = event.pool[0];
		segment.pool[1] = event.pool[1];
	}
	return add_segment(drawing, segment);
}

static int
compare_segments(const void *left, const void *right)
{
	const struct tn_layout_segment *one = left, *other = right;
	return (one->address > other->address) - (one->address < other->address);
}

static tn_status
list_segments(struct drawing *drawing)
{
	const struct tn_track *track = &drawing->analysis->segments;
	TN_FORWARD_IF_ERROR(add_mapped(drawing));
	for (size_t index = 0; index < track->count; index++) {
		if (is_there(drawing, &track->intervals[index]))
			TN_FORWARD_IF_ERROR(add_whole(drawing, &track->intervals[index]));
	}
	if (drawing->layout->segment_count)
		qsort(drawing->layout->segments, drawing->layout->segment_count, sizeof(*drawing->layout->segments),
		      compare_segments);
	return TN_OK;
}

/* ---- blocks ---- */

static int
compare_blocks(const void *left, const void *right, void *context)
{
	const struct tn_interval *blocks = context;
	const struct tn_interval *one = &blocks[*(const uint32_t *)left], *other = &blocks[*(const uint32_t *)right];
	if (one->address != other->address)
		return one->address > other->address ? 1 : -1;
	return (one->from > other->from) - (one->from < other->from);
}

static tn_status
list_blocks(struct drawing *drawing)
{
	const struct tn_track *track = &drawing->analysis->blocks;
	for (uint32_t number = 0; number < track->count; number++) {
		if (!is_there(drawing, &track->intervals[number]) || track->intervals[number].size == 0)
			continue;
		TN_FORWARD_IF_ERROR(tn__grow(&drawing->budget, &drawing->blocks, &drawing->block_capacity,
		                             drawing->block_count + 1, sizeof(*drawing->blocks)));
		drawing->blocks[drawing->block_count++] = number;
	}
	if (drawing->block_count)
		qsort_r(drawing->blocks, drawing->block_count, sizeof(*drawing->blocks), compare_blocks, track->intervals);
	return TN_OK;
}

static tn_status
add_block(struct drawing *drawing, struct tn_layout_segment *segment, uint64_t size, uint32_t interval)
{
	struct tn_layout *layout = drawing->layout;
	const struct tn_interval *blocks = drawing->analysis->blocks.intervals;
	bool pending = interval != TN_NO_INTERVAL && !tn__is_alive(&blocks[interval], drawing->state);
	TN_FORWARD_IF_ERROR(tn__grow(&drawing->budget, &layout->blocks, &layout->block_capacity, layout->block_count + 1,
	                             sizeof(*layout->blocks)));
	layout->blocks[layout->block_count++] = (struct tn_layout_block){ size, interval, pending };
	segment->blocks++;
	if (interval == TN_NO_INTERVAL) {
		segment->free += size;
		segment->largest_free = size > segment->largest_free ? size : segment->largest_free;
	} else if (!pending) {
		segment->live += size;
	}
	return TN_OK;
}

/* Blocks that contradict the segment or each other are cut or left out: a lossy trace may hold such. */
static tn_status
fill_segment(struct drawing *drawing, struct tn_layout_segment *segment, size_t *next)
{
	const struct tn_interval *blocks = drawing->analysis->blocks.intervals;
	uint64_t filled = 0;
	segment->first_block = drawing->layout->block_count;
	while (*next < drawing->block_count && blocks[drawing->blocks[*next]].address < segment->address)
		++*next;
	for (; *next < drawing->block_count; ++*next) {
		uint32_t number = drawing->blocks[*next];
		uint64_t offset = blocks[number].address - segment->address, size = blocks[number].size;
		if (offset >= segment->size)
			break;
		if (offset < filled)
			continue;
		if (offset > filled)
			TN_FORWARD_IF_ERROR(add_block(drawing, segment, offset - filled, TN_NO_INTERVAL));
		size = size < segment->size - offset ? size : segment->size - offset;
		TN_FORWARD_IF_ERROR(add_block(drawing, segment, size, number));
		filled = offset + size;
	}
	return filled < segment->size ? add_block(drawing, segment, segment->size - filled, TN_NO_INTERVAL) : TN_OK;
}

static tn_status
draw(struct drawing *drawing)
{
	size_t next = 0;
	TN_FORWARD_IF_ERROR(list_lasts(drawing));
	TN_FORWARD_IF_ERROR(list_segments(drawing));
	TN_FORWARD_IF_ERROR(list_blocks(drawing));
	for (size_t index = 0; index < drawing->layout->segment_count; index++)
		TN_FORWARD_IF_ERROR(fill_segment(drawing, &drawing->layout->segments[index], &next));
	return TN_OK;
}

tn_status
tn__layout_of(const struct tn_analysis *analysis, uint32_t state, struct tn_layout *out)
{
	struct tn_layout layout = { 0 };
	struct drawing drawing = { .analysis = analysis, .state = state, .budget.limit = UINT64_MAX, .layout = &layout };
	tn_status status = draw(&drawing);
	free(drawing.edges);
	free(drawing.blocks);
	free(drawing.lasts);
	if (status == TN_OK)
		*out = layout;
	else
		tn__layout_free(&layout);
	return status;
}

void
tn__layout_free(struct tn_layout *layout)
{
	free(layout->segments);
	free(layout->blocks);
	*layout = (struct tn_layout){ 0 };
}
