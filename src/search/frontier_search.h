/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of `fit --vary`. Internal to frontier.c, which asks for trials, and frontier_table.c, which says what they came to.
 */
#ifndef TN_SEARCH_FRONTIER_SEARCH_H
#define TN_SEARCH_FRONTIER_SEARCH_H

#include "report/frontier.h"
#include "search/fit_search.h"
#include "search/grid.h"

struct tn_frontier_trial {
	int card, at;
	bool over;
	char *changes;
	char **arguments;
	struct tn_trial trial;
};

struct tn_frontier_target {
	struct tn_search_card card;
	char *asked;
	struct tn_grid_card known;
	struct tn_frontier_trial **tried; /* an item a combination, NULL where it was not tried */
};

struct tn_frontier_search {
	const struct tn_fit_options *options;
	struct tn_trials trials;
	struct tn_search_place place;
	struct tn_progress_line line;
	struct tn_axis axes[TN_AXES];
	int axis_count;
	bool by_loader; /* the first axis is the batch, which the arguments have no place for */
	struct tn_grid grid;
	int size; /* combinations */
	struct tn_frontier_target targets[TN_SEARCH_CARDS];
	int target_count;
	struct tn_frontier_trial **points;
	int count, room;
	bool begun;     /* the first trial is over, and good */
	unsigned asked; /* bits of the axes of which it was asked how memory grows with them */
	const char *failure;
	char *doubt;
	int failure_status;
};

/* The combination that has the least values but for one axis, of which it has the value `index`. */
int tn__frontier_along(const struct tn_frontier_search *search, int axis, int index);
/* Whether a combination was tried on the card that is never full. */
bool tn__frontier_seen(const struct tn_frontier_search *search, int at);
/* What a combination needs, as any card has told, with the context of the first; TN_NO_FIGURE: none has. */
int64_t tn__frontier_need(const struct tn_frontier_search *search, int at);
/* By which power of an axis's values memory grows, by the largest three values that differ in nothing else; 0: unknown. */
double tn__frontier_power(const struct tn_frontier_search *search, int index);
/* Makes the table; release with tn__frontier_free. False without memory. */
bool tn__frontier_table(const struct tn_frontier_search *search, struct tn_frontier *out);

#endif
