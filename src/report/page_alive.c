/* SPDX-License-Identifier: Apache-2.0
 *
 * What a page shows of the blocks that were alive: the largest one by one, the others as changes of series.
 */
#include <stdlib.h>

#include "base/error.h"
#include "report/page_course_parts.h"

#define MOST_INTERVALS 20000
#define MOST_CHANGES 100000

struct tn_page_seen {
	const struct tn_part *part;
	uint32_t begin, end; /* columns */
};

static const struct tn_interval *
block_of(const struct tn_page_alive *alive, const struct tn_part *part)
{
	return &alive->inspection->analysis->blocks.intervals[part->interval];
}

static int
compare_sizes(const void *left, const void *right, void *context)
{
	const struct tn_page_seen *one = left, *other = right;
	const struct tn_page_alive *alive = context;
	if (one->part->bytes != other->part->bytes)
		return one->part->bytes > other->part->bytes ? -1 : 1;
	uint32_t from = block_of(alive, one->part)->from, than = block_of(alive, other->part)->from;
	return from != than ? (from > than) - (from < than) : (one->part > other->part) - (one->part < other->part);
}

static int
compare_begins(const void *left, const void *right, void *context)
{
	const struct tn_page_seen *one = left, *other = right;
	const struct tn_page_alive *alive = context;
	uint32_t from = block_of(alive, one->part)->from, than = block_of(alive, other->part)->from;
	return from != than ? (from > than) - (from < than) : (one->part > other->part) - (one->part < other->part);
}

/* The parts that live at any column's moment, largest first. */
static tn_status
list_seen(struct tn_page_alive *alive)
{
	const struct tn_part_list *parts = &alive->inspection->parts;
	alive->seen = malloc((parts->count + 1) * sizeof(*alive->seen));
	TN_RETURN_IF(alive->seen == NULL, TN_NO_MEMORY, "out of host memory for the page");
	for (size_t i = 0; i < parts->count; i++) {
		const struct tn_interval *block = block_of(alive, &parts->items[i]);
		size_t begin = tn__column_from(alive->timeline, block->from);
		size_t end = tn__column_from(alive->timeline, block->until);
		if (begin < end)
			alive->seen[alive->seen_count++] = (struct tn_page_seen){ &parts->items[i], (uint32_t)begin,
				                                                      (uint32_t)end };
	}
	qsort_r(alive->seen, alive->seen_count, sizeof(*alive->seen), compare_sizes, alive);
	return TN_OK;
}

json_t *
tn__page_intervals(struct tn_page_alive *alive, size_t count)
{
	struct tn_page_steps from = tn__page_steps();
	json_t *life = json_array(), *bytes = json_array(), *category = json_array(), *site = json_array();
	json_t *label = json_array();
	json_int_t smallest = count > 0 ? tn__page_counted(alive->seen[count - 1].part->bytes) : 0;
	if (count > 0)
		qsort_r(alive->seen, count, sizeof(*alive->seen), compare_begins, alive);
	for (size_t i = 0; i < count; i++) {
		const struct tn_part *part = alive->seen[i].part;
		const struct tn_interval *block = block_of(alive, part);
		bool ends = block->until <= alive->inspection->analysis->events.count;
		tn__page_step(&from, block->from);
		tn__page_push(life, ends ? block->until - block->from : 0);
		tn__page_push(bytes, tn__page_counted(part->bytes));
		tn__page_push(category, part->category);
		tn__page_push(site, tn__page_site_of_block(alive->tables, part->interval));
		tn__page_push(label, tn__page_string(alive->tables, part->label));
	}
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "smallest_bytes", smallest, "from", from.array, "life",
	                 life, "bytes", bytes, "category", category, "site", site, "label", label);
}

static int
compare_series(const struct tn_page_change *one, const struct tn_page_change *other)
{
	if (one->category != other->category)
		return one->category < other->category ? -1 : 1;
	return (one->site > other->site) - (one->site < other->site);
}

static int
compare_changes(const void *left, const void *right)
{
	const struct tn_page_change *one = left, *other = right;
	int order = compare_series(one, other);
	return order ? order : (one->column > other->column) - (one->column < other->column);
}

void
tn__page_join_changes(struct tn_page_alive *alive)
{
	size_t kept = 0;
	if (alive->change_count > 0)
		qsort(alive->changes, alive->change_count, sizeof(*alive->changes), compare_changes);
	for (size_t i = 0; i < alive->change_count; i++) {
		struct tn_page_change *last = kept > 0 ? &alive->changes[kept - 1] : NULL;
		if (last != NULL && compare_changes(last, &alive->changes[i]) == 0) {
			last->bytes += alive->changes[i].bytes;
			last->blocks += alive->changes[i].blocks;
		} else {
			alive->changes[kept++] = alive->changes[i];
		}
	}
	alive->change_count = kept;
}

static size_t
end_of_series(const struct tn_page_alive *alive, size_t first)
{
	size_t end = first;
	while (end < alive->change_count && compare_series(&alive->changes[first], &alive->changes[end]) == 0)
		end++;
	return end;
}

static int
compare_peaks(const void *left, const void *right)
{
	const uint64_t *one = left, *other = right;
	return (*one > *other) - (*one < *other);
}

/* Puts the series with the least bytes together, one for each category, until the changes are few enough. */
static tn_status
join_least(struct tn_page_alive *alive)
{
	size_t room = MOST_CHANGES - 8 * (alive->timeline->count + 1), kept = alive->change_count, end, series = 0;
	if (alive->change_count <= MOST_CHANGES)
		return TN_OK;
	uint64_t *peaks = malloc(alive->change_count * sizeof(*peaks)); /* of each change's series, ascending */
	TN_RETURN_IF(peaks == NULL, TN_NO_MEMORY, "out of host memory for the page");
	for (size_t first = 0; first < alive->change_count; first = end) {
		int64_t now = 0, most = 0;
		end = end_of_series(alive, first);
		for (size_t i = first; i < end; i++) {
			now += alive->changes[i].bytes;
			most = now > most ? now : most;
		}
		for (size_t i = first; i < end; i++)
			peaks[series++] = alive->changes[i].peak = (uint64_t)most;
	}
	qsort(peaks, series, sizeof(*peaks), compare_peaks);
	uint64_t limit = kept > room ? peaks[kept - room - 1] : 0; /* series up to it are joined */
	for (size_t i = 0; i < alive->change_count; i++) {
		if (alive->changes[i].peak > limit)
			continue;
		alive->changes[i].site = TN_PAGE_MANY_SITES;
		alive->changes[i].label = 0;
	}
	free(peaks);
	tn__page_join_changes(alive);
	return TN_OK;
}

static void
add_change(struct tn_page_alive *alive, const struct tn_page_seen *seen, uint32_t column, int sign)
{
	if (column >= alive->timeline->count)
		return;
	alive->changes[alive->change_count++] = (struct tn_page_change){
		.site = tn__page_site_of_block(alive->tables, seen->part->interval),
		.bytes = sign * tn__page_counted(seen->part->bytes),
		.blocks = sign,
		.column = column,
		.label = tn__page_string(alive->tables, seen->part->label),
		.category = seen->part->category
	};
}

static tn_status
list_changes(struct tn_page_alive *alive, size_t from)
{
	alive->changes = malloc((2 * (alive->seen_count - from) + 1) * sizeof(*alive->changes));
	TN_RETURN_IF(alive->changes == NULL, TN_NO_MEMORY, "out of host memory for the page");
	for (size_t i = from; i < alive->seen_count; i++) {
		add_change(alive, &alive->seen[i], alive->seen[i].begin, 1);
		add_change(alive, &alive->seen[i], alive->seen[i].end, -1);
	}
	tn__page_join_changes(alive);
	return join_least(alive);
}

json_t *
tn__page_small(const struct tn_page_alive *alive)
{
	json_t *category = json_array(), *site = json_array(), *label = json_array(), *count = json_array();
	json_t *column = json_array(), *bytes = json_array(), *blocks = json_array();
	size_t end;
	for (size_t first = 0; first < alive->change_count; first = end) {
		const struct tn_page_change *series = &alive->changes[first];
		int64_t before = 0;
		end = end_of_series(alive, first);
		tn__page_push(category, series->category);
		tn__page_push(site, series->site);
		tn__page_push(label, series->label);
		tn__page_push(count, (json_int_t)(end - first));
		for (size_t i = first; i < end; i++) {
			tn__page_push(column, alive->changes[i].column - before);
			tn__page_push(bytes, alive->changes[i].bytes);
			tn__page_push(blocks, alive->changes[i].blocks);
			before = alive->changes[i].column;
		}
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "category", category, "site", site, "label", label,
	                 "changes", count, "column", column, "bytes", bytes, "blocks", blocks);
}

tn_status
tn__page_write_alive(struct tn_page_alive *alive, json_t *object)
{
	TN_FORWARD_IF_ERROR(list_seen(alive));
	size_t large = alive->seen_count < MOST_INTERVALS ? alive->seen_count : MOST_INTERVALS;
	TN_FORWARD_IF_ERROR(tn__page_set(object, "intervals", tn__page_intervals(alive, large)));
	TN_FORWARD_IF_ERROR(list_changes(alive, large));
	return tn__page_set(object, "small", tn__page_small(alive));
}

void
tn__page_alive_free(struct tn_page_alive *alive)
{
	free(alive->seen);
	free(alive->changes);
}
