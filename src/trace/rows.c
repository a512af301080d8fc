/* SPDX-License-Identifier: Apache-2.0
 *
 * One dict of a snapshot becomes one row. A field that is missing or None is unknown; one of the wrong type is an
 * error.
 */
#include <string.h>

#include "base/error.h"
#include "trace/builder.h"

enum {
	FIRST_ACTION = TN_KEY_COUNT, /* numbers of the strings that keys.def lists behind the keys */
	FIRST_STATE = FIRST_ACTION + TN_ACTION_OTHER,
};

static const uint8_t states[] = {
#define KEY(name, text)
#define ACTION(text)
#define STATE(text, state) state,
#include "trace/keys.def"
#undef KEY
#undef ACTION
#undef STATE
};

static const char *
key_text(enum tn_key key)
{
	static const char *const texts[] = {
#define KEY(name, text) text,
#define ACTION(text)
#define STATE(text, state)
#include "trace/keys.def"
#undef KEY
#undef ACTION
#undef STATE
	};
	return texts[key];
}

/* The value of a key; false when it is missing or None. */
static inline bool
has(const struct tn_builder *builder, enum tn_key key, tn_value *value)
{
	if (!(builder->record.seen >> key & 1))
		return false;
	*value = builder->record.values[key];
	return tn__value_kind(*value) != TN_VALUE_NONE;
}

static tn_status
wrong(const struct tn_builder *builder, enum tn_key key, const char *wanted)
{
	return tn__pickle_fail(&builder->pickle, TN_FORMAT, "\"%s\" of the dict that ends here is not %s", key_text(key),
	                       wanted);
}

/* Bytes or an address: not negative. */
static inline tn_status
take_bytes(const struct tn_builder *builder, enum tn_key key, uint64_t *number)
{
	tn_value value;
	*number = TN_UNKNOWN;
	if (has(builder, key, &value) && !tn__pickle_uint64(&builder->pickle, value, number))
		return wrong(builder, key, "an integer from 0 to 2^64");
	return TN_OK;
}

static inline tn_status
take_int64(const struct tn_builder *builder, enum tn_key key, int64_t missing, int64_t *number)
{
	tn_value value;
	*number = missing;
	if (has(builder, key, &value) && !tn__pickle_int64(&builder->pickle, value, number))
		return wrong(builder, key, "an integer of 64 bits");
	return TN_OK;
}

/* Devices are few; -1 is the host. */
static tn_status
take_device(const struct tn_builder *builder, int32_t *device)
{
	int64_t number;
	TN_FORWARD_IF_ERROR(take_int64(builder, TN_KEY_DEVICE, 0, &number));
	if (number < -1 || number > INT16_MAX)
		return wrong(builder, TN_KEY_DEVICE, "the number of a device");
	*device = (int32_t)number;
	return TN_OK;
}

/* A stream's handle is written as a signed integer of 64 bits. */
static inline tn_status
take_stream(const struct tn_builder *builder, uint64_t *stream)
{
	tn_value value;
	int64_t number;
	*stream = TN_UNKNOWN;
	if (!has(builder, TN_KEY_STREAM, &value))
		return TN_OK;
	if (tn__pickle_int64(&builder->pickle, value, &number))
		*stream = (uint64_t)number;
	else if (!tn__pickle_uint64(&builder->pickle, value, stream))
		return wrong(builder, TN_KEY_STREAM, "an integer of 64 bits");
	return TN_OK;
}

/* A string's number, TN_NO_NUMBER where there is none. */
static inline tn_status
take_string(const struct tn_builder *builder, enum tn_key key, uint32_t *number)
{
	tn_value value;
	*number = TN_NO_NUMBER;
	if (!has(builder, key, &value))
		return TN_OK;
	if (tn__value_kind(value) != TN_VALUE_STRING)
		return wrong(builder, key, "a string");
	*number = tn__value_number(value);
	return TN_OK;
}

static inline tn_status
take_stack(const struct tn_builder *builder, tn_stack *stack)
{
	tn_value value;
	*stack = 0;
	if (!has(builder, TN_KEY_FRAMES, &value))
		return TN_OK;
	uint32_t word = tn__value_kind(value) == TN_VALUE_LIST ? tn__pickle_word(&builder->pickle, value) : TN_WORD_OPAQUE;
	if (word != 0 && tn__word_kind(word) != TN_WORD_STACK)
		return wrong(builder, TN_KEY_FRAMES, "a list of stack frames");
	*stack = tn__word_row(word);
	return TN_OK;
}

static inline tn_status
take_pool(const struct tn_builder *builder, enum tn_key key, uint64_t pool[2])
{
	tn_value value;
	pool[0] = pool[1] = TN_UNKNOWN;
	if (!has(builder, key, &value))
		return TN_OK;
	uint32_t word = tn__value_kind(value) == TN_VALUE_TUPLE ? tn__pickle_word(&builder->pickle, value) : 0;
	if (tn__word_kind(word) != TN_WORD_PAIR)
		return wrong(builder, key, "a tuple of two integers");
	memcpy(pool, tn__interned(&builder->pairs, tn__word_row(word)), 2 * sizeof(*pool));
	return TN_OK;
}

/* The first range of a list of rows of `kind`; TN_NO_NUMBER for an empty one and where there is none. */
static tn_status
take_list(const struct tn_builder *builder, enum tn_key key, enum tn_word_kind kind, uint32_t *range)
{
	tn_value value;
	*range = TN_NO_NUMBER;
	if (!has(builder, key, &value))
		return TN_OK;
	uint32_t word = tn__value_kind(value) == TN_VALUE_LIST ? tn__pickle_word(&builder->pickle, value) : TN_WORD_OPAQUE;
	if (word == 0)
		return TN_OK;
	if (tn__word_kind(word) != TN_WORD_LIST || builder->ranges[tn__word_row(word)].kind != kind)
		return wrong(builder, key, kind == TN_WORD_BLOCK ? "a list of blocks" : "a list of block histories");
	*range = tn__word_row(word);
	return TN_OK;
}

/* Room for one more row; *word names it. */
static tn_status
new_row(struct tn_builder *builder, void *rows, size_t *capacity, size_t *count, size_t width, enum tn_word_kind kind,
        uint32_t *word)
{
	if (*count >= TN_PICKLE_MEMO)
		return tn__pickle_fail(&builder->pickle, TN_LIMIT, "more than %llu rows", (unsigned long long)TN_PICKLE_MEMO);
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, rows, capacity, *count + 1, width));
	*word = tn__word(kind, *count);
	++*count;
	return TN_OK;
}

/* ---- events ---- */

static tn_status
grow_events(struct tn_builder *builder)
{
	struct tn_events *events = &builder->snapshot->events;
	if (events->count >= TN_PICKLE_MEMO)
		return tn__pickle_fail(&builder->pickle, TN_LIMIT, "more than %llu events", (unsigned long long)TN_PICKLE_MEMO);
	size_t needed = events->count + 1, *capacities = events->capacities;
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &events->addresses, &capacities[0], needed, sizeof(uint64_t)));
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &events->sizes, &capacities[1], needed, sizeof(uint64_t)));
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &events->times, &capacities[2], needed, sizeof(int64_t)));
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &events->stacks, &capacities[3], needed, sizeof(uint32_t)));
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &events->contexts, &capacities[4], needed, sizeof(uint32_t)));
	TN_FORWARD_IF_ERROR(tn__grow(builder->budget, &events->actions, &capacities[5], needed, sizeof(uint8_t)));
	events->room = SIZE_MAX;
	for (size_t column = 0; column < sizeof(events->capacities) / sizeof(events->capacities[0]); column++)
		events->room = capacities[column] < events->room ? capacities[column] : events->room;
	return TN_OK;
}

static tn_status
take_action(const struct tn_builder *builder, uint8_t *action)
{
	tn_value value = builder->record.values[TN_KEY_ACTION];
	if (tn__value_kind(value) != TN_VALUE_STRING)
		return wrong(builder, TN_KEY_ACTION, "a string");
	uint32_t known = tn__value_number(value) - FIRST_ACTION;
	*action = known < TN_ACTION_OTHER ? (uint8_t)known : TN_ACTION_OTHER;
	return TN_OK;
}

/* What this event shares with others; mostly the same as the event before. */
static tn_status
take_context(struct tn_builder *builder, uint32_t *number)
{
	struct tn_context_row context;
	TN_FORWARD_IF_ERROR(take_stream(builder, &context.stream));
	TN_FORWARD_IF_ERROR(take_pool(builder, TN_KEY_POOL_ID, context.pool));
	TN_FORWARD_IF_ERROR(take_string(builder, TN_KEY_COMPILE_CONTEXT, &context.compile_context));
	TN_FORWARD_IF_ERROR(take_string(builder, TN_KEY_USER_METADATA, &context.user_metadata));
	if (builder->last_context_number == TN_NO_NUMBER || memcmp(&context, &builder->last_context, sizeof(context))) {
		TN_FORWARD_IF_ERROR(
			tn__intern(&builder->snapshot->contexts, &context, sizeof(context), &builder->last_context_number));
		builder->last_context = context;
	}
	*number = builder->last_context_number;
	return TN_OK;
}

tn_status
tn__add_event(struct tn_builder *builder, uint32_t *word)
{
	struct tn_events *events = &builder->snapshot->events;
	uint8_t action = TN_ACTION_OTHER;
	uint64_t address, size;
	int64_t time_us;
	uint32_t stack, context;
	enum tn_key place = builder->record.seen >> TN_KEY_ADDR & 1 ? TN_KEY_ADDR : TN_KEY_DEVICE_FREE;
	TN_FORWARD_IF_ERROR(take_action(builder, &action));
	TN_FORWARD_IF_ERROR(take_bytes(builder, place, &address));
	TN_FORWARD_IF_ERROR(take_bytes(builder, TN_KEY_SIZE, &size));
	TN_FORWARD_IF_ERROR(take_int64(builder, TN_KEY_TIME_US, 0, &time_us));
	TN_FORWARD_IF_ERROR(take_stack(builder, &stack));
	TN_FORWARD_IF_ERROR(take_context(builder, &context));
	if (events->count == events->room)
		TN_FORWARD_IF_ERROR(grow_events(builder));
	size_t row = events->count++;
	events->addresses[row] = address;
	events->sizes[row] = size;
	events->times[row] = time_us;
	events->stacks[row] = stack;
	events->contexts[row] = context;
	events->actions[row] = action;
	*word = tn__word(TN_WORD_EVENT, row);
	return TN_OK;
}

/* ---- the others ---- */

tn_status
tn__add_frame(struct tn_builder *builder, uint32_t *word)
{
	struct tn_frame_row frame = { 0 };
	uint32_t number = 0;
	TN_FORWARD_IF_ERROR(take_string(builder, TN_KEY_NAME, &frame.name));
	TN_FORWARD_IF_ERROR(take_string(builder, TN_KEY_FILENAME, &frame.file));
	TN_FORWARD_IF_ERROR(take_int64(builder, TN_KEY_LINE, 0, &frame.line));
	TN_FORWARD_IF_ERROR(take_string(builder, TN_KEY_FX_NODE_OP, &frame.fx_node_op));
	TN_FORWARD_IF_ERROR(take_string(builder, TN_KEY_FX_NODE_NAME, &frame.fx_node_name));
	TN_FORWARD_IF_ERROR(take_string(builder, TN_KEY_FX_ORIGINAL_TRACE, &frame.fx_original_trace));
	TN_FORWARD_IF_ERROR(tn__intern(&builder->snapshot->frames, &frame, sizeof(frame), &number));
	*word = tn__word(TN_WORD_FRAME, number);
	return TN_OK;
}

tn_status
tn__add_history(struct tn_builder *builder, uint32_t *word)
{
	struct tn_history_row history = { 0 };
	TN_FORWARD_IF_ERROR(take_bytes(builder, TN_KEY_REAL_SIZE, &history.real_size));
	TN_FORWARD_IF_ERROR(take_stack(builder, &history.stack));
	TN_FORWARD_IF_ERROR(new_row(builder, &builder->histories, &builder->history_capacity, &builder->history_count,
	                            sizeof(history), TN_WORD_HISTORY, word));
	builder->histories[tn__word_row(*word)] = history;
	return TN_OK;
}

/* Before 2.1 a block had a history, whose first entry is the block's own allocation. */
static tn_status
apply_history(const struct tn_builder *builder, struct tn_block *block)
{
	uint32_t range;
	TN_FORWARD_IF_ERROR(take_list(builder, TN_KEY_HISTORY, TN_WORD_HISTORY, &range));
	if (range == TN_NO_NUMBER)
		return TN_OK;
	const struct tn_history_row *history = &builder->histories[builder->ranges[range].first];
	block->stack = history->stack;
	block->requested = history->real_size;
	return TN_OK;
}

static tn_status
take_state(const struct tn_builder *builder, uint8_t *state)
{
	uint32_t number;
	TN_FORWARD_IF_ERROR(take_string(builder, TN_KEY_STATE, &number));
	*state = TN_BLOCK_OTHER;
	if (number != TN_NO_NUMBER && number >= FIRST_STATE && number - FIRST_STATE < sizeof(states))
		*state = states[number - FIRST_STATE];
	return TN_OK;
}

tn_status
tn__add_block(struct tn_builder *builder, uint32_t *word)
{
	struct tn_block block = { 0 };
	TN_FORWARD_IF_ERROR(take_bytes(builder, TN_KEY_ADDRESS, &block.address));
	TN_FORWARD_IF_ERROR(take_bytes(builder, TN_KEY_SIZE, &block.size));
	if (block.size == TN_UNKNOWN)
		return wrong(builder, TN_KEY_SIZE, "there");
	TN_FORWARD_IF_ERROR(take_bytes(builder, TN_KEY_REQUESTED_SIZE, &block.requested));
	TN_FORWARD_IF_ERROR(take_state(builder, &block.state));
	TN_FORWARD_IF_ERROR(take_stack(builder, &block.stack));
	TN_FORWARD_IF_ERROR(apply_history(builder, &block));
	TN_FORWARD_IF_ERROR(new_row(builder, &builder->blocks, &builder->block_capacity, &builder->block_count,
	                            sizeof(block), TN_WORD_BLOCK, word));
	builder->blocks[tn__word_row(*word)] = block;
	return TN_OK;
}

static bool
is_true(const struct tn_builder *builder, enum tn_key key)
{
	tn_value value;
	int64_t number = 0;
	return has(builder, key, &value) && tn__pickle_int64(&builder->pickle, value, &number) && number != 0;
}

/* "small" or "large". */
static tn_status
take_small(const struct tn_builder *builder, bool *small)
{
	uint32_t number;
	TN_FORWARD_IF_ERROR(take_string(builder, TN_KEY_SEGMENT_TYPE, &number));
	*small = number != TN_NO_NUMBER && strcmp(tn__interned(&builder->snapshot->strings, number), "small") == 0;
	return TN_OK;
}

tn_status
tn__add_segment(struct tn_builder *builder, uint32_t *word)
{
	struct tn_segment_row row = { 0 };
	struct tn_segment *segment = &row.segment;
	TN_FORWARD_IF_ERROR(take_device(builder, &segment->device));
	TN_FORWARD_IF_ERROR(take_bytes(builder, TN_KEY_ADDRESS, &segment->address));
	TN_FORWARD_IF_ERROR(take_bytes(builder, TN_KEY_TOTAL_SIZE, &segment->total));
	TN_FORWARD_IF_ERROR(take_bytes(builder, TN_KEY_ALLOCATED_SIZE, &segment->allocated));
	TN_FORWARD_IF_ERROR(take_bytes(builder, TN_KEY_ACTIVE_SIZE, &segment->active));
	TN_FORWARD_IF_ERROR(take_bytes(builder, TN_KEY_REQUESTED_SIZE, &segment->requested));
	TN_FORWARD_IF_ERROR(take_stream(builder, &segment->stream));
	TN_FORWARD_IF_ERROR(take_pool(builder, TN_KEY_SEGMENT_POOL_ID, segment->pool));
	TN_FORWARD_IF_ERROR(take_small(builder, &segment->small));
	TN_FORWARD_IF_ERROR(take_stack(builder, &segment->stack));
	TN_FORWARD_IF_ERROR(take_list(builder, TN_KEY_BLOCKS, TN_WORD_BLOCK, &row.blocks));
	segment->expandable = is_true(builder, TN_KEY_IS_EXPANDABLE);
	TN_FORWARD_IF_ERROR(new_row(builder, &builder->segments, &builder->segment_capacity, &builder->segment_count,
	                            sizeof(row), TN_WORD_SEGMENT, word));
	builder->segments[tn__word_row(*word)] = row;
	return TN_OK;
}

tn_status
tn__add_annotation(struct tn_builder *builder, uint32_t *word)
{
	struct tn_annotation_row row = { 0 };
	uint32_t stage;
	TN_FORWARD_IF_ERROR(take_string(builder, TN_KEY_NAME, &row.name));
	TN_FORWARD_IF_ERROR(take_string(builder, TN_KEY_STAGE, &stage));
	row.start = stage != TN_NO_NUMBER && strcmp(tn__interned(&builder->snapshot->strings, stage), "START") == 0;
	TN_FORWARD_IF_ERROR(take_device(builder, &row.device));
	TN_FORWARD_IF_ERROR(take_int64(builder, TN_KEY_TIME_US, 0, &row.time_us));
	TN_FORWARD_IF_ERROR(new_row(builder, &builder->annotations, &builder->annotation_capacity,
	                            &builder->annotation_count, sizeof(row), TN_WORD_ANNOTATION, word));
	builder->annotations[tn__word_row(*word)] = row;
	return TN_OK;
}
