/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for changes that make a program fit.
 *
 * First the program as it is, on the card and on one that is never full: this tells what is missing and why. Then every
 * change that the program can take, in the order of promise; then pairs and triples of those that saved something. A
 * change is first tried on the unlimited card, where what it saves is seen whole; one that should fit is tried again
 * on the card itself. Where the peak there tells nothing (memory that grows, a limit that the program sets itself) only
 * the card itself is asked. The first changes are tried while the program on the card that is never full still runs, by what
 * it says early.
 */
#include <string.h>

#include "search/fix_search.h"
#include "supervise/internal.h"
#include "verdict/judge.h"

#define MOST_PAIRS 8
#define MOST_TRIPLES 4
#define MOST_SEQUELS 3
#define MOST_OF_IT (2 / 3.0) /* two that shrink the same moment often save more together than each by itself */
#define MOST_SPARE_PAIRS 3   /* when single changes fit already */

/* ---- the program as it is ---- */

static void
judge_unchanged_card(struct tn_fix_search *search)
{
	struct tn_trial *trial = &search->unchanged_card;
	const struct tn_outcome *outcome = &trial->outcome;
	enum tn_verdict verdict = tn__trial_report(trial)->verdict;
	if (trial->end != TN_TRIAL_DONE) {
		search->over = true;
		search->failure = outcome->error != NULL ? outcome->error
		                                         : "the unchanged program took too much of the computer's own memory";
		search->failure_status = outcome->exit_status != 0 ? outcome->exit_status : TN_EXIT_OWN_FAILURE;
	} else if (verdict == TN_VERDICT_FAILED || verdict == TN_VERDICT_FITS || verdict == TN_VERDICT_UNDECIDED) {
		search->over = true;
	}
	search->command = outcome->command;
	search->trials.over = search->over;
	if (search->over)
		tn__trials_stop(&search->trials, &search->survey);
}

static bool
is_unchanged_seen(const struct tn_fix_search *search)
{
	return search->unchanged_card.end > TN_TRIAL_RUNS && search->unchanged_large.end > TN_TRIAL_RUNS;
}

/* By how long the unchanged program took: not before it has ended. */
static void
limit_seconds(struct tn_fix_search *search)
{
	if (search->survey.end == TN_TRIAL_RUNS)
		return;
	double large = search->unchanged_large.seconds, card = search->unchanged_card.seconds;
	double longest = large > card ? large : card;
	search->trials.limit_seconds = 4 * longest + 30;
	search->trial_seconds = 3 * longest + 15;
}

static void
judge_unchanged(struct tn_fix_search *search)
{
	if (search->command > 1 && search->then_words.words == NULL &&
	    tn__command_words(search->card.options.then[search->command - 2], &search->then_words) == TN_OK)
		search->words = search->then_words.words;
	const struct tn_trial *large = &search->unchanged_large;
	const struct tn_report *card = tn__trial_report(&search->unchanged_card);
	search->need = search->missing = TN_NO_FIGURE;
	search->host = card->verdict == TN_VERDICT_OVER_HOST_MEMORY;
	if (search->host) {
		search->need = card->host.peak;
		search->missing = card->host.over;
	} else if (tn__trial_fits(large) && !tn__fix_grows(search)) /* what grows would take more with every step */
		search->need = tn__fix_need(tn__trial_report(large));
	if (search->need != TN_NO_FIGURE && !search->host)
		search->missing = search->need + search->card.hidden - (int64_t)search->card.total;
	if (search->need != TN_NO_FIGURE && !search->host && search->unchanged_card.outcome.report != NULL)
		tn__report_judge_need(search->unchanged_card.outcome.report, tn__trial_report(large));
	search->direct = search->host || tn__fix_grows(search) || search->missing <= 0;
	if (search->missing <= 0)
		search->missing = TN_NO_FIGURE;
	limit_seconds(search);
	tn__trials_adapt(&search->trials, tn__trial_report(large)->peak_rss_bytes);
	if (search->planned)
		tn__fix_plan_again(search);
	else
		tn__fix_plan(search);
}

/* True where the card was too small behind all that the survey has seen: a backbone that is unfrozen in a later epoch. */
static bool
must_go_on(const struct tn_fix_search *search)
{
	const struct tn_report *card = tn__trial_report(&search->unchanged_card);
	return !search->went_on && search->survey.end > TN_TRIAL_RUNS && !tn__fix_grows(search) &&
	       card->verdict == TN_VERDICT_OUT_OF_MEMORY &&
	       card->steps_seen > tn__trial_report(&search->unchanged_large)->steps_seen;
}

static void
judge_when_seen(struct tn_fix_search *search)
{
	if (search->planned || search->over || !is_unchanged_seen(search))
		return;
	if (must_go_on(search)) {
		search->went_on = true;
		tn__trial_clear(&search->unchanged_large);
		search->unchanged_large.end = search->survey.end = TN_TRIAL_WAITS;
		return;
	}
	judge_unchanged(search);
}

/* ---- the scheduler's questions ---- */

static struct tn_trial *
start_unchanged(struct tn_fix_search *search)
{
	if (search->unchanged_card.end == TN_TRIAL_WAITS) {
		search->unchanged_card.options = search->card.options;
		search->unchanged_card.options.other_bytes += (uint64_t)search->card.hidden;
		search->unchanged_card.keep_words = true;
		search->unchanged_card.patient = true; /* somebody says that it fails */
		return &search->unchanged_card;
	}
	if (search->survey.end != TN_TRIAL_WAITS)
		return NULL;
	if (search->card.options.then_count > 0 && search->unchanged_card.end == TN_TRIAL_RUNS)
		return NULL; /* which command is it about? */
	struct tn_trial *survey = &search->survey;
	survey->command = search->command;
	survey->options = search->card.options;
	survey->options.memory_bytes = TN_UNLIMITED_CARD;
	survey->options.host_memory_bytes = 0; /* the card's need alone */
	survey->changes = TN_CHANGE_SURVEY;
	survey->patient = search->went_on;
	if (search->trials.store == NULL && survey->options.then_count == 0 && survey->options.request_count == 0 &&
	    !search->went_on)
		search->late_news = tn__late_news_make();
	survey->tells_early = search->went_on ? NULL : search->late_news;
	return survey;
}

/* True when the card itself is to be asked first: where it fits that is all, and where not the trial is over early. */
static bool
may_be_enough(const struct tn_fix_search *search, const struct tn_attempt *attempt)
{
	return search->missing != TN_NO_FIGURE && attempt->most >= search->missing;
}

static struct tn_attempt *
first_in(struct tn_fix_search *search, enum tn_stage stage)
{
	struct tn_attempt *first = NULL;
	for (int i = 0; i < search->count; i++) {
		struct tn_attempt *attempt = &search->attempts[i];
		bool allowed = attempt->soon || attempt->most == INT64_MAX /* a remedy */ ||
		               attempt->found.results <= search->allowed;
		bool before = first == NULL || (attempt->soon && !first->soon) ||
		              (attempt->soon == first->soon && attempt->turn < first->turn);
		if (before && attempt->stage == stage && allowed && tn__fix_is_worth_it(search, attempt))
			first = attempt;
	}
	return first;
}

/* What follows when nothing is left to try: pairs that keep the results, where no single change that does is enough; single
 * changes that do not; pairs with those, or some to choose from; triples. Attempts may not move while a trial of theirs
 * runs: they are only added, within the room that there is. False at the end. */
static bool
plan_more(struct tn_fix_search *search)
{
	bool found = tn__fix_fitting(search, TN_GUARANTEE_ROUNDING, true) > 0;
	if (tn__trials_some_run(&search->trials))
		return false;
	switch (search->round++) {
	case 0:
		if (!found)
			tn__fix_plan_combinations(search, 1, MOST_PAIRS, true, MOST_OF_IT);
		return true;
	case 1:
		search->allowed = TN_GUARANTEE_DIFFERENT;
		return true;
	case 2:
		tn__fix_plan_combinations(search, 1, found ? MOST_SPARE_PAIRS : MOST_PAIRS, found, found ? 1 : MOST_OF_IT);
		return true;
	case 3:
		if (!found)
			tn__fix_plan_combinations(search, 2, MOST_TRIPLES, false, MOST_OF_IT);
		return true;
	default:
		return false;
	}
}

static struct tn_trial *
next(void *context)
{
	struct tn_fix_search *search = context;
	if (search->over)
		return NULL;
	if (!search->planned)
		return start_unchanged(search);
	do {
		struct tn_attempt *attempt = first_in(search, TN_STAGE_RETRY_WITH_LESS);
		if (attempt != NULL)
			return tn__fix_start_with_less(search, attempt);
		attempt = first_in(search, TN_STAGE_RETRY_ON_CARD);
		if (attempt != NULL)
			return tn__fix_start_on_card(search, attempt);
		attempt = first_in(search, TN_STAGE_WAITS);
		if (attempt != NULL && may_be_enough(search, attempt))
			return tn__fix_start_on_card(search, attempt);
		struct tn_attempt *fell_short = first_in(search, TN_STAGE_TOO_SMALL);
		if (fell_short != NULL && (attempt == NULL || tn__fix_seeks_sequels(search, fell_short)))
			return tn__fix_start_on_large(search, fell_short);
		if (attempt != NULL)
			return tn__fix_start_on_large(search, attempt);
		struct tn_attempt *printed = tn__fix_with_untried_patch(search);
		if (printed != NULL)
			return tn__fix_start_patched(search, printed);
	} while (plan_more(search));
	return NULL;
}

static void
judge_large(struct tn_fix_search *search, int index)
{
	tn__fix_judge_large(search, &search->attempts[index]);
	if (search->attempts[index].found.end == TN_FIX_NOT_ENOUGH &&
	    tn__fix_fitting(search, TN_GUARANTEE_ROUNDING, true) == 0)
		tn__fix_plan_sequels(search, index, MOST_SEQUELS);
}

/* A batch in pieces was to be the same training, and is not: then the program's own option for the batch is as good, needs no patch, and comes
 * next. */
static void
prefer_own_batch(struct tn_fix_search *search, const struct tn_attempt *attempt)
{
	const struct tn_fix_change *found = &attempt->found;
	if (found->part_count != 1 || !tn__change_is(found->parts[0], "accumulate") ||
	    found->results != TN_GUARANTEE_DIFFERENT)
		return;
	for (int i = 0; i < search->count; i++)
		if (search->attempts[i].found.part_count == 1 &&
		    tn__change_is(search->attempts[i].found.parts[0], "option_batch"))
			search->attempts[i].soon = true;
}

static void
judge(struct tn_fix_search *search, int index, struct tn_trial *trial)
{
	struct tn_attempt *attempt = &search->attempts[index];
	if (trial->late_news != NULL)
		tn__fix_take_news(search, trial); /* which it was told */
	if (trial == &attempt->large)
		judge_large(search, index);
	else if (trial == &attempt->card)
		tn__fix_judge_card(search, attempt);
	else
		tn__fix_judge_less(attempt);
	prefer_own_batch(search, attempt);
}

/* Trials that went by something that did not hold are made again, as far as they are still wanted. */
static void
try_again(struct tn_fix_search *search, struct tn_attempt *attempt, struct tn_trial *trial)
{
	bool runs = trial->end == TN_TRIAL_RUNS, waits = attempt->waits == trial;
	if (trial->late_news == NULL || (!runs && !waits))
		return;
	trial->again = runs && !attempt->unplanned;
	if (runs)
		tn__trials_stop(&search->trials, trial);
	else
		tn__trial_clear(trial);
	if (attempt->unplanned)
		attempt->stage = TN_STAGE_LOW_PRIORITY;
	else if (waits)
		attempt->stage = trial == &attempt->card ? TN_STAGE_RETRY_ON_CARD : TN_STAGE_WAITS;
}

/* The unchanged program has ended: by what it has shown in all it is planned again, and judged what waited for it. */
static void
take_survey(struct tn_fix_search *search)
{
	tn__trial_clear(&search->unchanged_large);
	search->unchanged_large = search->survey;
	search->survey = (struct tn_trial){ .end = search->unchanged_large.end };
	bool holds = tn__fix_tell_news(search);
	if (!search->planned)
		return;
	judge_unchanged(search);
	for (int i = 0; i < search->count; i++) {
		struct tn_attempt *attempt = &search->attempts[i];
		if (!holds) {
			try_again(search, attempt, &attempt->card);
			try_again(search, attempt, &attempt->large);
		} else if (attempt->waits != NULL) {
			judge(search, i, attempt->waits);
		}
		attempt->waits = NULL;
	}
}

/* What is tried whatever else fits comes next. */
static void
ask_for_wished(struct tn_fix_search *search)
{
	for (int i = 0; i < search->count; i++)
		search->attempts[i].soon |= search->attempts[i].wished;
}

void
tn__fix_say_what_fits(struct tn_fix_search *search)
{
	if (!tn__trials_are_checked(&search->trials) || search->survey.end <= TN_TRIAL_RUNS)
		return;
	for (int i = 0; i < search->count; i++) {
		struct tn_attempt *attempt = &search->attempts[i];
		if (attempt->found.end != TN_FIX_FITS || attempt->said)
			continue;
		attempt->said = true;
		if (search->first_seconds < 0)
			search->first_seconds = tn__trials_seconds(&search->trials);
		tn__progress_line_say(&search->line, "fits with %s", attempt->found.changes);
		ask_for_wished(search);
	}
}

static void
ended(void *context, struct tn_trial *trial)
{
	struct tn_fix_search *search = context;
	if (trial == &search->unchanged_card)
		judge_unchanged_card(search);
	else if (trial == &search->survey)
		take_survey(search);
	for (int i = 0; i < search->count; i++) {
		struct tn_attempt *attempt = &search->attempts[i];
		if (trial == &attempt->patched)
			tn__fix_judge_patched(search, attempt);
		if (trial != &attempt->large && trial != &attempt->card && trial != &attempt->less)
			continue;
		if (search->survey.end == TN_TRIAL_RUNS && tn__trial_fits(trial))
			attempt->waits = trial;
		else
			judge(search, i, trial);
	}
	judge_when_seen(search);
	tn__fix_say_what_fits(search);
}

static void
early(void *context, struct tn_trial *trial, const char *outcome)
{
	struct tn_fix_search *search = context;
	struct tn_trial *large = &search->unchanged_large;
	if (trial != &search->survey || search->over || search->planned)
		return;
	tn__trial_clear(large);
	tn__trial_take(large, outcome, NULL);
	large->seconds = tn__trials_seconds(&search->trials) + search->trials.started - trial->started;
	large->end = large->outcome.report != NULL ? TN_TRIAL_DONE : TN_TRIAL_WAITS;
	judge_when_seen(search);
}

static void
tick(void *context)
{
	struct tn_fix_search *search = context;
	tn__fix_say_what_fits(search);
	char now[160] = "the program as it is";
	size_t length = 0;
	for (int i = 0; i < search->count; i++) {
		const struct tn_attempt *attempt = &search->attempts[i];
		bool patched = attempt->patched.end == TN_TRIAL_RUNS;
		if (patched || attempt->stage == TN_STAGE_ON_LARGE || attempt->stage == TN_STAGE_ON_CARD ||
		    attempt->stage == TN_STAGE_WITH_LESS)
			length += (size_t)snprintf(now + length, length < sizeof(now) ? sizeof(now) - length : 0, "%s%s%s",
			                           length > 0 ? ", " : "", patched ? "the patch of " : "", attempt->found.changes);
	}
	char words[200];
	if (search->trials.engine != NULL)
		tn__progress_line_show(&search->line, "%d fit, %s", tn__fix_fitting(search, TN_GUARANTEE_DIFFERENT, false),
		                       tn__search_progress(&search->trials, 0, words));
	else
		tn__progress_line_show(&search->line, "trial %d, %d fit, %.0f s: %s", search->trials.count,
		                       tn__fix_fitting(search, TN_GUARANTEE_DIFFERENT, false),
		                       tn__trials_seconds(&search->trials), now);
}

struct tn_trials
tn__fix_trials(struct tn_fix_search *search)
{
	struct tn_trials trials = tn__search_trials(&search->options->search, search, next, ended, tick);
	trials.early = early;
	return trials;
}
