/* SPDX-License-Identifier: Apache-2.0
 *
 * From what was seen to a verdict. The one place where exit statuses and verdicts are decided, so that every
 * writer and every command says the same.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/figure.h"
#include "gpu/catalogue.h"
#include "verdict/advice.h"
#include "verdict/finding_rows.h"
#include "verdict/gate.h"
#include "verdict/host_judge.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"
#include "verdict/paths.h"
#include "verdict/programs.h"

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
	return reason == TN_REASON_NONE       ? TN_STOPPED_END
	       : reason == TN_REASON_SETTLED  ? TN_STOPPED_SETTLED
	       : reason == TN_REASON_REQUESTS ? TN_STOPPED_REQUESTS
	                                      : TN_STOPPED_LIMIT;
}

static void
set(struct tn_report *report, enum tn_verdict verdict, enum tn_stopped stopped, int exit_status)
{
	report->verdict = verdict;
	report->stopped = stopped;
	report->exit_status = exit_status;
}

/* Doubts become findings, the first one first. */
static void
set_undecided(struct tn_report *report, enum tn_stopped stopped)
{
	set(report, TN_VERDICT_UNDECIDED, stopped, 12);
	for (size_t i = 0; i < report->doubt_count; i++) {
		const struct tn_doubt *doubt = &report->doubts[i];
		tn__report_add_finding(report, doubt->id, TN_NO_FIGURE, NULL, doubt->advice, "%s",
		                       doubt->what != NULL ? doubt->what : "");
	}
}

/* Nothing was against it; what speaks for it? */
static void
set_fits(struct tn_report *report, const struct tn_ending *ending, int reason)
{
	tn__report_find_doubts(report, ending);
	if (report->doubt_count > 0)
		set_undecided(report, stopped_by(reason));
	else
		set(report, TN_VERDICT_FITS, stopped_by(reason), 0);
}

static bool
doubts_failure(const struct tn_report *report)
{
	for (size_t i = 0; i < report->doubt_count; i++)
		if (report->doubts[i].failed_too)
			return true;
	return false;
}

bool
tn__ended_out_of_memory(const struct tn_ending *ending)
{
	bool well = ending->stop_reason != TN_REASON_NONE || (ending->ended && ending->wait_status == 0);
	return ending->guest_oom_last || ((!well || ending->open_decides) && ending->guest_oom_open);
}

static void
decide(struct tn_report *report, const struct tn_ending *ending)
{
	int own = ending->ended ? shell_status(ending->wait_status) : 0;
	bool well = ending->stop_reason != TN_REASON_NONE || own == 0;
	bool out = tn__ended_out_of_memory(ending) || (!well && ending->ledger_refused_last);
	if (report->misuse != TN_MISUSE_NONE)
		set(report, TN_VERDICT_FAILED, TN_STOPPED_FAILED, 2);
	else if (ending->interrupted_by != 0)
		set(report, TN_VERDICT_FAILED, TN_STOPPED_INTERRUPTED, 128 + ending->interrupted_by);
	else if (ending->hung)
		set(report, TN_VERDICT_FAILED, TN_STOPPED_FAILED, 124);
	else if (out)
		set(report, TN_VERDICT_OUT_OF_MEMORY, TN_STOPPED_OUT_OF_MEMORY, 10);
	else if (well)
		set_fits(report, ending, ending->stop_reason != TN_REASON_NONE ? ending->stop_reason : ending->guest_stop);
	else if (ending->guest_stop != TN_REASON_NONE && report->fast_forward_failed != NULL)
		/* Made to end early, and that is what it failed of: what was seen before holds. */
		set_fits(report, ending, ending->guest_stop);
	else if (doubts_failure(report))
		set_undecided(report, TN_STOPPED_FAILED);
	else
		set(report, TN_VERDICT_FAILED, TN_STOPPED_FAILED, own);
}

/* ---- a run whose status does not say what became of its processes ---- */

#define TOLD_PROCESSES 4

static const char *
name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash != NULL ? slash + 1 : path;
}

static void
tell_ended_inside(struct tn_report *report, const struct tn_counted *item)
{
	char place[PATH_MAX + 32] = "", asked[32], bytes[48] = "";
	const char *program = item->name == NULL     ? "a process of the run"
	                      : item->name[0] == '-' ? "python -c"
	                                             : name_of(item->name);
	if (item->place.file != NULL)
		snprintf(place, sizeof(place), " at %s%s%lld", name_of(item->place.file), tn__before_line(item->place.file),
		         (long long)item->place.line);
	if (item->bytes != TN_NO_FIGURE)
		snprintf(bytes, sizeof(bytes), " (asked %s)", tn__human_bytes(item->bytes, asked));
	tn__report_add_finding(report, TN_FINDING_ended_by_oom_inside, item->bytes, &item->place, NULL,
	                       "%s was ended by an out-of-memory%s%s; a process that started later went on without one",
	                       program, place, bytes);
}

static void
judge_ended_inside(struct tn_report *report, const struct tn_ending *ending)
{
	if (report->verdict == TN_VERDICT_OUT_OF_MEMORY && report->oom.swallowed)
		tn__report_add_finding(report, TN_FINDING_ended_with_zero, TN_NO_FIGURE, NULL, NULL,
		                       "PyTorch only warns of it (\"Failed to clone() tensor\") and goes on: tensors of this "
		                       "state dict are lost, and what is saved of it is no checkpoint");
	else if (report->verdict == TN_VERDICT_OUT_OF_MEMORY && tn__ended_well(ending))
		tn__report_add_finding(report, TN_FINDING_ended_with_zero, TN_NO_FIGURE, NULL,
		                       "`set -e` in a shell script makes it notice",
		                       "the script ended with status 0 all the same, as if nothing had happened");
	else if (report->verdict != TN_VERDICT_OUT_OF_MEMORY)
		for (size_t i = 0; i < report->ended_inside.count && i < TOLD_PROCESSES; i++)
			tell_ended_inside(report, &report->ended_inside.items[i]);
}

static void
judge_oom(struct tn_report *report)
{
	struct tn_report_oom *oom = &report->oom;
	oom->seen = true;
	if (oom->requested_bytes != TN_NO_FIGURE && oom->free_bytes != TN_NO_FIGURE &&
	    oom->requested_bytes > oom->free_bytes)
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
	return (int64_t)report->gpu.total_bytes - split->context - split->libraries - split->communication -
	       split->other_processes;
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
	tn__report_add_finding_as(report, TN_FINDING_growth, TN_SEVERITY_HINT, report->growth.bytes, report->growth.at,
	                          NULL, "memory grows by %s with each %s, %s", tn__human_bytes(report->growth.bytes, bytes),
	                          unit_of(&report->growth), end);
}

int64_t
tn__report_at_the_end(const struct tn_report *report)
{
	const struct tn_report_growth *growth = &report->growth;
	if (!growth->seen || growth->of == TN_NO_FIGURE || growth->last == TN_NO_FIGURE || growth->peak == TN_NO_FIGURE ||
	    report->stopped == TN_STOPPED_END)
		return TN_NO_FIGURE;
	int64_t of_others = (int64_t)report->gpu.total_bytes - capacity_of(report);
	return of_others + growth->peak + (growth->of - growth->last) * growth->bytes;
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
		char end[64];
		snprintf(end, sizeof(end), "and comes to %s by the last of them, which fits",
		         tn__human_bytes(tn__report_at_the_end(report), bytes));
		hint_of_growth(report, end);
	} else if (far) {
		hint_of_growth(report, "too little to fill the card in a million of them");
	} else {
		report->verdict = TN_VERDICT_GROWS;
		report->exit_status = 10;
		struct tn_finding *finding = tn__report_add_finding_as(
			report, TN_FINDING_growth, TN_SEVERITY_ERROR, growth->bytes, growth->at, NULL,
			"memory that is never freed: %s more with each %s", tn__human_bytes(growth->bytes, bytes), unit_of(growth));
		tn__report_advise(report, finding, tn__finding_row(TN_FINDING_growth)->advice);
	}
}

/* What a chat needs grows with what was said; where a conversation ends nobody knows, so the verdict stays. */
static void
judge_requests(struct tn_report *report)
{
	struct tn_requests *requests = &report->requests;
	char bytes[32], full[96] = "", number[32];
	if (!requests->known || requests->rises <= 0 || report->verdict != TN_VERDICT_FITS)
		return;
	int64_t left = capacity_of(report) - requests->highest;
	int64_t more = left > 0 ? left / requests->rises + 1 : 1;
	if (more <= TOO_FAR) {
		requests->full_at = requests->rounds + more;
		snprintf(full, sizeof(full), ": the card is full in round %s", tn__grouped(requests->full_at, number));
	}
	tn__report_add_finding(report, TN_FINDING_context_grows, requests->rises, NULL,
	                       "a longest conversation, kept by the server, is what makes this a limit",
	                       "each round of requests needs %s more than the one before, and gives it back%s",
	                       tn__human_bytes(requests->rises, bytes), full);
}

#define LARGEST_CARD 1e15 /* bytes: more than any will have */

/* The bytes that a card would have to offer: the peak, what a growth comes to, or what was held and asked for when the card was full. */
static int64_t
needed_bytes(const struct tn_report *report)
{
	int64_t needed = report->device_peak;
	if (needed == TN_NO_FIGURE)
		return TN_NO_FIGURE;
	if (report->verdict == TN_VERDICT_FITS && tn__report_at_the_end(report) > needed)
		return tn__report_at_the_end(report);
	int64_t held = report->at_oom.device_bytes;
	if (report->verdict == TN_VERDICT_OUT_OF_MEMORY && report->oom.requested_bytes != TN_NO_FIGURE &&
	    held != TN_NO_FIGURE && held + report->oom.requested_bytes > needed)
		needed = held + report->oom.requested_bytes;
	return report->verdict == TN_VERDICT_OUT_OF_MEMORY && report->need.bytes > needed ? report->need.bytes : needed;
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
	report->bounds[0] = (struct tn_unmeasured){ "context", contexts * (context - report->context_lowest),
		                                        contexts * (report->context_highest - context) };
	report->bounds[1] = (struct tn_unmeasured){ "kernels_and_libraries", contexts * report->unseen_below,
		                                        contexts * report->unseen_above };
	const struct tn_host_system *system = &report->system;
	if (system->display > 0)
		report->bounds[2] = (struct tn_unmeasured){ "display", system->display - system->display_lowest,
			                                        system->display_highest - system->display };
	report->uncertainty_lowest = report->uncertainty_highest = report->device_peak;
	for (size_t i = 0; i < sizeof(report->bounds) / sizeof(report->bounds[0]); i++) {
		report->uncertainty_lowest -= report->bounds[i].below;
		report->uncertainty_highest += report->bounds[i].above;
	}
	/* The card's limit lies between the bounds of what the program needed: of the peak, or of what did not fit. */
	int64_t total = (int64_t)report->gpu.total_bytes, needed = needed_bytes(report);
	int64_t below = report->device_peak - report->uncertainty_lowest;
	int64_t above = report->uncertainty_highest - report->device_peak;
	report->narrowly = needed - below <= total && total < needed + above;
}

/* As needed_bytes; but where PyTorch's own limit is what failed, a card's share must do, not the card. Not known when the
 * share is not. */
static int64_t
needed_card(const struct tn_report *report)
{
	const struct tn_report_oom *oom = &report->oom;
	int64_t needed = needed_bytes(report);
	if (report->verdict != TN_VERDICT_OUT_OF_MEMORY || tn__finding_of(oom->cause) != TN_FINDING_memory_fraction_limit)
		return needed;
	if (oom->fraction <= 0 || oom->reserved_bytes == TN_NO_FIGURE || oom->requested_bytes == TN_NO_FIGURE)
		return TN_NO_FIGURE;
	double card = ((double)oom->reserved_bytes + (double)oom->requested_bytes) / oom->fraction;
	if (card > LARGEST_CARD)
		card = LARGEST_CARD;
	int64_t whole = (int64_t)card + 1 + (int64_t)report->gpu.context_bytes;
	return whole > needed ? whole : needed;
}

bool
tn__report_has_kernels(const struct tn_report *report, const struct tn_gpu_figures *card)
{
	int major = card->compute_major, minor = card->compute_minor;
	for (size_t i = 0; i < report->facts.kernel_count; i++) {
		int number = report->facts.kernels[i], of = number < 0 ? -number : number;
		/* Machine code runs on its own generation from its own card on, code to be compiled on all that are newer. */
		if (number < 0 ? of <= 10 * major + minor : of / 10 == major && of % 10 <= minor)
			return true;
	}
	return report->facts.kernel_count == 0;
}

/* Its context is smaller or
 * larger than this card's, and known about as well: what it holds is less than its total in any case. */
const struct tn_gpu_row *
tn__report_smallest_card(const struct tn_report *report, int64_t needed)
{
	const struct tn_gpu_row *best = NULL;
	for (int i = 0; i < tn__gpu_count(); i++) {
		const struct tn_gpu_row *row = tn__gpu_row(i);
		const struct tn_gpu_figures *card = &row->figures;
		double share = tn__gpu_context_share(tn__gpu_figure_certainty(row, TN_GPU_FIGURE_CONTEXT));
		int64_t total = (int64_t)card->total_bytes, own = (int64_t)((double)card->context_bytes * (1 + share));
		int64_t beside = needed - (int64_t)report->gpu.context_bytes + report->unseen_above;
		if (total >= needed && total - own >= beside && tn__report_has_kernels(report, card) &&
		    (best == NULL || card->total_bytes < best->figures.total_bytes))
			best = row;
	}
	return best;
}

/* torch says so itself as it starts, and fails at its first kernel. */
static void
judge_kernels(struct tn_report *report)
{
	if (report->real_gpu || tn__report_has_kernels(report, &report->gpu))
		return;
	tn__report_add_finding(
		report, TN_FINDING_no_kernels, TN_NO_FIGURE, NULL, NULL,
		"this build of PyTorch has no kernels for this card (compute capability %d.%d): on a real one the "
		"program fails with \"no kernel image is available\", whatever its memory",
		report->gpu.compute_major, report->gpu.compute_minor);
}

/* A loss scaler skips each update where it finds no finite gradient, and a made-up value may be what it reads. */
static void
judge_updates(struct tn_report *report)
{
	if (report->facts.never_updated && report->verdict == TN_VERDICT_FITS)
		tn__report_add_finding(
			report, TN_FINDING_no_update, TN_NO_FIGURE, NULL,
			"let it make at least one update: a smaller number of accumulated batches, or a fixed loss scale",
			"backward passes ran, and no optimizer made an update: what its state takes is not in this peak");
}

/* Limits below the card's own. Only a program that fits was seen to its peak. */
static void
judge_limits(struct tn_report *report)
{
	struct tn_report_gate *gate = &report->gate;
	if (report->verdict != TN_VERDICT_FITS) {
		if (gate->wanted != NULL)
			tn__report_add_finding(report, TN_FINDING_no_baseline, TN_NO_FIGURE, NULL, NULL,
			                       "%s was not written: the run did not come to a peak that others can be held against",
			                       gate->wanted);
		return;
	}
	bool above = tn__gate_budget(report), more = tn__gate_baseline(report);
	if (above)
		report->verdict = TN_VERDICT_OVER_BUDGET;
	else if (more)
		report->verdict = TN_VERDICT_OVER_BASELINE;
	if (above || more)
		report->exit_status = 11;
}

void
tn__report_judge(struct tn_report *report, const struct tn_ending *ending)
{
	decide(report, ending);
	judge_ended_inside(report, ending);
	if (report->verdict != TN_VERDICT_UNDECIDED && report->verdict != TN_VERDICT_OUT_OF_MEMORY)
		tn__report_explain_refusals(report);
	judge_growth(report);
	judge_requests(report);
	tn__system_judge(report);
	if (report->verdict == TN_VERDICT_OUT_OF_MEMORY)
		judge_oom(report);
	judge_bounds(report);
	tn__programs_judge(report);
	judge_updates(report);
	judge_limits(report);
	tn__report_judge_host(report);
	judge_kernels(report);
	int64_t needed = needed_card(report);
	if (needed > 0) {
		const struct tn_gpu_row *row = tn__report_smallest_card(report, needed);
		report->smallest_gpu = row != NULL ? row->figures.alias : NULL;
	}
}
