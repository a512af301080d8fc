/* SPDX-License-Identifier: Apache-2.0
 *
 * What was alive on a device at a moment of a snapshot's trace, and for what.
 *
 * The categories of snapshots that `tonnage run` wrote are exact; of others they are inferred from stacks and lifetimes,
 * which tn_memory_moment.inferred says. Bytes outside PyTorch's allocator (context, libraries, other processes) are not
 * in a snapshot and not here.
 */
#ifndef TONNAGE_MEMORY_H
#define TONNAGE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tonnage/snapshot.h"
#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The history of one device of a snapshot. Does not change once it is open: all functions are thread-safe on it. */
struct tn_memory;

/* Reconstructs when each block of a device (0 and above) lived and what it was for. The snapshot must outlive the result.
 * TN_INVALID for a negative device, TN_FORMAT for metadata of ours that are damaged, TN_NO_MEMORY. */
tn_status tn_memory_open(const struct tn_snapshot *snapshot, int device, struct tn_memory **memory);
void tn_memory_close(struct tn_memory *memory); /* NULL is allowed */

enum tn_when {
	TN_AT_PEAK,          /* most reserved; of those moments, most allocated; of those, the first */
	TN_AT_OUT_OF_MEMORY, /* the last out-of-memory error of the trace */
	TN_AT_END,           /* when the snapshot was taken */
	TN_AT_TIME           /* after the last event until a time */
};

/* Live bytes of one category from one line. */
struct tn_use {
	const char *category; /* "parameters", "gradients", ...: as in doc/format/run.schema.json */
	uint64_t bytes;       /* as the program requested */
	size_t blocks;
	const char *file;     /* innermost line outside PyTorch and the standard library; NULL: unknown */
	const char *function; /* NULL: unknown */
	int64_t line;
	bool backward;     /* allocated by the backward pass of that line */
	const char *label; /* what most of it is, such as "exp_avg float32"; NULL: unknown */
};

struct tn_category_bytes {
	const char *category;
	uint64_t bytes;
};

struct tn_memory_moment {
	int64_t time_us;                            /* since the epoch; 0: not recorded */
	uint64_t reserved, allocated, requested;    /* of PyTorch's caching allocator */
	uint64_t largest_free_block;                /* of its cache */
	int64_t step;                               /* from 1; -1: unknown */
	const char *phase;                          /* "forward", "backward", ...; NULL: unknown */
	bool inferred;                              /* the categories are inferred, not recorded */
	const struct tn_category_bytes *categories; /* they add up to `reserved` */
	size_t category_count;
	const struct tn_use *uses; /* largest first */
	size_t use_count;
};

/* How the memory stood at a moment. `time_us` is looked at for TN_AT_TIME only. The result, texts included, is valid
 * until tn_memory_moment_free and must not outlive `memory`. TN_NOT_FOUND when the trace has no such moment, TN_INVALID for
 * an unknown `when`, TN_NO_MEMORY. */
tn_status tn_memory_at(const struct tn_memory *memory, enum tn_when when, int64_t time_us,
                       const struct tn_memory_moment **moment);
void tn_memory_moment_free(const struct tn_memory_moment *moment); /* NULL is allowed */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
