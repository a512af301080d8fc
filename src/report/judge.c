/* SPDX-License-Identifier: Apache-2.0
 *
 * From what was seen to a verdict. The one place where exit statuses and verdicts are decided, so that every
 * writer and every command says the same.
 */
#include <string.h>
#include <sys/wait.h>

#include "gpu/catalogue.h"
#include "report/model.h"
#include "report/report.h"

/* The shell's convention: a status as it is, 128 + n for a signal. */
static int
shell_status(int wait_status)
{
	if (WIFSIGNALED(wait_status))
		return 128 + WTERMSIG(wait_status);
	return WEXITSTATUS(wait_status);
}

static enum tn_stopped
stopped_by(int reason)
{
	return reason == 1 ? TN_STOPPED_SETTLED : TN_STOPPED_LIMIT;
}

static void
decide(struct tn_report *report, const struct tn_ending *ending)
{
	int own = ending->ended ? shell_status(ending->wait_status) : 0;
	if (report->misuse != TN_MISUSE_NONE) {
		report->verdict = TN_VERDICT_FAILED;
		report->stopped = TN_STOPPED_FAILED;
		report->exit_status = 2;
	} else if (ending->interrupted_by != 0) {
		report->verdict = TN_VERDICT_FAILED;
		report->stopped = TN_STOPPED_INTERRUPTED;
		report->exit_status = 128 + ending->interrupted_by;
	} else if (ending->stop_reason != 0) {
		report->verdict = TN_VERDICT_FITS;
		report->stopped = stopped_by(ending->stop_reason);
		report->exit_status = 0;
	} else if (own == 0) {
		report->verdict = TN_VERDICT_FITS;
		report->stopped = ending->guest_stop != 0 ? stopped_by(ending->guest_stop) : TN_STOPPED_END;
		report->exit_status = 0;
	} else if (ending->guest_oom_ended || ending->guest_oom_open || ending->ledger_refused_last) {
		report->verdict = TN_VERDICT_OUT_OF_MEMORY;
		report->stopped = TN_STOPPED_OUT_OF_MEMORY;
		report->exit_status = 10;
	} else if (ending->guest_stop != 0 && report->rehearsal_broken != NULL) {
		/* Made to end early, and that is what it failed of: what was seen before holds. */
		report->verdict = TN_VERDICT_FITS;
		report->stopped = stopped_by(ending->guest_stop);
		report->exit_status = 0;
	} else {
		report->verdict = TN_VERDICT_FAILED;
		report->stopped = TN_STOPPED_FAILED;
		report->exit_status = own;
	}
}

static void
judge_oom(struct tn_report *report)
{
	struct tn_report_oom *oom = &report->oom;
	oom->seen = true;
	if (oom->requested_bytes != TN_NO_FIGURE && oom->free_bytes != TN_NO_FIGURE && oom->requested_bytes > oom->free_bytes)
		oom->short_by_bytes = oom->requested_bytes - oom->free_bytes;
	tn__report_find_cause(report);
}

/* ---- growth ---- */

#define TOO_FAR 1000000 /* units from now on: nobody waits for them, and a byte that was misjudged weighs too much */

/* What the card can give PyTorch's allocator. */
static int64_t
capacity_of(const struct tn_report *report)
{
	const struct tn_report_split *split = &report->at_peak.split;
	if (split->context == TN_NO_FIGURE)
		return (int64_t)(report->gpu.total_bytes - report->gpu.context_bytes);
	return (int64_t)report->gpu.total_bytes - split->context - split->libraries - split->other_processes;
}

static const char *
unit_of(const struct tn_report_growth *growth)
{
	return growth->unit != NULL ? growth->unit : "step";
}

static void
hint_of_growth(struct tn_report *report, const char *end)
{
	char bytes[32];
	tn__report_add_finding(report, "growth", TN_SEVERITY_HINT, report->growth.bytes, report->growth.at, NULL,
	                       "memory grows by %s a %s, %s", tn__human_bytes(report->growth.bytes, bytes),
	                       unit_of(&report->growth), end);
}

/* Memory that grows is a verdict of its own, unless the program was seen to its end. */
static void
judge_growth(struct tn_report *report)
{
	struct tn_report_growth *growth = &report->growth;
	char bytes[32];
	if (!growth->seen || growth->bytes <= 0 || growth->last == TN_NO_FIGURE || growth->peak == TN_NO_FIGURE)
		return;
	int64_t left = capacity_of(report) - growth->peak;
	int64_t more = left > 0 ? left / growth->bytes + (left % growth->bytes > 0) : 0;
	bool far = more > TOO_FAR;
	growth->full_at = far ? TN_NO_FIGURE : growth->last + more;
	if (report->verdict != TN_VERDICT_FITS || report->stopped == TN_STOPPED_END)
		return;
	if (growth->of != TN_NO_FIGURE && (far || growth->full_at > growth->of)) {
		hint_of_growth(report, "but not enough to fill the card before the program ends");
	} else if (far) {
		hint_of_growth(report, "too little to fill the card in a million of them");
	} else {
		report->verdict = TN_VERDICT_GROWS;
		report->exit_status = 10;
		tn__report_add_finding(report, "growth", TN_SEVERITY_ERROR, growth->bytes, growth->at,
		                       "find what keeps these tensors: a list, or a graph that a loss still holds "
		                       "(loss.item() or .detach() lets it go)",
		                       "memory that is never given back: %s more with each %s",
		                       tn__human_bytes(growth->bytes, bytes), unit_of(growth));
	}
}

/* The bytes that a card would have to offer: the peak, or what was held and asked for when the card was full. */
static int64_t
needed_bytes(const struct tn_report *report)
{
	int64_t needed = report->device_peak;
	if (needed == TN_NO_FIGURE)
		return TN_NO_FIGURE;
	int64_t held = report->at_oom.device_bytes;
	if (report->verdict == TN_VERDICT_OUT_OF_MEMORY && report->oom.requested_bytes != TN_NO_FIGURE &&
	    held != TN_NO_FIGURE && held + report->oom.requested_bytes > needed)
		needed = held + report->oom.requested_bytes;
	return needed;
}

static void
judge_bounds(struct tn_report *report)
{
	if (report->device_peak == TN_NO_FIGURE || report->context_lowest == TN_NO_FIGURE ||
	    report->at_peak.split.context == TN_NO_FIGURE)
		return;
	/* Several processes may each hold a context: the error scales with what the ledger counted. */
	int64_t context = (int64_t)report->gpu.context_bytes;
	int64_t contexts = context > 0 ? report->at_peak.split.context / context : 0;
	report->uncertainty_lowest = report->device_peak - contexts * (context - report->context_lowest);
	report->uncertainty_highest = report->device_peak + contexts * (report->context_highest - context);
	/* The card's limit lies between the bounds of what the program needed: of the peak, or of what did not fit. */
	int64_t total = (int64_t)report->gpu.total_bytes, needed = needed_bytes(report);
	int64_t below = report->device_peak - report->uncertainty_lowest;
	int64_t above = report->uncertainty_highest - report->device_peak;
	report->narrowly = needed - below <= total && total < needed + above;
}

void
tn__report_judge(struct tn_report *report, const struct tn_ending *ending)
{
	decide(report, ending);
	judge_growth(report);
	if (report->verdict == TN_VERDICT_OUT_OF_MEMORY)
		judge_oom(report);
	judge_bounds(report);
	int64_t needed = needed_bytes(report);
	if (needed > 0) {
		const struct tn_gpu_row *row = tn__gpu_smallest((uint64_t)needed, report->gpu.context_bytes);
		report->smallest_gpu = row != NULL ? row->figures.alias : NULL;
	}
}
