/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trial has shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trials/trial.h"

#define LARGEST_WORDS (1 << 20)

char *
tn__memory_file(int file, off_t most)
{
	off_t size = file >= 0 ? lseek(file, 0, SEEK_END) : 0;
	if (size <= 0)
		return NULL;
	off_t from = most > 0 && size > most ? size - most : 0;
	char *text = malloc((size_t)(size - from) + 1);
	ssize_t length = text != NULL ? pread(file, text, (size_t)(size - from), from) : -1;
	if (length < 0) {
		free(text);
		return NULL;
	}
	text[length] = '\0';
	return text;
}

void
tn__trial_clear(struct tn_trial *trial)
{
	tn__outcome_free(&trial->outcome);
	tn__steps_free(&trial->steps);
	free(trial->words);
	free(trial->left);
	trial->words = trial->left = NULL;
	trial->end = TN_TRIAL_WAITS;
}

void
tn__trial_take(struct tn_trial *trial, const char *outcome, const char *words)
{
	tn__outcome_read(outcome, outcome != NULL ? strlen(outcome) : 0, &trial->outcome);
	trial->words = words != NULL ? strdup(words) : NULL;
	tn__steps_parse(trial->outcome.work, &trial->steps);
}

void
tn__trial_read(struct tn_trial *trial, char **left)
{
	struct tn_outcome *outcome = &trial->outcome;
	char *text = tn__memory_file(trial->result, 0), *words = tn__memory_file(trial->said, LARGEST_WORDS);
	tn__trial_take(trial, text, words);
	free(words);
	if (left != NULL)
		*left = text;
	else
		free(text);
	if (trial->end != TN_TRIAL_RUNS)
		return; /* it was ended, and why is known */
	trial->end = outcome->report != NULL && outcome->error == NULL ? TN_TRIAL_DONE : TN_TRIAL_FAILED;
	if (trial->end == TN_TRIAL_FAILED && outcome->error == NULL) {
		outcome->error = strdup("the trial was stopped from outside");
		outcome->exit_status = TN_EXIT_OWN_FAILURE;
	}
}

const struct tn_report *
tn__trial_report(const struct tn_trial *trial)
{
	static struct tn_report unknown;
	static bool made;
	if (trial->outcome.report != NULL)
		return trial->outcome.report;
	if (!made) {
		tn__report_init(&unknown);
		unknown.verdict = TN_VERDICT_FAILED;
		made = true;
	}
	return &unknown;
}

int64_t
tn__trial_uncertain(const struct tn_trial *trial)
{
	const struct tn_report *report = tn__trial_report(trial);
	if (report->uncertainty_highest == TN_NO_FIGURE || report->device_peak == TN_NO_FIGURE)
		return 0;
	return report->uncertainty_highest - report->device_peak;
}

bool
tn__trial_fits(const struct tn_trial *trial)
{
	return trial->end == TN_TRIAL_DONE && tn__trial_report(trial)->verdict == TN_VERDICT_FITS;
}

char *
tn__trial_doubt(const struct tn_trial *trial)
{
	const struct tn_report *report = tn__trial_report(trial);
	const struct tn_finding *finding = report->finding_count > 0 ? &report->findings[0] : NULL;
	const char *what = finding != NULL ? finding->what : NULL, *advice = finding != NULL ? finding->advice : NULL;
	char *text = NULL;
	if (asprintf(&text, "undecided: %s%s%s", what != NULL ? what : "nothing decisive was seen",
	             advice != NULL ? "; " : "", advice != NULL ? advice : "") < 0)
		return NULL;
	return text;
}

bool
tn__trial_applied(const struct tn_trial *trial)
{
	const struct tn_change_results *results = &trial->outcome.changes;
	for (size_t i = 0; i < results->count; i++)
		for (size_t j = 0; j < results->processes[i].count; j++)
			if (results->processes[i].items[j].applied)
				return true;
	return false;
}
