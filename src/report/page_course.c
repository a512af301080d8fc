/* SPDX-License-Identifier: Apache-2.0
 *
 * Level of detail is decided here: the numbers of columns, rows and changes are bounded, and what is left out is the
 * smallest.
 */
#include "report/page_course.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MOST_COLUMNS 2000
#define MOST_INTERVALS 20000
#define MOST_CHANGES 100000
#define MOST_BLOCKS 20000
#define LARGEST ((INT64_C(1) << 53) - 1) /* that a page can count to */
#define MANY_SITES (-1)

static json_int_t
counted(uint64_t value)
{
	return value > (uint64_t)LARGEST ? LARGEST : (json_int_t)value;
}

/* An array that is written as differences. */
struct steps {
	json_t *array;
	json_int_t before;
};

static struct steps
steps(void)
{
	return (struct steps){ json_array(), 0 };
}

static void
step(struct steps *steps, json_int_t value)
{
	json_array_append_new(steps->array, json_integer(value - steps->before));
	steps->before = value;
}

static void
push(json_t *array, json_int_t value)
{
	json_array_append_new(array, json_integer(value));
}

static tn_status
set(json_t *object, const char *name, json_t *value)
{
	TN_RETURN_IF(json_object_set_new(object, name, value) != 0, TN_NO_MEMORY, "out of host memory for the page");
	return TN_OK;
}

/* ---- the timeline ---- */

static int64_t
beside(const struct tn_study *study, size_t category)
{
	int64_t bytes = category == TN_CATEGORY_context     ? study->card.context
	                : category == TN_CATEGORY_libraries ? study->card.libraries
	                                                    : study->card.other_processes;
	return bytes > 0 ? bytes : 0;
}

/* The column of a category, which is taken over; one of nothing but zeros is left out. */
static void
set_category(json_t *object, size_t category, json_t *column, bool any)
{
	if (any)
		json_object_set_new(object, tn__category_name((enum tn_category)category), column);
	else
		json_decref(column);
}

static json_t *
bytes_by_category(const struct tn_study *study, const struct tn_timeline *timeline)
{
	json_t *object = json_object();
	for (size_t category = 0; category < TN_CATEGORIES; category++) {
		struct steps column = steps();
		bool any = false;
		for (size_t i = 0; i < timeline->count; i++) {
			json_int_t value = category > TN_CATEGORY_cached ? beside(study, category) :
			                                                    counted(timeline->columns[i].bytes[category]);
			any |= value != 0;
			step(&column, value);
		}
		set_category(object, category, column.array, any);
	}
	return object;
}

static json_t *
timeline_object(const struct tn_study *study, const struct tn_timeline *timeline, struct tn_page_tables *tables)
{
	struct steps first = steps(), time = steps(), number = steps(), low = steps();
	json_t *at = json_array(), *phase = json_array();
	for (size_t i = 0; i < timeline->count; i++) {
		const struct tn_column *column = &timeline->columns[i];
		step(&first, column->first);
		push(at, column->moment - column->first);
		step(&time, column->time_us > study->first_us ? column->time_us - study->first_us : 0);
		step(&number, column->step > 0 ? column->step : 0);
		push(phase, tn__page_string(tables, column->phase));
		step(&low, counted(column->low));
	}
	if (study->last_us == 0) {
		json_decref(time.array);
		time.array = json_null();
	}
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "states", (json_int_t)timeline->states, "first",
	                 first.array, "at", at, "time_us", time.array, "step", number.array, "phase", phase, "bytes",
	                 bytes_by_category(study, timeline), "low", low.array);
}

static json_t *
moment_object(const struct tn_study *study, enum tn_moment_name name, size_t column)
{
	static const char *const words[] = { "Peak", "Out of memory", "End", "Asked for" };
	const struct tn_report_oom *oom = &study->report.oom;
	bool failed = name == TN_MOMENT_OOM && oom->seen;
	return json_pack("{s:s, s:s, s:I, s:o, s:o, s:o}", "name", tn__moment_name_text(name), "words", words[name],
	                 "column", (json_int_t)column, "requested_bytes",
	                 failed && oom->requested_bytes >= 0 ? json_integer(oom->requested_bytes) : json_null(),
	                 "free_bytes", failed && oom->free_bytes >= 0 ? json_integer(oom->free_bytes) : json_null(),
	                 "largest_free_block_bytes",
	                 failed && oom->largest_free_block_bytes >= 0 ? json_integer(oom->largest_free_block_bytes) :
	                                                                json_null());
}

/* ---- what was alive ---- */

struct seen {
	const struct tn_part *part;
	uint32_t begin, end; /* columns */
};

/* A change of a series, which is a category and a site. */
struct change {
	int64_t site;
	int64_t bytes, blocks;
	uint64_t peak; /* of its series */
	uint32_t column, label;
	uint8_t category;
};

struct alive {
	const struct tn_study *study;
	const struct tn_timeline *timeline;
	struct tn_page_tables *tables;
	struct seen *seen;
	size_t seen_count;
	struct change *changes;
	size_t change_count;
};

static const struct tn_interval *
block_of(const struct alive *alive, const struct tn_part *part)
{
	return &alive->study->analysis->blocks.intervals[part->interval];
}

static int
compare_sizes(const void *left, const void *right, void *context)
{
	const struct seen *one = left, *other = right;
	const struct alive *alive = context;
	if (one->part->bytes != other->part->bytes)
		return one->part->bytes > other->part->bytes ? -1 : 1;
	uint32_t from = block_of(alive, one->part)->from, than = block_of(alive, other->part)->from;
	return from != than ? (from > than) - (from < than) : (one->part > other->part) - (one->part < other->part);
}

static int
compare_begins(const void *left, const void *right, void *context)
{
	const struct seen *one = left, *other = right;
	const struct alive *alive = context;
	uint32_t from = block_of(alive, one->part)->from, than = block_of(alive, other->part)->from;
	return from != than ? (from > than) - (from < than) : (one->part > other->part) - (one->part < other->part);
}

/* The parts that live at any column's moment, largest first. */
static tn_status
list_seen(struct alive *alive)
{
	const struct tn_part_list *parts = &alive->study->parts;
	alive->seen = malloc((parts->count + 1) * sizeof(*alive->seen));
	TN_RETURN_IF(alive->seen == NULL, TN_NO_MEMORY, "out of host memory for the page");
	for (size_t i = 0; i < parts->count; i++) {
		const struct tn_interval *block = block_of(alive, &parts->items[i]);
		size_t begin = tn__column_from(alive->timeline, block->from), end = tn__column_from(alive->timeline, block->until);
		if (begin < end)
			alive->seen[alive->seen_count++] = (struct seen){ &parts->items[i], (uint32_t)begin, (uint32_t)end };
	}
	qsort_r(alive->seen, alive->seen_count, sizeof(*alive->seen), compare_sizes, alive);
	return TN_OK;
}

static json_t *
intervals_object(struct alive *alive, size_t count)
{
	struct steps from = steps();
	json_t *life = json_array(), *bytes = json_array(), *category = json_array(), *site = json_array();
	json_t *label = json_array();
	json_int_t smallest = count > 0 ? counted(alive->seen[count - 1].part->bytes) : 0;
	if (count > 0)
		qsort_r(alive->seen, count, sizeof(*alive->seen), compare_begins, alive);
	for (size_t i = 0; i < count; i++) {
		const struct tn_part *part = alive->seen[i].part;
		const struct tn_interval *block = block_of(alive, part);
		bool ends = block->until <= alive->study->analysis->events.count;
		step(&from, block->from);
		push(life, ends ? block->until - block->from : 0);
		push(bytes, counted(part->bytes));
		push(category, part->category);
		push(site, tn__page_site_of_block(alive->tables, part->interval));
		push(label, tn__page_string(alive->tables, part->label));
	}
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "smallest_bytes", smallest, "from", from.array, "life", life,
	                 "bytes", bytes, "category", category, "site", site, "label", label);
}

static int
compare_series(const struct change *one, const struct change *other)
{
	if (one->category != other->category)
		return one->category < other->category ? -1 : 1;
	return (one->site > other->site) - (one->site < other->site);
}

static int
compare_changes(const void *left, const void *right)
{
	const struct change *one = left, *other = right;
	int order = compare_series(one, other);
	return order ? order : (one->column > other->column) - (one->column < other->column);
}

/* One change for each column of each series. */
static void
join_changes(struct alive *alive)
{
	size_t kept = 0;
	if (alive->change_count > 0)
		qsort(alive->changes, alive->change_count, sizeof(*alive->changes), compare_changes);
	for (size_t i = 0; i < alive->change_count; i++) {
		struct change *last = kept > 0 ? &alive->changes[kept - 1] : NULL;
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
end_of_series(const struct alive *alive, size_t first)
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
join_least(struct alive *alive)
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
		alive->changes[i].site = MANY_SITES;
		alive->changes[i].label = 0;
	}
	free(peaks);
	join_changes(alive);
	return TN_OK;
}

static void
add_change(struct alive *alive, const struct seen *seen, uint32_t column, int sign)
{
	if (column >= alive->timeline->count)
		return;
	alive->changes[alive->change_count++] =
		(struct change){ .site = tn__page_site_of_block(alive->tables, seen->part->interval),
		                 .bytes = sign * counted(seen->part->bytes),
		                 .blocks = sign,
		                 .column = column,
		                 .label = tn__page_string(alive->tables, seen->part->label),
		                 .category = seen->part->category };
}

static tn_status
list_changes(struct alive *alive, size_t from)
{
	alive->changes = malloc((2 * (alive->seen_count - from) + 1) * sizeof(*alive->changes));
	TN_RETURN_IF(alive->changes == NULL, TN_NO_MEMORY, "out of host memory for the page");
	for (size_t i = from; i < alive->seen_count; i++) {
		add_change(alive, &alive->seen[i], alive->seen[i].begin, 1);
		add_change(alive, &alive->seen[i], alive->seen[i].end, -1);
	}
	join_changes(alive);
	return join_least(alive);
}

static json_t *
small_object(const struct alive *alive)
{
	json_t *category = json_array(), *site = json_array(), *label = json_array(), *count = json_array();
	json_t *column = json_array(), *bytes = json_array(), *blocks = json_array();
	size_t end;
	for (size_t first = 0; first < alive->change_count; first = end) {
		const struct change *series = &alive->changes[first];
		int64_t before = 0;
		end = end_of_series(alive, first);
		push(category, series->category);
		push(site, series->site);
		push(label, series->label);
		push(count, (json_int_t)(end - first));
		for (size_t i = first; i < end; i++) {
			push(column, alive->changes[i].column - before);
			push(bytes, alive->changes[i].bytes);
			push(blocks, alive->changes[i].blocks);
			before = alive->changes[i].column;
		}
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "category", category, "site", site, "label", label,
	                 "changes", count, "column", column, "bytes", bytes, "blocks", blocks);
}

static tn_status
write_alive(struct alive *alive, json_t *object)
{
	TN_FORWARD_IF_ERROR(list_seen(alive));
	size_t large = alive->seen_count < MOST_INTERVALS ? alive->seen_count : MOST_INTERVALS;
	TN_FORWARD_IF_ERROR(set(object, "intervals", intervals_object(alive, large)));
	TN_FORWARD_IF_ERROR(list_changes(alive, large));
	return set(object, "small", small_object(alive));
}

/* ---- segments ---- */

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
main_part(const struct tn_study *study, uint32_t interval)
{
	const struct tn_part *best = NULL;
	size_t low = 0, high = study->parts.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (study->parts.items[middle].interval < interval)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < study->parts.count && study->parts.items[low].interval == interval; low++)
		if (best == NULL || study->parts.items[low].bytes > best->bytes)
			best = &study->parts.items[low];
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
blocks_object(const struct tn_study *study, struct tn_page_tables *tables, const struct tn_layout *layout,
              const struct tn_layout_segment *const *segments, size_t count)
{
	json_t *size = json_array(), *state = json_array(), *category = json_array(), *site = json_array();
	json_t *label = json_array();
	for (size_t i = 0; i < count; i++) {
		for (size_t at = segments[i]->first_block; at < segments[i]->first_block + segments[i]->blocks; at++) {
			const struct tn_layout_block *block = &layout->blocks[at];
			bool live = block->interval != TN_NO_INTERVAL && !block->pending;
			const struct tn_part *part = live ? main_part(study, block->interval) : NULL;
			push(size, counted(block->size));
			push(state, block->interval == TN_NO_INTERVAL ? 0 : block->pending ? 2 : 1);
			push(category, part != NULL ? part->category : live ? TN_CATEGORY_temporaries : -1);
			push(site, live ? (json_int_t)tn__page_site_of_block(tables, block->interval) : -1);
			push(label, part != NULL ? tn__page_string(tables, part->label) : 0);
		}
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "size", size, "state", state, "category", category, "site", site,
	                 "label", label);
}

static json_t *
segments_object(const struct tn_layout_segment *const *segments, size_t count)
{
	struct steps address = steps();
	struct streams streams = { .count = 0 };
	json_t *size = json_array(), *kind = json_array(), *stream = json_array(), *blocks = json_array();
	for (size_t i = 0; i < count; i++) {
		step(&address, counted(segments[i]->address));
		push(size, counted(segments[i]->size));
		push(kind, kind_of(segments[i]));
		push(stream, (json_int_t)number_of(&streams, segments[i]->stream));
		push(blocks, (json_int_t)segments[i]->blocks);
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "address", address.array, "size", size, "kind", kind, "stream", stream,
	                 "blocks", blocks);
}

/* The picture of one moment: the segments with the most free bytes, as long as there is room for their blocks. */
static tn_status
add_picture(const struct tn_study *study, struct tn_page_tables *tables, const struct tn_layout *layout, size_t moment,
            json_t *pictures)
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
	                            blocks_object(study, tables, layout, order, kept), "left_out", "segments",
	                            (json_int_t)(count - kept), "bytes", counted(left));
	free(order);
	TN_RETURN_IF(json_array_append_new(pictures, picture) != 0, TN_NO_MEMORY, "out of host memory for the page");
	return TN_OK;
}

static tn_status
write_segments(const struct tn_study *study, struct tn_page_tables *tables, json_t *object)
{
	json_t *pictures = json_array();
	tn_status status = TN_OK;
	for (size_t i = 0; i < study->named_count && status == TN_OK; i++) {
		struct tn_layout layout;
		status = tn__layout_of(study->analysis, study->named[i].state, &layout);
		if (status != TN_OK)
			break;
		if (layout.segment_count > 0)
			status = add_picture(study, tables, &layout, i, pictures);
		tn__layout_free(&layout);
	}
	if (status == TN_OK)
		return set(object, "segments", pictures);
	json_decref(pictures);
	return status;
}

/* ---- the whole, of a snapshot ---- */

static tn_status
write_course(const struct tn_study *study, const struct tn_timeline *timeline, struct tn_page_tables *tables,
             json_t *object)
{
	json_t *moments = json_array();
	struct alive alive = { .study = study, .timeline = timeline, .tables = tables };
	for (size_t i = 0; i < study->named_count; i++)
		json_array_append_new(moments, moment_object(study, study->named[i].name,
		                                             tn__column_of(timeline, study->named[i].state)));
	TN_FORWARD_IF_ERROR(set(object, "moments", moments));
	TN_FORWARD_IF_ERROR(set(object, "timeline", timeline_object(study, timeline, tables)));
	tn_status status = write_alive(&alive, object);
	free(alive.seen);
	free(alive.changes);
	return status == TN_OK ? write_segments(study, tables, object) : status;
}

static tn_status
write_snapshot(const struct tn_study *study, struct tn_page_tables *tables, json_t *object)
{
	struct tn_timeline timeline;
	uint32_t named[4];
	for (size_t i = 0; i < study->named_count; i++)
		named[i] = study->named[i].state;
	TN_FORWARD_IF_ERROR(tn__timeline_make(study->analysis, &study->parts, MOST_COLUMNS, named, study->named_count,
	                                      &timeline));
	tn_status status = write_course(study, &timeline, tables, object);
	tn__timeline_free(&timeline);
	return status;
}

/* ---- the JSON of a run: single moments ---- */

struct single {
	const struct tn_report_moment *moment;
	enum tn_moment_name name;
};

static int64_t
held(const struct tn_report_moment *moment, size_t category)
{
	return moment->by_category[category] > 0 ? moment->by_category[category] : 0;
}

static json_t *
single_bytes(const struct single *singles, size_t count)
{
	json_t *object = json_object();
	for (size_t category = 0; category < TN_CATEGORIES; category++) {
		struct steps column = steps();
		bool any = false;
		for (size_t i = 0; i < count; i++) {
			any |= held(singles[i].moment, category) > 0;
			step(&column, held(singles[i].moment, category));
		}
		set_category(object, category, column.array, any);
	}
	return object;
}

static json_t *
single_timeline(const struct single *singles, size_t count, struct tn_page_tables *tables)
{
	struct steps first = steps(), number = steps(), low = steps();
	json_t *at = json_array(), *phase = json_array();
	for (size_t i = 0; i < count; i++) {
		int64_t allocated = 0;
		for (size_t category = 0; category < TN_CATEGORY_cached; category++)
			allocated += held(singles[i].moment, category);
		step(&first, (json_int_t)i);
		push(at, 0);
		step(&number, singles[i].moment->step > 0 ? singles[i].moment->step : 0);
		push(phase, tn__page_string(tables, singles[i].moment->phase));
		step(&low, allocated);
	}
	return json_pack("{s:I, s:o, s:o, s:n, s:o, s:o, s:o, s:o}", "states", (json_int_t)count, "first", first.array, "at",
	                 at, "time_us", "step", number.array, "phase", phase, "bytes", single_bytes(singles, count), "low",
	                 low.array);
}

/* What the holders of a moment hold, and what is left of each category. */
static tn_status
list_single(struct alive *alive, const struct single *single, uint32_t column)
{
	const struct tn_report_moment *moment = single->moment;
	size_t room = alive->change_count + 2 * (moment->holder_count + TN_CATEGORY_rounding);
	struct change *changes = reallocarray(alive->changes, room, sizeof(*changes));
	int64_t rest[TN_CATEGORIES];
	TN_RETURN_IF(changes == NULL, TN_NO_MEMORY, "out of host memory for the page");
	alive->changes = changes;
	size_t first = alive->change_count;
	for (size_t category = 0; category < TN_CATEGORIES; category++)
		rest[category] = held(moment, category);
	for (size_t i = 0; i < moment->holder_count; i++) {
		const struct tn_report_holder *holder = &moment->holders[i];
		if (holder->category >= TN_CATEGORY_rounding || holder->bytes <= 0 || holder->bytes > rest[holder->category])
			continue;
		rest[holder->category] -= holder->bytes;
		changes[alive->change_count++] = (struct change){ .site = tn__page_site_of_place(alive->tables, &holder->at),
			                                              .bytes = holder->bytes,
			                                              .blocks = holder->blocks > 0 ? holder->blocks : 1,
			                                              .column = column,
			                                              .label = tn__page_string(alive->tables, holder->what),
			                                              .category = (uint8_t)holder->category };
	}
	for (size_t category = 0; category < TN_CATEGORY_other; category++)
		if (rest[category] > 0)
			changes[alive->change_count++] = (struct change){ .site = MANY_SITES,
				                                              .bytes = rest[category],
				                                              .blocks = 1,
				                                              .column = column,
				                                              .category = (uint8_t)category };
	size_t end = alive->change_count;
	for (size_t i = first; i < end && column + 1 < alive->timeline->count; i++) {
		struct change gone = changes[i];
		gone.bytes = -gone.bytes;
		gone.blocks = -gone.blocks;
		gone.column = column + 1;
		changes[alive->change_count++] = gone;
	}
	return TN_OK;
}

static tn_status
write_single(const struct single *singles, size_t count, struct alive *alive, json_t *object)
{
	json_t *moments = json_array();
	size_t shown = count > 1 ? 1 : 0; /* the out-of-memory is more important */
	for (size_t i = 0; i < count; i++) {
		size_t column = i == 0 ? shown : 0;
		json_array_append_new(moments, moment_object(alive->study, singles[column].name, column));
	}
	TN_FORWARD_IF_ERROR(set(object, "moments", moments));
	TN_FORWARD_IF_ERROR(set(object, "timeline", single_timeline(singles, count, alive->tables)));
	TN_FORWARD_IF_ERROR(set(object, "intervals", intervals_object(alive, 0)));
	for (size_t i = 0; i < count; i++)
		TN_FORWARD_IF_ERROR(list_single(alive, &singles[i], (uint32_t)i));
	join_changes(alive);
	TN_FORWARD_IF_ERROR(set(object, "small", small_object(alive)));
	return set(object, "segments", json_array());
}

static tn_status
write_nothing(struct alive *alive, json_t *object)
{
	TN_FORWARD_IF_ERROR(set(object, "moments", json_array()));
	TN_FORWARD_IF_ERROR(set(object, "timeline", json_null()));
	TN_FORWARD_IF_ERROR(set(object, "intervals", intervals_object(alive, 0)));
	TN_FORWARD_IF_ERROR(set(object, "small", small_object(alive)));
	return set(object, "segments", json_array());
}

static tn_status
write_run(const struct tn_study *study, struct tn_page_tables *tables, json_t *object)
{
	const struct tn_report *report = &study->report;
	struct single singles[2];
	size_t count = 0;
	if (tn__report_is_told(&report->at_peak))
		singles[count++] = (struct single){ &report->at_peak, TN_MOMENT_PEAK };
	if (report->oom.seen && tn__report_is_told(&report->at_oom))
		singles[count++] = (struct single){ &report->at_oom, TN_MOMENT_OOM };
	struct tn_timeline timeline = { .count = count };
	struct alive alive = { .study = study, .timeline = &timeline, .tables = tables };
	tn_status status = count > 0 ? write_single(singles, count, &alive, object) : write_nothing(&alive, object);
	free(alive.changes);
	return status;
}

tn_status
tn__page_course(const struct tn_study *study, struct tn_page_tables *tables, json_t *object)
{
	tn_status status = study->snapshot != NULL ? write_snapshot(study, tables, object) :
	                                             write_run(study, tables, object);
	TN_RETURN_IF(status == TN_OK && tn__page_tables_failed(tables), TN_NO_MEMORY, "out of host memory for the page");
	return status;
}
