/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts rows in the order of the lists that hold them. Almost always they are in it already: a pickler writes an entry
 * where it first meets it. A list may be taken over only once, so that nothing grows beyond the input.
 */
#include <string.h>

#include "base/error.h"
#include "trace/builder.h"

/* A list of the top level; an empty one has the range TN_NO_NUMBER. */
static tn_status
top_list(const struct tn_builder *builder, enum tn_key key, enum tn_word_kind kind, const char *what, uint32_t *range)
{
	*range = TN_NO_NUMBER;
	if (!(builder->top.seen >> key & 1))
		return TN_OK;
	tn_value value = builder->top.values[key];
	if (tn__value_kind(value) == TN_VALUE_NONE)
		return TN_OK;
	uint32_t word = tn__value_kind(value) == TN_VALUE_LIST ? tn__pickle_word(&builder->pickle, value) : TN_WORD_OPAQUE;
	if (word == 0)
		return TN_OK;
	if (tn__word_kind(word) != TN_WORD_LIST || builder->ranges[tn__word_row(word)].kind != kind)
		return tn__pickle_fail(&builder->pickle, TN_FORMAT, "the snapshot's %s are malformed", what);
	*range = tn__word_row(word);
	return TN_OK;
}

/* Metadata a list as taken over. */
static tn_status
claim(struct tn_builder *builder, uint32_t list)
{
	if (list == TN_NO_NUMBER)
		return TN_OK;
	if (builder->ranges[list].used)
		return tn__pickle_fail(&builder->pickle, TN_FORMAT, "one list stands in two places of the snapshot");
	builder->ranges[list].used = true;
	return TN_OK;
}

/* The next range of a list; a loop begins with the list itself. */
static inline const struct tn_range *
range_at(const struct tn_builder *builder, uint32_t range)
{
	return range == TN_NO_NUMBER ? NULL : &builder->ranges[range];
}

#define FOR_RANGES(builder, range, list) \
	for (const struct tn_range *range = range_at((builder), (list)); range; range = range_at((builder), range->next))

/* ---- segments and blocks ---- */

static tn_status
take_blocks(struct tn_builder *builder, uint32_t list, struct tn_segment *segment)
{
	struct tn_snapshot *snapshot = builder->snapshot;
	TN_FORWARD_IF_ERROR(claim(builder, list));
	segment->first_block = snapshot->block_count;
	FOR_RANGES(builder, range, list)
	{
		TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &snapshot->blocks, &snapshot->block_capacity,
		                             snapshot->block_count + range->count, sizeof(*snapshot->blocks)));
		memcpy(snapshot->blocks + snapshot->block_count, builder->blocks + range->first,
		       range->count * sizeof(*snapshot->blocks));
		snapshot->block_count += range->count;
	}
	segment->blocks = snapshot->block_count - segment->first_block;
	return TN_OK;
}

/* Blocks of old snapshots have no address: they follow one another in their segment. */
static void
place_blocks(const struct tn_snapshot *snapshot, const struct tn_segment *segment)
{
	uint64_t next = segment->address;
	for (size_t index = segment->first_block; index < segment->first_block + segment->blocks; index++) {
		struct tn_block *block = &snapshot->blocks[index];
		if (block->address == TN_UNKNOWN && segment->address != TN_UNKNOWN)
			block->address = next;
		next = block->address + block->size;
	}
}

static tn_status
take_segments(struct tn_builder *builder, uint32_t list, bool host)
{
	struct tn_snapshot *snapshot = builder->snapshot;
	TN_FORWARD_IF_ERROR(claim(builder, list));
	FOR_RANGES(builder, range, list)
	{
		TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &snapshot->segments, &snapshot->segment_capacity,
		                             snapshot->segment_count + range->count, sizeof(*snapshot->segments)));
		for (uint32_t row = range->first; row < range->first + range->count; row++) {
			struct tn_segment *segment = &snapshot->segments[snapshot->segment_count];
			*segment = builder->segments[row].segment;
			segment->host = host;
			TN_FORWARD_IF_ERROR(take_blocks(builder, builder->segments[row].blocks, segment));
			place_blocks(snapshot, segment);
			snapshot->segment_count++;
		}
	}
	return TN_OK;
}

/* ---- traces ---- */

/* Appends the rows of one trace to `order`. */
static tn_status
take_trace(struct tn_builder *builder, uint32_t list, int32_t device, uint32_t **order, size_t *count, size_t *capacity)
{
	struct tn_snapshot *snapshot = builder->snapshot;
	TN_FORWARD_IF_ERROR(claim(builder, list));
	if (list != TN_NO_NUMBER && builder->ranges[list].kind != TN_WORD_EVENT)
		return tn__pickle_fail(&builder->pickle, TN_FORMAT, "a device's trace is no list of events");
	size_t first = *count;
	FOR_RANGES(builder, range, list)
	{
		TN_FORWARD_IF_ERROR(tn__grow(builder->budget, order, capacity, *count + range->count, sizeof(**order)));
		for (uint32_t row = range->first; row < range->first + range->count; row++)
			(*order)[(*count)++] = row;
	}
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &snapshot->traces, &snapshot->trace_capacity,
	                             snapshot->trace_count + 1, sizeof(*snapshot->traces)));
	snapshot->traces[snapshot->trace_count++] = (struct tn_trace_place){ .device = device,
		                                                                 .first = first,
		                                                                 .count = *count - first };
	return TN_OK;
}

/* Replaces a column by its rows in another order. */
static tn_status
reorder(struct tn_budget *budget, void *column, size_t *capacity, size_t width, const uint32_t *order, size_t count)
{
	uint8_t *old, *fresh = NULL;
	size_t fresh_capacity = 0;
	TN_FORWARD_IF_ERROR(tn__grow(budget, &fresh, &fresh_capacity, count, width));
	memcpy(&old, column, sizeof(old));
	for (size_t index = 0; index < count; index++)
		memcpy(fresh + index * width, old + order[index] * width, width);
	tn__release(budget, column, capacity, width);
	memcpy(column, &fresh, sizeof(fresh));
	*capacity = fresh_capacity;
	return TN_OK;
}

static tn_status
reorder_events(struct tn_builder *builder, const uint32_t *order, size_t count)
{
	struct tn_events *events = &builder->snapshot->events;
	bool sorted = count == events->count;
	for (size_t index = 0; sorted && index < count; index++)
		sorted = order[index] == index;
	if (sorted || events->count == 0)
		return TN_OK;
	size_t *capacities = events->capacities;
	struct tn_budget *budget = builder->budget;
	TN_FORWARD_IF_ERROR(reorder(budget, &events->addresses, &capacities[0], sizeof(uint64_t), order, count));
	TN_FORWARD_IF_ERROR(reorder(budget, &events->sizes, &capacities[1], sizeof(uint64_t), order, count));
	TN_FORWARD_IF_ERROR(reorder(budget, &events->times, &capacities[2], sizeof(int64_t), order, count));
	TN_FORWARD_IF_ERROR(reorder(budget, &events->stacks, &capacities[3], sizeof(uint32_t), order, count));
	TN_FORWARD_IF_ERROR(reorder(budget, &events->contexts, &capacities[4], sizeof(uint32_t), order, count));
	TN_FORWARD_IF_ERROR(reorder(budget, &events->actions, &capacities[5], sizeof(uint8_t), order, count));
	events->count = count;
	return TN_OK;
}

/* The traces of all devices, then of the host, whose list is not nested. */
static tn_status
gather_traces(struct tn_builder *builder, uint32_t **order, size_t *count, size_t *capacity)
{
	uint32_t devices, host;
	int32_t device = 0;
	TN_FORWARD_IF_ERROR(top_list(builder, TN_KEY_DEVICE_TRACES, TN_WORD_LIST, "device_traces", &devices));
	TN_FORWARD_IF_ERROR(top_list(builder, TN_KEY_HOST_TRACES, TN_WORD_EVENT, "host_traces", &host));
	FOR_RANGES(builder, range, devices)
	{
		for (uint32_t item = 0; item < range->count; item++) {
			uint32_t list = range->first == TN_NO_NUMBER ? TN_NO_NUMBER : range->first + item;
			TN_FORWARD_IF_ERROR(take_trace(builder, list, device++, order, count, capacity));
		}
	}
	if (!(builder->top.seen >> TN_KEY_HOST_TRACES & 1))
		return TN_OK;
	return take_trace(builder, host, -1, order, count, capacity);
}

static tn_status
take_traces(struct tn_builder *builder)
{
	uint32_t *order = NULL;
	size_t count = 0, capacity = 0;
	tn_status status = gather_traces(builder, &order, &count, &capacity);
	if (status == TN_OK)
		status = reorder_events(builder, order, count);
	tn__release(builder->budget, &order, &capacity, sizeof(*order));
	return status;
}

/* ---- annotations and settings: their texts get addresses, as the strings do not move any more ---- */

static const char *
text_of(const struct tn_snapshot *snapshot, uint32_t number)
{
	return number == TN_NO_NUMBER ? "" : tn__interned(&snapshot->strings, number);
}

static tn_status
take_annotations(struct tn_builder *builder)
{
	struct tn_snapshot *snapshot = builder->snapshot;
	uint32_t list;
	TN_FORWARD_IF_ERROR(
		top_list(builder, TN_KEY_EXTERNAL_ANNOTATIONS, TN_WORD_ANNOTATION, "external_annotations", &list));
	FOR_RANGES(builder, range, list)
	{
		TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &snapshot->annotations, &snapshot->annotation_capacity,
		                             snapshot->annotation_count + range->count, sizeof(*snapshot->annotations)));
		for (uint32_t index = range->first; index < range->first + range->count; index++) {
			const struct tn_annotation_row *row = &builder->annotations[index];
			snapshot->annotations[snapshot->annotation_count++] = (struct tn_annotation){ text_of(snapshot, row->name),
				                                                                          row->start, row->device,
				                                                                          row->time_us };
		}
	}
	return TN_OK;
}

static void
set_value(const struct tn_builder *builder, tn_value value, struct tn_setting *setting)
{
	if (tn__value_kind(value) == TN_VALUE_STRING) {
		setting->kind = TN_SETTING_TEXT;
		setting->text = text_of(builder->snapshot, tn__value_number(value));
	} else if (tn__pickle_int64(&builder->pickle, value, &setting->integer)) {
		setting->kind = tn__value_kind(value) == TN_VALUE_BOOL ? TN_SETTING_BOOL : TN_SETTING_INTEGER;
	} else if (tn__pickle_double(&builder->pickle, value, &setting->real)) {
		setting->kind = TN_SETTING_REAL;
	}
}

/* "outer.inner" as a string of the snapshot. Both are short, or the setting is left out. */
static tn_status
nested_name(struct tn_snapshot *snapshot, uint32_t outer, uint32_t inner, uint32_t *number)
{
	char name[256];
	size_t left = tn__interned_length(&snapshot->strings, outer),
		   right = tn__interned_length(&snapshot->strings, inner);
	*number = TN_NO_NUMBER;
	if (left + 1 + right > sizeof(name))
		return TN_OK;
	memcpy(name, tn__interned(&snapshot->strings, outer), left);
	name[left] = '.';
	memcpy(name + left + 1, tn__interned(&snapshot->strings, inner), right);
	return tn__intern(&snapshot->strings, name, left + 1 + right, number);
}

/* The kept dict that a value is, or NULL. */
static const struct tn_dict_row *
dict_of(const struct tn_builder *builder, tn_value value)
{
	if (tn__value_kind(value) != TN_VALUE_DICT)
		return NULL;
	uint32_t word = tn__pickle_word(&builder->pickle, value);
	return tn__word_kind(word) == TN_WORD_DICT ? &builder->dicts[tn__word_row(word)] : NULL;
}

/* One walk over the settings: with `names` only the nested names are made, since strings move while they do. */
static tn_status
walk_settings(struct tn_builder *builder, const struct tn_dict_row *dict, uint32_t outer, bool names)
{
	struct tn_snapshot *snapshot = builder->snapshot;
	for (size_t pair = 0; pair < dict->pairs; pair++) {
		tn_value key = builder->kept[dict->first + 2 * pair], value = builder->kept[dict->first + 2 * pair + 1];
		uint32_t name = tn__value_number(key);
		if (tn__value_kind(key) != TN_VALUE_STRING)
			continue;
		const struct tn_dict_row *inner = dict_of(builder, value);
		if (outer != TN_NO_NUMBER)
			TN_FORWARD_IF_ERROR(nested_name(snapshot, outer, tn__value_number(key), &name));
		else if (inner)
			TN_FORWARD_IF_ERROR(walk_settings(builder, inner, name, names));
		if (names || inner || name == TN_NO_NUMBER)
			continue;
		TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &snapshot->settings, &snapshot->setting_capacity,
		                             snapshot->setting_count + 1, sizeof(*snapshot->settings)));
		struct tn_setting *setting = &snapshot->settings[snapshot->setting_count++];
		*setting = (struct tn_setting){ .name = text_of(snapshot, name) };
		set_value(builder, value, setting);
	}
	return TN_OK;
}

static tn_status
take_settings(struct tn_builder *builder, bool names)
{
	if (!(builder->top.seen >> TN_KEY_ALLOCATOR_SETTINGS & 1))
		return TN_OK;
	const struct tn_dict_row *dict = dict_of(builder, builder->top.values[TN_KEY_ALLOCATOR_SETTINGS]);
	return dict ? walk_settings(builder, dict, TN_NO_NUMBER, names) : TN_OK;
}

/* Our own metadata: one text of the top level. */
static tn_status
take_metadata(struct tn_builder *builder)
{
	builder->snapshot->metadata = TN_NO_NUMBER;
	if (!(builder->top.seen >> TN_KEY_TONNAGE & 1))
		return TN_OK;
	tn_value value = builder->top.values[TN_KEY_TONNAGE];
	if (tn__value_kind(value) != TN_VALUE_STRING)
		return tn__pickle_fail(&builder->pickle, TN_FORMAT, "the snapshot's \"tonnage\" is not a string");
	builder->snapshot->metadata = tn__value_number(value);
	return TN_OK;
}

/* ---- the whole ---- */

/* Finds the top level; a bare list of segments counts as one. */
static tn_status
find_top(struct tn_builder *builder, tn_value value)
{
	enum tn_value_kind kind = tn__value_kind(value);
	uint32_t word = kind == TN_VALUE_DICT || kind == TN_VALUE_LIST ? tn__pickle_word(&builder->pickle, value) : 0;
	if (kind == TN_VALUE_DICT && word != 0 && word == tn__word(TN_WORD_TOP, builder->top_count))
		return TN_OK;
	builder->top = (struct tn_record){ .seen = (uint64_t)1 << TN_KEY_SEGMENTS };
	builder->top.values[TN_KEY_SEGMENTS] = value;
	bool empty = kind == TN_VALUE_LIST && word == 0;
	bool segments = kind == TN_VALUE_LIST && tn__word_kind(word) == TN_WORD_LIST &&
	                builder->ranges[tn__word_row(word)].kind == TN_WORD_SEGMENT;
	if (!empty && !segments)
		return tn__pickle_fail(&builder->pickle, TN_FORMAT, "a pickle, but no memory snapshot of PyTorch");
	return TN_OK;
}

tn_status
tn__builder_finish(struct tn_builder *builder, tn_value value)
{
	uint32_t segments, host;
	TN_FORWARD_IF_ERROR(find_top(builder, value));
	TN_FORWARD_IF_ERROR(top_list(builder, TN_KEY_SEGMENTS, TN_WORD_SEGMENT, "segments", &segments));
	TN_FORWARD_IF_ERROR(top_list(builder, TN_KEY_HOST_SEGMENTS, TN_WORD_SEGMENT, "host_segments", &host));
	TN_FORWARD_IF_ERROR(take_segments(builder, segments, false));
	TN_FORWARD_IF_ERROR(take_segments(builder, host, true));
	TN_FORWARD_IF_ERROR(take_traces(builder));
	TN_FORWARD_IF_ERROR(take_metadata(builder));
	TN_FORWARD_IF_ERROR(take_settings(builder, true));
	TN_FORWARD_IF_ERROR(take_annotations(builder));
	return take_settings(builder, false);
}
