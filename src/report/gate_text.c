/* SPDX-License-Identifier: Apache-2.0
 *
 * A run against its budget and its baseline, for a person.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

#define MOST_DRIFTS 5

void
tn__say_over(const struct tn_printer *printer, const struct tn_report *report, const char *card)
{
	const struct tn_report_gate *gate = &report->gate;
	char peak[32], more[32];
	tn__human_bytes(report->device_peak, peak);
	if (report->verdict == TN_VERDICT_OVER_HOST_MEMORY)
		tn__say_over_host(printer, report, card);
	else if (report->verdict == TN_VERDICT_OVER_BUDGET)
		tn__say(printer, TN_TINT_BAD, 0, "Over the budget on %s: %s at the peak, %s too much", card, peak,
		        tn__human_bytes(gate->over_budget, more));
	else
		tn__say(printer, TN_TINT_BAD, 0, "Over the baseline on %s: %s at the peak, %s more", card, peak,
		        tn__human_bytes(report->device_peak - gate->before, more));
}

static void
say_budget(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_report_gate *gate = &report->gate;
	char budget[32], spare[32];
	tn__human_bytes(gate->budget, budget);
	if (gate->over_budget == 0)
		tn__say(printer, TN_TINT_NONE, 2, "Within the budget of %s: %s to spare", budget,
		        tn__human_bytes(gate->budget - report->device_peak, spare));
	else
		tn__say(printer, TN_TINT_NONE, 2, "The budget is %s", budget);
	if (gate->budget_narrowly)
		tn__say(printer, TN_TINT_NONE, 2,
		        "narrowly: the peak is known only to within %s (the CUDA context, kernels as they "
		        "load), and that decides",
		        tn__human_bytes(report->uncertainty_highest - report->uncertainty_lowest, spare));
}

/* "1%", "0.25%" */
static const char *
percent(double share, char buffer[32])
{
	snprintf(buffer, 32, "%.4f", share * 100);
	char *end = buffer + strlen(buffer);
	while (end[-1] == '0')
		end--;
	if (end[-1] == '.')
		end--;
	strcpy(end, "%");
	return buffer;
}

static void
say_drift(const struct tn_printer *printer, const struct tn_report *report, const struct tn_drift *drift)
{
	char changed[32], after[32], before[32], place[TN_PLACE_TEXT], path[TN_PLACE_TEXT];
	int64_t more = drift->after - drift->before;
	if (drift->at.file == NULL)
		strcpy(place, "");
	else if (drift->at.line != TN_NO_FIGURE)
		tn__place_words(report, printer->style, &drift->at, place);
	else
		snprintf(place, sizeof(place), "%s%.300s %.100s", drift->at.backward ? "backward of " : "",
		         tn__shown_path(report, printer->style, drift->at.file, path),
		         drift->at.function != NULL ? drift->at.function : "");
	tn__make_plain(place, '?');
	tn__say(printer, TN_TINT_NONE, 4, "%s%s %s%s%s: %s, was %s", more < 0 ? "-" : "+",
	        tn__human_bytes(more < 0 ? -more : more, changed), tn__category_words(drift->category),
	        place[0] != '\0' ? ", " : "", place, tn__human_bytes(drift->after, after),
	        tn__human_bytes(drift->before, before));
}

/* What went the way of the whole, most of it first. */
static void
say_drifts(const struct tn_printer *printer, const struct tn_report *report, bool grew)
{
	const struct tn_report_gate *gate = &report->gate;
	size_t said = 0, more = 0;
	for (size_t i = 0; i < gate->drift_count; i++) {
		const struct tn_drift *drift = &gate->drifts[grew ? i : gate->drift_count - 1 - i];
		if ((drift->after > drift->before) != grew)
			continue;
		if (said < MOST_DRIFTS)
			say_drift(printer, report, drift);
		said < MOST_DRIFTS ? said++ : more++;
	}
	if (more > 0)
		tn__say(printer, TN_TINT_DIM, 4, "and %zu more", more);
	if (!gate->told)
		tn__say(printer, TN_TINT_DIM, 4, "for one of the two runs it is unknown what its memory was for");
}

static void
say_versions(const struct tn_printer *printer, const struct tn_report_gate *gate)
{
	for (size_t i = 0; i < gate->version_count; i++) {
		const struct tn_version *version = &gate->versions[i];
		char name[64], before[128], now[128];
		snprintf(name, sizeof(name), "%s", version->name);
		snprintf(before, sizeof(before), "%s", version->before != NULL ? version->before : "unknown");
		snprintf(now, sizeof(now), "%s", version->now != NULL ? version->now : "unknown");
		tn__make_plain(name, '?');
		tn__make_plain(before, '?');
		tn__make_plain(now, '?');
		tn__say(printer, TN_TINT_NONE, 4, "%s is %s, was %s", name, now, before);
	}
}

static void
say_baseline(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_report_gate *gate = &report->gate;
	int64_t more = report->device_peak - gate->before;
	double share = gate->before > 0 ? (double)more / (double)gate->before : 0;
	double tolerance = (double)gate->tolerance / 1e6;
	char then[32], by[32], shares[32], allowed[32];
	tn__human_bytes(gate->before, then);
	tn__human_bytes(more < 0 ? -more : more, by);
	percent(tolerance, allowed);
	snprintf(shares, sizeof(shares), "%.2f%%", 100 * (share < 0 ? -share : share));
	if (more == 0)
		tn__say(printer, TN_TINT_NONE, 2, "Against %s: %s, as before", gate->path, then);
	else
		tn__say(printer, TN_TINT_NONE, 2, "Against %s: %s %s than %s (%s, %s tolerated)", gate->path, by,
		        more > 0 ? "more" : "less", then, shares, allowed);
	bool drifted = (double)(more < 0 ? -more : more) > (double)gate->before * tolerance;
	if (drifted)
		say_drifts(printer, report, more > 0);
	say_versions(printer, gate);
	if (drifted && more < 0)
		tn__say(printer, TN_TINT_NONE, 4, "--write-baseline records the improvement");
}

void
tn__say_gate(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_report_gate *gate = &report->gate;
	bool budget = gate->over_budget != TN_NO_FIGURE;
	if (!budget && gate->path == NULL)
		return;
	fputc('\n', printer->out);
	if (budget)
		say_budget(printer, report);
	if (gate->path != NULL)
		say_baseline(printer, report);
}
