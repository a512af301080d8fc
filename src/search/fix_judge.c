/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trial of `fix` has shown: applied or not, broken, too little, or enough; and the figures.
 */
#include "search/fix_search.h"
#include "verdict/finding_rows.h"

#include <stdlib.h>
#include <string.h>

/* The rank's own word where it could not apply a change that others did; NULL: each did, or had nothing that it acts on. The
 * caller frees. */
static char *
why_not_on_a_rank(const struct tn_trial *trial, const char *part)
{
	const struct tn_change_results *results = &trial->outcome.changes;
	char id[64], *words = NULL;
	tn__change_id(part, id);
	for (size_t i = 0; words == NULL && i < results->count; i++)
		for (size_t j = 0; words == NULL && j < results->processes[i].count; j++) {
			const struct tn_change_process *process = &results->processes[i];
			const struct tn_change_result *result = &process->items[j];
			if (process->rank == TN_NO_FIGURE || result->id == NULL || strcmp(result->id, id) != 0 || result->applied ||
			    result->found_nothing)
				continue;
			if (asprintf(&words, "on rank %lld: %s", (long long)process->rank,
			             result->why_not != NULL ? result->why_not : "it was not applied") < 0)
				words = NULL;
		}
	return words;
}

/* The weakest promise of all processes that applied a part. */
static enum tn_guarantee
weakest_promise(const struct tn_trial *trial, const char *part, enum tn_guarantee least)
{
	const struct tn_change_results *results = &trial->outcome.changes;
	char id[64];
	tn__change_id(part, id);
	for (size_t i = 0; i < results->count; i++)
		for (size_t j = 0; j < results->processes[i].count; j++) {
			const struct tn_change_result *result = &results->processes[i].items[j];
			if (result->id != NULL && strcmp(result->id, id) == 0 && result->applied && result->results > least)
				least = result->results;
		}
	return least;
}

/* Ranks that run the same text have the same patch, and one that met none of the places has none. Where they met other places,
 * none of their patches is the whole change. */
static const char *
patch_of(const struct tn_trial *trial, const struct tn_change_process *process)
{
	const struct tn_change_results *results = &trial->outcome.changes;
	const char *patch = process != NULL ? process->patch : NULL;
	for (size_t i = 0; process != NULL && process->rank != TN_NO_FIGURE && i < results->count; i++) {
		const struct tn_change_process *other = &results->processes[i];
		if (other->rank == TN_NO_FIGURE || other->patch == NULL)
			continue;
		if (patch != NULL && strcmp(other->patch, patch) != 0)
			return NULL;
		patch = other->patch;
	}
	return patch;
}

/* What the processes of a trial say of a part, and the one that says it: one that applied it counts most. NULL: nothing. */
static const struct tn_change_result *
result_of(const struct tn_trial *trial, const char *part, const struct tn_change_process **process_out)
{
	const struct tn_change_results *results = &trial->outcome.changes;
	const struct tn_change_result *found = NULL;
	char id[64];
	tn__change_id(part, id);
	for (size_t i = 0; i < results->count; i++)
		for (size_t j = 0; j < results->processes[i].count; j++) {
			const struct tn_change_result *result = &results->processes[i].items[j];
			if (result->id == NULL || strcmp(result->id, id) != 0 ||
			    (found != NULL && (!result->applied || (found->applied && found->effective >= result->effective))))
				continue;
			found = result;
			*process_out = &results->processes[i];
		}
	return found;
}

static void
append_line(char **text, const char *line)
{
	char *joined = NULL;
	if (line == NULL || line[0] == '\0')
		return;
	if (*text == NULL) {
		*text = strdup(line);
	} else if (asprintf(&joined, "%s\n%s", *text, line) >= 0) {
		free(*text);
		*text = joined;
	}
}

void
tn__replace_text(char **text, const char *value)
{
	free(*text);
	*text = value != NULL ? strdup(value) : NULL;
}

/* False when a part was not applied. */
static bool
read_change_result(struct tn_attempt *attempt, const struct tn_trial *trial)
{
	struct tn_fix_change *found = &attempt->found;
	const struct tn_change_process *process = NULL;
	if (attempt->without_others)
		return true;
	tn__replace_text(&found->how, NULL);
	attempt->acted = false;
	for (size_t i = 0; i < found->part_count; i++) {
		const struct tn_change_result *result = result_of(trial, found->parts[i], &process);
		if (result == NULL || !result->applied) {
			const char *why = result != NULL ? result->why_not : NULL;
			tn__replace_text(&found->why_not, why != NULL ? why : "it was not applied");
			return false;
		}
		char *elsewhere = why_not_on_a_rank(trial, found->parts[i]);
		if (elsewhere != NULL) {
			free(found->why_not);
			found->why_not = elsewhere;
			return false;
		}
		found->results = weakest_promise(trial, found->parts[i], found->results);
		append_line(&found->how, result->how);
		attempt->acted |= result->effective != 0; /* unknown: it may have */
	}
	tn__replace_text(&found->patch, patch_of(trial, process));
	found->patch_tried = found->patch != NULL && process != NULL && process->patch_was_run;
	return true;
}

int64_t
tn__fix_need(const struct tn_report *report)
{
	if (report->device_peak == TN_NO_FIGURE || report->reserved_peak == TN_NO_FIGURE ||
	    report->allocated_peak == TN_NO_FIGURE)
		return report->device_peak;
	return report->device_peak - (report->reserved_peak - report->allocated_peak);
}

bool
tn__fix_is_of_training(const char *phase)
{
	return phase != NULL &&
	       (strcmp(phase, "forward") == 0 || strcmp(phase, "backward") == 0 || strcmp(phase, "optimizer") == 0);
}

/* The steps that the unchanged program has begun when it comes to its peak. A moment behind the last step counts as of the next one,
 * which need not come. */
static int64_t
steps_to_peak(const struct tn_fix_search *search)
{
	const struct tn_report_moment *peak = &tn__trial_report(&search->unchanged_large)->at_peak;
	bool beside = peak->phase != NULL && !tn__fix_is_of_training(peak->phase);
	return peak->step != TN_NO_FIGURE && peak->step > 0 && beside ? peak->step - 1 : peak->step;
}

bool
tn__fix_peaks_behind_settling(const struct tn_fix_search *search)
{
	const struct tn_survey *survey = &search->unchanged_large.outcome.changes.survey;
	const struct tn_report_moment *peak = &tn__trial_report(&search->unchanged_large)->at_peak;
	return survey->known && survey->news_step != TN_NO_FIGURE && peak->step > survey->news_step;
}

/* True when a trial has seen the step in which the unchanged program has its peak. In epochs that were shortened, from other steps on in the
 * two, epochs tell: a trial that has settled, or come to its end, has gone beyond that of the last news. */
static bool
has_come_as_far(const struct tn_fix_search *search, const struct tn_trial *trial)
{
	const struct tn_report *report = tn__trial_report(trial);
	int64_t step = steps_to_peak(search);
	if (tn__fix_peaks_behind_settling(search) && trial->news_epoch > 0 &&
	    (report->stopped == TN_STOPPED_SETTLED || report->stopped == TN_STOPPED_END))
		return true;
	return step == TN_NO_FIGURE || report->steps_seen == TN_NO_FIGURE || report->steps_seen >= step;
}

/* True when time ended a trial before it had come to where the unchanged program has its peak: that it fits until then is no promise. A
 * piece of a batch may count as a step. */
static bool
ended_too_early(const struct tn_fix_search *search, const struct tn_attempt *attempt, const struct tn_trial *trial)
{
	const struct tn_report *report = tn__trial_report(trial);
	bool by_time = search->trial_seconds > 0 && trial->seconds >= search->trial_seconds;
	int64_t step = steps_to_peak(search);
	int64_t pieces = attempt->found.pieces > 1 ? attempt->found.pieces : 1;
	return by_time && report->stopped == TN_STOPPED_LIMIT && step != TN_NO_FIGURE &&
	       report->steps_seen != TN_NO_FIGURE && report->steps_seen < step * pieces;
}

static void
take_peaks(const struct tn_fix_search *search, struct tn_attempt *attempt, const struct tn_trial *trial, int64_t hidden)
{
	struct tn_fix_change *found = &attempt->found;
	const struct tn_report *report = tn__trial_report(trial);
	if (search->host) { /* the computer's memory, all of it: what the card holds is as before */
		found->need = report->host.peak;
		found->saved = report->host.peak != TN_NO_FIGURE ? search->need - report->host.peak : TN_NO_FIGURE;
		found->margin = report->host.peak != TN_NO_FIGURE ? report->host.limit - report->host.peak : TN_NO_FIGURE;
		found->uncertain = report->host.highest > report->host.peak ? report->host.highest - report->host.peak : 0;
		found->reserved_peak = report->reserved_peak;
		found->device_peak = report->device_peak;
		return;
	}
	found->steps_seen = report->steps_seen;
	found->reserved_peak = report->reserved_peak;
	found->device_peak = report->device_peak == TN_NO_FIGURE ? TN_NO_FIGURE : report->device_peak - hidden;
	if (found->device_peak == TN_NO_FIGURE)
		return;
	found->margin = (int64_t)search->card.total - found->device_peak;
	found->uncertain = tn__trial_uncertain(trial);
	found->need = tn__fix_need(report);
	if (found->need != TN_NO_FIGURE)
		found->need -= hidden;
	found->saved = search->need != TN_NO_FIGURE && found->need != TN_NO_FIGURE ? search->need - found->need
	                                                                           : TN_NO_FIGURE;
	/* Where room is not what is missing (fragmentation, a limit of the program's own) there is nothing to save. */
	if (search->missing == TN_NO_FIGURE || (trial->end == TN_TRIAL_DONE && !has_come_as_far(search, trial)))
		found->saved = TN_NO_FIGURE;
}

bool
tn__fix_grows(const struct tn_fix_search *search)
{
	const struct tn_report *report = tn__trial_report(&search->unchanged_card);
	return tn__finding_of(report->oom.cause) == TN_FINDING_leak_suspected || report->verdict == TN_VERDICT_GROWS ||
	       report->growth.seen;
}

const char *
tn__fix_own_error(const struct tn_fix_search *search)
{
	const struct tn_trial *large = &search->unchanged_large;
	const struct tn_report *report = tn__trial_report(large);
	return large->end == TN_TRIAL_DONE && report->verdict == TN_VERDICT_FAILED ? report->exception : NULL;
}

/* Why a trial is no saving; false when it is a run whose figures count. */
static bool
is_broken(const struct tn_fix_search *search, struct tn_attempt *attempt, const struct tn_trial *trial)
{
	const struct tn_report *report = tn__trial_report(trial);
	const char *exception = report->exception, *error = trial->outcome.error;
	if (trial->end == TN_TRIAL_DONE && report->verdict == TN_VERDICT_UNDECIDED) { /* it proves nothing, either way */
		attempt->found.end = TN_FIX_UNKNOWN;
		free(attempt->found.why_not);
		attempt->found.why_not = tn__trial_doubt(trial);
		return true;
	}
	if (trial->end == TN_TRIAL_DONE && report->verdict != TN_VERDICT_FAILED)
		return false;
	const char *own = tn__fix_own_error(search);
	bool same = own != NULL && exception != NULL && strcmp(own, exception) == 0;
	attempt->found.end = same ? TN_FIX_OWN_ERROR : TN_FIX_BROKE;
	if (trial->end == TN_TRIAL_SLOW)
		tn__replace_text(&attempt->found.why_not, "took too long");
	else if (trial->end == TN_TRIAL_HOST_MEMORY)
		tn__replace_text(&attempt->found.why_not, "too much of the computer's own memory");
	else if (exception != NULL)
		tn__replace_text(&attempt->found.why_not, exception);
	else
		tn__replace_text(&attempt->found.why_not, error != NULL ? error : "the program failed");
	return true;
}

/* Python's collector comes at other moments where other objects are made, so that garbage may be there, or not, as the peak comes: in a
 * forked process, and in a trial without detail. The unchanged program was started anew, with detail: so is this, once. */
static bool
is_tried_anew(struct tn_attempt *attempt, struct tn_trial *trial)
{
	if (trial->server <= 0 || attempt->fresh) /* 0: it never ran here */
		return false;
	tn__trial_clear(trial);
	attempt->fresh = true;
	attempt->stage = TN_STAGE_WAITS;
	return true;
}

/* True where tensors asked for the same at most, and more or less was allocated for it all the same: which cached block was free for one that is not
 * split depends on what came before. */
static bool
differs_by_blocks(const struct tn_fix_search *search, const struct tn_trial *trial)
{
	const struct tn_report *report = tn__trial_report(trial), *unchanged = tn__trial_report(&search->unchanged_large);
	return report->requested_peak != TN_NO_FIGURE && report->requested_peak == unchanged->requested_peak;
}

/* True for a change that acted on nothing: it saves nothing, and where its trial needs something else all the same, the two
 * runs saw different things. */
static bool
did_nothing(const struct tn_fix_search *search, struct tn_attempt *attempt, struct tn_trial *trial)
{
	struct tn_fix_change *found = &attempt->found;
	char bytes[32], *why = NULL;
	if (attempt->acted || attempt->without_others)
		return false;
	attempt->stage = TN_STAGE_OVER;
	found->end = TN_FIX_NO_HELP;
	if (found->saved != TN_NO_FIGURE && !search->host && differs_by_blocks(search, trial)) {
		found->need = search->need;
		found->saved = 0;
	}
	if (found->saved == 0 || found->saved == TN_NO_FIGURE || is_tried_anew(attempt, trial))
		return true;
	found->end = TN_FIX_UNKNOWN;
	tn__human_bytes(found->saved < 0 ? -found->saved : found->saved, bytes);
	if (asprintf(&why, "it changed nothing, yet the program took %s %s: the program does not behave the same twice",
	             bytes, found->saved < 0 ? "more" : "less") < 0)
		why = NULL;
	tn__replace_text(&found->why_not, why);
	free(why);
	return true;
}

static void
too_little(struct tn_attempt *attempt)
{
	attempt->found.end = attempt->found.saved > 0 ? TN_FIX_NOT_ENOUGH : TN_FIX_NO_HELP;
	attempt->stage = TN_STAGE_OVER;
}

/* Over, unless something follows; false when the trial says nothing of its change. */
static bool
is_told_and_whole(const struct tn_fix_search *search, struct tn_attempt *attempt, const struct tn_trial *trial)
{
	attempt->stage = TN_STAGE_OVER;
	if (trial->end != TN_TRIAL_DONE) /* what it had to tell may be lost */
		return !is_broken(search, attempt, trial);
	if (read_change_result(attempt, trial))
		return !is_broken(search, attempt, trial);
	attempt->found.end = TN_FIX_NOT_APPLIED;
	return false;
}

void
tn__fix_judge_large(struct tn_fix_search *search, struct tn_attempt *attempt)
{
	struct tn_trial *trial = &attempt->large;
	if (!is_told_and_whole(search, attempt, trial))
		return;
	take_peaks(search, attempt, trial, 0);
	if (did_nothing(search, attempt, trial))
		return;
	tn__fix_judge_updates(search, attempt, trial);
	tn__fix_judge_time(search, attempt, trial);
	int64_t room = (int64_t)search->card.total - search->card.hidden;
	/* What is only cached is given back where memory is short: then the card itself must tell. */
	bool tried = attempt->card.end != TN_TRIAL_WAITS;
	if (!tried && attempt->found.need != TN_NO_FIGURE && attempt->found.need <= room)
		attempt->stage = TN_STAGE_RETRY_ON_CARD;
	else
		too_little(attempt);
}

/* What it leaves is less than what is not known of its peak, but some of that peak is cache, which it would give back. */
static bool
may_fit_with_less(const struct tn_fix_search *search, const struct tn_attempt *attempt)
{
	const struct tn_fix_change *found = &attempt->found;
	return tn__fix_is_narrow(found) && !search->host && !attempt->without_others && found->need != TN_NO_FIGURE &&
	       found->need + found->uncertain <= (int64_t)search->card.total;
}

void
tn__fix_judge_less(struct tn_attempt *attempt)
{
	attempt->stage = TN_STAGE_OVER;
	if (tn__trial_fits(&attempt->less) && tn__trial_applied(&attempt->less))
		attempt->found.fits_with_less = attempt->found.uncertain;
}

void
tn__fix_judge_card(struct tn_fix_search *search, struct tn_attempt *attempt)
{
	struct tn_trial *trial = &attempt->card;
	if (trial->end == TN_TRIAL_DONE && !tn__trial_fits(trial) && !search->direct && !attempt->without_others &&
	    attempt->large.end == TN_TRIAL_WAITS) {
		attempt->stage = TN_STAGE_TOO_SMALL; /* it may have ended before the change could do anything */
		return;
	}
	if (!is_told_and_whole(search, attempt, trial))
		return;
	if (!tn__trial_fits(trial)) {
		if (search->host)
			take_peaks(search, attempt, trial, search->card.hidden);
		too_little(attempt);
		return;
	}
	if (ended_too_early(search, attempt, trial)) {
		attempt->found.end = TN_FIX_BROKE;
		tn__replace_text(&attempt->found.why_not, "took too long");
		return;
	}
	take_peaks(search, attempt, trial, search->card.hidden);
	if (did_nothing(search, attempt, trial))
		return;
	tn__fix_judge_updates(search, attempt, trial);
	tn__fix_judge_time(search, attempt, trial);
	attempt->found.end = TN_FIX_FITS;
	if (may_fit_with_less(search, attempt))
		attempt->stage = TN_STAGE_RETRY_WITH_LESS;
}
