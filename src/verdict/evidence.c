/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether what was seen can carry a verdict. A program that ends well without having shown anything is no program that
 * fits: the table stands in doc/design/0018-evidence.md, and tests/unit/test_run_evidence.c walks all of it.
 *
 * Invariant: a verdict of `fits` has no doubt; each doubt says what would decide.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "verdict/host_judge.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"
#include "verdict/programs.h"

#define TOLD_FAMILIES 2

bool
tn__ended_well(const struct tn_ending *ending)
{
	return ending->stop_reason == 0 && ending->ended && ending->wait_status == 0;
}

/* A step or pass was completed, in whichever process. Memory that settled did so over steps. */
static bool
has_passed(const struct tn_report *report, const struct tn_ending *ending)
{
	return report->steps_seen > 0 || report->passed || ending->stop_reason == TN_REASON_SETTLED ||
	       ending->guest_stop == TN_REASON_SETTLED;
}

static bool
used_a_card(const struct tn_report *report)
{
	return report->device_peak > 0 || report->reserved_peak > 0 || report->launches > 0;
}

/* ---- the reasons ---- */

static void
doubt_the_time(struct tn_report *report)
{
	const char *before = used_a_card(report) ? "the first step or pass was complete" : "the program used a GPU";
	bool limited = report->compiling && report->compiled_seconds >= report->compile_limit_seconds;
	char advice[160];
	if (limited) {
		snprintf(advice, sizeof(advice), "--compile-seconds N gives compiling more time than %.0f s",
		         report->compile_limit_seconds);
		tn__report_add_doubt(report, TN_FINDING_no_step, false, advice,
		                     "the program was still compiling when the time for that was up, before %s", before);
	} else if (report->limit_seconds > 0) {
		snprintf(advice, sizeof(advice),
		         "--seconds N gives the program more time than %.0f s (compiling is not counted)",
		         report->limit_seconds);
		tn__report_add_doubt(report, TN_FINDING_no_step, false, advice, "the time limit came before %s", before);
	} else {
		tn__report_add_doubt(report, TN_FINDING_no_step, false, "--steps all lets the program take its own time",
		                     "the program was stopped before %s", before);
	}
}

static void
doubt_the_card(struct tn_report *report)
{
	if (report->real_gpu)
		tn__report_add_doubt(report, TN_FINDING_card_unused, false,
		                     "--steps all, where it is over too soon to be measured",
		                     "the program was not seen to use a GPU");
	else if (report->torch != NULL)
		tn__report_add_doubt(report, TN_FINDING_card_unused, false,
		                     "the program has to put its model and data on \"cuda\" in a process that it starts itself "
		                     "(not through a container, ssh or a scheduler)",
		                     "the program never used a GPU");
	else
		tn__report_add_doubt(report, TN_FINDING_card_unused, false,
		                     "give the command that trains or infers, as in `-- python train.py`; what a "
		                     "container, ssh or a scheduler starts is not seen",
		                     "the program never used a GPU");
}

/* Calls of one family that nothing followed; each family is told once. */
static void
doubt_the_refused(struct tn_report *report)
{
	const struct tn_refusal *told[TOLD_FAMILIES];
	size_t count = 0;
	for (size_t i = 0; i < report->refused_calls.count && count < TOLD_FAMILIES; i++) {
		const struct tn_counted *call = &report->refused_calls.items[i];
		const struct tn_refusal *family = tn__refusal_of(call->library, call->name);
		bool known = family->asks_only || !call->unfollowed;
		for (size_t j = 0; j < count; j++)
			known |= told[j] == family;
		if (known)
			continue;
		told[count++] = family;
		tn__report_add_doubt(
			report, TN_FINDING_refused, false, family->advice,
			"the program went on after %s was refused (%s), and completed no step or pass after that: %s", family->name,
			call->name, family->means);
	}
}

static void
doubt_the_inside(struct tn_report *report)
{
	tn__report_add_doubt(report, TN_FINDING_failed_inside, false, "`set -e` in a shell script makes it notice",
	                     "a process failed before its first step or pass was complete (%s), and the program ended with "
	                     "status 0 all the same",
	                     report->exception);
}

void
tn__report_find_doubts(struct tn_report *report, const struct tn_ending *ending)
{
	bool passed = has_passed(report, ending), well = tn__ended_well(ending);
	if (report->programs.count > 0)
		tn__programs_doubt(report);
	else if (report->requests.known && tn__requests_doubt(report, well))
		passed = true; /* which is why nothing passed */
	else if (!passed && !well)
		doubt_the_time(report);
	else if (!used_a_card(report))
		doubt_the_card(report);
	doubt_the_refused(report);
	if (!passed && well && report->exception != NULL)
		doubt_the_inside(report);
	tn__report_doubt_host(report);
}
