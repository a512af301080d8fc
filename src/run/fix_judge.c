/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trial of `fix` has shown: applied or not, broken, too little, or enough; and the figures.
 */
#include "run/fix_search.h"

#include <stdlib.h>
#include <string.h>

static const json_t *
told_of(const struct tn_trial *trial, const char *part, const json_t **document_out)
{
	const json_t *document, *entry, *found = NULL;
	char id[64];
	size_t i, j;
	tn__fix_id_of(part, id);
	json_array_foreach(trial->changes_told, i, document)
		json_array_foreach(json_object_get(document, "changes"), j, entry) {
			const char *name = json_string_value(json_object_get(entry, "id"));
			if (name == NULL || strcmp(name, id) != 0)
				continue;
			if (found == NULL || json_is_true(json_object_get(entry, "applied"))) {
				found = entry;
				*document_out = document;
			}
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
take_told(struct tn_attempt *attempt, const struct tn_trial *trial)
{
	struct tn_fix_change *found = &attempt->found;
	const json_t *document = NULL;
	if (attempt->without_others)
		return true;
	tn__replace_text(&found->how, NULL);
	for (size_t i = 0; i < found->part_count; i++) {
		const json_t *entry = told_of(trial, found->parts[i], &document);
		if (!json_is_true(json_object_get(entry, "applied"))) {
			const char *why = json_string_value(json_object_get(entry, "why_not"));
			tn__replace_text(&found->why_not, why != NULL ? why : "it was not applied");
			return false;
		}
		enum tn_promise results = tn__promise_of(json_string_value(json_object_get(entry, "results")));
		if (results > found->results)
			found->results = results;
		append_line(&found->how, json_string_value(json_object_get(entry, "how")));
	}
	tn__replace_text(&found->patch, json_string_value(json_object_get(document, "patch")));
	return true;
}

static void
take_peaks(const struct tn_fix_search *search, struct tn_attempt *attempt, const struct tn_trial *trial, int64_t hidden)
{
	struct tn_fix_change *found = &attempt->found;
	int64_t device = tn__trial_figure(trial, "peak", "device_bytes");
	found->reserved_peak = tn__trial_figure(trial, "peak", "reserved_bytes");
	found->device_peak = device == TN_NO_FIGURE ? TN_NO_FIGURE : device - hidden;
	if (found->device_peak == TN_NO_FIGURE)
		return;
	found->margin = (int64_t)search->card.total - found->device_peak;
	found->uncertain = tn__trial_uncertain(trial);
	found->saved = search->need != TN_NO_FIGURE ? search->need - found->device_peak : TN_NO_FIGURE;
}

const char *
tn__fix_own_error(const struct tn_fix_search *search)
{
	const struct tn_trial *large = &search->unchanged_large;
	const char *verdict = tn__trial_verdict(large);
	return large->end == TN_TRIAL_DONE && verdict != NULL && strcmp(verdict, "failed") == 0 ? large->exception : NULL;
}

/* Why a trial is no saving; false when it is a run whose figures count. */
static bool
is_broken(const struct tn_fix_search *search, struct tn_attempt *attempt, const struct tn_trial *trial)
{
	const char *verdict = tn__trial_verdict(trial);
	if (trial->end == TN_TRIAL_DONE && tn__trial_is_undecided(trial)) { /* it proves nothing, either way */
		attempt->found.end = TN_FIX_UNKNOWN;
		free(attempt->found.why_not);
		attempt->found.why_not = tn__trial_doubt(trial);
		return true;
	}
	if (trial->end == TN_TRIAL_DONE && verdict != NULL && strcmp(verdict, "failed") != 0)
		return false;
	const char *own = tn__fix_own_error(search);
	bool same = own != NULL && trial->exception != NULL && strcmp(own, trial->exception) == 0;
	attempt->found.end = same ? TN_FIX_OWN_ERROR : TN_FIX_BROKE;
	if (trial->end == TN_TRIAL_SLOW)
		tn__replace_text(&attempt->found.why_not, "took too long");
	else if (trial->end == TN_TRIAL_HOST_MEMORY)
		tn__replace_text(&attempt->found.why_not, "too much of the computer's own memory");
	else if (trial->exception != NULL)
		tn__replace_text(&attempt->found.why_not, trial->exception);
	else
		tn__replace_text(&attempt->found.why_not, trial->error != NULL ? trial->error : "the program failed");
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
	if (take_told(attempt, trial))
		return !is_broken(search, attempt, trial);
	attempt->found.end = TN_FIX_NOT_APPLIED;
	return false;
}

void
tn__fix_judge_large(struct tn_fix_search *search, struct tn_attempt *attempt)
{
	const struct tn_trial *trial = &attempt->large;
	if (!is_told_and_whole(search, attempt, trial))
		return;
	take_peaks(search, attempt, trial, 0);
	tn__fix_judge_time(search, attempt, trial);
	int64_t cached = tn__trial_figure(trial, "peak", "reserved_bytes") - tn__trial_figure(trial, "peak", "allocated_bytes");
	int64_t room = (int64_t)search->card.total - search->card.hidden;
	/* What is only cached is given back where memory is short: then the card itself must tell. */
	bool tried = attempt->card.end != TN_TRIAL_WAITS;
	if (!tried && attempt->found.device_peak != TN_NO_FIGURE && attempt->found.device_peak - cached <= room)
		attempt->stage = TN_STAGE_HOPES;
	else
		too_little(attempt);
}

void
tn__fix_judge_card(struct tn_fix_search *search, struct tn_attempt *attempt)
{
	const struct tn_trial *trial = &attempt->card;
	if (trial->end == TN_TRIAL_DONE && !tn__trial_fits(trial) && !search->direct && !attempt->without_others &&
	    attempt->large.end == TN_TRIAL_WAITS) {
		attempt->stage = TN_STAGE_SHORT; /* it may have ended before the change could do anything */
		return;
	}
	if (!is_told_and_whole(search, attempt, trial))
		return;
	if (!tn__trial_fits(trial)) {
		too_little(attempt);
		return;
	}
	take_peaks(search, attempt, trial, search->card.hidden);
	tn__fix_judge_time(search, attempt, trial);
	attempt->found.end = TN_FIX_FITS;
	if (search->first_seconds < 0)
		search->first_seconds = tn__trials_seconds(&search->trials);
	tn__progress_line_say(&search->line, "fits with %s", attempt->found.changes);
}

