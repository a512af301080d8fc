/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trial has shown.
 */
#include <stdio.h>

#include "trials/trial.h"

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
	if (asprintf(&text, "undecided: %s%s%s", what != NULL ? what : "nothing was seen that decides",
	             advice != NULL ? "; " : "", advice != NULL ? advice : "") < 0)
		return NULL;
	return text;
}
