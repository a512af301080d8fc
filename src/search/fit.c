/* SPDX-License-Identifier: Apache-2.0
 *
 * tn_fit: the largest batch that fits, for each card.
 *
 * Two batches on a card that is never full give a line of memory against batch, and so a prediction for every card. Where
 * it lies far from both, the predicted batch is seen on that card, too: small batches often tell nothing, since something
 * else is the peak. The batch that is named then, and the next, are tried on the card itself. Where they do not part, the
 * line is drawn again through what is known by then; after a few rounds the search halves what is left. The answer is
 * always the same: a batch that was seen to fit, and the next that was seen not to.
 */
#include "tonnage/fix.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "gpu/catalogue.h"
#include "search/axes.h"
#include "search/fit_search.h"
#include "supervise/internal.h"

#define LARGEST_BATCH 65536
#define FIRST_BATCH 4    /* with {batch}, when none was asked for */
#define GUESSED_PROBES 6 /* on a card, before halving */
#define MOST_SIGHTINGS 5 /* of predicted batches on the card that is never full */
#define NEAR 1.25        /* a line holds this far from what it was drawn through */
#define FARTHEST 8       /* times the largest batch that is known */
#define FIRST_STRIDE 8   /* part of a batch that fits although it should not: as far as the next is beyond it */

/* ---- points ---- */

/* A trial of a batch; NULL when there is one, or no room for one. */
static struct tn_trial *
try_batch(struct tn_fit_search *search, int card, int batch)
{
	const struct tn_fit_target *target = &search->targets[card == TN_FIT_LARGE ? 0 : card];
	struct tn_fit_trial *point = tn__fit_find(search, card, batch) == NULL && search->count < TN_FIT_TRIALS
	                                 ? calloc(1, sizeof(*point))
	                                 : NULL;
	if (point == NULL)
		return NULL;
	search->points[search->count++] = point;
	point->card = card;
	point->batch = batch;
	point->trial.options = tn__search_trial_options(&target->card, card == TN_FIT_LARGE);
	point->trial.options.no_detail = batch != 0 && !search->detail;
	if (batch == 0) {
		point->trial.changes = TN_CHANGE_SURVEY;
		point->trial.keep_words = true;
	} else if (search->by_word) {
		const struct tn_axis axis = { .name = "batch" };
		point->arguments = tn__axes_arguments(&axis, &batch, 1, target->card.options.arguments);
		point->trial.options.arguments = point->arguments;
		point->trial.keep_words = card == TN_FIT_LARGE;
	} else {
		point->trial.changes = point->changes = tn__search_batch_change(batch);
	}
	return &point->trial;
}

static void
free_point(struct tn_fit_trial *point)
{
	tn__arguments_free(point->arguments);
	free(point->changes);
	tn__trial_clear(&point->trial);
	free(point);
}

/* ---- what is known ---- */

/* The largest batch that should fit, by the line through the two points nearest to the card's room; 0: no line. */
static int
predicted(const struct tn_fit_search *search, const struct tn_fit_target *target)
{
	double room = (double)((int64_t)target->card.total - target->card.hidden);
	const struct tn_fit_trial *near[2] = { NULL, NULL };
	double distance[2] = { INFINITY, INFINITY };
	for (int i = 0; i < search->count; i++) {
		const struct tn_fit_trial *point = search->points[i];
		int64_t device = tn__fit_device_of(search, point, target);
		int batch = tn__fit_batch_of(search, point);
		double away = fabs((double)device - room);
		if (device == TN_NO_FIGURE || batch == 0 ||
		    (near[0] != NULL && tn__fit_batch_of(search, near[0]) == batch && away >= distance[0]) ||
		    (near[1] != NULL && tn__fit_batch_of(search, near[1]) == batch))
			continue;
		if (away < distance[0]) {
			if (near[0] != NULL && tn__fit_batch_of(search, near[0]) != batch) {
				near[1] = near[0];
				distance[1] = distance[0];
			}
			near[0] = point;
			distance[0] = away;
		} else if (away < distance[1]) {
			near[1] = point;
			distance[1] = away;
		}
	}
	if (near[0] == NULL || near[1] == NULL)
		return 0;
	double first = tn__fit_device_of(search, near[0], target), second = tn__fit_device_of(search, near[1], target);
	double slope = (second - first) / (tn__fit_batch_of(search, near[1]) - tn__fit_batch_of(search, near[0]));
	if (slope <= 0)
		return 0;
	double batch = floor(tn__fit_batch_of(search, near[0]) + (room - first) / slope);
	return batch < 1 ? 1 : batch > search->most ? search->most : (int)batch;
}

/* ---- what to try next ---- */

/* Between the bounds, or beyond the one that is known. */
static int
halved(const struct tn_fit_search *search, const struct tn_fit_target *target)
{
	if (target->high == INT_MAX) {
		int64_t stride = (int64_t)(target->low / FIRST_STRIDE + 1) << target->strides;
		return target->low + stride < search->most ? (int)(target->low + stride) : search->most;
	}
	return target->low + (target->high - target->low) / 2;
}

static int
probe(const struct tn_fit_search *search, const struct tn_fit_target *target)
{
	int batch = target->probes < GUESSED_PROBES ? predicted(search, target) : 0;
	if (batch == 0)
		batch = halved(search, target);
	if (batch <= target->low)
		batch = target->low + 1;
	if (batch >= target->high)
		batch = target->high - 1;
	return batch > search->most ? search->most : batch;
}

static struct tn_trial *
next_on_card(struct tn_fit_search *search, int index)
{
	struct tn_fit_target *target = &search->targets[index];
	struct tn_trial *trial;
	if (tn__fit_is_done(search, target))
		return NULL;
	int batch = probe(search, target);
	trial = try_batch(search, index, batch);
	if (trial == NULL && batch + 1 < target->high && batch < search->most) /* the one beside it, at the same time */
		trial = try_batch(search, index, batch + 1);
	if (trial != NULL) {
		target->probes++;
		target->strides += target->high == INT_MAX && target->low > 0;
	}
	return trial;
}

/* The batch that should be seen on the card that is never full, before one is tried on the card: the predicted one, where
 * it is far from all that were seen; 0: none. */
static int
to_be_sighted(const struct tn_fit_search *search, const struct tn_fit_target *target)
{
	int batch = target->sightings < MOST_SIGHTINGS && target->probes == 0 ? predicted(search, target) : 0, largest = 0;
	if (batch == 0)
		return 0;
	for (int i = 0; i < search->count; i++) {
		const struct tn_fit_trial *point = search->points[i];
		int there = point->card == TN_FIT_LARGE ? tn__fit_batch_of(search, point) : 0;
		if (there > 0 && (!point->over || (batch <= there * NEAR && there <= batch * NEAR)))
			return 0;
		if (there > largest)
			largest = there;
	}
	return largest > 0 && batch / FARTHEST > largest ? FARTHEST * largest : batch;
}

static bool
is_sighting(const struct tn_fit_search *search)
{
	for (int i = 0; i < search->count; i++)
		if (search->points[i]->card == TN_FIT_LARGE && !search->points[i]->over)
			return true;
	return false;
}

/* Several cards share what is seen. */
static struct tn_trial *
next_sighting(struct tn_fit_search *search)
{
	for (int i = 0; i < search->target_count; i++) {
		struct tn_fit_target *target = &search->targets[i];
		int batch = to_be_sighted(search, target);
		struct tn_trial *trial = batch > 0 ? try_batch(search, TN_FIT_LARGE, batch) : NULL;
		if (batch > 0)
			target->sightings++;
		if (trial != NULL)
			return trial;
	}
	return NULL;
}

static struct tn_trial *
next_on_large(struct tn_fit_search *search)
{
	struct tn_trial *trial;
	if (search->by_word) {
		int first = search->options->batch > 0 ? search->options->batch : FIRST_BATCH;
		trial = try_batch(search, TN_FIT_LARGE, first);
		return trial != NULL ? trial : try_batch(search, TN_FIT_LARGE, first > 1 ? first / 2 : 2);
	}
	trial = try_batch(search, TN_FIT_LARGE, 0);
	if (trial != NULL || search->own_batch == 0)
		return trial;
	return try_batch(search, TN_FIT_LARGE, search->own_batch > 1 ? search->own_batch / 2 : 2);
}

/* Two were seen on the card that is never full, this one not counted. */
static bool
line_is_known(const struct tn_fit_search *search, const struct tn_fit_trial *without)
{
	int known = 0;
	for (int i = 0; i < search->count; i++)
		known += search->points[i]->card == TN_FIT_LARGE && search->points[i]->over && search->points[i] != without;
	return known >= 2;
}

static struct tn_trial *
next(void *context)
{
	struct tn_fit_search *search = context;
	if (search->failure != NULL)
		return NULL;
	if (!line_is_known(search, NULL))
		return next_on_large(search);
	struct tn_trial *sighting = next_sighting(search);
	if (sighting != NULL || is_sighting(search))
		return sighting;
	for (int i = 0; i < search->target_count; i++) {
		struct tn_trial *trial = next_on_card(search, i);
		if (trial != NULL)
			return trial;
	}
	return NULL;
}

/* ---- what a trial has told ---- */

static void
fail(struct tn_fit_search *search, const char *why, int status)
{
	search->failure = why;
	search->failure_status = status;
}

static void
judge_first(struct tn_fit_search *search, const struct tn_fit_trial *point)
{
	const struct tn_trial *trial = &point->trial;
	const struct tn_report *report = tn__trial_report(trial);
	search->failure = tn__search_failure(trial, &search->line, &search->doubt, &search->failure_status);
	search->detail |= report->growth.seen;
	tn__trials_adapt(&search->trials, report->peak_rss_bytes);
	if (point->batch != 0 || search->failure != NULL)
		return;
	search->own_batch = tn__survey_batch(&trial->outcome.changes.survey, LARGEST_BATCH);
	if (search->own_batch == 0)
		fail(search,
		     "no data loader was seen whose batch could be set: write {batch} into the program's arguments, as in "
		     "-- python train.py --batch-size {batch}",
		     TN_EXIT_USAGE);
}

static void
judge_card(struct tn_fit_search *search, const struct tn_fit_trial *point)
{
	struct tn_fit_target *target = &search->targets[point->card];
	if (point->fits && point->batch > target->low)
		target->low = point->batch;
	if (!point->fits && point->batch < target->high)
		target->high = point->batch;
	tn__progress_line_say(&search->line, "batch %d %s on %s", point->batch, point->fits ? "fits" : "does not fit",
	                      target->asked);
}

static void
ended(void *context, struct tn_trial *trial)
{
	struct tn_fit_search *search = context;
	struct tn_fit_trial *point = NULL;
	for (int i = 0; i < search->count && point == NULL; i++)
		if (&search->points[i]->trial == trial)
			point = search->points[i];
	if (point == NULL)
		return;
	point->over = true;
	point->fits = tn__trial_fits(trial) && tn__trial_report(trial)->steps_seen != 0;
	if (point->changes != NULL && trial->end == TN_TRIAL_DONE && !tn__trial_applied(trial)) {
		fail(search,
		     "the batch of the program's data loader could not be set: write {batch} into the program's arguments",
		     TN_EXIT_USAGE);
		return;
	}
	if (point->card == TN_FIT_LARGE && !line_is_known(search, point))
		judge_first(search, point);
	else if (point->card != TN_FIT_LARGE)
		judge_card(search, point);
}

static void
tick(void *context)
{
	struct tn_fit_search *search = context;
	char words[200];
	tn__progress_line_show(&search->line, "%s", tn__search_progress(&search->trials, 0, words));
}

/* ---- the command ---- */

static tn_status
finish(struct tn_fit_search *search, const struct tn_fits *fits, int *exit_status)
{
	const struct tn_run_options *run = &search->options->search.run;
	bool some = false;
	TN_FORWARD_IF_ERROR(tn__print_document(&tn__fit_document, fits, run));
	TN_FORWARD_IF_ERROR(tn__save_document(&tn__fit_document, fits, run, true));
	for (size_t i = 0; i < fits->card_count; i++)
		some |= fits->cards[i].largest > 0;
	*exit_status = fits->interrupted ? 128 + search->trials.interrupted_by
	               : some            ? TN_EXIT_FITS
	                                 : TN_EXIT_OUT_OF_MEMORY;
	return TN_OK;
}

static tn_status
take_cards(struct tn_fit_search *search, int *exit_status)
{
	struct tn_search_card cards[TN_SEARCH_CARDS];
	char *asked[TN_SEARCH_CARDS] = { NULL };
	tn_status status = tn__search_cards(&search->options->search, cards, asked, &search->target_count, exit_status);
	for (int i = 0; i < search->target_count; i++) {
		cards[i].options.open_oom_decides = true;
		search->targets[i] = (struct tn_fit_target){ .asked = asked[i], .card = cards[i], .high = INT_MAX };
	}
	return status;
}

static tn_status
run_search(struct tn_fit_search *search, int *exit_status)
{
	struct tn_fits fits;
	bool dry;
	TN_FORWARD_IF_ERROR(tn__search_make_trials(&search->options->search, &search->place, &search->trials, &search->line,
	                                           &dry, exit_status));
	if (dry)
		return TN_OK;
	if (search->failure != NULL && search->trials.interrupted_by == 0) {
		*exit_status = search->failure_status;
		return tn__fail(TN_INVALID, "%s", search->failure);
	}
	tn__fit_table(search, &fits);
	tn_status status = finish(search, &fits, exit_status);
	tn__search_place_say(&search->options->search, &search->trials, exit_status);
	tn__fits_free(&fits);
	return status;
}

tn_status
tn_fit(const struct tn_fit_options *options, int *exit_status)
{
	if (options->vary_count > 0)
		return tn__frontier(options, exit_status);
	struct tn_fit_search *search = calloc(1, sizeof(*search));
	*exit_status = TN_EXIT_USAGE;
	TN_RETURN_IF(search == NULL, TN_NO_MEMORY, "out of host memory");
	search->options = options;
	search->most = options->most > 0 ? options->most : LARGEST_BATCH;
	search->by_word = tn__axis_marked("batch", options->search.run.arguments);
	search->trials = tn__search_trials(&options->search, search, next, ended, tick);
	search->line = tn__progress_line_of(&options->search.run);
	tn_status status = take_cards(search, exit_status);
	if (status == TN_OK)
		status = run_search(search, exit_status);
	for (int i = 0; i < search->count; i++)
		free_point(search->points[i]);
	for (int i = 0; i < search->target_count; i++)
		free(search->targets[i].asked);
	free(search->doubt);
	free(search);
	return status;
}
