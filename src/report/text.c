/* SPDX-License-Identifier: Apache-2.0
 *
 * The report for a person: the verdict and its scope, the place, the bytes, what was not real, what to do next.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "gpu/catalogue.h"
#include "report/ranks.h"
#include "report/report.h"
#include "report/text.h"
#include "verdict/executions.h"
#include "verdict/finding_rows.h"
#include "verdict/job.h"
#include "verdict/judge.h"
#include "verdict/paths.h"
#include "verdict/programs.h"

#define LABEL_COLUMN 8
#define DOUBT_COLUMN 16

/* ---- parts of the report ---- */

static const char *
card(const struct tn_report *report, char buffer[160])
{
	char total[32];
	tn__human_bytes((int64_t)report->gpu.total_bytes, total);
	if (tn__job_nodes(report) > 1)
		snprintf(buffer, 160, "%lld nodes of %lld x %s (%s each)", (long long)tn__job_nodes(report),
		         (long long)report->job.cards, report->gpu.name, total);
	else if (report->gpus > 1)
		snprintf(buffer, 160, "%d x %s (%s each)", report->gpus, report->gpu.name, total);
	else
		snprintf(buffer, 160, "%s (%s)", report->gpu.name, total);
	return buffer;
}

static void
say_failure(const struct tn_printer *printer, const struct tn_report *report)
{
	int status = report->exit_status;
	if (report->hang.seen)
		tn__say(printer, TN_TINT_BAD, 0, "Ranks of the program wait for each other forever: no verdict on memory");
	else if (status > 128 && status < 128 + 65)
		tn__say(printer, TN_TINT_BAD, 0, "The program was ended by signal %d (%s): no verdict on memory", status - 128,
		        strsignal(status - 128));
	else
		tn__say(printer, TN_TINT_BAD, 0, "The program failed with status %d: no verdict on memory", status);
	char path[TN_PLACE_TEXT];
	if (report->exception != NULL && report->exception_at != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "%s%s%lld  %s",
		        tn__shown_path(report, printer->style, report->exception_at->file, path),
		        tn__before_line(report->exception_at->file), (long long)report->exception_at->line, report->exception);
	else if (report->exception != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "%s", report->exception);
	tn__say_hang(printer, report);
}

/* What a status of 0 leaves open: told at once, so that nobody stops reading at "Fits". */
static bool
is_about_the_ending(const struct tn_finding *finding)
{
	return tn__finding_is(finding, TN_FINDING_ended_by_oom_inside) ||
	       tn__finding_is(finding, TN_FINDING_ended_with_zero);
}

/* A refused call may be what the program failed of. */
static bool
is_about_a_failure(const struct tn_report *report, const struct tn_finding *finding)
{
	bool found = tn__finding_is(finding, TN_FINDING_refused_calls) || tn__finding_is(finding, TN_FINDING_hang) ||
	             tn__finding_is(finding, TN_FINDING_dead_rank);
	return found && report->verdict == TN_VERDICT_FAILED;
}

/* The findings that a person reads before anything else. */
static bool
is_told_first(const struct tn_report *report, const struct tn_finding *finding)
{
	return is_about_the_ending(finding) || is_about_a_failure(report, finding) ||
	       (report->verdict == TN_VERDICT_UNDECIDED && finding->severity == TN_SEVERITY_ERROR);
}

void
tn__say_finding(const struct tn_printer *printer, const struct tn_report *report, const struct tn_finding *finding,
                bool with_place)
{
	char place[TN_PLACE_TEXT] = "";
	if (with_place)
		tn__place_words(report, printer->style, finding->at, place);
	tn__say(printer, TN_TINT_NONE, 2, "%s: %s%s%s%s%s%s%s%s", tn__severity_text(finding->severity), place,
	        place[0] != '\0' ? ": " : "", finding->what, finding->sure != NULL ? " (" : "",
	        finding->sure != NULL ? finding->sure : "", finding->sure != NULL ? ")" : "",
	        finding->advice != NULL ? "; " : "", finding->advice != NULL ? finding->advice : "");
}

/* Why nothing is decided, and what would decide it: the first reason stands in the verdict's own line. */
static void
say_undecided(const struct tn_printer *printer, const struct tn_report *report, const char *name)
{
	bool first = true;
	for (size_t i = 0; i < report->finding_count; i++) {
		const struct tn_finding *doubt = &report->findings[i];
		if (!is_told_first(report, doubt) || is_about_the_ending(doubt))
			continue;
		if (first)
			tn__say(printer, TN_TINT_BAD, 0, "Undecided on %s: %s", name, doubt->what);
		else
			tn__say(printer, TN_TINT_NONE, 2, "also: %s", doubt->what);
		if (doubt->advice != NULL)
			tn__say_labelled(printer, "To decide it", DOUBT_COLUMN, "%s", doubt->advice);
		first = false;
	}
	if (first)
		tn__say(printer, TN_TINT_BAD, 0, "Undecided on %s", name);
}

static bool
is_over_a_limit(const struct tn_report *report)
{
	return report->verdict == TN_VERDICT_OVER_BUDGET || report->verdict == TN_VERDICT_OVER_BASELINE ||
	       report->verdict == TN_VERDICT_OVER_HOST_MEMORY;
}

/* The peak is a figure, or a bound of it where bytes hang on what was assumed. */
static const char *
bound_words(const struct tn_report *report)
{
	static const char *const words[] = { "", "at least ", "at most " };
	return words[report->bound];
}

/* "2 programs at once"; nothing for one. */
static const char *
together(const struct tn_report *report, const char *before, const char *behind, char out[48])
{
	out[0] = '\0';
	if (report->programs.count > 0)
		snprintf(out, 48, "%s%zu programs at once%s", before, report->programs.count, behind);
	return out;
}

static void
say_verdict(const struct tn_printer *printer, const struct tn_report *report)
{
	char name[160], peak[32], spare[32], number[48];
	card(report, name);
	if (report->verdict == TN_VERDICT_OUT_OF_MEMORY) {
		tn__say(printer, TN_TINT_BAD, 0, "Does not fit on %s%s%s", name, together(report, ": ", "", number),
		        report->bound == TN_PEAK_UPPER ? ", if as much is selected as was assumed" : "");
	} else if (report->verdict == TN_VERDICT_GROWS) {
		tn__say(printer, TN_TINT_BAD, 0, "Does not last on %s: full at %s %s", name,
		        report->growth.unit != NULL ? report->growth.unit : "step", tn__grouped(report->growth.full_at, peak));
	} else if (report->verdict == TN_VERDICT_SPILLS) {
		tn__say_spilled(printer, report, name);
	} else if (is_over_a_limit(report)) {
		tn__say_over(printer, report, name);
	} else if (report->stopped == TN_STOPPED_INTERRUPTED) {
		tn__say(printer, TN_TINT_BAD, 0, "Interrupted: no verdict for %s", name);
	} else if (report->verdict == TN_VERDICT_FAILED) {
		say_failure(printer, report);
	} else if (report->verdict == TN_VERDICT_UNDECIDED) {
		say_undecided(printer, report, name);
	} else if (report->device_peak == TN_NO_FIGURE) {
		tn__say(printer, TN_TINT_GOOD, 0, "Fits on %s", name);
	} else if (tn__report_at_the_end(report) > report->device_peak) {
		int64_t end = tn__report_at_the_end(report);
		tn__say(printer, TN_TINT_GOOD, 0, "Fits on %s: %s at the end of what grows, %s to spare", name,
		        tn__human_bytes(end, peak), tn__human_bytes((int64_t)report->gpu.total_bytes - end, spare));
	} else {
		tn__say(printer, TN_TINT_GOOD, 0, "Fits on %s: %s%s%s at the peak, %s to spare", name,
		        together(report, "", ", ", number), bound_words(report), tn__human_bytes(report->device_peak, peak),
		        tn__human_bytes((int64_t)report->gpu.total_bytes - report->device_peak, spare));
	}
	for (size_t i = 0; i < report->finding_count; i++)
		if (is_about_the_ending(&report->findings[i]) || is_about_a_failure(report, &report->findings[i]))
			tn__say_finding(printer, report, &report->findings[i], false);
	if (report->narrowly && report->verdict == TN_VERDICT_FITS &&
	    report->uncertainty_highest > (int64_t)report->gpu.total_bytes) /* what did not fit was not seen to its end */
		tn__say(printer, TN_TINT_NONE, 2,
		        "narrowly: the peak may be up to %s higher (%sthe CUDA context, kernels as they "
		        "load), and that decides",
		        tn__human_bytes(report->uncertainty_highest - report->device_peak, peak),
		        report->system.display > 0 ? "the desktop, " : "");
}

static void
say_files(const struct tn_printer *printer, const struct tn_report *report)
{
	if (report->gate.written != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "the baseline is in %s", report->gate.written);
	if (report->snapshot != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "PyTorch's memory snapshot is in %s", report->snapshot);
	if (!report->writes_allowed)
		tn__say_changes(printer, report);
}

/* What one request lacked says little of what is missing in all. */
static void
say_need(const struct tn_printer *printer, const struct tn_report *report)
{
	int64_t least = report->need.least, more = least - (int64_t)report->gpu.total_bytes;
	char needed[32], missing[32], steps[48];
	bool several = report->programs.count > 0;
	const char *who = several ? "they need" : "it needs", *whose = several ? "their" : "its";
	if (least <= 0)
		return;
	tn__human_bytes(least, needed);
	if (several)
		snprintf(steps, sizeof(steps), "their first steps");
	else if (report->need.steps > 1)
		snprintf(steps, sizeof(steps), "its first %lld %ss", (long long)report->need.steps, tn__step_word(report));
	else
		snprintf(steps, sizeof(steps), "its first %s", tn__step_word(report));
	if (more > 0)
		tn__say(printer, TN_TINT_NONE, 2, "in total %s %s for %s: %s more than the card has", who, needed, steps,
		        tn__human_bytes(more, missing));
	else
		tn__say(printer, TN_TINT_NONE, 2, "in total %s %s for %s, plus what lies unused between %s tensors", who,
		        needed, steps, whose);
}

static void
say_oom(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_report_oom *oom = &report->oom;
	char asked[32], available[32], missing[32];
	fputc('\n', printer->out);
	tn__say_failing_program(printer, report);
	tn__say_oom_place(printer, report);
	if (oom->requested_bytes == TN_NO_FIGURE)
		return;
	tn__human_bytes(oom->requested_bytes, asked);
	if (oom->short_by_bytes != TN_NO_FIGURE)
		tn__say(printer, TN_TINT_NONE, 2, "asked %s, %s free: short by %s", asked,
		        tn__human_bytes(oom->free_bytes, available), tn__human_bytes(oom->short_by_bytes, missing));
	else if (oom->free_bytes != TN_NO_FIGURE)
		tn__say(printer, TN_TINT_NONE, 2, "asked %s, %s free on the card", asked,
		        tn__human_bytes(oom->free_bytes, available));
	else
		tn__say(printer, TN_TINT_NONE, 2, "asked %s", asked);
	say_need(printer, report);
	if (oom->computed)
		tn__say(printer, TN_TINT_NONE, 2,
		        "the size came from a value that was not computed (kernels do not run on a "
		        "virtual GPU): this may not be a real shortage");
}

#define KEPT_IN "; kept in " /* as the finding says it */

/* Where memory grows, how much, what that comes to, and what keeps it. */
static void
say_growth(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_report_growth *growth = &report->growth;
	const char *unit = growth->unit != NULL ? growth->unit : "step";
	char bytes[32], words[TN_PLACE_TEXT];
	fputc('\n', printer->out);
	tn__say(printer, TN_TINT_NONE, 2, "Memory grows by %s with each %s (seen from %s %lld to %lld)",
	        tn__human_bytes(growth->bytes, bytes), unit, unit, (long long)growth->first, (long long)growth->last);
	tn__place_words(report, printer->style, growth->at, words);
	if (words[0] != '\0')
		tn__say(printer, TN_TINT_NONE, 2, "%s", words);
	for (size_t i = 0; i < report->finding_count; i++) {
		const struct tn_finding *finding = &report->findings[i];
		const char *kept = tn__finding_is(finding, TN_FINDING_growth) ? strstr(finding->what, KEPT_IN) : NULL;
		if (kept == NULL)
			continue;
		tn__place_words(report, printer->style, finding->at, words);
		tn__say(printer, TN_TINT_NONE, 2, "%s%s%s", kept + 2, words[0] != '\0' ? ", added at " : "", words);
	}
}

/* ---- what follows from it ---- */

/* The finding that explains the verdict; NULL when nothing does. */
static const struct tn_finding *
reason_of(const struct tn_report *report)
{
	bool bad = report->verdict == TN_VERDICT_OUT_OF_MEMORY || report->verdict == TN_VERDICT_GROWS ||
	           report->verdict == TN_VERDICT_SPILLS || is_over_a_limit(report);
	for (size_t i = 0; i < report->finding_count && bad; i++)
		if (!is_about_the_ending(&report->findings[i]))
			return report->findings[i].severity == TN_SEVERITY_ERROR ? &report->findings[i] : NULL;
	return NULL;
}

/* A limit of the program's own, and memory of the computer itself, are no card's to give; a leak fills any card. */
static bool
larger_card_helps(const struct tn_report *report)
{
	enum tn_finding_id cause = tn__finding_of(report->oom.cause);
	return cause != TN_FINDING_memory_fraction_limit && cause != TN_FINDING_host_ram &&
	       cause != TN_FINDING_leak_suspected;
}

/* What the moment alone seemed to say, where the trace has shown what is enough. */
static bool
is_outdone(const struct tn_report *report, const struct tn_finding *finding)
{
	return report->verdict == TN_VERDICT_OUT_OF_MEMORY && finding->severity == TN_SEVERITY_HINT &&
	       tn__is_cause(finding) && finding->bytes == report->oom.short_by_bytes;
}

void
tn__say_findings(const struct tn_printer *printer, const struct tn_report *report)
{
	for (size_t i = 0; i < report->finding_count; i++) {
		const struct tn_finding *finding = &report->findings[i];
		if (finding != reason_of(report) && !is_told_first(report, finding) && !is_outdone(report, finding))
			tn__say_finding(printer, report, finding, finding->severity != TN_SEVERITY_ERROR);
	}
}

static bool
limits_itself(const struct tn_report *report)
{
	return tn__finding_of(report->oom.cause) == TN_FINDING_memory_fraction_limit;
}

/* For a verdict that names no larger card anyway. */
static void
say_smallest(const struct tn_printer *printer, const struct tn_report *report, const struct tn_gpu_row *row)
{
	bool out = report->verdict == TN_VERDICT_OUT_OF_MEMORY;
	bool whole = !out && report->verdict != TN_VERDICT_FAILED && report->verdict != TN_VERDICT_UNDECIDED;
	const char *what = out ? "it" : whole ? "this peak" : "what was seen";
	char total[32];
	if (report->device_peak <= 0 || report->stopped == TN_STOPPED_INTERRUPTED || report->verdict == TN_VERDICT_GROWS ||
	    (out && (row != NULL || limits_itself(report))))
		return;
	if (out && report->need.bytes <= 0)
		return;
	if (row == NULL)
		tn__say(printer, TN_TINT_NONE, 2, "Smallest card that would hold %s: none of the catalogue", what);
	else
		tn__say(printer, TN_TINT_NONE, 2, "Smallest card that would hold %s: %s (%s)", what, row->figures.name,
		        tn__human_bytes((int64_t)row->figures.total_bytes, total));
}

static const struct tn_gpu_row *
smallest_card(const struct tn_report *report)
{
	return report->smallest_gpu != NULL ? tn__gpu_find(report->smallest_gpu) : NULL;
}

static void
say_larger_card(const struct tn_printer *printer, const struct tn_gpu_row *row)
{
	char total[32];
	tn__say_labelled(printer, "", LABEL_COLUMN, "or a larger card: %s (%s) would hold it as it is", row->figures.name,
	                 tn__human_bytes((int64_t)row->figures.total_bytes, total));
}

/* A line of its own, to be copied: with the card that this report is about. */
static void
say_fix_command(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_gpu_row *row = report->gpu.alias[0] != '\0' ? tn__gpu_find(report->gpu.alias) : NULL;
	bool spills = report->verdict == TN_VERDICT_SPILLS;
	const struct tn_report_moment *moment = spills ? &report->at_peak : &report->at_oom;
	int64_t others = moment->by_category[TN_CATEGORY_other_processes];
	const char *command = report->command;
	if (report->programs.count > 0) { /* what makes this one fit beside the others */
		others = tn__programs_beside_at_most(report);
		command = report->programs.items[report->programs.failing].command;
	}
	char card[64] = "", memory[48] = "", other[48] = "", gpus[32] = "", host[48] = "", inputs[48] = "", bytes[32];
	if (row != NULL && !report->real_gpu)
		snprintf(card, sizeof(card), "--gpu %s ", report->gpu.alias);
	if (row != NULL && row->figures.total_bytes != report->gpu.total_bytes)
		snprintf(memory, sizeof(memory), "--memory %s ", tn__typed_bytes(report->gpu.total_bytes, bytes));
	if (others > 0)
		snprintf(other, sizeof(other), "--other %s ", tn__typed_bytes((uint64_t)others, bytes));
	if (report->gpus > 1)
		snprintf(gpus, sizeof(gpus), "--gpus %d ", report->gpus);
	if (report->host.limit != TN_NO_FIGURE)
		snprintf(host, sizeof(host), "--host-memory %s ", tn__typed_bytes((uint64_t)report->host.limit, bytes));
	if (report->inputs.order != NULL && strcmp(report->inputs.order, "longest") == 0)
		snprintf(inputs, sizeof(inputs), "--inputs longest ");
	else if (report->inputs.padded_to > 0)
		snprintf(inputs, sizeof(inputs), "--inputs pad=%" PRId64 " ", report->inputs.padded_to);
	char *then = tn__then_options(report);
	if (report->executions != NULL)
		command = report->executions->reports[0]->command;
	tn__say_labelled(printer, "", LABEL_COLUMN, "tonnage fix %s%s%s%s%s%s%s%s-- %s", card, memory, other, gpus, host,
	                 inputs, report->options != NULL ? report->options : "", then != NULL ? then : "", command);
	free(then);
}

/* The reason in words; its line, where that is not the one that ran out. */
static void
say_why(const struct tn_printer *printer, const struct tn_report *report, const struct tn_finding *reason)
{
	const struct tn_place *at = reason->at, *out = report->oom.at;
	const char *slash = at != NULL && at->file != NULL ? strrchr(at->file, '/') : NULL;
	bool elsewhere = at != NULL && at->file != NULL &&
	                 (out == NULL || out->file == NULL || at->line != out->line || strcmp(at->file, out->file) != 0);
	if (elsewhere)
		tn__say_labelled(printer, "Why", LABEL_COLUMN, "%s (%s%s%lld)", reason->what,
		                 slash != NULL ? slash + 1 : at->file, tn__before_line(at->file), (long long)at->line);
	else
		tn__say_labelled(printer, "Why", LABEL_COLUMN, "%s", reason->what);
}

/* Why, what to do about it, and the card that would take it as it is. */
void
tn__say_next(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_gpu_row *row = smallest_card(report);
	const struct tn_finding *reason = reason_of(report);
	bool out = report->verdict == TN_VERDICT_OUT_OF_MEMORY || report->verdict == TN_VERDICT_SPILLS;
	if (reason == NULL && !out)
		return;
	fputc('\n', printer->out);
	if (out && reason != NULL && reason->what != NULL) /* growth has been told at the top */
		say_why(printer, report, reason);
	if (reason != NULL && reason->advice != NULL)
		tn__say_labelled(printer, "Next", LABEL_COLUMN, "%s", reason->advice);
	else
		tn__say_labelled(printer, "Next", LABEL_COLUMN, "a smaller batch%s",
		                 row == NULL ? ", or more than one card" : "");
	if (out && row != NULL && report->need.bytes > 0 && larger_card_helps(report))
		say_larger_card(printer, row);
	bool host = out && tn__finding_of(report->oom.cause) == TN_FINDING_host_ram;
	bool named = report->programs.count == 0 || (out && report->programs.failing != TN_NO_FIGURE);
	if (report->command != NULL && !host && report->job.ranks == 0 && named &&
	    !report->requests
	         .known) /* fix knows no ranks that are stood in for, and requests are not in the report's words */
		say_fix_command(printer, report);
}

/* ---- for other writers ---- */

void
tn__say_head(const struct tn_printer *printer, const struct tn_report *report)
{
	say_verdict(printer, report);
	if (report->oom.seen)
		say_oom(printer, report);
	else if (report->verdict == TN_VERDICT_GROWS)
		say_growth(printer, report);
	tn__say_system(printer, report);
	tn__say_gate(printer, report);
	tn__say_host(printer, report);
}

void
tn__say_scope(const struct tn_printer *printer, const struct tn_report *report)
{
	tn__say_programs(printer, report);
	tn__say_cards(printer, report);
	tn__say_regions_in_line(printer, report);
	tn__say_seen(printer, report);
	tn__say_inputs(printer, report);
	tn__say_requests(printer, report);
	tn__say_not_seen(printer, report);
	tn__say_unreal(printer, report);
}

const struct tn_finding *
tn__reason_of(const struct tn_report *report)
{
	return reason_of(report);
}

/* ---- the whole ---- */

tn_status
tn__report_text(const struct tn_report *report, struct tn_style style, FILE *out)
{
	struct tn_printer printer = { out, style };
	tn__say_executions(&printer, report);
	tn__say_head(&printer, report);
	tn__say_bytes(&printer, report);
	if (report->programs.count > 0)
		fputc('\n', out);
	tn__say_programs(&printer, report);
	tn__say_next(&printer, report);
	fputc('\n', out);
	tn__say_cards(&printer, report);
	tn__say_regions(&printer, report);
	tn__say_allocator(&printer, report);
	say_smallest(&printer, report, smallest_card(report));
	tn__say_seen(&printer, report);
	tn__say_inputs(&printer, report);
	tn__say_requests(&printer, report);
	tn__say_not_seen(&printer, report);
	tn__say_unreal(&printer, report);
	tn__say_findings(&printer, report);
	say_files(&printer, report);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "the report could not be written");
	return TN_OK;
}
