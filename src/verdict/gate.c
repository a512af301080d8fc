/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run's peak is above of: its budget, or the peak of its baseline, and then by what it grew.
 */
#include "verdict/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/figure.h"
#include "verdict/model_fill.h"
#include "verdict/paths.h"

#define MILLION 1e6

/* ---- what changed ---- */

/* How well a line of now is known again: by text and bytes, by text alone, by bytes alone. */
enum known { EXACTLY, BY_TEXT, BY_BYTES, WAYS };

static bool
is_same(const struct tn_held_line *before, const struct tn_held_line *now, enum known how)
{
	bool text = before->code == now->code && now->code != 0, bytes = before->bytes == now->bytes;
	return how == EXACTLY ? text && bytes : how == BY_TEXT ? text : bytes;
}

/* Takes from each line's growth what the line was before; `used` has room for the lines before, `known` for those of now. */
static void
match_lines(const struct tn_held *before, const struct tn_held *now, bool *used, bool *known, int64_t *growth)
{
	for (enum known how = EXACTLY; how < WAYS; how++) {
		for (size_t i = 0; i < now->line_count; i++) {
			size_t j = 0;
			while (!known[i] && j < before->line_count && (used[j] || !is_same(&before->lines[j], &now->lines[i], how)))
				j++;
			if (known[i] || j == before->line_count)
				continue;
			used[j] = known[i] = true;
			growth[i] -= before->lines[j].bytes;
		}
	}
}

/* The line that is to blame: the one that grew most, since it is new or holds more than before. */
static const struct tn_place *
changed_line(const struct tn_held *before, const struct tn_held *now)
{
	size_t count = now->line_count, most = 0;
	int64_t *growth = calloc(count + 1, sizeof(*growth));
	bool *flags = calloc(count + (before != NULL ? before->line_count : 0) + 1, sizeof(*flags));
	for (size_t i = 0; i < count && growth != NULL; i++)
		growth[i] = now->lines[i].bytes;
	if (before != NULL && growth != NULL && flags != NULL)
		match_lines(before, now, flags + count, flags, growth);
	for (size_t i = 1; i < count && growth != NULL; i++)
		if (growth[i] > growth[most])
			most = i;
	free(growth);
	free(flags);
	return count == 0 ? NULL : now->lines[most].place;
}

static tn_status
add_drift(struct tn_report_gate *gate, const struct tn_held *before, const struct tn_held *now)
{
	const struct tn_held *any = now != NULL ? now : before;
	const struct tn_place *at = now != NULL ? changed_line(before, now) : NULL;
	const char *file = at != NULL ? at->file : any->file;
	struct tn_drift drift = { any->category,
		                      { file != NULL ? strdup(file) : NULL, at != NULL ? at->line : TN_NO_FIGURE,
		                        file != NULL && any->function != NULL ? strdup(any->function) : NULL, any->backward },
		                      before != NULL ? before->bytes : 0,
		                      now != NULL ? now->bytes : 0 };
	if (drift.before == drift.after) {
		free(drift.at.file);
		free(drift.at.function);
		return TN_OK;
	}
	gate->drifts[gate->drift_count++] = drift;
	TN_RETURN_IF(file != NULL && drift.at.file == NULL, TN_NO_MEMORY, "out of host memory");
	return TN_OK;
}

/* What grew most is first, what shrank most is last. */
static int
compare_drifts(const void *left, const void *right)
{
	const struct tn_drift *one = left, *other = right;
	int64_t first = one->after - one->before, second = other->after - other->before;
	if (first != second)
		return first > second ? -1 : 1;
	if (one->category != other->category)
		return one->category < other->category ? -1 : 1;
	int order = tn__compare_texts(one->at.file, other->at.file);
	return order != 0 ? order : (one->at.line > other->at.line) - (one->at.line < other->at.line);
}

static tn_status
compare_lists(struct tn_report_gate *gate, const struct tn_held_list *before, const struct tn_held_list *now)
{
	gate->drifts = calloc(before->count + now->count + 1, sizeof(*gate->drifts));
	TN_RETURN_IF(gate->drifts == NULL, TN_NO_MEMORY, "out of host memory");
	for (size_t i = 0, j = 0; i < before->count || j < now->count;) {
		int order = i == before->count ? 1 : j == now->count ? -1 : tn__compare_held(&before->items[i], &now->items[j]);
		TN_FORWARD_IF_ERROR(add_drift(gate, order <= 0 ? &before->items[i] : NULL, order >= 0 ? &now->items[j] : NULL));
		i += order <= 0;
		j += order >= 0;
	}
	qsort(gate->drifts, gate->drift_count, sizeof(*gate->drifts), compare_drifts);
	return TN_OK;
}

static tn_status
compare(struct tn_report *report)
{
	struct tn_report_gate *gate = &report->gate;
	struct tn_held_list now;
	gate->path = strdup(gate->baseline->path);
	gate->before = gate->baseline->device_peak;
	gate->told = gate->baseline->detailed && report->at_peak.detailed;
	TN_RETURN_IF(gate->path == NULL, TN_NO_MEMORY, "out of host memory");
	TN_FORWARD_IF_ERROR(tn__baseline_versions(gate->baseline, report));
	if (!gate->told)
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn__held_of_report(report, &now));
	tn_status status = compare_lists(gate, &gate->baseline->held, &now);
	tn__held_free(&now);
	return status;
}

/* ---- the two limits ---- */

static bool
is_unknown(struct tn_report *report, const char *what)
{
	if (report->device_peak != TN_NO_FIGURE)
		return false;
	tn__report_add_finding(report, TN_FINDING_limit_not_checked, TN_NO_FIGURE, NULL, NULL,
	                       "the %s was not checked, since the peak of the card is unknown", what);
	return true;
}

bool
tn__gate_budget(struct tn_report *report)
{
	struct tn_report_gate *gate = &report->gate;
	char above[32], budget[32];
	if (gate->budget == TN_NO_FIGURE || is_unknown(report, "budget"))
		return false;
	gate->over_budget = report->device_peak > gate->budget ? report->device_peak - gate->budget : 0;
	gate->budget_narrowly = report->uncertainty_lowest != TN_NO_FIGURE && report->uncertainty_lowest <= gate->budget &&
	                        gate->budget < report->uncertainty_highest;
	if (gate->over_budget == 0)
		return false;
	tn__report_add_finding(report, TN_FINDING_over_budget, gate->over_budget, report->at_peak.at,
	                       "a smaller batch, or what tonnage fix finds for a card with so much memory",
	                       "the peak is %s above the budget of %s", tn__human_bytes(gate->over_budget, above),
	                       tn__human_bytes(gate->budget, budget));
	return true;
}

/* "12.0 MiB of activations"; the line is the finding's. */
static void
add_over_baseline(struct tn_report *report, int64_t more)
{
	const struct tn_report_gate *gate = &report->gate;
	const struct tn_drift *most = gate->drift_count > 0 && gate->drifts[0].after > gate->drifts[0].before ? gate->drifts
	                                                                                                      : NULL;
	char above[32], part[32], of[128] = "";
	if (most != NULL)
		snprintf(of, sizeof(of), ", %s of it in %s", tn__human_bytes(most->after - most->before, part),
		         tn__category_words(most->category));
	tn__report_add_finding(report, TN_FINDING_over_baseline, more, most != NULL ? &most->at : NULL,
	                       "reduce what grew, or accept it with --write-baseline",
	                       "the peak grew by %s since the baseline%s", tn__human_bytes(more, above), of);
}

bool
tn__gate_baseline(struct tn_report *report)
{
	struct tn_report_gate *gate = &report->gate;
	if (gate->baseline == NULL || is_unknown(report, "baseline"))
		return false;
	if (compare(report) != TN_OK)
		gate->told = false;
	int64_t more = report->device_peak - gate->before;
	if ((double)more <= (double)gate->before * ((double)gate->tolerance / MILLION))
		return false;
	add_over_baseline(report, more);
	return true;
}
