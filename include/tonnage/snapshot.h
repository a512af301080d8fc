/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory snapshots of PyTorch: read without Python, kept in columns, and what held the memory at their end.
 *
 * A snapshot is read once and then only looked at: after opening, all functions are thread-safe on the same snapshot.
 * Whatever a function hands out belongs to the snapshot and lives until tn_snapshot_close. Texts are the file's own
 * bytes, ended by a zero byte (one inside cuts them short); they are not checked to be UTF-8 and may hold anything.
 */
#ifndef TONNAGE_SNAPSHOT_H
#define TONNAGE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A figure that the file does not hold. */
#define TN_UNKNOWN UINT64_MAX

/* Limits on what a file may ask for; tn_snapshot_defaults gives those that no real snapshot reaches. */
struct tn_snapshot_options {
	uint32_t depth;        /* containers open at once */
	uint64_t memo;         /* objects that are referred to; at most 2^28 */
	uint64_t string_bytes; /* of one text */
	uint64_t memory_bytes; /* that reading may take in all; a 64th of it may be a window of zstd */
	uint32_t unpack_ratio; /* bytes that one compressed byte may become, after the first 64 MiB */
};

struct tn_snapshot_options tn_snapshot_defaults(void);

struct tn_snapshot;

/* Reads a snapshot in any form that PyTorch 2.0 and later write: `_dump_snapshot`, a pickled `_snapshot()` or
 * `memory_snapshot()` (protocols 2 to 5), the C++ function; plain, or compressed by gzip or zstd, which the first bytes
 * tell. `options` may be NULL. TN_IO when the file cannot be read,
 * TN_FORMAT, TN_UNSUPPORTED or TN_LIMIT for what is no snapshot, with the offset in tn_error_text(); nothing that a
 * file asks for is imported or called. */
tn_status tn_snapshot_open(const char *path, const struct tn_snapshot_options *options, struct tn_snapshot **snapshot);

/* The same from memory, which is borrowed for the call only. */
tn_status tn_snapshot_parse(const void *bytes, size_t size, const struct tn_snapshot_options *options,
                            struct tn_snapshot **snapshot);

/* The same from a function that fills up to `size` bytes and sets *got; 0 is the end. Its failure is passed on. */
typedef tn_status (*tn_snapshot_source)(void *context, void *buffer, size_t size, size_t *got);
tn_status tn_snapshot_read(tn_snapshot_source source, void *context, const struct tn_snapshot_options *options,
                           struct tn_snapshot **snapshot);

void tn_snapshot_close(struct tn_snapshot *snapshot); /* NULL is allowed */

/* ---- stacks ---- */

/* A stack is a number; equal stacks have equal numbers; 0 is the empty stack (also: none was recorded). */
typedef uint32_t tn_stack;

struct tn_frame {
	const char *function;
	const char *file;
	int64_t line;
	const char *fx_node_op; /* these three are NULL unless torch.fx recorded them */
	const char *fx_node_name;
	const char *fx_original_trace;
	bool user;    /* a Python line of the program itself: not of torch, the standard library or site-packages */
	bool library; /* a Python line of an installed package other than torch and what comes with it */
};

/* How many stacks and frames there are; their numbers lie below. */
size_t tn_snapshot_stacks(const struct tn_snapshot *snapshot);
size_t tn_snapshot_frames(const struct tn_snapshot *snapshot);

/* The frames of a stack, innermost first; returns how many. */
size_t tn_snapshot_stack(const struct tn_snapshot *snapshot, tn_stack stack, const uint32_t **frames);

struct tn_frame tn_snapshot_frame(const struct tn_snapshot *snapshot, uint32_t frame);

/* The innermost frame of the program itself; false when the stack has none. */
bool tn_snapshot_user_frame(const struct tn_snapshot *snapshot, tn_stack stack, uint32_t *frame);

/* The innermost frame outside torch and the standard library: of the program itself or of a library; false when the
 * stack has none. */
bool tn_snapshot_outside_frame(const struct tn_snapshot *snapshot, tn_stack stack, uint32_t *frame);

/* ---- segments and blocks: how the memory stood at the end ---- */

enum tn_block_state {
	TN_BLOCK_FREE,    /* "inactive" */
	TN_BLOCK_LIVE,    /* "active_allocated" */
	TN_BLOCK_PENDING, /* freed, waiting for a stream: "active_pending_free" or "active_awaiting_free" */
	TN_BLOCK_OTHER    /* a state that no PyTorch we know writes */
};

struct tn_block {
	uint64_t address; /* computed from the segment's when the file does not hold it */
	uint64_t size;
	uint64_t requested; /* TN_UNKNOWN where not recorded */
	tn_stack stack;
	uint8_t state; /* enum tn_block_state */
};

struct tn_segment {
	int32_t device; /* -1: pinned host memory */
	bool small;     /* of the pool for small blocks */
	bool expandable;
	bool host; /* listed among host_segments */
	tn_stack stack;
	uint64_t address; /* these five are TN_UNKNOWN where not recorded */
	uint64_t total;
	uint64_t allocated;
	uint64_t active;
	uint64_t requested;
	uint64_t stream;
	uint64_t pool[2]; /* {0, 0}: the default pool */
	size_t first_block;
	size_t blocks;
};

size_t tn_snapshot_segments(const struct tn_snapshot *snapshot, const struct tn_segment **segments);
size_t tn_snapshot_blocks(const struct tn_snapshot *snapshot, const struct tn_block **blocks);

/* ---- trace: what happened, oldest first ---- */

enum tn_action {
	TN_ACTION_ALLOC,
	TN_ACTION_FREE_REQUESTED,
	TN_ACTION_FREE_COMPLETED,
	TN_ACTION_SEGMENT_ALLOC,
	TN_ACTION_SEGMENT_FREE,
	TN_ACTION_SEGMENT_MAP,
	TN_ACTION_SEGMENT_UNMAP,
	TN_ACTION_SNAPSHOT,
	TN_ACTION_OOM,
	TN_ACTION_ANNOTATE,
	TN_ACTION_OTHER /* one that no PyTorch we know writes */
};

struct tn_event {
	uint8_t action;   /* enum tn_action */
	uint64_t address; /* of an out-of-memory: the free bytes of the device. TN_UNKNOWN where not recorded */
	uint64_t size;
	int64_t time_us; /* since the epoch; 0 where not recorded */
	tn_stack stack;
	uint64_t stream;
	uint64_t pool[2];            /* TN_UNKNOWN where not recorded */
	const char *compile_context; /* NULL where not recorded */
	const char *user_metadata;
};

/* How many traces there are: one a device, then one for host memory when it was recorded (and maybe empty). */
size_t tn_snapshot_traces(const struct tn_snapshot *snapshot);

/* The device of a trace; -1: host memory. */
int tn_snapshot_trace_device(const struct tn_snapshot *snapshot, size_t trace);
size_t tn_snapshot_events(const struct tn_snapshot *snapshot, size_t trace);
struct tn_event tn_snapshot_event(const struct tn_snapshot *snapshot, size_t trace, size_t index);

/* The columns of one trace for passes over millions of events; `contexts` goes to tn_snapshot_context. */
struct tn_event_columns {
	size_t count;
	const uint64_t *addresses;
	const uint64_t *sizes;
	const int64_t *times;
	const tn_stack *stacks;
	const uint8_t *actions;
	const uint32_t *contexts;
};
struct tn_event_columns tn_snapshot_columns(const struct tn_snapshot *snapshot, size_t trace);

/* What events share: stream, pool, compile_context and user_metadata are set, the rest is zero. */
struct tn_event tn_snapshot_context(const struct tn_snapshot *snapshot, uint32_t context);

/* ---- the rest ---- */

struct tn_annotation {
	const char *name;
	bool start; /* else the end */
	int32_t device;
	int64_t time_us;
};

size_t tn_snapshot_annotations(const struct tn_snapshot *snapshot, const struct tn_annotation **annotations);

/* A setting of the allocator; those of a nested dict have "outer.inner" for a name. */
struct tn_setting {
	const char *name;
	enum { TN_SETTING_NONE, TN_SETTING_BOOL, TN_SETTING_INTEGER, TN_SETTING_REAL, TN_SETTING_TEXT } kind;
	int64_t integer; /* also of a BOOL */
	double real;
	const char *text;
};

size_t tn_snapshot_settings(const struct tn_snapshot *snapshot, const struct tn_setting **settings);

/* What our own guest hook wrote into the snapshot (doc/format/metadata.md) and its length in bytes; NULL and 0 when there
 * is nothing. It may hold zero bytes. */
const char *tn_snapshot_metadata(const struct tn_snapshot *snapshot, size_t *length);

/* ---- what held the memory at the end ---- */

#define TN_ALL_DEVICES (-2)

struct tn_snapshot_totals {
	uint64_t reserved;  /* all segments */
	uint64_t allocated; /* live blocks */
	uint64_t active;    /* live blocks and those waiting for a stream */
	uint64_t requested; /* of active blocks, as the program asked; where not recorded, the block's size */
	uint64_t largest_free_block;
	size_t segments, blocks, live_blocks;
};

/* Of one device, of -1 (host memory), or of all devices without host memory. */
struct tn_snapshot_totals tn_snapshot_sum(const struct tn_snapshot *snapshot, int device);

/* Blocks that are alive or wait for a stream, by the innermost line of the program itself. */
struct tn_holder {
	uint64_t bytes;     /* as allocated */
	uint64_t requested; /* as the program asked */
	size_t blocks;
	const char *file; /* NULL: no frame of the program in the stack */
	const char *function;
	int64_t line;
	tn_stack stack; /* of the largest block */
};

/* Largest first, then by file and line. *holders is to be freed by the caller with free(). */
tn_status tn_snapshot_holders(const struct tn_snapshot *snapshot, int device, struct tn_holder **holders,
                              size_t *count);

/* The last out-of-memory of the traces of a device (or of all). false when there is none. */
bool tn_snapshot_out_of_memory(const struct tn_snapshot *snapshot, int device, size_t *trace, size_t *index);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
