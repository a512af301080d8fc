/* SPDX-License-Identifier: Apache-2.0
 *
 * What a page shows of the allocator's segments, at each named moment.
 */
#include <stdlib.h>

#include "base/error.h"
#include "report/page_course_parts.h"

#define MOST_BLOCKS 20000

/* Streams by their order of appearance; the default stream is 0. */
struct streams {
	uint64_t known[256];
	size_t count;
};

static size_t
number_of(struct streams *streams, uint64_t stream)
{
	if (stream == 0 || stream == TN_UNKNOWN)
		return 0;
	for (size_t i = 0; i < streams->count; i++)
		if (streams->known[i] == stream)
			return i + 1;
	if (streams->count == sizeof(streams->known) / sizeof(streams->known[0]))
		return streams->count;
	streams->known[streams->count++] = stream;
	return streams->count;
}

static int
kind_of(const struct tn_layout_segment *segment)
{
	bool private = segment->pool[0] != TN_UNKNOWN && (segment->pool[0] != 0 || segment->pool[1] != 0);
	return segment->small + 2 * segment->expandable + 4 * private;
}

/* The part with most of a block. */
static const struct tn_part *
main_part(const struct tn_inspection *inspection, uint32_t interval)
{
	const struct tn_part *best = NULL;
	size_t low = 0, high = inspection->parts.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (inspection->parts.items[middle].interval < interval)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < inspection->parts.count && inspection->parts.items[low].interval == interval; low++)
		if (best == NULL || inspection->parts.items[low].bytes > best->bytes)
			best = &inspection->parts.items[low];
	return best;
}

static int
compare_free(const void *left, const void *right)
{
	const struct tn_layout_segment *const *one = left, *const *other = right;
	if ((*one)->free != (*other)->free)
		return (*one)->free > (*other)->free ? -1 : 1;
	return ((*one)->address > (*other)->address) - ((*one)->address < (*other)->address);
}

static int
compare_addresses(const void *left, const void *right)
{
	const struct tn_layout_segment *const *one = left, *const *other = right;
	return ((*one)->address > (*other)->address) - ((*one)->address < (*other)->address);
}

static json_t *
blocks_object(const struct tn_inspection *inspection, struct tn_page_tables *tables, const struct tn_layout *layout,
              const struct tn_layout_segment *const *segments, size_t count)
{
	json_t *size = json_array(), *state = json_array(), *category = json_array(), *site = json_array();
	json_t *label = json_array();
	for (size_t i = 0; i < count; i++) {
		for (size_t at = segments[i]->first_block; at < segments[i]->first_block + segments[i]->blocks; at++) {
			const struct tn_layout_block *block = &layout->blocks[at];
			bool live = block->interval != TN_NO_INTERVAL && !block->pending;
			const struct tn_part *part = live ? main_part(inspection, block->interval) : NULL;
			tn__page_push(size, tn__page_counted(block->size));
			tn__page_push(state, block->interval == TN_NO_INTERVAL ? 0 : block->pending ? 2 : 1);
			tn__page_push(category, part != NULL ? part->category : live ? TN_CATEGORY_temporaries : -1);
			tn__page_push(site, live ? (json_int_t)tn__page_site_of_block(tables, block->interval) : -1);
			tn__page_push(label, part != NULL ? tn__page_string(tables, part->label) : 0);
		}
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "size", size, "state", state, "category", category, "site", site,
	                 "label", label);
}

static json_t *
segments_object(const struct tn_layout_segment *const *segments, size_t count)
{
	struct tn_page_steps address = tn__page_steps();
	struct streams streams = { .count = 0 };
	json_t *size = json_array(), *kind = json_array(), *stream = json_array(), *blocks = json_array();
	for (size_t i = 0; i < count; i++) {
		tn__page_step(&address, tn__page_counted(segments[i]->address));
		tn__page_push(size, tn__page_counted(segments[i]->size));
		tn__page_push(kind, kind_of(segments[i]));
		tn__page_push(stream, (json_int_t)number_of(&streams, segments[i]->stream));
		tn__page_push(blocks, (json_int_t)segments[i]->blocks);
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "address", address.array, "size", size, "kind", kind, "stream",
	                 stream, "blocks", blocks);
}

/* The picture of one moment: the segments with the most free bytes, as long as there is room for their blocks. */
static tn_status
add_picture(const struct tn_inspection *inspection, struct tn_page_tables *tables, const struct tn_layout *layout,
            size_t moment, json_t *pictures)
{
	size_t count = layout->segment_count, kept = 0, blocks = 0;
	uint64_t left = 0;
	const struct tn_layout_segment **order = malloc((count + 1) * sizeof(const struct tn_layout_segment *));
	TN_RETURN_IF(order == NULL, TN_NO_MEMORY, "out of host memory for the page");
	for (size_t i = 0; i < count; i++)
		order[i] = &layout->segments[i];
	qsort(order, count, sizeof(const struct tn_layout_segment *), compare_free);
	while (kept < count && blocks + order[kept]->blocks <= MOST_BLOCKS)
		blocks += order[kept++]->blocks;
	for (size_t i = kept; i < count; i++)
		left += order[i]->size;
	qsort(order, kept, sizeof(const struct tn_layout_segment *), compare_addresses);
	json_t *picture = json_pack("{s:I, s:o, s:o, s:{s:I, s:I}}", "moment", (json_int_t)moment, "segments",
	                            segments_object(order, kept), "blocks",
	                            blocks_object(inspection, tables, layout, order, kept), "left_out", "segments",
	                            (json_int_t)(count - kept), "bytes", tn__page_counted(left));
	free(order);
	TN_RETURN_IF(json_array_append_new(pictures, picture) != 0, TN_NO_MEMORY, "out of host memory for the page");
	return TN_OK;
}

tn_status
tn__page_write_segments(const struct tn_inspection *inspection, struct tn_page_tables *tables, json_t *object)
{
	json_t *pictures = json_array();
	tn_status status = TN_OK;
	for (size_t i = 0; i < inspection->named_count && status == TN_OK; i++) {
		struct tn_layout layout;
		status = tn__layout_of(inspection->analysis, inspection->named[i].state, &layout);
		if (status != TN_OK)
			break;
		if (layout.segment_count > 0)
			status = add_picture(inspection, tables, &layout, i, pictures);
		tn__layout_free(&layout);
	}
	if (status == TN_OK)
		return tn__page_set(object, "segments", pictures);
	json_decref(pictures);
	return status;
}
