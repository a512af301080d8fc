/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine: a stack of values, metadata, a memo, and a word for each object.
 *
 * Invariants: every value on the stack or in the memo names an object, string or number that exists; metadata ascend and
 * lie within the stack; no allocation is larger than a small multiple of the bytes read. Most of a large snapshot is
 * lists of references to stack frames; a list whose bytes were seen before gets the word of then (read_known_run).
 */
#include "pickle/pickle.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define UNSET UINT32_MAX

enum {
	LONGEST_RUN = 64 << 10, /* a list of references that is looked up as a whole */
	RUN_WINDOW = 8 << 10,   /* bytes wanted in the window before a list */
	RUNS_BYTES = 4 << 20,   /* of lists remembered; then it starts anew */
};

struct tn_pickle_limits
tn__pickle_defaults(void)
{
	return (struct tn_pickle_limits){
		.depth = TN_PICKLE_DEPTH,
		.memo = TN_PICKLE_MEMO,
		.string_bytes = TN_PICKLE_STRING_BYTES,
		.stack = TN_PICKLE_STACK,
		.long_bytes = TN_PICKLE_LONG_BYTES,
	};
}

void
tn__pickle_init(struct tn_pickle *pickle, struct tn_cursor *cursor, struct tn_budget *budget, struct tn_intern *strings,
                const struct tn_pickle_limits *limits, const struct tn_pickle_visitor *visitor)
{
	*pickle = (struct tn_pickle){
		.cursor = cursor,
		.budget = budget,
		.strings = strings,
		.limits = limits ? *limits : tn__pickle_defaults(),
		.visitor = *visitor,
		.runs_valid = true,
	};
	if (pickle->limits.memo > TN_PICKLE_MEMO)
		pickle->limits.memo = TN_PICKLE_MEMO;
	tn__intern_init(&pickle->runs, budget);
}

void
tn__pickle_destroy(struct tn_pickle *pickle)
{
	struct tn_budget *budget = pickle->budget;
	tn__release(budget, &pickle->stack, &pickle->stack_capacity, sizeof(*pickle->stack));
	tn__release(budget, &pickle->metadata, &pickle->metadata_capacity, sizeof(*pickle->metadata));
	tn__release(budget, &pickle->memo, &pickle->memo_capacity, sizeof(*pickle->memo));
	tn__release(budget, &pickle->words, &pickle->words_capacity, sizeof(*pickle->words));
	tn__release(budget, &pickle->numbers, &pickle->numbers_capacity, sizeof(*pickle->numbers));
	tn__release(budget, &pickle->run_words, &pickle->run_words_capacity, sizeof(*pickle->run_words));
	tn__intern_destroy(&pickle->runs);
}

tn_status
tn__pickle_fail(const struct tn_pickle *pickle, tn_status status, const char *format, ...)
{
	char text[400];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return tn__fail(status, "byte %llu: %s", (unsigned long long)pickle->opcode_offset, text);
}

/* Puts the offset in front of the words of a failure below us. */
static tn_status
with_offset(const struct tn_pickle *pickle, tn_status status)
{
	char text[400];
	snprintf(text, sizeof(text), "%s", tn_error_text());
	return tn__pickle_fail(pickle, status, "%s", text);
}

#define BELOW(pickle, call)                         \
	do {                                            \
		tn_status tn_below = (call);                \
		if (__builtin_expect(tn_below != TN_OK, 0)) \
			return with_offset((pickle), tn_below); \
	} while (0)

#define REFUSE_IF(pickle, condition, status, ...)                    \
	do {                                                             \
		if (__builtin_expect((condition), 0))                        \
			return tn__pickle_fail((pickle), (status), __VA_ARGS__); \
	} while (0)

/* ---- input ---- */

static tn_status
refill(struct tn_pickle *pickle, uint64_t needed)
{
	BELOW(pickle, tn__cursor_fill(pickle->cursor, needed));
	REFUSE_IF(pickle, tn__cursor_left(pickle->cursor) < needed, TN_FORMAT, "the file ends in the middle");
	return TN_OK;
}

/* Makes `needed` bytes readable at the cursor. */
static inline tn_status
need(struct tn_pickle *pickle, uint64_t needed)
{
	return __builtin_expect(tn__cursor_left(pickle->cursor) >= needed, 1) ? TN_OK : refill(pickle, needed);
}

static inline uint64_t
little_endian(const uint8_t *bytes, size_t count)
{
	uint64_t number = 0;
	memcpy(&number, bytes, count);
	return number; /* as the machine is; x86-64 and aarch64 are little-endian */
}

/* Takes an unsigned argument of `count` bytes. */
static inline tn_status
take(struct tn_pickle *pickle, size_t count, uint64_t *number)
{
	TN_FORWARD_IF_ERROR(need(pickle, count));
	*number = little_endian(pickle->cursor->at, count);
	pickle->cursor->at += count;
	return TN_OK;
}

/* ---- stack ---- */

static tn_status
grow_stack(struct tn_pickle *pickle)
{
	REFUSE_IF(pickle, pickle->stack_count >= pickle->limits.stack, TN_LIMIT,
	          "more than %llu items wait for a container", (unsigned long long)pickle->limits.stack);
	BELOW(pickle, tn__grow(pickle->budget, &pickle->stack, &pickle->stack_capacity, pickle->stack_count + 1,
	                       sizeof(*pickle->stack)));
	return TN_OK;
}

static inline tn_status
push(struct tn_pickle *pickle, tn_value value)
{
	if (__builtin_expect(pickle->stack_count == pickle->stack_capacity, 0))
		TN_FORWARD_IF_ERROR(grow_stack(pickle));
	pickle->stack[pickle->stack_count++] = value;
	return TN_OK;
}

static inline tn_value
value_of(enum tn_value_kind kind, uint64_t payload)
{
	return payload << 4 | kind;
}

/* The first index of the stack that belongs to the innermost open mark. */
static size_t
floor_of(const struct tn_pickle *pickle)
{
	return pickle->mark_count ? pickle->metadata[pickle->mark_count - 1] : 0;
}

static tn_status
open_mark(struct tn_pickle *pickle)
{
	REFUSE_IF(pickle, pickle->mark_count >= pickle->limits.depth, TN_LIMIT, "nested more than %u deep",
	          pickle->limits.depth);
	BELOW(pickle, tn__grow(pickle->budget, &pickle->metadata, &pickle->metadata_capacity, pickle->mark_count + 1,
	                       sizeof(*pickle->metadata)));
	pickle->metadata[pickle->mark_count++] = pickle->stack_count;
	return TN_OK;
}

static tn_status
close_mark(struct tn_pickle *pickle, size_t *first)
{
	REFUSE_IF(pickle, pickle->mark_count == 0, TN_FORMAT, "a container ends that did not begin");
	*first = pickle->metadata[--pickle->mark_count];
	return TN_OK;
}

/* ---- scalars ---- */

static tn_status
push_number(struct tn_pickle *pickle, struct tn_pickle_number number)
{
	REFUSE_IF(pickle, pickle->number_count >= TN_PICKLE_MEMO, TN_LIMIT, "too many large numbers");
	BELOW(pickle, tn__grow(pickle->budget, &pickle->numbers, &pickle->numbers_capacity, pickle->number_count + 1,
	                       sizeof(*pickle->numbers)));
	pickle->numbers[pickle->number_count] = number;
	return push(pickle, value_of(TN_VALUE_NUMBER, pickle->number_count++));
}

static inline tn_status
push_integer(struct tn_pickle *pickle, int64_t number)
{
	if ((int64_t)((uint64_t)number << 4) >> 4 == number)
		return push(pickle, value_of(TN_VALUE_INT, (uint64_t)number));
	return push_number(pickle, (struct tn_pickle_number){ .kind = TN_NUMBER_SIGNED, .as_signed = number });
}

/* An integer of more than 8 bytes: its high bytes may be no more than the sign. */
static tn_status
push_long(struct tn_pickle *pickle, const uint8_t *bytes, size_t count)
{
	bool negative = bytes[count - 1] & 0x80;
	for (size_t index = 8; index < count; index++) {
		if (bytes[index] != (negative ? 0xff : 0))
			return push_number(pickle, (struct tn_pickle_number){ .kind = TN_NUMBER_HUGE });
	}
	uint64_t low = little_endian(bytes, 8);
	if (negative == (low >> 63))
		return push_integer(pickle, (int64_t)low);
	struct tn_pickle_number number = { .kind = TN_NUMBER_HUGE };
	if (!negative)
		number = (struct tn_pickle_number){ .kind = TN_NUMBER_UNSIGNED, .as_unsigned = low };
	return push_number(pickle, number);
}

/* LONG1 and LONG4: two's complement of any length; none is 0. */
static inline tn_status
read_long(struct tn_pickle *pickle, size_t length_bytes)
{
	uint64_t count, number;
	TN_FORWARD_IF_ERROR(take(pickle, length_bytes, &count));
	if (count == 0)
		return push_integer(pickle, 0);
	REFUSE_IF(pickle, count > INT32_MAX, TN_FORMAT, "an integer of negative length");
	REFUSE_IF(pickle, count > pickle->limits.long_bytes, TN_LIMIT, "an integer of %llu bytes",
	          (unsigned long long)count);
	TN_FORWARD_IF_ERROR(need(pickle, count));
	const uint8_t *bytes = pickle->cursor->at;
	size_t left = tn__cursor_left(pickle->cursor);
	pickle->cursor->at += count;
	if (count > 8)
		return push_long(pickle, bytes, count);
	number = left >= 8 ? little_endian(bytes, 8) : little_endian(bytes, count); /* what is too much is shifted out */
	unsigned unused = 64 - 8 * (unsigned)count;
	return push_integer(pickle, (int64_t)(number << unused) >> unused);
}

static inline tn_status
read_integer(struct tn_pickle *pickle, size_t bytes)
{
	uint64_t number;
	TN_FORWARD_IF_ERROR(take(pickle, bytes, &number));
	return push_integer(pickle, bytes == 4 ? (int32_t)number : (int64_t)number);
}

static tn_status
read_float(struct tn_pickle *pickle)
{
	uint64_t bits;
	struct tn_pickle_number number = { .kind = TN_NUMBER_FLOAT };
	TN_FORWARD_IF_ERROR(take(pickle, 8, &bits));
	bits = __builtin_bswap64(bits);
	memcpy(&number.as_float, &bits, sizeof(bits));
	return push_number(pickle, number);
}

static inline tn_status
read_string(struct tn_pickle *pickle, size_t length_bytes)
{
	uint64_t length;
	uint32_t number;
	TN_FORWARD_IF_ERROR(take(pickle, length_bytes, &length));
	REFUSE_IF(pickle, length > pickle->limits.string_bytes, TN_LIMIT, "a string of %llu bytes; the limit is %llu",
	          (unsigned long long)length, (unsigned long long)pickle->limits.string_bytes);
	TN_FORWARD_IF_ERROR(need(pickle, length));
	BELOW(pickle, tn__intern(pickle->strings, pickle->cursor->at, length, &number));
	pickle->cursor->at += length;
	return push(pickle, value_of(TN_VALUE_STRING, number));
}

/* ---- containers ---- */

static inline tn_status
new_object(struct tn_pickle *pickle, enum tn_value_kind kind, uint32_t word, tn_value *object)
{
	if (__builtin_expect(pickle->word_count == pickle->words_capacity, 0)) {
		REFUSE_IF(pickle, pickle->word_count >= TN_PICKLE_MEMO, TN_LIMIT, "too many objects");
		BELOW(pickle, tn__grow(pickle->budget, &pickle->words, &pickle->words_capacity, pickle->word_count + 1,
		                       sizeof(*pickle->words)));
	}
	pickle->words[pickle->word_count] = word;
	*object = value_of(kind, pickle->word_count++);
	return TN_OK;
}

static inline tn_status
push_object(struct tn_pickle *pickle, enum tn_value_kind kind, uint32_t word)
{
	tn_value object = 0;
	TN_FORWARD_IF_ERROR(new_object(pickle, kind, word, &object));
	return push(pickle, object);
}

/* Hands stack[first...] to the container below, which stays on the stack. */
static inline tn_status
fill(struct tn_pickle *pickle, enum tn_value_kind kind, size_t first)
{
	REFUSE_IF(pickle, first <= floor_of(pickle) || tn__value_kind(pickle->stack[first - 1]) != kind, TN_FORMAT,
	          "items for something that is not a %s", kind == TN_VALUE_LIST ? "list" : "dict");
	uint32_t *word = &pickle->words[tn__value_number(pickle->stack[first - 1])];
	REFUSE_IF(pickle, *word == TN_PICKLE_SEALED, TN_FORMAT, "a %s holds itself",
	          kind == TN_VALUE_LIST ? "list" : "dict");
	size_t count = pickle->stack_count - first;
	pickle->stack_count = first;
	if (kind == TN_VALUE_LIST)
		return pickle->visitor.list(pickle->visitor.context, pickle->stack + first, count, word);
	REFUSE_IF(pickle, count % 2, TN_FORMAT, "a key of a dict without a value");
	return pickle->visitor.dict(pickle->visitor.context, pickle->stack + first, count / 2, word);
}

static tn_status
fill_marked(struct tn_pickle *pickle, enum tn_value_kind kind)
{
	size_t first = 0;
	TN_FORWARD_IF_ERROR(close_mark(pickle, &first));
	return fill(pickle, kind, first);
}

/* APPEND and SETITEM. */
static tn_status
fill_last(struct tn_pickle *pickle, enum tn_value_kind kind)
{
	size_t count = kind == TN_VALUE_LIST ? 1 : 2;
	REFUSE_IF(pickle, pickle->stack_count < floor_of(pickle) + count, TN_FORMAT, "an item is missing");
	return fill(pickle, kind, pickle->stack_count - count);
}

static tn_status
make_tuple(struct tn_pickle *pickle, size_t first)
{
	uint32_t word = 0;
	size_t count = pickle->stack_count - first;
	pickle->stack_count = first;
	TN_FORWARD_IF_ERROR(pickle->visitor.tuple(pickle->visitor.context, pickle->stack + first, count, &word));
	return push_object(pickle, TN_VALUE_TUPLE, word);
}

static tn_status
make_marked_tuple(struct tn_pickle *pickle)
{
	size_t first = 0;
	TN_FORWARD_IF_ERROR(close_mark(pickle, &first));
	return make_tuple(pickle, first);
}

static tn_status
make_short_tuple(struct tn_pickle *pickle, size_t count)
{
	REFUSE_IF(pickle, pickle->stack_count < floor_of(pickle) + count, TN_FORMAT, "an item is missing");
	return make_tuple(pickle, pickle->stack_count - count);
}

/* ---- memo ---- */

static tn_status
grow_memo(struct tn_pickle *pickle, uint64_t index)
{
	REFUSE_IF(pickle, index > pickle->opcode_offset, TN_FORMAT, "memo entry %llu before there were that many objects",
	          (unsigned long long)index);
	REFUSE_IF(pickle, index >= pickle->limits.memo, TN_LIMIT, "more than %llu memoised objects",
	          (unsigned long long)pickle->limits.memo);
	size_t old = pickle->memo_capacity;
	BELOW(pickle, tn__grow(pickle->budget, &pickle->memo, &pickle->memo_capacity, index + 1, sizeof(*pickle->memo)));
	memset(pickle->memo + old, 0xff, (pickle->memo_capacity - old) * sizeof(*pickle->memo));
	return TN_OK;
}

static inline tn_status
put(struct tn_pickle *pickle, uint64_t index, tn_value value)
{
	REFUSE_IF(pickle, value >= UNSET, TN_UNSUPPORTED, "a large number is memoised");
	if (__builtin_expect(index >= pickle->memo_capacity, 0))
		TN_FORWARD_IF_ERROR(grow_memo(pickle, index));
	if (__builtin_expect(pickle->memo[index] != UNSET, 0))
		pickle->runs_valid = false; /* bytes may mean something else from now on */
	else
		pickle->memo_count++;
	pickle->memo[index] = (uint32_t)value;
	return TN_OK;
}

static inline tn_status
memoize(struct tn_pickle *pickle, uint64_t index)
{
	REFUSE_IF(pickle, pickle->stack_count <= floor_of(pickle), TN_FORMAT, "nothing there to memoise");
	return put(pickle, index, pickle->stack[pickle->stack_count - 1]);
}

static inline tn_status
read_put(struct tn_pickle *pickle, size_t bytes)
{
	uint64_t index;
	TN_FORWARD_IF_ERROR(take(pickle, bytes, &index));
	return memoize(pickle, index);
}

/* A reference to a container that is still empty comes from inside of it, or it stays empty. */
static inline void
seal(struct tn_pickle *pickle, tn_value value)
{
	uint32_t *word = &pickle->words[tn__value_number(value)];
	*word = *word ? *word : TN_PICKLE_SEALED;
}

static inline tn_status
read_get(struct tn_pickle *pickle, size_t bytes)
{
	uint64_t index;
	TN_FORWARD_IF_ERROR(take(pickle, bytes, &index));
	REFUSE_IF(pickle, index >= pickle->memo_capacity || pickle->memo[index] == UNSET, TN_FORMAT,
	          "memo entry %llu does not exist", (unsigned long long)index);
	if (tn__value_kind(pickle->memo[index]) >= TN_VALUE_LIST)
		seal(pickle, pickle->memo[index]);
	return push(pickle, pickle->memo[index]);
}

/* ---- lists of references ---- */

/* Length of the references and the APPENDS at `at`; 0 when there is anything else. */
static inline size_t
run_length(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *start = at;
	if (end - at > LONGEST_RUN)
		end = at + LONGEST_RUN;
	while (at < end) {
		if (*at == 'j')
			at += 5;
		else if (*at == 'h')
			at += 2;
		else
			return *at == 'e' && at > start ? (size_t)(at + 1 - start) : 0;
	}
	return 0;
}

/* Remembers the word that the list on top of the stack got for the bytes of its items. */
static tn_status
remember_run(struct tn_pickle *pickle, uint32_t run)
{
	uint32_t word = tn__pickle_word(pickle, pickle->stack[pickle->stack_count - 1]);
	size_t old = pickle->run_words_capacity;
	BELOW(pickle, tn__grow(pickle->budget, &pickle->run_words, &pickle->run_words_capacity, (size_t)run + 1,
	                       sizeof(*pickle->run_words)));
	if (pickle->run_words_capacity > old)
		memset(pickle->run_words + old, 0, (pickle->run_words_capacity - old) * sizeof(*pickle->run_words));
	pickle->run_words[run] = pickle->visitor.is_value(word) ? word : 0;
	return TN_OK;
}

/* Reads the references after the MARK of the list on top of the stack, then the APPENDS. */
static tn_status
read_run(struct tn_pickle *pickle, uint32_t run, size_t length)
{
	const uint8_t *end = pickle->cursor->at + length - 1;
	size_t first = pickle->stack_count;
	while (pickle->cursor->at < end) {
		pickle->opcode_offset = tn__cursor_offset(pickle->cursor);
		TN_FORWARD_IF_ERROR(read_get(pickle, *pickle->cursor->at++ == 'j' ? 4 : 1));
	}
	pickle->opcode_offset = tn__cursor_offset(pickle->cursor);
	pickle->cursor->at++;
	TN_FORWARD_IF_ERROR(fill(pickle, TN_VALUE_LIST, first));
	return remember_run(pickle, run);
}

/* The list on top of the stack is new and empty, and a MARK was just passed. Reads its items when they are references
 * only; *read says whether they were. */
static tn_status
read_known_run(struct tn_pickle *pickle, bool *read)
{
	uint32_t run;
	size_t length = run_length(pickle->cursor->at, pickle->cursor->end);
	*read = length != 0;
	if (!length)
		return TN_OK;
	if (pickle->runs.used > RUNS_BYTES)
		tn__intern_clear(&pickle->runs);
	size_t known = pickle->runs.count;
	BELOW(pickle, tn__intern(&pickle->runs, pickle->cursor->at, length, &run));
	if (run >= known || !pickle->run_words[run])
		return read_run(pickle, run, length);
	pickle->words[tn__value_number(pickle->stack[pickle->stack_count - 1])] = pickle->run_words[run];
	pickle->cursor->at += length;
	return TN_OK;
}

/* EMPTY_LIST, and the usual MEMOIZE, MARK, references and APPENDS behind it. */
static tn_status
read_list(struct tn_pickle *pickle)
{
	struct tn_cursor *cursor = pickle->cursor;
	TN_FORWARD_IF_ERROR(push_object(pickle, TN_VALUE_LIST, 0));
	if (__builtin_expect(tn__cursor_left(cursor) < RUN_WINDOW, 0))
		BELOW(pickle, tn__cursor_fill(cursor, RUN_WINDOW));
	if (tn__cursor_left(cursor) == 0 || !pickle->runs_valid)
		return TN_OK;
	if (*cursor->at == 0x94) {
		pickle->opcode_offset = tn__cursor_offset(cursor);
		cursor->at++;
		TN_FORWARD_IF_ERROR(memoize(pickle, pickle->memo_count));
	} else if (*cursor->at == 'r') {
		pickle->opcode_offset = tn__cursor_offset(cursor);
		cursor->at++;
		TN_FORWARD_IF_ERROR(read_put(pickle, 4));
	}
	if (tn__cursor_left(cursor) == 0 || *cursor->at != '(' || !pickle->runs_valid)
		return TN_OK;
	bool read;
	cursor->at++;
	TN_FORWARD_IF_ERROR(read_known_run(pickle, &read));
	cursor->at -= !read; /* the MARK is read in the usual way */
	return TN_OK;
}

/* ---- the loop ---- */

static tn_status
read_protocol(struct tn_pickle *pickle)
{
	uint64_t version;
	TN_FORWARD_IF_ERROR(take(pickle, 1, &version));
	REFUSE_IF(pickle, version < 2 || version > 5, TN_UNSUPPORTED, "pickle protocol %llu; 2 to 5 are read",
	          (unsigned long long)version);
	return TN_OK;
}

static const char *
name_of(uint8_t opcode)
{
	switch (opcode) {
#define READ(name, byte) \
	case byte:           \
		return #name;
#define REFUSE(name, byte) READ(name, byte)
#include "pickle/opcodes.def"
#undef READ
#undef REFUSE
	default:
		return NULL;
	}
}

static tn_status
refuse_opcode(const struct tn_pickle *pickle, uint8_t opcode)
{
	const char *name = name_of(opcode);
	if (!name)
		return tn__pickle_fail(pickle, TN_FORMAT, "0x%02x is no pickle opcode", opcode);
	return tn__pickle_fail(pickle, TN_UNSUPPORTED,
	                       "the pickle opcode %s, which memory snapshots do not hold; "
	                       "nothing was imported or called",
	                       name);
}

static tn_status
stop(struct tn_pickle *pickle)
{
	REFUSE_IF(pickle, pickle->stack_count != 1 || pickle->mark_count, TN_FORMAT,
	          "the pickle ends with open containers");
	pickle->stopped = true;
	return TN_OK;
}

enum {
#define READ(name, byte) OP_##name = (byte),
#define REFUSE(name, byte)
#include "pickle/opcodes.def"
#undef READ
#undef REFUSE
};

static inline tn_status
step(struct tn_pickle *pickle, uint8_t opcode)
{
	uint64_t ignored;
	switch (opcode) {
	case OP_BINGET:
		return read_get(pickle, 1);
	case OP_LONG_BINGET:
		return read_get(pickle, 4);
	case OP_MEMOIZE:
		return memoize(pickle, pickle->memo_count);
	case OP_BINPUT:
		return read_put(pickle, 1);
	case OP_LONG_BINPUT:
		return read_put(pickle, 4);
	case OP_NONE:
		return push(pickle, value_of(TN_VALUE_NONE, 0));
	case OP_NEWTRUE:
		return push(pickle, value_of(TN_VALUE_BOOL, 1));
	case OP_NEWFALSE:
		return push(pickle, value_of(TN_VALUE_BOOL, 0));
	case OP_BININT:
		return read_integer(pickle, 4);
	case OP_BININT1:
		return read_integer(pickle, 1);
	case OP_BININT2:
		return read_integer(pickle, 2);
	case OP_LONG1:
		return read_long(pickle, 1);
	case OP_LONG4:
		return read_long(pickle, 4);
	case OP_BINFLOAT:
		return read_float(pickle);
	case OP_SHORT_BINUNICODE:
		return read_string(pickle, 1);
	case OP_BINUNICODE:
		return read_string(pickle, 4);
	case OP_BINUNICODE8:
		return read_string(pickle, 8);
	case OP_EMPTY_LIST:
		return read_list(pickle);
	case OP_EMPTY_DICT:
		return push_object(pickle, TN_VALUE_DICT, 0);
	case OP_EMPTY_TUPLE:
		return make_tuple(pickle, pickle->stack_count);
	case OP_MARK:
		return open_mark(pickle);
	case OP_APPEND:
		return fill_last(pickle, TN_VALUE_LIST);
	case OP_APPENDS:
		return fill_marked(pickle, TN_VALUE_LIST);
	case OP_SETITEM:
		return fill_last(pickle, TN_VALUE_DICT);
	case OP_SETITEMS:
		return fill_marked(pickle, TN_VALUE_DICT);
	case OP_TUPLE:
		return make_marked_tuple(pickle);
	case OP_TUPLE1:
		return make_short_tuple(pickle, 1);
	case OP_TUPLE2:
		return make_short_tuple(pickle, 2);
	case OP_TUPLE3:
		return make_short_tuple(pickle, 3);
	case OP_PROTO:
		return read_protocol(pickle);
	case OP_FRAME:
		return take(pickle, 8, &ignored);
	case OP_STOP:
		return stop(pickle);
	default:
		return refuse_opcode(pickle, opcode);
	}
}

tn_status
tn__pickle_read(struct tn_pickle *pickle, tn_value *value)
{
	TN_FORWARD_IF_ERROR(tn__grow(pickle->budget, &pickle->stack, &pickle->stack_capacity, 1, sizeof(*pickle->stack)));
	while (!pickle->stopped) {
		pickle->opcode_offset = tn__cursor_offset(pickle->cursor);
		TN_FORWARD_IF_ERROR(need(pickle, 1));
		TN_FORWARD_IF_ERROR(step(pickle, *pickle->cursor->at++));
	}
	*value = pickle->stack[0];
	return TN_OK;
}

/* ---- what a value holds ---- */

static const struct tn_pickle_number *
number_of(const struct tn_pickle *pickle, tn_value value)
{
	return &pickle->numbers[tn__value_number(value)];
}

bool
tn__pickle_int64(const struct tn_pickle *pickle, tn_value value, int64_t *number)
{
	enum tn_value_kind kind = tn__value_kind(value);
	if (kind == TN_VALUE_INT || kind == TN_VALUE_BOOL)
		*number = (int64_t)value >> 4;
	else if (kind == TN_VALUE_NUMBER && number_of(pickle, value)->kind == TN_NUMBER_SIGNED)
		*number = number_of(pickle, value)->as_signed;
	else
		return false;
	return true;
}

bool
tn__pickle_uint64(const struct tn_pickle *pickle, tn_value value, uint64_t *number)
{
	int64_t as_signed;
	if (tn__value_kind(value) == TN_VALUE_NUMBER && number_of(pickle, value)->kind == TN_NUMBER_UNSIGNED)
		*number = number_of(pickle, value)->as_unsigned;
	else if (tn__pickle_int64(pickle, value, &as_signed) && as_signed >= 0)
		*number = (uint64_t)as_signed;
	else
		return false;
	return true;
}

bool
tn__pickle_double(const struct tn_pickle *pickle, tn_value value, double *number)
{
	int64_t as_signed;
	if (tn__value_kind(value) == TN_VALUE_NUMBER && number_of(pickle, value)->kind == TN_NUMBER_FLOAT)
		*number = number_of(pickle, value)->as_float;
	else if (tn__pickle_int64(pickle, value, &as_signed))
		*number = (double)as_signed;
	else
		return false;
	return true;
}
