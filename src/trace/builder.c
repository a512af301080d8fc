/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells by its keys what a dict is, and by its items what a list is.
 */
#include "trace/builder.h"

#include <string.h>

#include "base/error.h"

enum {
	PICKLER_BATCH = 1000,  /* Python's pickler fills longer lists by so many items at a time */
	LONGEST_STACK = 32000, /* frames of a stack that comes in batches */
	KEPT_PAIRS = 64,       /* of a dict that is kept as it is; the allocator's settings have 16 */
};

#define BIT(key) ((uint64_t)1 << TN_KEY_##key)

_Static_assert(TN_KEY_COUNT <= 64, "the keys of a record fit one word");

static void
collect(struct tn_record *record, const tn_value *pairs, size_t count)
{
	record->seen = 0;
	for (size_t index = 0; index < count; index++) {
		uint32_t key = tn__value_number(pairs[2 * index]);
		if (tn__value_kind(pairs[2 * index]) != TN_VALUE_STRING || key >= TN_KEY_COUNT)
			continue;
		record->seen |= (uint64_t)1 << key;
		record->values[key] = pairs[2 * index + 1];
	}
}

/* Keeps a small dict for tn__builder_finish; a large one is opaque. */
static tn_status
keep_dict(struct tn_builder *builder, const tn_value *pairs, size_t count, uint32_t *word)
{
	*word = tn__word(TN_WORD_OPAQUE, 0);
	if (count > KEPT_PAIRS || builder->dict_count >= TN_PICKLE_MEMO)
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &builder->dicts, &builder->dict_capacity, builder->dict_count + 1,
	                             sizeof(*builder->dicts)));
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &builder->kept, &builder->kept_capacity,
	                             builder->kept_count + 2 * count, sizeof(*builder->kept)));
	memcpy(builder->kept + builder->kept_count, pairs, 2 * count * sizeof(*pairs));
	builder->dicts[builder->dict_count] = (struct tn_dict_row){ .first = builder->kept_count, .pairs = count };
	builder->kept_count += 2 * count;
	*word = tn__word(TN_WORD_DICT, builder->dict_count++);
	return TN_OK;
}

static tn_status
keep_top(struct tn_builder *builder, uint32_t *word)
{
	builder->top = builder->record;
	builder->top_count = (builder->top_count + 1) % TN_PICKLE_MEMO;
	*word = tn__word(TN_WORD_TOP, builder->top_count);
	return TN_OK;
}

/* A dict that is given items again: no pickler does that to one of ours, which have few keys. */
static tn_status
fill_again(struct tn_builder *builder, uint32_t *word)
{
	if (tn__word_kind(*word) != TN_WORD_DICT && tn__word_kind(*word) != TN_WORD_OPAQUE)
		return tn__pickle_fail(&builder->pickle, TN_FORMAT, "a dict of a snapshot is changed after it was complete");
	*word = tn__word(TN_WORD_OPAQUE, 0);
	return TN_OK;
}

static tn_status
on_dict(void *context, const tn_value *pairs, size_t count, uint32_t *word)
{
	struct tn_builder *builder = context;
	if (count == 0)
		return TN_OK;
	if (*word)
		return fill_again(builder, word);
	collect(&builder->record, pairs, count);
	uint64_t seen = builder->record.seen;
	if (seen & BIT(ACTION))
		return tn__add_event(builder, word);
	if ((seen & BIT(FILENAME)) && (seen & BIT(LINE)))
		return tn__add_frame(builder, word);
	if (seen & (BIT(BLOCKS) | BIT(TOTAL_SIZE)))
		return tn__add_segment(builder, word);
	if (seen & BIT(STATE))
		return tn__add_block(builder, word);
	if (seen & BIT(REAL_SIZE))
		return tn__add_history(builder, word);
	if ((seen & BIT(STAGE)) && (seen & BIT(NAME)))
		return tn__add_annotation(builder, word);
	if (seen & (BIT(SEGMENTS) | BIT(DEVICE_TRACES)))
		return keep_top(builder, word);
	return keep_dict(builder, pairs, count, word);
}

/* ---- lists ---- */

/* Kind and row of an item: rows of dicts, and lists of rows, which may be empty. */
static enum tn_word_kind
kind_of(const struct tn_builder *builder, tn_value item, uint32_t *row)
{
	*row = TN_NO_NUMBER;
	enum tn_value_kind kind = tn__value_kind(item);
	if (kind != TN_VALUE_DICT && kind != TN_VALUE_LIST)
		return TN_WORD_OPAQUE;
	uint32_t word = tn__pickle_word(&builder->pickle, item);
	if (kind == TN_VALUE_LIST && word == 0)
		return TN_WORD_LIST;
	*row = tn__word_row(word);
	return word == 0 ? TN_WORD_OPAQUE : tn__word_kind(word);
}

static tn_status
new_range(struct tn_builder *builder, enum tn_word_kind kind, uint32_t row, uint32_t *number)
{
	if (builder->range_count >= TN_PICKLE_MEMO)
		return tn__pickle_fail(&builder->pickle, TN_LIMIT, "too many lists");
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &builder->ranges, &builder->range_capacity, builder->range_count + 1,
	                             sizeof(*builder->ranges)));
	*number = (uint32_t)builder->range_count++;
	builder->ranges[*number] = (struct tn_range){
		.first = row, .count = 1, .next = TN_NO_NUMBER, .tail = *number, .kind = (uint8_t)kind
	};
	return TN_OK;
}

static tn_status
append_row(struct tn_builder *builder, uint32_t list, uint32_t row)
{
	struct tn_range *tail = &builder->ranges[builder->ranges[list].tail];
	if (row != TN_NO_NUMBER && tail->first != TN_NO_NUMBER && tail->first + tail->count == row) {
		tail->count++;
		return TN_OK;
	}
	uint32_t number = 0;
	TN_FORWARD_IF_ERROR(new_range(builder, (enum tn_word_kind)builder->ranges[list].kind, row, &number));
	builder->ranges[builder->ranges[list].tail].next = number;
	builder->ranges[list].tail = number;
	return TN_OK;
}

/* Appends to a list of rows; items of another kind make it opaque. */
static tn_status
append_rows(struct tn_builder *builder, const tn_value *items, size_t count, uint32_t *word)
{
	uint32_t list = tn__word_row(*word), row = 0;
	enum tn_word_kind kind = (enum tn_word_kind)builder->ranges[list].kind;
	for (size_t index = 0; index < count; index++) {
		if (kind_of(builder, items[index], &row) != kind) {
			*word = tn__word(TN_WORD_OPAQUE, 0);
			return TN_OK;
		}
		TN_FORWARD_IF_ERROR(append_row(builder, list, row));
	}
	return TN_OK;
}

static tn_status
start_list(struct tn_builder *builder, enum tn_word_kind kind, uint32_t row, const tn_value *items, size_t count,
           uint32_t *word)
{
	uint32_t list = 0;
	TN_FORWARD_IF_ERROR(new_range(builder, kind, row, &list));
	*word = tn__word(TN_WORD_LIST, list);
	return append_rows(builder, items + 1, count - 1, word);
}

/* Interns `old` followed by the items, which must be frames: else the list is opaque. */
static tn_status
extend_stack(struct tn_builder *builder, uint32_t old, const tn_value *items, size_t count, uint32_t *word)
{
	struct tn_intern *stacks = &builder->snapshot->stacks;
	size_t before = tn__interned_length(stacks, old) / sizeof(uint32_t);
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &builder->frames, &builder->frames_capacity, before + count,
	                             sizeof(*builder->frames)));
	memcpy(builder->frames, tn__interned(stacks, old), before * sizeof(*builder->frames));
	*word = tn__word(TN_WORD_OPAQUE, 0);
	for (size_t index = 0; index < count; index++) {
		if (kind_of(builder, items[index], &builder->frames[before + index]) != TN_WORD_FRAME)
			return TN_OK;
	}
	uint32_t stack = 0;
	TN_FORWARD_IF_ERROR(tn__intern(stacks, builder->frames, (before + count) * sizeof(*builder->frames), &stack));
	*word = tn__word(TN_WORD_STACK, stack);
	return TN_OK;
}

/* Growing a stack copies it, so that only the steps of a pickler are taken: else time would not be linear. */
static tn_status
continue_stack(struct tn_builder *builder, const tn_value *items, size_t count, uint32_t *word)
{
	uint32_t old = tn__word_row(*word);
	size_t before = tn__interned_length(&builder->snapshot->stacks, old) / sizeof(uint32_t);
	if (before % PICKLER_BATCH || before >= LONGEST_STACK)
		return tn__pickle_fail(&builder->pickle, TN_LIMIT, "a stack of frames that grows as no pickler writes it");
	return extend_stack(builder, old, items, count, word);
}

static tn_status
on_list(void *context, const tn_value *items, size_t count, uint32_t *word)
{
	struct tn_builder *builder = context;
	uint32_t row = 0;
	if (count == 0)
		return TN_OK;
	if (tn__word_kind(*word) == TN_WORD_STACK)
		return continue_stack(builder, items, count, word);
	if (tn__word_kind(*word) == TN_WORD_LIST)
		return append_rows(builder, items, count, word);
	if (*word)
		return TN_OK; /* opaque stays opaque */
	enum tn_word_kind kind = kind_of(builder, items[0], &row);
	if (kind == TN_WORD_FRAME)
		return extend_stack(builder, 0, items, count, word);
	if (kind != TN_WORD_STACK && kind != TN_WORD_OPAQUE && kind != TN_WORD_DICT && kind != TN_WORD_TOP)
		return start_list(builder, kind, row, items, count, word);
	*word = tn__word(TN_WORD_OPAQUE, 0);
	return TN_OK;
}

static tn_status
on_tuple(void *context, const tn_value *items, size_t count, uint32_t *word)
{
	struct tn_builder *builder = context;
	uint64_t pair[2];
	*word = tn__word(TN_WORD_OPAQUE, 0);
	for (size_t index = 0; index < 2; index++) {
		if (count != 2 || !tn__pickle_uint64(&builder->pickle, items[index], &pair[index]))
			return TN_OK;
	}
	uint32_t number = 0;
	TN_FORWARD_IF_ERROR(tn__intern(&builder->pairs, pair, sizeof(pair), &number));
	*word = tn__word(TN_WORD_PAIR, number);
	return TN_OK;
}

static bool
is_value(uint32_t word)
{
	return tn__word_kind(word) == TN_WORD_STACK;
}

/* ---- the whole ---- */

/* The known strings get the numbers of their enums. */
static tn_status
intern_keys(struct tn_snapshot *snapshot)
{
	static const char *const texts[] = {
#define KEY(name, text) text,
#define ACTION(text) text,
#define STATE(text, state) text,
#include "trace/keys.def"
#undef KEY
#undef ACTION
#undef STATE
	};
	uint32_t number;
	for (size_t index = 0; index < sizeof(texts) / sizeof(texts[0]); index++)
		TN_FORWARD_IF_ERROR(tn__intern(&snapshot->strings, texts[index], strlen(texts[index]), &number));
	return tn__intern(&snapshot->stacks, "", 0, &number);
}

static void
destroy_builder(struct tn_builder *builder)
{
	struct tn_budget *budget = builder->budget;
	tn__pickle_destroy(&builder->pickle);
	tn__intern_destroy(&builder->pairs);
	tn__release(budget, &builder->frames, &builder->frames_capacity, sizeof(*builder->frames));
	tn__release(budget, &builder->ranges, &builder->range_capacity, sizeof(*builder->ranges));
	tn__release(budget, &builder->blocks, &builder->block_capacity, sizeof(*builder->blocks));
	tn__release(budget, &builder->segments, &builder->segment_capacity, sizeof(*builder->segments));
	tn__release(budget, &builder->histories, &builder->history_capacity, sizeof(*builder->histories));
	tn__release(budget, &builder->annotations, &builder->annotation_capacity, sizeof(*builder->annotations));
	tn__release(budget, &builder->dicts, &builder->dict_capacity, sizeof(*builder->dicts));
	tn__release(budget, &builder->kept, &builder->kept_capacity, sizeof(*builder->kept));
}

static tn_status
build(struct tn_builder *builder)
{
	tn_value value = 0;
	TN_FORWARD_IF_ERROR(intern_keys(builder->snapshot));
	TN_FORWARD_IF_ERROR(tn__pickle_read(&builder->pickle, &value));
	return tn__builder_finish(builder, value);
}

tn_status
tn__snapshot_build(struct tn_snapshot *snapshot, struct tn_cursor *cursor, const struct tn_pickle_limits *limits)
{
	struct tn_builder builder = { .snapshot = snapshot,
		                          .budget = &snapshot->budget,
		                          .last_context_number = TN_NO_NUMBER };
	struct tn_pickle_visitor visitor = {
		.context = &builder, .dict = on_dict, .list = on_list, .tuple = on_tuple, .is_value = is_value
	};
	tn__intern_init(&builder.pairs, builder.budget);
	tn__pickle_init(&builder.pickle, cursor, builder.budget, &snapshot->strings, limits, &visitor);
	tn_status status = build(&builder);
	destroy_builder(&builder);
	return status;
}
