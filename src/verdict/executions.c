/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of several commands decides.
 */
#include "verdict/executions.h"

#include "verdict/judge.h"
#include "verdict/model_fill.h"

bool
tn__may_go_on(const struct tn_report *report)
{
	if (report->misuse != TN_MISUSE_NONE || report->stopped == TN_STOPPED_INTERRUPTED)
		return false;
	return report->verdict != TN_VERDICT_OUT_OF_MEMORY && report->verdict != TN_VERDICT_FAILED;
}

bool
tn__used_no_card(const struct tn_report *report)
{
	return report->verdict == TN_VERDICT_UNDECIDED && report->doubt_count == 1 &&
	       report->doubts[0].id == TN_FINDING_card_unused;
}

static bool
any_used_a_card(const struct tn_executions *executions)
{
	for (size_t i = 0; i < executions->count; i++)
		if (!tn__used_no_card(executions->reports[i]))
			return true;
	return false;
}

size_t
tn__deciding_execution(const struct tn_executions *executions)
{
	bool used = any_used_a_card(executions);
	size_t highest = executions->count;
	for (size_t i = 0; i < executions->count; i++) {
		const struct tn_report *report = executions->reports[i];
		if (used && tn__used_no_card(report))
			continue;
		if (report->verdict != TN_VERDICT_FITS)
			return i;
		if (highest == executions->count || report->device_peak > executions->reports[highest]->device_peak)
			highest = i;
	}
	return highest < executions->count ? highest : 0;
}

void
tn__report_as_follower(struct tn_report *report)
{
	bool trains = report->facts.known && report->facts.trains;
	if (trains && report->steps_seen <= 0 && report->stopped == TN_STOPPED_END)
		tn__report_add_not_seen(report, "training after the checkpoint was loaded: the program made no step (was the "
		                                "checkpoint that of the end? more epochs or steps would show it)");
}

void
tn__report_cannot_be_followed(struct tn_report *report)
{
	report->verdict = TN_VERDICT_UNDECIDED;
	report->exit_status = 12;
	tn__report_add_finding(report, TN_FINDING_then_not_run, TN_NO_FIGURE, NULL,
	                       "run each command by itself, the later ones on a checkpoint that is there",
	                       "this command only got through when other values were assumed, so the next one, which needs "
	                       "what it leaves, was not run");
}
