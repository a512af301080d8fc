/* SPDX-License-Identifier: Apache-2.0
 *
 * From the events of the pickle reader to columns.
 *
 * Innermost containers come first. Each becomes a row or a number as soon as it is complete, and its word says which:
 * a kind in the low 4 bits, the row above. What is not known to be part of a snapshot becomes "opaque" and is dropped.
 */
#ifndef TN_TRACE_BUILDER_H
#define TN_TRACE_BUILDER_H

#include "pickle/pickle.h" /* struct tn_pickle, tn_value */
#include "trace/columns.h" /* struct tn_snapshot */

enum tn_word_kind {
	TN_WORD_NEW, /* nothing in it yet; row is 0 */
	TN_WORD_OPAQUE,
	TN_WORD_FRAME,
	TN_WORD_STACK, /* a list of frames; row is the stack's number */
	TN_WORD_EVENT,
	TN_WORD_BLOCK,
	TN_WORD_SEGMENT,
	TN_WORD_HISTORY,
	TN_WORD_ANNOTATION,
	TN_WORD_TOP,
	TN_WORD_DICT, /* a small dict kept as it is */
	TN_WORD_LIST, /* a list of rows of one kind; row is its first range */
	TN_WORD_PAIR, /* a tuple of two integers */
};

static inline uint32_t
tn__word(enum tn_word_kind kind, size_t row)
{
	return (uint32_t)row << 4 | kind;
}

static inline enum tn_word_kind
tn__word_kind(uint32_t word)
{
	return (enum tn_word_kind)(word & 15);
}

static inline uint32_t
tn__word_row(uint32_t word)
{
	return word >> 4;
}

enum tn_key {
#define KEY(name, text) TN_KEY_##name,
#define ACTION(text)
#define STATE(text, state)
#include "trace/keys.def"
#undef KEY
#undef ACTION
#undef STATE
	TN_KEY_COUNT
};

/* A dict by its known keys; those that were seen have their bit. */
struct tn_record {
	uint64_t seen;
	tn_value values[TN_KEY_COUNT];
};

/* Consecutive rows of a list; a list is a chain of them. The first one also holds what belongs to the list. */
struct tn_range {
	uint32_t first, count;
	uint32_t next; /* TN_NO_NUMBER: the last */
	uint32_t tail; /* of the chain */
	uint8_t kind;  /* of the rows: enum tn_word_kind; TN_WORD_LIST: rows are ranges, TN_NO_NUMBER an empty list */
	bool used;     /* its rows have been taken over */
};

struct tn_history_row {
	uint64_t real_size;
	tn_stack stack;
};

struct tn_segment_row {
	struct tn_segment segment;
	uint32_t blocks; /* a range or TN_NO_NUMBER */
};

struct tn_annotation_row {
	uint32_t name;
	bool start;
	int32_t device;
	int64_t time_us;
};

struct tn_dict_row {
	size_t first, pairs; /* in `kept` */
};

struct tn_builder {
	struct tn_snapshot *snapshot;
	struct tn_budget *budget;
	struct tn_pickle pickle;
	struct tn_record record; /* of the dict at hand */
	struct tn_record top;
	uint32_t top_count;
	struct tn_intern pairs;
	struct tn_context_row last_context;
	uint32_t last_context_number;
	uint32_t *frames; /* scratch for a stack */
	size_t frames_capacity;
	struct tn_range *ranges;
	size_t range_count, range_capacity;
	struct tn_block *blocks;
	size_t block_count, block_capacity;
	struct tn_segment_row *segments;
	size_t segment_count, segment_capacity;
	struct tn_history_row *histories;
	size_t history_count, history_capacity;
	struct tn_annotation_row *annotations;
	size_t annotation_count, annotation_capacity;
	struct tn_dict_row *dicts;
	size_t dict_count, dict_capacity;
	tn_value *kept;
	size_t kept_count, kept_capacity;
};

/* Fills an empty snapshot from the input. On failure the snapshot may hold parts and is only good for destruction. */
tn_status tn__snapshot_build(struct tn_snapshot *snapshot, struct tn_cursor *cursor,
                             const struct tn_pickle_limits *limits);

/* ---- rows.c: one dict each; the record holds it. *word says what became of it. ---- */

tn_status tn__add_event(struct tn_builder *builder, uint32_t *word);
tn_status tn__add_frame(struct tn_builder *builder, uint32_t *word);
tn_status tn__add_block(struct tn_builder *builder, uint32_t *word);
tn_status tn__add_segment(struct tn_builder *builder, uint32_t *word);
tn_status tn__add_history(struct tn_builder *builder, uint32_t *word);
tn_status tn__add_annotation(struct tn_builder *builder, uint32_t *word);

/* ---- finish.c ---- */

/* Puts everything in its final order once the pickle was read; `value` is what it holds. */
tn_status tn__builder_finish(struct tn_builder *builder, tn_value value);

#endif
