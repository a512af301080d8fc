/* SPDX-License-Identifier: Apache-2.0
 *
 * `fit --vary`: which combinations of values fit, for each card. The first trial is the program with the least values on a card
 * that is never full. Then grid.c chooses what is tried on the cards. What one card tells of the need of a combination serves the
 * guesses for the others; that it fits is always seen on the card. At last, where the grid is large, it is asked how memory grows
 * with what has not shown it.
 */
#include "search/frontier_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/document.h"
#include "supervise/internal.h"

/* ---- trials ---- */

static struct tn_trial *
try_point(struct tn_frontier_search *search, int card, int at)
{
	const struct tn_frontier_target *target = &search->targets[card == TN_FIT_LARGE ? 0 : card];
	struct tn_frontier_trial *point = search->count < search->room ? calloc(1, sizeof(*point)) : NULL;
	int values[TN_AXES];
	if (point == NULL)
		return NULL;
	search->points[search->count++] = point;
	*point = (struct tn_frontier_trial){ .card = card, .at = at };
	tn__grid_values(&search->grid, at, values);
	point->arguments = tn__axes_arguments(search->axes, values, search->axis_count, target->card.options.arguments);
	point->trial.options = tn__search_trial_options(&target->card, card == TN_FIT_LARGE);
	point->trial.options.no_detail = true;
	if (point->arguments != NULL)
		point->trial.options.arguments = point->arguments;
	if (search->by_loader)
		point->trial.changes = point->changes = tn__search_batch_change(values[0]);
	point->trial.keep_words = search->count == 1;
	return &point->trial;
}

static void
free_point(struct tn_frontier_trial *point)
{
	tn__arguments_free(point->arguments);
	free(point->changes);
	tn__trial_clear(&point->trial);
	free(point);
}

/* Whether a trial of a card runs. */
static bool
some_run(const struct tn_frontier_search *search)
{
	for (int i = 0; i < search->count; i++)
		if (!search->points[i]->over)
			return true;
	return false;
}

/* The last three values of an axis of which it is unknown how memory grows with it: that costs no more than half of the grid. */
static struct tn_trial *
next_of_growth(struct tn_frontier_search *search)
{
	if (search->asked == 0 && some_run(search))
		return NULL;
	for (int axis = 0; axis < search->axis_count; axis++) {
		int count = search->axes[axis].count;
		if (!(search->asked & 1u << axis) &&
		    (count < 3 || tn__frontier_power(search, axis) > 0 || 2 * (search->count + 3) > search->size))
			continue;
		search->asked |= 1u << axis;
		for (int i = count - 3; i < count; i++) {
			int at = tn__frontier_along(search, axis, i);
			if (tn__frontier_need(search, at) == TN_NO_FIGURE && !tn__frontier_seen(search, at))
				return try_point(search, TN_FIT_LARGE, at);
		}
	}
	return NULL;
}

/* With --all: the first that was not tried. */
static int
next_of_all(const struct tn_frontier_search *search, const struct tn_grid_card *card)
{
	for (int at = 0; at < search->size; at++)
		if (card->seen[at] == TN_GRID_UNKNOWN)
			return at;
	return -1;
}

static struct tn_trial *
next(void *context)
{
	struct tn_frontier_search *search = context;
	if (search->failure != NULL)
		return NULL;
	struct tn_trial *trial = search->count == 0 ? try_point(search, TN_FIT_LARGE, 0) : NULL;
	for (int i = 0; i < search->target_count && trial == NULL && search->begun; i++) {
		int at = search->options->all ? next_of_all(search, &search->targets[i].known)
		                              : tn__grid_next(&search->grid, &search->targets[i].known);
		trial = at >= 0 ? try_point(search, i, at) : NULL;
		if (trial != NULL) {
			search->targets[i].known.seen[at] = TN_GRID_RUNS;
			search->targets[i].tried[at] = search->points[search->count - 1];
		}
	}
	return trial != NULL || !search->begun ? trial : next_of_growth(search);
}

/* ---- what a trial has told ---- */

/* What a card would need for a trial that was seen whole on another. */
static void
take_need(struct tn_frontier_search *search, const struct tn_frontier_trial *point)
{
	int64_t device = tn__trial_report(&point->trial)->device_peak;
	const struct tn_frontier_target *there = &search->targets[point->card == TN_FIT_LARGE ? 0 : point->card];
	if (device == TN_NO_FIGURE)
		return;
	device -= (int64_t)there->card.figures.context_bytes + (point->card == TN_FIT_LARGE ? 0 : there->card.hidden);
	for (int i = 0; i < search->target_count; i++)
		search->targets[i].known.need[point->at] = device + (int64_t)search->targets[i].card.figures.context_bytes;
}

static void
judge_first(struct tn_frontier_search *search, const struct tn_frontier_trial *point)
{
	search->failure = tn__search_failure(&point->trial, &search->line, &search->doubt, &search->failure_status);
	if (search->failure == NULL && search->by_loader && !tn__trial_applied(&point->trial)) {
		search
			->failure = "no data loader was seen whose batch could be set: write {batch} into the program's arguments";
		search->failure_status = TN_EXIT_USAGE;
	}
	search->begun = search->failure == NULL;
	tn__trials_adapt(&search->trials, tn__trial_report(&point->trial)->peak_rss_bytes);
}

static void
ended(void *context, struct tn_trial *trial)
{
	struct tn_frontier_search *search = context;
	struct tn_frontier_trial *point = NULL;
	for (int i = 0; i < search->count && point == NULL; i++)
		if (&search->points[i]->trial == trial)
			point = search->points[i];
	if (point == NULL)
		return;
	point->over = true;
	const struct tn_report *report = tn__trial_report(trial);
	bool fits = tn__trial_fits(trial) && report->steps_seen != 0;
	if (point == search->points[0])
		judge_first(search, point);
	if (fits)
		take_need(search, point);
	if (point->card == TN_FIT_LARGE)
		return;
	search->targets[point->card].known.seen[point->at] = fits                             ? TN_GRID_FITS
	                                                     : trial->end == TN_TRIAL_STOPPED ? TN_GRID_UNKNOWN
	                                                     : report->verdict == TN_VERDICT_OUT_OF_MEMORY
	                                                         ? TN_GRID_OUT_OF_MEMORY
	                                                         : TN_GRID_FAILED;
}

/* How many trials there may be in all. */
static int
most_trials(const struct tn_frontier_search *search)
{
	int count = search->count;
	if (!search->options->all)
		return search->room;
	for (int i = 0; i < search->target_count; i++)
		for (int at = 0; at < search->size; at++)
			count += search->targets[i].known.seen[at] == TN_GRID_UNKNOWN;
	return count;
}

static void
tick(void *context)
{
	struct tn_frontier_search *search = context;
	char words[200];
	tn__progress_line_show(&search->line, "%s", tn__search_progress(&search->trials, most_trials(search), words));
}

static tn_status
finish(const struct tn_frontier_search *search, int *exit_status)
{
	const struct tn_run_options *run = &search->options->search.run;
	struct tn_frontier frontier;
	bool some = false;
	tn_status status = tn__frontier_table(search, &frontier) ? TN_OK : tn__fail(TN_NO_MEMORY, "out of host memory");
	if (status == TN_OK)
		status = tn__print_document(&tn__frontier_document, &frontier, run);
	if (status == TN_OK)
		status = tn__save_document(&tn__frontier_document, &frontier, run, true);
	for (size_t i = 0; status == TN_OK && i < frontier.card_count; i++)
		for (int row = 0; row < frontier.rows; row++)
			some |= frontier.cards[i].rows[row].largest > 0;
	if (status == TN_OK)
		*exit_status = frontier.interrupted ? 128 + search->trials.interrupted_by
		               : some               ? TN_EXIT_FITS
		                                    : TN_EXIT_OUT_OF_MEMORY;
	tn__frontier_free(&frontier);
	return status;
}

/* ---- the command ---- */

/* The axis that is searched goes first: the batch, else the first that was named. */
static tn_status
take_axes(struct tn_frontier_search *search)
{
	char *const *arguments = search->options->search.run.arguments;
	TN_RETURN_IF(search->options->vary_count > TN_AXES, TN_INVALID, "--vary takes %d names at most", TN_AXES);
	for (int i = 0; i < search->options->vary_count; i++) {
		struct tn_axis *axis = &search->axes[search->axis_count++];
		TN_FORWARD_IF_ERROR(tn__axis_parse(search->options->vary[i], axis));
		for (int j = 0; j < i; j++)
			TN_RETURN_IF(strcmp(search->axes[j].name, axis->name) == 0, TN_INVALID, "--vary names %s twice",
			             axis->name);
		bool placed = tn__axis_has_place(axis->name, arguments), batch = strcmp(axis->name, "batch") == 0;
		TN_RETURN_IF(
			!placed && !batch, TN_INVALID,
			"--vary %s: the arguments have no place for it: write {%s} where its value stands, as in --option {%s}",
			axis->name, axis->name, axis->name);
		search->by_loader |= batch && !placed;
		if (batch && i > 0) {
			struct tn_axis first = search->axes[0];
			search->axes[0] = *axis;
			*axis = first;
		}
	}
	TN_FORWARD_IF_ERROR(tn__grid_open(search->axes, search->axis_count, &search->grid));
	search->size = search->grid.columns * search->grid.rows;
	return TN_OK;
}

static tn_status
take_cards(struct tn_frontier_search *search, int *exit_status)
{
	struct tn_search_card cards[TN_SEARCH_CARDS];
	char *asked[TN_SEARCH_CARDS] = { NULL };
	tn_status status = tn__search_cards(&search->options->search, cards, asked, &search->target_count, exit_status);
	bool good = true;
	for (int i = 0; i < search->target_count; i++) {
		struct tn_frontier_target *target = &search->targets[i];
		size_t size = (size_t)search->size;
		cards[i].options.open_oom_decides = true;
		*target = (struct tn_frontier_target){ .asked = asked[i], .card = cards[i] };
		target->known = (struct tn_grid_card){ .seen = calloc(size, 1),
			                                   .need = calloc(size, sizeof(int64_t)),
			                                   .room = (int64_t)cards[i].total - cards[i].hidden };
		target->tried = calloc(size, sizeof(*target->tried));
		good &= target->known.seen != NULL && target->known.need != NULL && target->tried != NULL;
		for (size_t j = 0; good && j < size; j++)
			target->known.need[j] = TN_NO_FIGURE;
	}
	search->room = search->size * search->target_count + 3 * TN_AXES + 1;
	search->points = calloc((size_t)search->room, sizeof(*search->points));
	TN_FORWARD_IF_ERROR(status);
	TN_RETURN_IF(!good || search->points == NULL, TN_NO_MEMORY, "out of host memory");
	return TN_OK;
}

static tn_status
run_search(struct tn_frontier_search *search, int *exit_status)
{
	bool dry;
	TN_FORWARD_IF_ERROR(take_axes(search));
	TN_FORWARD_IF_ERROR(take_cards(search, exit_status));
	search->begun = search->options->search.dry_run;
	TN_FORWARD_IF_ERROR(tn__search_make_trials(&search->options->search, &search->place, &search->trials, &search->line,
	                                           &dry, exit_status));
	if (dry)
		return TN_OK;
	if (search->failure != NULL && search->trials.interrupted_by == 0) {
		*exit_status = search->failure_status;
		return tn__fail(TN_INVALID, "%s", search->failure);
	}
	tn_status status = finish(search, exit_status);
	tn__search_place_say(&search->options->search, &search->trials, exit_status);
	return status;
}

static void
free_search(struct tn_frontier_search *search)
{
	for (int i = 0; i < search->count; i++)
		free_point(search->points[i]);
	for (int i = 0; i < search->target_count; i++) {
		free(search->targets[i].asked);
		free(search->targets[i].known.seen);
		free(search->targets[i].known.need);
		free(search->targets[i].tried);
	}
	free(search->points);
	free(search->doubt);
	free(search);
}

tn_status
tn__frontier(const struct tn_fit_options *options, int *exit_status)
{
	struct tn_frontier_search *search = calloc(1, sizeof(*search));
	*exit_status = TN_EXIT_USAGE;
	TN_RETURN_IF(search == NULL, TN_NO_MEMORY, "out of host memory");
	search->options = options;
	search->trials = tn__search_trials(&options->search, search, next, ended, tick);
	search->line = tn__progress_line_of(&options->search.run);
	tn_status status = run_search(search, exit_status);
	free_search(search);
	return status;
}
