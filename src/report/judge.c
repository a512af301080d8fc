/* SPDX-License-Identifier: Apache-2.0
 *
 * From what was seen to a verdict. The one place where exit statuses and verdicts are decided, so that every
 * writer and every command says the same.
 */
#include <string.h>
#include <sys/wait.h>

#include "gpu/catalogue.h"
#include "report/model.h"

/* The shell's convention: a status as it is, 128 + n for a signal. */
static int
shell_status(int wait_status)
{
	if (WIFSIGNALED(wait_status))
		return 128 + WTERMSIG(wait_status);
	return WEXITSTATUS(wait_status);
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
		report->stopped = ending->stop_reason == 1 ? TN_STOPPED_SETTLED : TN_STOPPED_LIMIT;
		report->exit_status = 0;
	} else if (own == 0) {
		report->verdict = TN_VERDICT_FITS;
		report->stopped = TN_STOPPED_END;
		report->exit_status = 0;
	} else if (ending->guest_oom_ended || ending->guest_oom_open || ending->ledger_refused_last) {
		report->verdict = TN_VERDICT_OUT_OF_MEMORY;
		report->stopped = TN_STOPPED_OUT_OF_MEMORY;
		report->exit_status = 10;
	} else {
		report->verdict = TN_VERDICT_FAILED;
		report->stopped = TN_STOPPED_FAILED;
		report->exit_status = own;
	}
}

/* What the ending alone makes certain; everything subtler is the analysis passes' work. */
static const char *
cause_of(const struct tn_report *report)
{
	const struct tn_report_oom *oom = &report->oom;
	int64_t room = (int64_t)(report->gpu.total_bytes - report->gpu.context_bytes);
	if (oom->requested_bytes == TN_UNKNOWN)
		return "unknown";
	if (oom->requested_bytes > room)
		return "too_big_single_request";
	if (oom->free_bytes != TN_UNKNOWN && oom->free_bytes >= oom->requested_bytes && oom->message != NULL &&
	    strstr(oom->message, "allowed") != NULL)
		return "memory_fraction_limit";
	if (oom->short_by_bytes > 0 && report->at_oom.other_processes >= oom->short_by_bytes)
		return "other_process";
	return "unknown";
}

static void
judge_oom(struct tn_report *report)
{
	struct tn_report_oom *oom = &report->oom;
	oom->seen = true;
	if (oom->requested_bytes != TN_UNKNOWN && oom->free_bytes != TN_UNKNOWN && oom->requested_bytes > oom->free_bytes)
		oom->short_by_bytes = oom->requested_bytes - oom->free_bytes;
	if (oom->cause == NULL)
		oom->cause = strdup(cause_of(report));
}

/* The bytes that a card would have to offer: the peak, or what was held and asked for when the card was full. */
static int64_t
needed_bytes(const struct tn_report *report)
{
	int64_t needed = report->device_peak;
	if (needed == TN_UNKNOWN)
		return TN_UNKNOWN;
	const struct tn_report_split *split = &report->at_oom;
	if (report->verdict == TN_VERDICT_OUT_OF_MEMORY && report->oom.requested_bytes != TN_UNKNOWN &&
	    split->context != TN_UNKNOWN) {
		int64_t held = split->context + split->program + split->libraries + split->other_processes;
		if (held + report->oom.requested_bytes > needed)
			needed = held + report->oom.requested_bytes;
	}
	return needed;
}

static void
judge_bounds(struct tn_report *report)
{
	if (report->device_peak == TN_UNKNOWN || report->context_lowest == TN_UNKNOWN ||
	    report->at_peak.context == TN_UNKNOWN)
		return;
	/* Several processes may each hold a context: the error scales with what the ledger counted. */
	int64_t context = (int64_t)report->gpu.context_bytes;
	int64_t contexts = context > 0 ? report->at_peak.context / context : 0;
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
	if (report->verdict == TN_VERDICT_OUT_OF_MEMORY)
		judge_oom(report);
	judge_bounds(report);
	int64_t needed = needed_bytes(report);
	if (needed > 0) {
		const struct tn_gpu_row *row = tn__gpu_smallest((uint64_t)needed, report->gpu.context_bytes);
		report->smallest_gpu = row != NULL ? row->figures.alias : NULL;
	}
}
