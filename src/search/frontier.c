/* SPDX-License-Identifier: Apache-2.0
 *
 * `fit --vary`: which combinations of values fit, for each card. The first trial is the program with the least values on a card
 * that is never full; three more for each axis show how memory grows. Then grid.c chooses what is tried on the cards. What one
 * card tells of the need of a combination serves the guesses for the others; that it fits is always seen on the card.
 */
#include "search/fit_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/document.h"
#include "report/frontier.h"
#include "search/grid.h"
#include "search/search.h"
#include "supervise/internal.h"
#include "trials/trial.h"

struct point {
	int card, at;
	bool over;
	char *changes;
	char **arguments;
	struct tn_trial trial;
};

struct target {
	struct tn_search_card card;
	char *asked;
	struct tn_grid_card known;
	struct point **tried; /* an item a combination, NULL where it was not tried */
};

struct search {
	const struct tn_fit_options *options;
	struct tn_trials trials;
	struct tn_progress_line line;
	struct tn_axis axes[TN_AXES];
	int axis_count;
	bool by_loader; /* the first axis is the batch, which the arguments have no place for */
	struct tn_grid grid;
	int size; /* combinations */
	struct target targets[TN_SEARCH_CARDS];
	int target_count;
	struct point **points;
	int count, room;
	bool begun;    /* the first trial is over, and good */
	bool modelled; /* the card that is never full has told all that is asked of it */
	const char *failure;
	char *doubt;
	int failure_status;
};

/* ---- trials ---- */

static struct tn_trial *
try_point(struct search *search, int card, int at)
{
	const struct target *target = &search->targets[card == TN_FIT_LARGE ? 0 : card];
	struct point *point = search->count < search->room ? calloc(1, sizeof(*point)) : NULL;
	int values[TN_AXES];
	if (point == NULL)
		return NULL;
	search->points[search->count++] = point;
	*point = (struct point){ .card = card, .at = at };
	tn__grid_values(&search->grid, at, values);
	point->arguments = tn__axes_arguments(search->axes, values, search->axis_count, target->card.options.arguments);
	point->trial.options = target->card.options;
	point->trial.options.no_detail = true;
	if (point->arguments != NULL)
		point->trial.options.arguments = point->arguments;
	if (search->by_loader) {
		char value[16];
		snprintf(value, sizeof(value), "%d", values[0]);
		point->trial.changes = point->changes = tn__change_part("batch", value);
	}
	if (card == TN_FIT_LARGE)
		point->trial.options.memory_bytes = TN_UNLIMITED_CARD;
	else
		point->trial.options.other_bytes += (uint64_t)target->card.hidden;
	point->trial.keep_words = search->count == 1;
	return &point->trial;
}

static void
free_point(struct point *point)
{
	tn__arguments_free(point->arguments);
	free(point->changes);
	tn__trial_clear(&point->trial);
	free(point);
}

/* The combination that has the least values but for one axis, of which it has the value `index`. */
static int
along(const struct search *search, int axis, int index)
{
	int stride = axis == 0 ? 1 : search->grid.columns;
	for (int i = 1; i < axis; i++)
		stride *= search->axes[i].count;
	return index * stride;
}

static const struct point *
seen_large(const struct search *search, int at)
{
	for (int i = 0; i < search->count; i++)
		if (search->points[i]->card == TN_FIT_LARGE && search->points[i]->at == at)
			return search->points[i];
	return NULL;
}

static int
last_three(const struct tn_axis *axis)
{
	return axis->count > 3 ? axis->count - 3 : 0;
}

/* The least values of all, and the last three of each axis, where growth shows best. */
static struct tn_trial *
next_on_large(struct search *search)
{
	if (search->count == 0)
		return try_point(search, TN_FIT_LARGE, 0);
	if (!search->begun)
		return NULL;
	for (int axis = 0; axis < search->axis_count; axis++)
		for (int i = last_three(&search->axes[axis]); i < search->axes[axis].count; i++)
			if (seen_large(search, along(search, axis, i)) == NULL)
				return try_point(search, TN_FIT_LARGE, along(search, axis, i));
	return NULL;
}

/* What a combination needs beside the context, as the card that is never full has told. */
static int64_t
need_of(const struct search *search, int at)
{
	const struct point *point = seen_large(search, at);
	int64_t device = point != NULL && tn__trial_fits(&point->trial) ? tn__trial_report(&point->trial)->device_peak
	                                                                : TN_NO_FIGURE;
	return device != TN_NO_FIGURE ? device - (int64_t)search->targets[0].card.figures.context_bytes : TN_NO_FIGURE;
}

static double
power_of(const struct search *search, int index)
{
	const struct tn_axis *axis = &search->axes[index];
	int values[3];
	int64_t needs[3];
	if (axis->count < 3)
		return 0;
	for (int i = 0; i < 3; i++) {
		values[i] = axis->values[axis->count - 3 + i];
		needs[i] = need_of(search, along(search, index, axis->count - 3 + i));
	}
	return tn__grid_power(values, needs);
}

/* False while a trial on the card that is never full runs. */
static bool
set_model(struct search *search)
{
	int64_t last[TN_AXES];
	double powers[TN_AXES];
	for (int i = 0; i < search->count; i++)
		if (search->points[i]->card == TN_FIT_LARGE && !search->points[i]->over)
			return false;
	for (int i = 0; i < search->axis_count; i++) {
		last[i] = need_of(search, along(search, i, search->axes[i].count - 1));
		powers[i] = power_of(search, i);
	}
	tn__grid_set_model(&search->grid, need_of(search, 0), last, powers);
	return true;
}

static struct tn_trial *
next(void *context)
{
	struct search *search = context;
	if (search->failure != NULL)
		return NULL;
	struct tn_trial *trial = next_on_large(search);
	if (trial == NULL && search->begun && !search->modelled && !(search->modelled = set_model(search)))
		return NULL;
	for (int i = 0; i < search->target_count && trial == NULL && search->begun; i++) {
		int at = tn__grid_next(&search->grid, &search->targets[i].known);
		trial = at >= 0 ? try_point(search, i, at) : NULL;
		if (trial != NULL) {
			search->targets[i].known.seen[at] = TN_GRID_RUNS;
			search->targets[i].tried[at] = search->points[search->count - 1];
		}
	}
	return trial;
}

/* ---- what a trial has told ---- */

/* What a card would need for a trial that was seen whole on another. */
static void
take_need(struct search *search, const struct point *point)
{
	int64_t device = tn__trial_report(&point->trial)->device_peak;
	const struct target *there = &search->targets[point->card == TN_FIT_LARGE ? 0 : point->card];
	if (device == TN_NO_FIGURE)
		return;
	device -= (int64_t)there->card.figures.context_bytes + (point->card == TN_FIT_LARGE ? 0 : there->card.hidden);
	for (int i = 0; i < search->target_count; i++)
		search->targets[i].known.need[point->at] = device + (int64_t)search->targets[i].card.figures.context_bytes;
}

static void
judge_first(struct search *search, const struct point *point)
{
	const struct tn_change_results *results = &point->trial.outcome.changes;
	bool applied = !search->by_loader;
	search->failure = tn__search_failure(&point->trial, &search->line, &search->doubt, &search->failure_status);
	for (size_t i = 0; i < results->count; i++)
		for (size_t j = 0; j < results->processes[i].count; j++)
			applied |= results->processes[i].items[j].applied;
	if (search->failure == NULL && !applied) {
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
	struct search *search = context;
	struct point *point = NULL;
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

static void
tick(void *context)
{
	struct search *search = context;
	tn__progress_line_show(&search->line, "trial %d of at most %d, %.0f s", search->trials.count, search->room,
	                       tn__trials_seconds(&search->trials));
}

/* ---- the table ---- */

static void
fill_plan(int batch, struct tn_frontier_row *row)
{
	if (batch == 0 || row->largest <= 0)
		return;
	row->micro_batch = batch < row->largest ? batch : row->largest;
	while (batch % row->micro_batch != 0)
		row->micro_batch--;
	row->steps = batch / row->micro_batch;
}

static void
fill_row(const struct search *search, const struct target *target, int index, struct tn_frontier_row *row)
{
	int low, high, columns = search->grid.columns;
	tn__grid_bounds(&search->grid, &target->known, index, &low, &high);
	*row = (struct tn_frontier_row){ .largest = -1, .device_peak = TN_NO_FIGURE, .margin = TN_NO_FIGURE };
	if (high - low > 1)
		return;
	row->largest = low >= 0 ? search->axes[0].values[low] : 0;
	row->unbounded = low == columns - 1;
	row->failed = low < 0 && target->known.seen[index * columns] == TN_GRID_FAILED;
	const struct point *point = low >= 0 ? target->tried[index * columns + low] : NULL;
	if (point != NULL) {
		row->device_peak = tn__trial_report(&point->trial)->device_peak - target->card.hidden;
		row->margin = (int64_t)target->card.total - row->device_peak;
		row->uncertain = tn__trial_uncertain(&point->trial);
	}
	fill_plan(search->options->batch, row);
}

static void
fill_point(const struct search *search, const struct target *target, int at, struct tn_frontier_point *out)
{
	static const enum tn_frontier_outcome outcomes[] = { [TN_GRID_UNKNOWN] = TN_POINT_UNKNOWN,
		                                                 [TN_GRID_RUNS] = TN_POINT_UNKNOWN,
		                                                 [TN_GRID_FITS] = TN_POINT_FITS,
		                                                 [TN_GRID_OUT_OF_MEMORY] = TN_POINT_OUT_OF_MEMORY,
		                                                 [TN_GRID_FAILED] = TN_POINT_FAILED };
	int low, high, column = at % search->grid.columns;
	const struct point *point = target->tried[at];
	*out = (struct tn_frontier_point){ .outcome = outcomes[target->known.seen[at]], .device_peak = TN_NO_FIGURE };
	if (out->outcome == TN_POINT_UNKNOWN) {
		tn__grid_bounds(&search->grid, &target->known, at / search->grid.columns, &low, &high);
		out->outcome = column <= low ? TN_POINT_FITS : column < high ? TN_POINT_UNKNOWN : TN_POINT_OUT_OF_MEMORY;
		if (column >= high && high < search->grid.columns && target->known.seen[at - column + high] == TN_GRID_FAILED)
			out->outcome = TN_POINT_FAILED;
		return;
	}
	const struct tn_report *report = tn__trial_report(&point->trial);
	out->tried = true;
	if (out->outcome == TN_POINT_FITS)
		out->device_peak = report->device_peak - target->card.hidden;
	else if (out->outcome == TN_POINT_FAILED)
		out->why_not = report->verdict == TN_VERDICT_UNDECIDED
		                   ? tn__trial_doubt(&point->trial)
		                   : strdup(report->exception != NULL ? report->exception : "the trial failed");
}

static bool
fill_card(const struct search *search, const struct target *target, struct tn_frontier_card *out)
{
	*out = (struct tn_frontier_card){ .gpu = target->card.figures,
		                              .asked = strdup(target->asked),
		                              .margin_wanted = target->card.hidden,
		                              .rows = calloc((size_t)search->grid.rows, sizeof(*out->rows)),
		                              .points = calloc((size_t)search->size, sizeof(*out->points)) };
	if (out->rows == NULL || out->points == NULL)
		return false;
	for (int i = 0; i < search->grid.rows; i++)
		fill_row(search, target, i, &out->rows[i]);
	for (int i = 0; i < search->size; i++)
		fill_point(search, target, i, &out->points[i]);
	return true;
}

static void
fill_axis(const struct search *search, int index, struct tn_frontier_axis *out)
{
	const struct tn_axis *axis = &search->axes[index];
	*out = (struct tn_frontier_axis){ .name = strdup(axis->name),
		                              .values = malloc((size_t)axis->count * sizeof(int)),
		                              .value_count = (size_t)axis->count,
		                              .power = power_of(search, index) };
	if (out->values != NULL)
		memcpy(out->values, axis->values, (size_t)axis->count * sizeof(int));
	else
		out->value_count = 0;
}

static bool
fill(const struct search *search, struct tn_frontier *out)
{
	*out = (struct tn_frontier){ .rows = search->grid.rows,
		                         .batch = strcmp(search->axes[0].name, "batch") == 0 ? search->options->batch : 0,
		                         .interrupted = search->trials.interrupted_by != 0,
		                         .command = tn__program_quote(search->options->search.run.arguments),
		                         .forked = search->trials.forked,
		                         .not_forked = tn__trials_not_forked(&search->trials),
		                         .trials = search->trials.count,
		                         .seconds = tn__trials_seconds(&search->trials),
		                         .axes = calloc((size_t)search->axis_count, sizeof(*out->axes)),
		                         .cards = calloc((size_t)search->target_count, sizeof(*out->cards)) };
	bool good = out->axes != NULL && out->cards != NULL;
	for (int i = 0; good && i < search->axis_count; i++) {
		fill_axis(search, i, &out->axes[out->axis_count++]);
		good = out->axes[i].value_count > 0;
	}
	for (int i = 0; good && i < search->target_count; i++)
		good = fill_card(search, &search->targets[i], &out->cards[out->card_count++]);
	return good;
}

static tn_status
finish(const struct search *search, int *exit_status)
{
	const struct tn_run_options *run = &search->options->search.run;
	struct tn_frontier frontier;
	bool some = false;
	tn_status status = fill(search, &frontier) ? TN_OK : tn__fail(TN_NO_MEMORY, "out of host memory");
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
take_axes(struct search *search)
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
take_cards(struct search *search, int *exit_status)
{
	struct tn_search_card cards[TN_SEARCH_CARDS];
	char *asked[TN_SEARCH_CARDS] = { NULL };
	tn_status status = tn__search_cards(&search->options->search, cards, asked, &search->target_count, exit_status);
	bool good = true;
	for (int i = 0; i < search->target_count; i++) {
		struct target *target = &search->targets[i];
		size_t size = (size_t)search->size;
		*target = (struct target){ .asked = asked[i], .card = cards[i] };
		target->known = (struct tn_grid_card){ .seen = calloc(size, 1),
			                                   .need = calloc(size, sizeof(int64_t)),
			                                   .room = (int64_t)cards[i].total - cards[i].hidden,
			                                   .context = (int64_t)cards[i].figures.context_bytes };
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
run_search(struct search *search, int *exit_status)
{
	TN_FORWARD_IF_ERROR(take_axes(search));
	TN_FORWARD_IF_ERROR(take_cards(search, exit_status));
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_FORWARD_IF_ERROR(tn__trials_open(&search->trials));
	tn_status status = tn__trials_run(&search->trials);
	tn__progress_line_erase(&search->line);
	tn__trials_close(&search->trials);
	TN_FORWARD_IF_ERROR(status);
	if (search->failure != NULL && search->trials.interrupted_by == 0) {
		*exit_status = search->failure_status;
		return tn__fail(TN_INVALID, "%s", search->failure);
	}
	return finish(search, exit_status);
}

static void
free_search(struct search *search)
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
	struct search *search = calloc(1, sizeof(*search));
	*exit_status = TN_EXIT_USAGE;
	TN_RETURN_IF(search == NULL, TN_NO_MEMORY, "out of host memory");
	search->options = options;
	search->trials = (struct tn_trials){ .wanted_jobs = options->search.jobs,
		                                 .context = search,
		                                 .next = next,
		                                 .ended = ended,
		                                 .tick = tick,
		                                 .forks = !options->search.fresh };
	search->line = tn__progress_line_of(&options->search.run);
	tn_status status = run_search(search, exit_status);
	free_search(search);
	return status;
}
