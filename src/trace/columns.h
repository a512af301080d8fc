/* SPDX-License-Identifier: Apache-2.0
 *
 * A snapshot as it is kept: columns of events, rows of segments and blocks, and what they share by number.
 *
 * Invariant once it is built: every number in a column or row lies below the count of what it names; stack 0 is empty.
 */
#ifndef TN_TRACE_COLUMNS_H
#define TN_TRACE_COLUMNS_H

#include "pickle/budget.h" /* struct tn_budget */
#include "pickle/intern.h" /* struct tn_intern */
#include "tonnage/snapshot.h"

#define TN_NO_NUMBER UINT32_MAX

/* A stack frame as it is interned: numbers of strings, TN_NO_NUMBER where there is none. */
struct tn_frame_row {
	int64_t line;
	uint32_t name, file;
	uint32_t fx_node_op, fx_node_name;
	uint32_t fx_original_trace;
	uint32_t zero;
};

/* What events share, as it is interned. */
struct tn_context_row {
	uint64_t stream;
	uint64_t pool[2];
	uint32_t compile_context, user_metadata;
};

struct tn_events {
	uint64_t *addresses, *sizes;
	int64_t *times;
	uint32_t *stacks, *contexts;
	uint8_t *actions;
	size_t count;
	size_t room;          /* the smallest of … */
	size_t capacities[6]; /* … these, in the order above */
};

struct tn_trace_place {
	int32_t device;
	size_t first, count;
};

struct tn_snapshot {
	struct tn_budget budget;
	struct tn_intern strings, frames, stacks, contexts; /* stacks: frame numbers, 4 bytes each */
	uint8_t *frame_whose;                               /* by frame: enum tn_whose */
	uint32_t *stack_user;                               /* by stack: a frame or TN_NO_NUMBER */
	uint32_t *stack_outside;                            /* the same: the innermost that is no TN_WHOSE_TORCH */
	struct tn_events events;
	struct tn_trace_place *traces;
	struct tn_segment *segments;
	struct tn_block *blocks;
	struct tn_annotation *annotations;
	struct tn_setting *settings;
	size_t trace_count, segment_count, block_count, annotation_count, setting_count;
	uint32_t metadata; /* a string or TN_NO_NUMBER */
	size_t frame_whose_capacity, stack_user_capacity, stack_outside_capacity, trace_capacity, segment_capacity,
		block_capacity, annotation_capacity, setting_capacity;
};

/* Whose line a frame is. */
enum tn_whose {
	TN_WHOSE_TORCH, /* of torch, the standard library, our own hook, or not a line of Python at all */
	TN_WHOSE_LIBRARY,
	TN_WHOSE_USER, /* of the program itself */
};

/* Finds out whose lines the frames are, and the innermost of each stack. */
tn_status tn__snapshot_find_user_frames(struct tn_snapshot *snapshot);

#endif
