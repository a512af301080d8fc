/* SPDX-License-Identifier: Apache-2.0
 *
 * What the trials of `fit --vary` have shown, and the table of it.
 */
#include <stdlib.h>
#include <string.h>

#include "search/frontier_search.h"
#include "supervise/internal.h"

/* ---- what is known ---- */

int
tn__frontier_along(const struct tn_frontier_search *search, int axis, int index)
{
	int stride = axis == 0 ? 1 : search->grid.columns;
	for (int i = 1; i < axis; i++)
		stride *= search->axes[i].count;
	return index * stride;
}

bool
tn__frontier_seen(const struct tn_frontier_search *search, int at)
{
	for (int i = 0; i < search->count; i++)
		if (search->points[i]->card == TN_FIT_LARGE && search->points[i]->at == at)
			return true;
	return false;
}

int64_t
tn__frontier_need(const struct tn_frontier_search *search, int at)
{
	return search->targets[0].known.need[at];
}

/* By the largest three values of which the need is known, where the other axes have what this point has. */
static double
power_from(const struct tn_frontier_search *search, int index, int point, int64_t *most)
{
	const struct tn_axis *axis = &search->axes[index];
	int values[3], count = 0, stride = tn__frontier_along(search, index, 1);
	int64_t needs[3];
	for (int i = axis->count - 1; i >= 0 && count < 3; i--) {
		int64_t need = tn__frontier_need(search, point + i * stride);
		if (need == TN_NO_FIGURE)
			continue;
		count++;
		values[3 - count] = axis->values[i];
		needs[3 - count] = need;
	}
	if (count < 3)
		return 0;
	*most = needs[2];
	return tn__grid_power(values, needs);
}

double
tn__frontier_power(const struct tn_frontier_search *search, int index)
{
	int64_t most = 0, there;
	double power = 0;
	for (int point = 0; point < search->size; point++) {
		if (point / tn__frontier_along(search, index, 1) % search->axes[index].count != 0)
			continue;
		double found = power_from(search, index, point, &there);
		if (found > 0 && there > most) {
			most = there;
			power = found;
		}
	}
	return power;
}

/* ---- the table ---- */

/* The batch that --batch asks for, where it is the batch that was searched; else 0. */
static int
wanted_batch(const struct tn_frontier_search *search)
{
	return strcmp(search->axes[0].name, "batch") == 0 ? search->options->batch : 0;
}

static void
fill_row(const struct tn_frontier_search *search, const struct tn_frontier_target *target, int index,
         struct tn_frontier_row *row)
{
	int low, high, columns = search->grid.columns;
	tn__grid_bounds(&search->grid, &target->known, index, &low, &high);
	*row = (struct tn_frontier_row){ .largest = -1, .device_peak = TN_NO_FIGURE, .margin = TN_NO_FIGURE };
	if (high - low > 1)
		return;
	row->largest = low >= 0 ? search->axes[0].values[low] : 0;
	row->unbounded = low == columns - 1;
	row->failed = low < 0 && target->known.seen[index * columns] == TN_GRID_FAILED;
	const struct tn_frontier_trial *point = low >= 0 ? target->tried[index * columns + low] : NULL;
	if (point != NULL) {
		row->device_peak = tn__trial_report(&point->trial)->device_peak - target->card.hidden;
		row->margin = (int64_t)target->card.total - row->device_peak;
		row->uncertain = tn__trial_uncertain(&point->trial);
	}
	tn__search_plan(wanted_batch(search), row->largest, &row->micro_batch, &row->steps);
}

static void
fill_point(const struct tn_frontier_search *search, const struct tn_frontier_target *target, int at,
           struct tn_frontier_point *out)
{
	static const enum tn_frontier_outcome outcomes[] = { [TN_GRID_UNKNOWN] = TN_POINT_UNKNOWN,
		                                                 [TN_GRID_RUNS] = TN_POINT_UNKNOWN,
		                                                 [TN_GRID_FITS] = TN_POINT_FITS,
		                                                 [TN_GRID_OUT_OF_MEMORY] = TN_POINT_OUT_OF_MEMORY,
		                                                 [TN_GRID_FAILED] = TN_POINT_FAILED };
	int low, high, column = at % search->grid.columns;
	const struct tn_frontier_trial *point = target->tried[at];
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
		                   : strdup(report->exception != NULL            ? report->exception
		                            : point->trial.outcome.error != NULL ? point->trial.outcome.error
		                                                                 : "the trial failed");
}

static bool
fill_card(const struct tn_frontier_search *search, const struct tn_frontier_target *target,
          struct tn_frontier_card *out)
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
fill_axis(const struct tn_frontier_search *search, int index, struct tn_frontier_axis *out)
{
	const struct tn_axis *axis = &search->axes[index];
	*out = (struct tn_frontier_axis){ .name = strdup(axis->name),
		                              .values = malloc((size_t)axis->count * sizeof(int)),
		                              .value_count = (size_t)axis->count,
		                              .power = tn__frontier_power(search, index) };
	if (out->values != NULL)
		memcpy(out->values, axis->values, (size_t)axis->count * sizeof(int));
	else
		out->value_count = 0;
}

bool
tn__frontier_table(const struct tn_frontier_search *search, struct tn_frontier *out)
{
	*out = (struct tn_frontier){ .rows = search->grid.rows,
		                         .batch = wanted_batch(search),
		                         .interrupted = search->trials.interrupted_by != 0,
		                         .command = tn__program_quote(search->options->search.run.arguments),
		                         .forked = search->trials.forked,
		                         .not_forked = tn__trials_not_forked(&search->trials),
		                         .trials = search->trials.count + search->trials.reused,
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
