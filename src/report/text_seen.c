/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a verdict has seen, and where memory ran out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

void
tn__say_seen(const struct tn_printer *printer, const struct tn_report *report)
{
	static const char *const why[] = { "stopped when memory had settled",
		                               "stopped at the limit of steps or time",
		                               "the program ran to its end",
		                               "the program ran out of memory",
		                               "the program failed",
		                               "interrupted",
		                               "ended after the last request" };
	char steps[96], shapes[64] = "";
	const char *unit = tn__step_word(report);
	const char *how = report->verdict == TN_VERDICT_GROWS ? "stopped, because memory only grew" : why[report->stopped];
	if (report->steps_seen == 0)
		snprintf(steps, sizeof(steps), "no complete %s", unit);
	else if (report->steps_seen == TN_NO_FIGURE)
		snprintf(steps, sizeof(steps), "no %ss were recognised", unit);
	else
		snprintf(steps, sizeof(steps), "%lld %s%s", (long long)report->steps_seen, unit,
		         report->steps_seen == 1 ? "" : "s");
	if (report->programs.count > 0)
		snprintf(steps, sizeof(steps), "the steps of each program, above");
	else if (report->steps_seen > 0 && report->input_shapes > 0)
		snprintf(shapes, sizeof(shapes), " with %lld input shape%s", (long long)report->input_shapes,
		         report->input_shapes == 1 ? "" : "s");
	tn__say(printer, TN_TINT_NONE, 2, "Seen: %s%s; %s, %.1f s", steps, shapes, how, report->seconds);
}

void
tn__say_oom_place(const struct tn_printer *printer, const struct tn_report *report)
{
	enum when { WITHIN, AFTER }; /* of a step, or between two of them */
	static const struct {
		const char *phase, *words;
		enum when when;
	} phases[] = {
		{ "forward", " in the forward pass", WITHIN }, { "backward", " in the backward pass", WITHIN },
		{ "optimizer", " in the optimizer", WITHIN },  { "build", " while building the model", AFTER },
		{ "load", " while loading", AFTER },           { "save", " while saving", AFTER },
		{ "evaluation", " in evaluation", AFTER },     { "data", " while preparing data", AFTER },
	};
	const struct tn_report_oom *oom = &report->oom;
	const char *where = oom->at != NULL && oom->at->backward ? " in the backward pass" : "";
	char step[48] = "";
	enum when when = WITHIN;
	for (size_t i = 0; oom->phase != NULL && i < sizeof(phases) / sizeof(phases[0]); i++) {
		if (strcmp(phases[i].phase, oom->phase) == 0) {
			where = phases[i].words;
			when = phases[i].when;
		}
	}
	if (when == WITHIN && oom->step > 0)
		snprintf(step, sizeof(step), " %s %s %lld", where[0] != '\0' ? "of" : "in", tn__step_word(report),
		         (long long)oom->step);
	else if (when == AFTER && oom->step > 1)
		snprintf(step, sizeof(step), " after %s %lld", tn__step_word(report), (long long)oom->step - 1);
	else if (oom->step == 0 && where[0] == '\0')
		snprintf(step, sizeof(step), " before the first %s", tn__step_word(report));
	tn__say(printer, TN_TINT_NONE, 2, "Out of memory%s%s", where, step);
	char *places = tn__place_chain(report, printer->style);
	if (places != NULL && places[0] != '\0')
		tn__say(printer, TN_TINT_NONE, 2, "%s", places);
	else
		tn__say(printer, TN_TINT_NONE, 2, "the line is unknown: no Python hook saw it");
	free(places);
}
