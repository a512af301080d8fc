/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings of the analysis, taken over into the model.
 */
#include "verdict/trace_findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/findings.h"
#include "analyze/view.h"
#include "base/error.h"
#include "verdict/advice.h"
#include "verdict/finding_rows.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"

/* In the first step most may still be to come: then what the batch has brought already weighs more than the little that
 * one request lacked. */
static bool
outweighed(const struct tn_report *report, const struct tn_trace_finding *found)
{
	const struct tn_report_moment *moment = &report->at_oom;
	int64_t activations = moment->by_category[TN_CATEGORY_activations];
	if (activations != TN_NO_FIGURE && found->activations)
		activations -= (int64_t)found->bytes;
	return moment->detailed && activations != TN_NO_FIGURE && (int64_t)found->bytes < activations;
}

/* That model or batch are too big, or that something piles up, is what is left to say when nothing in particular was
 * seen. A leak that was watched over several steps stays one. */
static bool
is_the_reason(const struct tn_report *report, const struct tn_trace_finding *found)
{
	const struct tn_report_oom *oom = &report->oom;
	int64_t lacks = tn__report_short_by(report);
	uint64_t bytes = found->bytes + found->beside;
	if (!found->avoidable || !oom->seen || oom->cause == NULL || lacks <= 0 || bytes < (uint64_t)lacks)
		return false;
	if (report->need.bytes <= 0 && report->steps_seen <= 0 && outweighed(report, found))
		return false;
	enum tn_finding_id cause = tn__finding_of(oom->cause);
	if (cause == TN_FINDING_leak_suspected)
		return found->grows || (!report->growth.seen && !found->weighed);
	if (cause == TN_FINDING_fragmentation) /* pieces between what grows, or fewer bytes than what need not be there */
		return found->grows || (int64_t)found->bytes > report->at_oom.by_category[TN_CATEGORY_cached];
	return cause == TN_FINDING_model_or_batch_too_big && !found->weighed;
}

#define LEAST_RETRIES 3 /* one belongs to each out-of-memory */

/* What an optimizer copies as it loads its state is no update. */
static bool
is_of_loading(const struct tn_report *report, const struct tn_trace_finding *found)
{
	const char *phase = report->oom.seen ? report->oom.phase : NULL;
	return found->id == TN_FINDING_foreach_temporaries && phase != NULL && strcmp(phase, "load") == 0;
}

/* Segments come and go on a card with room, too: PyTorch empties its cache after cudnn.benchmark has tried the algorithms of a
 * new shape (aten/src/ATen/native/cudnn/Conv_v8.cpp), and when it captures a graph. */
static bool
is_harmless(const struct tn_report *report, const struct tn_trace_finding *found)
{
	return found->id == TN_FINDING_segment_churn && report->retries != TN_NO_FIGURE && report->retries < LEAST_RETRIES;
}

static void
add(struct tn_report *report, const struct tn_trace_finding *found)
{
	const struct tn_line *line = &found->at;
	struct tn_place *at = line->file != NULL
	                          ? tn__report_new_place(line->file, line->line, line->function, line->backward)
	                          : NULL;
	struct tn_finding *finding = tn__report_add_finding(report, found->id, (int64_t)found->bytes, at, NULL, "%s",
	                                                    found->what);
	tn__report_advise(report, finding, found->advice);
	if (finding != NULL)
		finding->sure = found->sure;
	if (finding != NULL && is_the_reason(report, found)) {
		tn__report_lead_with(report, finding);
		if (!report->growth.seen) /* that something piles up is told by the lead */
			tn__report_drop_findings(report, TN_FINDING_growth);
	}
	tn__report_free_place(at);
}

tn_status
tn__report_add_trace_findings(const struct tn_analysis *analysis, const struct tn_part_list *parts, uint32_t state,
                              struct tn_report *report)
{
	struct tn_trace_findings list;
	TN_FORWARD_IF_ERROR(tn__find_all(analysis, parts, state, &list));
	for (size_t i = 0; i < list.count; i++)
		if (!tn__report_has_finding(report, list.items[i].id) && !is_harmless(report, &list.items[i]) &&
		    !is_of_loading(report, &list.items[i]))
			add(report, &list.items[i]);
	return TN_OK;
}

/* The reason of an out-of-memory that is a call of the program is where that was made, not where memory ran out. */
static void
place_by_call(const struct tn_analysis *analysis, struct tn_report *report)
{
	static const struct {
		enum tn_finding_id id;
		const char *call;
	} reasons[] = { { TN_FINDING_gradients_live_through_forward, "zero_grad" },
		            { TN_FINDING_memory_fraction_limit, "memory_fraction" } };
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		struct tn_line line = tn__line_of_call(analysis, reasons[i].call, 0, INT64_MAX);
		struct tn_finding *finding = report->findings;
		if (!line.file || report->finding_count == 0 || !tn__finding_is(finding, reasons[i].id))
			continue;
		tn__report_free_place(finding->at);
		finding->at = tn__report_new_place(line.file, line.line, line.function, false);
	}
}

/* An out-of-memory stands at the end of its record. */
static tn_status
look_at(const struct tn_record *record, bool end, struct tn_report *report)
{
	struct tn_view *view;
	const struct tn_analysis *analysis;
	const struct tn_part_list *parts;
	TN_FORWARD_IF_ERROR(tn__views_open(report->views, record->path, &view));
	TN_FORWARD_IF_ERROR(tn__view_analysis(view, record->device, &analysis));
	uint32_t state = (uint32_t)analysis->events.count;
	tn_status status = end ? TN_OK : tn__find_peak_state(analysis, TN_UNKNOWN, &state);
	if (status == TN_OK)
		status = tn__view_parts(view, record->device, &parts);
	if (status == TN_OK)
		status = tn__report_add_trace_findings(analysis, parts, state, report);
	place_by_call(analysis, report);
	return status;
}

void
tn__report_add_trace_findings_of_run(struct tn_report *report)
{
	bool end = report->oom.seen && report->oom_record.path != NULL,
		 grew = tn__report_has_finding(report, TN_FINDING_growth);
	const struct tn_record *record = end ? &report->oom_record : &report->peak_record;
	if (record->path == NULL || report->views == NULL)
		return;
	(void)look_at(record, end, report);
	if (!grew)
		tn__report_drop_findings(report, TN_FINDING_growth);
}

void
tn__report_name_retainer(struct tn_report *report)
{
	for (size_t i = 0; i < report->finding_count && report->kept_in != NULL; i++) {
		struct tn_finding *finding = &report->findings[i];
		char *what = NULL;
		if (!tn__finding_is(finding, TN_FINDING_growth) || finding->what == NULL ||
		    asprintf(&what, "%s; kept in %s", finding->what, report->kept_in) < 0)
			continue;
		free(finding->what);
		finding->what = what;
		if (report->kept_at == NULL)
			continue;
		tn__report_free_place(finding->at);
		finding->at = tn__report_new_place(report->kept_at->file, report->kept_at->line, report->kept_at->function,
		                                   false);
	}
}
