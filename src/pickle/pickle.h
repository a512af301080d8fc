/* SPDX-License-Identifier: Apache-2.0
 *
 * The closed subset of pickle that memory snapshots are written in: dict, list, tuple, str, int, float, bool, None, by
 * protocols 2 to 5. Nothing is imported, called or built: an opcode that would is an error with its name and place.
 *
 * The reader keeps no contents of containers. When a container gets items it hands them to the visitor, innermost
 * first, and the visitor answers with one word (say, "row 17 of the trace entries") that stands for the container from
 * then on. So memory follows what the visitor keeps, plus a few bytes for each memoised object; and nothing is ever
 * walked, so that repeated references cost nothing. A container that holds itself is refused. The reader knows no snapshot. Not thread-safe; one per
 * input.
 */
#ifndef TN_PICKLE_PICKLE_H
#define TN_PICKLE_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pickle/budget.h" /* struct tn_budget */
#include "pickle/cursor.h" /* struct tn_cursor */
#include "pickle/intern.h" /* struct tn_intern */

/* What a file may ask for unless a caller raises it. A snapshot of PyTorch nests about 8 metadata deep. */
#define TN_PICKLE_DEPTH ((uint32_t)200)             /* open metadata */
#define TN_PICKLE_MEMO ((uint64_t)1 << 28)          /* memoised objects; also the most that can be asked for */
#define TN_PICKLE_STRING_BYTES ((uint64_t)16 << 20) /* one string */
#define TN_PICKLE_STACK ((uint64_t)1 << 27)         /* items waiting for their containers */
#define TN_PICKLE_LONG_BYTES ((uint32_t)256)        /* one integer */

struct tn_pickle_limits {
	uint32_t depth;
	uint64_t memo;
	uint64_t string_bytes;
	uint64_t stack;
	uint32_t long_bytes;
};

/* A value: a kind in the low 4 bits, above it an integer of 60 bits or a number into a table. */
typedef uint64_t tn_value;

enum tn_value_kind {
	TN_VALUE_NONE,
	TN_VALUE_BOOL,
	TN_VALUE_INT,    /* fits 60 bits */
	TN_VALUE_NUMBER, /* a float or a larger integer, in a table of its own */
	TN_VALUE_STRING, /* number in the strings given to tn__pickle_init */
	TN_VALUE_LIST,   /* objects: their word is asked for by tn__pickle_word */
	TN_VALUE_DICT,
	TN_VALUE_TUPLE,
};

static inline enum tn_value_kind
tn__value_kind(tn_value value)
{
	return (enum tn_value_kind)(value & 15);
}

static inline uint32_t
tn__value_number(tn_value value)
{
	return (uint32_t)(value >> 4);
}

/* Each function gets the items that a container was just given and its word, 0 at first (and what the last call left,
 * when a container is given items more than once). A status other than TN_OK ends the reading and is passed on; make it
 * with tn__pickle_fail. */
struct tn_pickle_visitor {
	void *context;
	tn_status (*dict)(void *context, const tn_value *keys_and_values, size_t pairs, uint32_t *word);
	tn_status (*list)(void *context, const tn_value *items, size_t count, uint32_t *word);
	tn_status (*tuple)(void *context, const tn_value *items, size_t count, uint32_t *word);
	/* True when a list with this word has it for good and any list of the same items would get it. */
	bool (*is_value)(uint32_t word);
};

struct tn_pickle_number {
	enum { TN_NUMBER_SIGNED, TN_NUMBER_UNSIGNED, TN_NUMBER_HUGE, TN_NUMBER_FLOAT } kind;
	union {
		int64_t as_signed;
		uint64_t as_unsigned; /* above INT64_MAX */
		double as_float;
	};
};

struct tn_pickle {
	struct tn_cursor *cursor;
	struct tn_budget *budget;
	struct tn_intern *strings;
	struct tn_pickle_limits limits;
	struct tn_pickle_visitor visitor;
	uint64_t opcode_offset;
	tn_value *stack;
	size_t stack_count, stack_capacity;
	size_t *metadata;
	size_t mark_count, metadata_capacity;
	uint32_t *memo; /* values, which fit; UNSET */
	size_t memo_count, memo_capacity;
	uint32_t *words; /* of objects */
	size_t word_count, words_capacity;
	struct tn_pickle_number *numbers;
	size_t number_count, numbers_capacity;
	struct tn_intern runs; /* bytes of lists that consist of references only … */
	uint32_t *run_words;   /* … and the words they got */
	size_t run_words_capacity;
	bool runs_valid;
	bool stopped;
};

struct tn_pickle_limits tn__pickle_defaults(void);

/* All pointers are borrowed until tn__pickle_destroy. Allocates nothing yet. */
void tn__pickle_init(struct tn_pickle *pickle, struct tn_cursor *cursor, struct tn_budget *budget,
                     struct tn_intern *strings, const struct tn_pickle_limits *limits,
                     const struct tn_pickle_visitor *visitor);
void tn__pickle_destroy(struct tn_pickle *pickle);

/* Reads up to STOP; what follows it is not looked at. *value is what the pickle holds. TN_FORMAT for what is no
 * pickle, TN_UNSUPPORTED for an opcode outside the subset, TN_LIMIT, TN_NO_MEMORY, and what visitor and source return;
 * each text begins with the offset. */
tn_status tn__pickle_read(struct tn_pickle *pickle, tn_value *value);

/* Fails with the offset of the opcode being read in front. */
tn_status tn__pickle_fail(const struct tn_pickle *pickle, tn_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* In `words`: an empty container that was referred to. It may get no items any more, since it would hold itself. */
#define TN_PICKLE_SEALED UINT32_MAX

/* The word of a list, dict or tuple. */
static inline uint32_t
tn__pickle_word(const struct tn_pickle *pickle, tn_value object)
{
	uint32_t word = pickle->words[tn__value_number(object)];
	return word == TN_PICKLE_SEALED ? 0 : word;
}

/* The integer that a value (int or bool) holds; false when it is none or does not fit. */
bool tn__pickle_int64(const struct tn_pickle *pickle, tn_value value, int64_t *number);
bool tn__pickle_uint64(const struct tn_pickle *pickle, tn_value value, uint64_t *number);

/* A float, or an integer as one. */
bool tn__pickle_double(const struct tn_pickle *pickle, tn_value value, double *number);

#endif
