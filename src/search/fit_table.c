/* SPDX-License-Identifier: Apache-2.0
 *
 * What trials of batches have shown, and the table of it: for each card the largest batch, its curve and an accumulation plan.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/catalogue.h"
#include "search/fit_search.h"
#include "supervise/internal.h"

/* ---- what is known ---- */

struct tn_fit_trial *
tn__fit_find(struct tn_fit_search *search, int card, int batch)
{
	for (int i = 0; i < search->count; i++)
		if (search->points[i]->card == card && search->points[i]->batch == batch)
			return search->points[i];
	return NULL;
}

int
tn__fit_batch_of(const struct tn_fit_search *search, const struct tn_fit_trial *point)
{
	return point->batch != 0 ? point->batch : search->own_batch;
}

int64_t
tn__fit_device_of(const struct tn_fit_search *search, const struct tn_fit_trial *point,
                  const struct tn_fit_target *target)
{
	int64_t device = tn__trial_report(&point->trial)->device_peak;
	if (!point->over || !point->fits || device == TN_NO_FIGURE)
		return TN_NO_FIGURE;
	const struct tn_fit_target *there = &search->targets[point->card == TN_FIT_LARGE ? 0 : point->card];
	int64_t hidden = point->card == TN_FIT_LARGE ? 0 : there->card.hidden;
	return device - hidden - (int64_t)there->card.figures.context_bytes + (int64_t)target->card.figures.context_bytes;
}

bool
tn__fit_is_done(const struct tn_fit_search *search, const struct tn_fit_target *target)
{
	return target->low >= search->most || target->high == 1 ||
	       (target->high != INT_MAX && target->high - target->low <= 1);
}

/* ---- the table ---- */

static int
by_batch(const void *one, const void *two)
{
	const struct tn_fit_point *a = one, *b = two;
	return a->batch - b->batch;
}

/* A trial on the card counts before one on the unlimited card. */
static void
add_to_curve(const struct tn_fit_search *search, const struct tn_fit_target *target, const struct tn_fit_trial *point,
             struct tn_fit_card *out)
{
	int batch = tn__fit_batch_of(search, point);
	int64_t device = tn__fit_device_of(search, point, target);
	const struct tn_report *report = tn__trial_report(&point->trial);
	bool tried = point->card != TN_FIT_LARGE;
	if (batch == 0 || !point->over)
		return;
	for (size_t i = 0; i < out->curve_count; i++)
		if (out->curve[i].batch == batch) {
			if (out->curve[i].device_peak == TN_NO_FIGURE && device != TN_NO_FIGURE) {
				out->curve[i].device_peak = device; /* all of what did not fit was seen on the unlimited card */
				out->curve[i].reserved_peak = report->reserved_peak;
			}
			return;
		}
	bool room = device != TN_NO_FIGURE && device + target->card.hidden <= (int64_t)target->card.total;
	bool undecided = !point->fits && report->verdict == TN_VERDICT_UNDECIDED;
	bool failed = !point->fits && report->verdict == TN_VERDICT_FAILED;
	out->curve[out->curve_count++] = (struct tn_fit_point){
		.batch = batch,
		.device_peak = device,
		.tried = tried,
		.fits = tried ? point->fits : room,
		.reserved_peak = point->fits ? report->reserved_peak : TN_NO_FIGURE,
		.undecided = undecided,
		.why_not = undecided ? tn__trial_doubt(&point->trial)
		           : failed  ? strdup(report->exception != NULL ? report->exception : "the trial failed")
		                     : NULL
	};
}

static void
fill_curve(struct tn_fit_search *search, int index, struct tn_fit_card *out)
{
	out->curve = calloc((size_t)search->count + 1, sizeof(*out->curve));
	for (int tried = 1; tried >= 0 && out->curve != NULL; tried--)
		for (int i = 0; i < search->count; i++)
			if (search->points[i]->card == (tried ? index : TN_FIT_LARGE))
				add_to_curve(search, &search->targets[index], search->points[i], out);
	if (out->curve != NULL)
		qsort(out->curve, out->curve_count, sizeof(*out->curve), by_batch);
}

static void
fill_card(struct tn_fit_search *search, int index, int batch, struct tn_fit_card *out)
{
	const struct tn_fit_target *target = &search->targets[index];
	const struct tn_fit_trial *best = target->low > 0 ? tn__fit_find(search, index, target->low) : NULL;
	bool known = tn__fit_is_done(search, target);
	*out = (struct tn_fit_card){ .gpu = target->card.figures,
		                         .gpus = target->card.options.gpus,
		                         .asked = strdup(target->asked),
		                         .margin_wanted = target->card.hidden,
		                         .largest = known ? target->low : -1,
		                         .unbounded = target->low >= search->most,
		                         .reserved_peak = TN_NO_FIGURE,
		                         .device_peak = TN_NO_FIGURE,
		                         .margin = TN_NO_FIGURE };
	if (best != NULL) {
		out->reserved_peak = tn__trial_report(&best->trial)->reserved_peak;
		out->device_peak = tn__trial_report(&best->trial)->device_peak - target->card.hidden;
		out->margin = (int64_t)target->card.total - out->device_peak;
		out->uncertain = tn__trial_uncertain(&best->trial);
	}
	fill_curve(search, index, out);
	tn__search_plan(batch, out->largest, &out->micro_batch, &out->steps);
}

/* The card with the least memory that holds a batch with the margin that was asked for. */
static const char *
smallest_for(struct tn_fit_search *search, int batch)
{
	const struct tn_fit_trial *point = tn__fit_find(search, TN_FIT_LARGE, search->by_word ? batch : 0);
	const struct tn_fit_target *target = &search->targets[0];
	int64_t device = point != NULL ? tn__fit_device_of(search, point, target) : TN_NO_FIGURE;
	const struct tn_gpu_row *best = NULL;
	for (int i = 0; i < tn__gpu_count() && device != TN_NO_FIGURE; i++) {
		const struct tn_gpu_row *row = tn__gpu_row(i);
		double room = (double)row->figures.total_bytes * (1.0 - search->options->search.margin);
		int64_t context = (int64_t)row->figures.context_bytes - (int64_t)target->card.figures.context_bytes;
		double need = (double)(device + context);
		if (need <= room && (best == NULL || row->figures.total_bytes < best->figures.total_bytes))
			best = row;
	}
	return best != NULL ? best->figures.alias : NULL;
}

void
tn__fit_table(struct tn_fit_search *search, struct tn_fits *out)
{
	int batch = search->options->batch > 0 ? search->options->batch : search->own_batch;
	*out = (struct tn_fits){ .batch = batch,
		                     .interrupted = search->trials.interrupted_by != 0,
		                     .by_word = search->by_word,
		                     .trials = search->trials.count + search->trials.reused,
		                     .forked = search->trials.forked,
		                     .not_forked = tn__trials_not_forked(&search->trials),
		                     .seconds = tn__trials_seconds(&search->trials) };
	if (batch > 0 && (search->by_word || batch == search->own_batch))
		out->smallest_gpu = smallest_for(search, batch);
	out->command = tn__program_quote(search->options->search.run.arguments);
	out->cards = calloc((size_t)search->target_count, sizeof(*out->cards));
	for (int i = 0; i < search->target_count && out->cards != NULL; i++)
		fill_card(search, i, batch, &out->cards[out->card_count++]);
	for (int i = 0; i < search->count; i++)
		out->out_of_memory += tn__trial_report(&search->points[i]->trial)->verdict == TN_VERDICT_OUT_OF_MEMORY;
}
