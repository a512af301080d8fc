/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata in a snapshot (doc/format/metadata.md) as arrays.
 *
 * Invariant: within a kind times never fall (one that does is taken for the one before it), and every number of another
 * row lies below the count of what it names. Texts point into a copy that belongs to the metadata. Knows no snapshot.
 */
#ifndef TN_ANALYZE_METADATA_H
#define TN_ANALYZE_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/moment.h" /* enum tn_category */
#include "pickle/budget.h"  /* struct tn_budget */

struct tn_metadata_phase {
	int64_t time; /* nanoseconds since the epoch, as everywhere here */
	int64_t step;
	const char *name;
};

struct tn_metadata_hold {
	uint64_t address, bytes;
	const char *label;
	uint32_t look; /* in `looks` */
	uint8_t category;
};

struct tn_metadata_look {
	int64_t time;
};

struct tn_metadata_backward {
	int64_t time, pass;
	size_t first_node, nodes;
	bool creates; /* a graph of its own */
};

struct tn_metadata_node {
	int64_t id, sequence;
	uint64_t bytes, evidence;
	const char *name;
	bool view;
};

struct tn_metadata_run {
	int64_t time, id;
};

struct tn_metadata_graph {
	int64_t time, ended, freed; /* its call began and ended; 0: the graph is there still */
	int64_t line;
	const char *file, *function; /* "": nothing is said of the call */
};

struct tn_metadata_library {
	int64_t time;
	const char *library;
	uint64_t address, bytes;
};

struct tn_metadata_copied {
	int64_t time;
	uint64_t address, bytes;
};

struct tn_metadata_card {
	int64_t time, device;
	uint64_t total, context, program, libraries, others;
};

struct tn_metadata_step {
	int64_t time, number;
	uint64_t allocated;
};

struct tn_metadata_oom {
	int64_t time, device;
	uint64_t requested;
};

struct tn_metadata_call {
	int64_t time, line;
	const char *name, *file, *function;
};

struct tn_metadata_batch {
	int64_t size;
};

/* MARK(kind, rows): a kind of line, struct tn_metadata_<kind>, and the array that keeps it. */
/* clang-format off */
#define TN_MARK_KINDS(MARK)                                                                                          \
	MARK(phase, phases) MARK(look, looks) MARK(hold, holds) MARK(backward, passes) MARK(node, nodes) MARK(run, runs) \
	MARK(graph, graphs) MARK(library, libraries) MARK(copied, copies) MARK(card, cards) MARK(step, steps) MARK(oom, ooms)                \
	MARK(call, calls) MARK(batch, batches)
/* clang-format on */

struct tn_metadata {
	struct tn_budget budget;
	char *text;
#define TN_MARK_ROWS(kind, rows)     \
	struct tn_metadata_##kind *rows; \
	size_t rows##_count, rows##_capacity;
	TN_MARK_KINDS(TN_MARK_ROWS)
#undef TN_MARK_ROWS
};

/* Reads `length` bytes, which are copied. TN_FORMAT and TN_UNSUPPORTED name the line; TN_NO_MEMORY. On failure nothing
 * is held. Release with tn__metadata_free. */
tn_status tn__metadata_parse(const char *text, size_t length, struct tn_metadata *metadata);

/* How many rows began no later than a microsecond: rows of `size` bytes in order, whose first member is their time in
 * nanoseconds. */
size_t tn__rows_until(const void *rows, size_t count, size_t size, int64_t microsecond);

/* The phase in force in a microsecond; NULL when none had begun. */
const struct tn_metadata_phase *tn__phase_at(const struct tn_metadata *metadata, int64_t microsecond);

/* The last call of that name at or after one time and before another; NULL when there was none. */
const struct tn_metadata_call *tn__call_between(const struct tn_metadata *metadata, const char *name, int64_t from,
                                                int64_t until);

void tn__metadata_free(struct tn_metadata *metadata); /* of zeroed metadata as well */

#endif
