/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of one device of a snapshot before a moment is asked for: when each block lived, how large it was, what
 * it was, and which line it belongs to.
 *
 * Time is counted in states: state n is how the memory stood after the first n events of the trace; the last state is
 * that of the snapshot. Invariant: the blocks that are alive in the last state are those that the snapshot calls
 * allocated. Everything borrows from the snapshot. Thread-safe once it is made.
 */
#ifndef TN_ANALYZE_ANALYSIS_H
#define TN_ANALYZE_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/metadata.h"
#include "analyze/moment.h"
#include "analyze/address_index.h"
#include "pickle/budget.h"
#include "tonnage/snapshot.h"

#define TN_NEVER UINT32_MAX
#define TN_NO_INTERVAL UINT32_MAX

/* The life of one block, or of one segment that cudaMalloc gave. */
struct tn_interval {
	uint64_t address;
	uint64_t requested;
	uint64_t size;
	uint32_t from;  /* the first state with it */
	uint32_t until; /* the first state in which it is no longer allocated; TN_NEVER */
	uint32_t gone;  /* the first state in which its memory is free again; TN_NEVER */
	tn_stack stack; /* of the allocation; 0: none, or unknown */
	uint32_t place;
	bool begun; /* the trace holds its allocation, which is the event before `from` */
};

/* All blocks, or all segments, in the order in which they were first met. */
struct tn_track {
	struct tn_address_index places; /* their addresses */
	struct tn_interval *intervals;
	size_t count, capacity;
};

/* That bytes of a block belong to a category, as a mark says. */
struct tn_claim {
	uint64_t offset, bytes; /* in the block */
	const char *label;
	uint32_t interval;
	uint8_t category;
};

/* What a stack's frames say beside its lines. */
enum tn_stack_trait {
	TN_STACK_PYTHON = 1,    /* it has a frame of Python */
	TN_STACK_MODULE = 2,    /* inside a call of a module … */
	TN_STACK_NESTED = 4,    /* … that another module made */
	TN_STACK_OPTIMIZER = 8, /* inside an optimizer of torch */
	TN_STACK_BUILD = 16,    /* a module's own tensors are made or moved */
	TN_STACK_COPY = 32,     /* inside copy.deepcopy */
	TN_STACK_LOAD = 64,     /* a file is loaded: torch.load, safetensors */
};

/* What is guessed of a block where there are no metadata. */
struct tn_guess {
	uint32_t named_by; /* the interval whose line it shares, or TN_NO_INTERVAL */
	uint8_t category;
};

struct tn_analysis {
	const struct tn_snapshot *snapshot;
	int device;
	struct tn_event_columns events;
	struct tn_budget budget;
	struct tn_track blocks, segments;
	uint32_t *by_event;  /* the interval (of a block or a segment) that an event is of */
	uint64_t *allocated; /* by state: events.count + 1 */
	uint64_t *reserved;
	uint8_t *traits;  /* by stack: enum tn_stack_trait */
	uint32_t *visits; /* by event: how often the line that allocates had changed by then, from 1 */
	bool marked;      /* there are metadata, else guesses by interval of a block */
	struct tn_metadata metadata;
	struct tn_claim *claims; /* by interval, then offset */
	size_t claim_count, claim_capacity;
	tn_stack *run_stacks; /* by run of the metadata: of the forward that its node belongs to; 0: unknown */
	struct tn_guess *guesses;
};

/* Analyses one device (0 and above) of a snapshot, which must outlive it. TN_INVALID, TN_NO_MEMORY, and what the metadata
 * are refused for. Release with tn__analysis_close. */
tn_status tn__analysis_open(const struct tn_snapshot *snapshot, int device, struct tn_analysis **analysis);
void tn__analysis_close(struct tn_analysis *analysis); /* NULL is allowed */

static inline bool
tn__is_alive(const struct tn_interval *interval, uint32_t state)
{
	return interval->from <= state && state < interval->until;
}

/* True for a block that the trace saw being made, in a phase of that name. */
bool tn__was_made_in(const struct tn_analysis *analysis, const struct tn_interval *block, const char *phase);

/* The state at a time of a mark: all events that came before it. */
uint32_t tn__state_at(const struct tn_analysis *analysis, int64_t nanoseconds);

/* Makes the two curves, of an analysis that has its events and intervals. TN_NO_MEMORY. */
tn_status tn__find_curves(struct tn_analysis *analysis);

/* One moment: how it stood in a state. Release with tn__moment_free. */
tn_status tn__moment_of_state(const struct tn_analysis *analysis, uint32_t state, struct tn_moment *out);

/* ---- intervals.c ---- */

/* The lives of all blocks and segments; sizes of blocks that have gone are 0 as yet. */
tn_status tn__find_intervals(struct tn_analysis *analysis);

/* ---- sizes.c ---- */

/* The sizes of blocks that have gone, by the allocator's rules. */
tn_status tn__find_sizes(struct tn_analysis *analysis);

/* ---- locate.c ---- */

struct tn_query {
	uint64_t address;
	uint32_t state;
	uint32_t number; /* of its answer */
};

/* Which block an address lay in at a state: answers[number] is an interval, or TN_NO_INTERVAL. Sorts the queries. */
tn_status tn__locate(const struct tn_analysis *analysis, struct tn_query *queries, size_t count, uint32_t *answers);

/* Claims of the metadata that name a block, in order. */
tn_status tn__find_claims(struct tn_analysis *analysis);
int tn__compare_claims(const void *left,
                       const void *right); /* of struct tn_claim: by interval, offset, category, larger first */

/* ---- graphs.c ---- */

/* Adds claims on what is kept for graphs that no backward pass has used where nothing else is known of it. TN_NO_MEMORY. */
tn_status tn__claim_graphs(struct tn_analysis *analysis);
/* The graph that no backward pass has used of the call that a block was made in; NULL. */
const struct tn_metadata_graph *tn__unused_graph_of(const struct tn_analysis *analysis,
                                                    const struct tn_interval *block);
extern const char *const tn__label_of_unused_graph; /* where the program makes such graphs in vain */

/* ---- backward.c ---- */

/* Which forward each run of the metadata belongs to. */
tn_status tn__find_runs(struct tn_analysis *analysis);

/* The run at work when an event came, by its number; metadata.runs_count when there is none. */
size_t tn__run_at(const struct tn_analysis *analysis, size_t event);

/* ---- infer.c ---- */

tn_status tn__guess_categories(struct tn_analysis *analysis);

/* ---- lines.c ---- */

tn_status tn__find_traits(struct tn_analysis *analysis);
tn_status tn__find_visits(struct tn_analysis *analysis);

/* The lines that a block or a piece of work belongs to; file is NULL where there is none. */
struct tn_origin {
	struct tn_line at, user;
	tn_stack stack;
};

struct tn_origin tn__origin_of_stack(const struct tn_analysis *analysis, tn_stack stack);
struct tn_origin tn__origin_of_interval(const struct tn_analysis *analysis, const struct tn_interval *interval);

/* Of an event with a stack, or of the node at work then. */
struct tn_origin tn__origin_of_event(const struct tn_analysis *analysis, size_t event);

/* ---- categorise.c ---- */

/* The requested bytes of one block by category. */
struct tn_parts {
	uint64_t bytes[TN_CATEGORIES];
	const char *labels[TN_CATEGORIES]; /* of the largest tensor of that category in it; NULL */
};

/* Scratch of tn__split_interval: zeroed at first, released by tn__scratch_free. */
struct tn_scratch {
	struct tn_budget budget;
	struct tn_edge *edges;
	size_t capacity;
};

/* The claims on one block among the first `count`, which are sorted; returns how many there are from *first on. */
size_t tn__claims_of(const struct tn_analysis *analysis, size_t count, uint32_t interval,
                     const struct tn_claim **first);
tn_status tn__split_interval(const struct tn_analysis *analysis, uint32_t interval, struct tn_scratch *scratch,
                             struct tn_parts *parts);
void tn__scratch_free(struct tn_scratch *scratch);

/* ---- holdings.c ---- */

/* A part of a block, to be joined with others of its line. */
struct tn_piece {
	uint64_t bytes;
	struct tn_origin origin;
	const char *label;
	uint32_t visit; /* of its line: successive allocations of one line share it; 0: unknown */
	uint32_t step;  /* how many steps had ended before it was made */
	uint8_t category;
};

/* Labels temporaries that are a second copy of the model, or the buckets of DistributedDataParallel. TN_NO_MEMORY. */
tn_status tn__label_pieces(const struct tn_analysis *analysis, struct tn_piece *pieces, size_t count);
extern const char *const tn__label_of_copy; /* as the metadata call it, too */

/* True for what DistributedDataParallel itself asked for. */
bool tn__made_by_ddp(const struct tn_analysis *analysis, tn_stack stack);

/* Joins pieces of the same category and line (and model, of parameters); fills holders, holder_count and labels of the moment. The pieces are put
 * in another order. */
tn_status tn__join_pieces(const struct tn_analysis *analysis, struct tn_piece *pieces, size_t count,
                          struct tn_moment *moment);

/* Largest first, then by category and place; texts in the order of the file. */
void tn__sort_holdings(struct tn_holding *holdings, size_t count);

/* By category, line of work, then line of the program. */
int tn__compare_origins(const struct tn_piece *left, const struct tn_piece *right);

#endif
