/* SPDX-License-Identifier: Apache-2.0
 *
 * Which combination of values to try next, so that for each combination of all axes but the first the largest value of the first
 * that fits a card is known after few trials (doc/design/0010-trials.md). Nothing here runs a trial. Not thread-safe.
 *
 * What is taken to be so: what fits with some values fits with smaller ones, and what does not fit with some does not with
 * larger ones. A program that fails for another reason tells nothing of other combinations but those of its own row beyond it.
 */
#ifndef TN_SEARCH_GRID_H
#define TN_SEARCH_GRID_H

#include <stdint.h>

#include "search/axes.h"

#define TN_GRID_POINTS 4096

enum tn_grid_seen { TN_GRID_UNKNOWN, TN_GRID_RUNS, TN_GRID_FITS, TN_GRID_OUT_OF_MEMORY, TN_GRID_FAILED };

/* Points are numbered by row, and within it by the values of the first axis; rows by the second axis, then the third. */
struct tn_grid {
	const struct tn_axis *axes; /* borrowed; the first is the one that is searched */
	int axis_count;
	int columns, rows;
};

/* What is known of a card. `seen` has an item a point; `need` is what a point takes there, TN_NO_FIGURE where that is unknown,
 * whether it was seen on this card or told from another. Both are the caller's. */
struct tn_grid_card {
	unsigned char *seen;
	int64_t *need;
	int64_t room; /* bytes */
};

/* TN_INVALID where the combinations are more than TN_GRID_POINTS. */
tn_status tn__grid_open(const struct tn_axis *axes, int axis_count, struct tn_grid *out);
/* The values of a point, one for each axis. */
void tn__grid_values(const struct tn_grid *grid, int point, int *values);
/* The largest column of a row that is known to fit, -1: none; and the smallest that is known not to, `columns`: none. */
void tn__grid_bounds(const struct tn_grid *grid, const struct tn_grid_card *card, int row, int *low, int *high);
/* The next point to try on the card; -1: all is known, or what runs has to end first. All needs that are known serve the guess. */
int tn__grid_next(const struct tn_grid *grid, const struct tn_grid_card *card);
/* By which power of an axis's values memory grows, from what three points need that differ in this axis alone: 1 with the value,
 * 2 with its square; 0: it does not grow, or that is unknown. */
double tn__grid_power(const int values[3], const int64_t needs[3]);

#endif
