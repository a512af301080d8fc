/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole course of a device, for pictures of it: what every block was for, what was held column by column, and how
 * the memory was cut up in one state. States are those of analysis.h.
 *
 * Everything borrows from the analysis, which must outlive it. Thread-safe once it is made.
 */
#ifndef TN_ANALYZE_HISTORY_H
#define TN_ANALYZE_HISTORY_H

#include "analyze/analysis.h"

/* The state of the peak: of those with `reserved` bytes (TN_UNKNOWN: the most there were), the first with the most
 * allocated. TN_NOT_FOUND when there is none. Stands in moment.c. */
tn_status tn__find_peak_state(const struct tn_analysis *analysis, uint64_t reserved, uint32_t *state);

/* The moment of the peak of a device: of the moments at which PyTorch had reserved `reserved` bytes (TN_UNKNOWN: the
 * most it had), the one with the most allocated bytes. TN_NOT_FOUND when the trace knows no such moment: the nearest
 * below is not taken silently. Release with tn__moment_free. Stands in moment.c, as the next one. */
tn_status tn__moment_of_peak(const struct tn_analysis *analysis, uint64_t reserved, struct tn_moment *out);
/* The first moment at which PyTorch had allocated so many bytes and reserved no less; else the same. */
tn_status tn__moment_of_allocated(const struct tn_analysis *analysis, uint64_t allocated, struct tn_moment *out);

/* The end of the trace: for snapshots taken at an out-of-memory, or of any other moment. */
tn_status tn__moment_of_end(const struct tn_analysis *analysis, struct tn_moment *out);

/* What survives each step, by line, over the steps that the trace holds completely: one holding a line, `bytes` and
 * `blocks` by step. *holdings is to be freed by the caller with free(). Stands in growth.c. */
tn_status tn__growth_of(const struct tn_analysis *analysis, struct tn_holding **holdings, size_t *count);

/* ---- parts.c ---- */

/* The bytes of one block that belong to one category, as requested. */
struct tn_part {
	uint64_t bytes;
	const char *label; /* NULL: unknown */
	uint32_t interval;
	uint8_t category;
};

struct tn_part_list {
	struct tn_part *items; /* by interval, then category */
	size_t count, capacity;
};

/* All blocks of the trace. TN_NO_MEMORY. Release with tn__part_list_free. */
tn_status tn__list_parts(const struct tn_analysis *analysis, struct tn_part_list *out);
void tn__part_list_free(struct tn_part_list *list);

/* ---- timeline.c ---- */

/* States in a row, and the one that stands for them: at which most was reserved; of those, most allocated; of those the
 * first. */
struct tn_column {
	uint64_t bytes[TN_CATEGORIES]; /* at the moment: parameters to cached; they add up to what was reserved */
	uint64_t low;                  /* the fewest allocated bytes of any of its states */
	int64_t time_us;               /* of the moment */
	int64_t step;                  /* 0: none yet, or unknown */
	const char *phase;             /* NULL: unknown */
	uint32_t first, moment;
};

struct tn_timeline {
	struct tn_column *columns;
	size_t count;
	uint32_t states;
};

/* Shares the states out evenly among at most `most` columns; a column in which a named state is not the moment is cut
 * before and after it. TN_NO_MEMORY. Release with tn__timeline_free. */
tn_status tn__timeline_make(const struct tn_analysis *analysis, const struct tn_part_list *parts, size_t most,
                            const uint32_t *named, size_t named_count, struct tn_timeline *out);
void tn__timeline_free(struct tn_timeline *timeline);

/* The first column whose moment is not before a state; `count` when there is none. */
size_t tn__column_from(const struct tn_timeline *timeline, uint32_t state);

/* The column that a state lies in. */
size_t tn__column_of(const struct tn_timeline *timeline, uint32_t state);

/* ---- sites.c ---- */

/* Live bytes of one category that one stack asked for. */
struct tn_site {
	uint64_t bytes;
	size_t blocks;
	struct tn_origin origin; /* of the forward work, where they are of the backward pass */
	const char *label;       /* of the largest; NULL: unknown */
	uint8_t category;
};

/* What was alive in a state, largest first; of that what was allocated in phases of that name only (NULL: all). *sites is to be freed by
 * the caller with free(). TN_NO_MEMORY. */
tn_status tn__sites_of(const struct tn_analysis *analysis, const struct tn_part_list *parts, uint32_t state,
                       const char *phase, struct tn_site **sites, size_t *count);

/* ---- layout.c ---- */

struct tn_layout_block {
	uint64_t size;     /* as allocated */
	uint32_t interval; /* TN_NO_INTERVAL: free */
	bool pending;      /* freed, but waiting for a stream */
};

struct tn_layout_segment {
	uint64_t address, size;
	uint64_t free, largest_free, live; /* live: of allocated blocks */
	uint64_t stream, pool[2];          /* TN_UNKNOWN where not recorded; {0, 0} is the default pool */
	size_t first_block, blocks;        /* they fill it without a gap */
	bool small, expandable;            /* expandable: one stretch that is mapped without a gap */
};

struct tn_layout {
	struct tn_layout_segment *segments; /* by address */
	size_t segment_count, segment_capacity;
	struct tn_layout_block *blocks;
	size_t block_count, block_capacity;
};

/* How the memory was cut up in a state. TN_NO_MEMORY. Release with tn__layout_free. */
tn_status tn__layout_of(const struct tn_analysis *analysis, uint32_t state, struct tn_layout *out);
void tn__layout_free(struct tn_layout *layout);

#endif
