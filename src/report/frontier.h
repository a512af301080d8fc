/* SPDX-License-Identifier: Apache-2.0
 *
 * What `fit --vary` came to: for each card, and each combination of all axes but the first, the largest value of the first that
 * fits. Filled by src/search/frontier.c, written for a person, as JSON and as a page. Unknown is TN_NO_FIGURE or NULL. All texts
 * are owned but those of the catalogue. Plain data: not thread-safe.
 */
#ifndef TN_REPORT_FRONTIER_H
#define TN_REPORT_FRONTIER_H

#include "report/report.h"
#include "report/search_words.h"

struct tn_frontier_axis {
	char *name;
	int *values;
	size_t value_count;
	double power; /* memory grows with this power of the value; 0: unknown */
};

/* A combination, in the order of rows and, within a row, of the first axis's values. */
struct tn_frontier_point {
	enum tn_frontier_outcome { TN_POINT_UNKNOWN, TN_POINT_FITS, TN_POINT_OUT_OF_MEMORY, TN_POINT_FAILED } outcome;
	bool tried;          /* on this card; else told from others */
	int64_t device_peak; /* of one that was tried and fits */
	char *why_not;       /* a program that broke, or showed nothing */
};

struct tn_frontier_row {
	int largest;         /* 0: none of the values fits; -1: not known */
	bool unbounded;      /* the last of the values fits */
	bool failed;         /* the program fails with the least of the values, and not for lack of memory */
	int64_t device_peak; /* with the largest; TN_NO_FIGURE where it was told from another combination */
	int64_t margin, uncertain;
	int micro_batch, steps; /* the accumulation plan for the batch that is wanted; 0: none */
};

struct tn_frontier_card {
	struct tn_gpu_figures gpu;
	char *asked; /* as it was named */
	int64_t margin_wanted;
	struct tn_frontier_row *rows;
	struct tn_frontier_point *points;
};

struct tn_frontier {
	struct tn_frontier_axis *axes; /* the first is the one that was searched */
	size_t axis_count;
	struct tn_frontier_card *cards;
	size_t card_count;
	int rows;
	int batch; /* that was asked for; 0: none */
	bool interrupted;
	char *command;
	int forked;
	const char *not_forked;
	int trials;
	double seconds;
};

void tn__frontier_free(struct tn_frontier *frontier);
/* The value of an axis, not the first, in a row. */
int tn__frontier_value(const struct tn_frontier *frontier, int row, size_t axis);
/* "length 512, layers 4", into `words`; "" where there is one axis. */
const char *tn__frontier_row_words(const struct tn_frontier *frontier, int row, char words[TN_WORDS_ROOM]);
/* "Memory grows in proportion to batch, with the square of length"; NULL: unknown. */
const char *tn__frontier_growth(const struct tn_frontier *frontier, char words[TN_WORDS_ROOM]);
/* "batch 8, accumulated over 4 steps"; NULL: nothing was asked for, or nothing fits. */
const char *tn__frontier_plan(const struct tn_frontier *frontier, const struct tn_frontier_row *row,
                              char words[TN_WORDS_ROOM]);
/* "32", "none", "fails", "?" */
const char *tn__frontier_largest(const struct tn_frontier_row *row, char words[TN_WORDS_ROOM]);

/* As for tn__fits_*; the JSON is the object of doc/format/frontier.schema.json. */
tn_status tn__frontier_text(const struct tn_frontier *frontier, struct tn_style style, FILE *out);
tn_status tn__frontier_json(const struct tn_frontier *frontier, FILE *out);
tn_status tn__frontier_page(const struct tn_frontier *frontier, FILE *out);

#endif
