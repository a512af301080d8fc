/* SPDX-License-Identifier: Apache-2.0
 *
 * The trials of an attempt: on which card, how far, and with what.
 */
#include <string.h>

#include "search/fix_search.h"

#define EARLY_STEP 4
#define MORE_STEPS 3

static void
count_first(struct tn_fix_search *search, struct tn_attempt *attempt)
{
	if (attempt->found.trial == 0)
		attempt->found.trial = ++search->tried;
}

/* Options of the program's own are set on its command line, as a person would. */
static void
set_arguments(const struct tn_fix_search *search, struct tn_attempt *attempt, struct tn_trial *trial)
{
	bool any = false;
	trial->command = search->command;
	for (size_t i = 0; i < attempt->found.part_count; i++)
		any |= tn__change_is_option(attempt->found.parts[i]);
	if (!any)
		return;
	if (attempt->commands.arguments == NULL)
		tn__search_commands_make(&search->card.options, attempt->found.changes, &attempt->commands);
	tn__search_commands_set(&attempt->commands, &trial->options);
}

/* It ends by itself before it is ended from outside: what it has shown by then counts. And it goes as far as the unchanged
 * program, where that was ended since nothing new came. */
static void
limit_length(const struct tn_fix_search *search, struct tn_trial *trial)
{
	trial->late_news = search->survey.end == TN_TRIAL_RUNS ? search->late_news : NULL;
	tn__fix_take_news(search, trial);
	double given = tn__limit_seconds(&trial->options);
	if (search->trial_seconds > 0 && search->trial_seconds < given)
		trial->options.seconds = search->trial_seconds;
}

struct tn_trial *
tn__fix_start_on_card(struct tn_fix_search *search, struct tn_attempt *attempt)
{
	struct tn_trial *trial = &attempt->card;
	trial->options = search->card.options;
	limit_length(search, trial);
	trial->options.no_detail = !tn__fix_grows(search) && !attempt->fresh;
	trial->options.other_bytes += (uint64_t)search->card.hidden;
	if (attempt->without_others)
		trial->options.other_bytes -= search->card.options.other_bytes;
	trial->changes = attempt->without_others ? NULL : attempt->found.changes;
	trial->fresh = attempt->fresh;
	set_arguments(search, attempt, trial);
	count_first(search, attempt);
	attempt->stage = TN_STAGE_ON_CARD;
	return trial;
}

struct tn_trial *
tn__fix_start_with_less(struct tn_fix_search *search, struct tn_attempt *attempt)
{
	struct tn_trial *trial = &attempt->less;
	trial->options = search->card.options;
	limit_length(search, trial);
	trial->options.no_detail = true;
	trial->options.other_bytes += (uint64_t)attempt->found.uncertain;
	trial->changes = attempt->found.changes;
	set_arguments(search, attempt, trial);
	attempt->stage = TN_STAGE_WITH_LESS;
	return trial;
}

bool
tn__fix_seeks_sequels(const struct tn_fix_search *search, const struct tn_attempt *attempt)
{
	return attempt->stage == TN_STAGE_TOO_SMALL && attempt->found.part_count == 1 &&
	       attempt->found.results != TN_GUARANTEE_DIFFERENT &&
	       tn__fix_fitting(search, TN_GUARANTEE_ROUNDING, true) == 0;
}

/* The card was too small in an early step: what that takes is seen in a few more; the card has said that it is not enough. */
static void
limit_steps(const struct tn_fix_search *search, struct tn_attempt *attempt, struct tn_run_options *options)
{
	const struct tn_report_oom *oom = &tn__trial_report(&attempt->card)->oom;
	const char *phase = oom->phase;
	const struct tn_report_moment *peak = &tn__trial_report(&search->unchanged_large)->at_peak;
	if (attempt->stage != TN_STAGE_TOO_SMALL || !tn__fix_is_of_training(phase) || oom->step <= 0 ||
	    oom->step > EARLY_STEP || strcmp(options->steps, "auto") != 0 || options->then_count > 0 ||
	    options->request_count > 0)
		return;
	/* The trial sees what the unchanged program has its peak in. Steps do not tell when an evaluation behind them comes, nor in a round
	 * of epochs that were shortened, behind the steps in which memory settled. */
	if ((peak->phase != NULL && !tn__fix_is_of_training(peak->phase)) || tn__fix_peaks_behind_settling(search))
		return;
	snprintf(attempt->steps, sizeof(attempt->steps), "%d",
	         (int)(peak->step > oom->step ? peak->step : oom->step) + MORE_STEPS);
	options->steps = attempt->steps;
}

struct tn_trial *
tn__fix_start_on_large(struct tn_fix_search *search, struct tn_attempt *attempt)
{
	struct tn_trial *trial = &attempt->large;
	trial->options = search->card.options;
	limit_steps(search, attempt, &trial->options);
	limit_length(search, trial);
	trial->options.no_detail = !tn__fix_seeks_sequels(search, attempt) && !attempt->fresh;
	trial->options.memory_bytes = TN_UNLIMITED_CARD;
	trial->options.host_memory_bytes = 0;
	trial->changes = attempt->found.changes;
	trial->fresh = attempt->fresh;
	set_arguments(search, attempt, trial);
	count_first(search, attempt);
	attempt->stage = TN_STAGE_ON_LARGE;
	return trial;
}

struct tn_trial *
tn__fix_start_patched(struct tn_fix_search *search, struct tn_attempt *attempt)
{
	struct tn_trial *trial = &attempt->patched;
	trial->options = search->card.options;
	limit_length(search, trial);
	trial->options.no_detail = true;
	trial->options.other_bytes += (uint64_t)search->card.hidden;
	trial->patch = attempt->found.patch;
	trial->fresh = attempt->fresh;
	set_arguments(search, attempt, trial);
	return trial;
}
