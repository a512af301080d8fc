/* SPDX-License-Identifier: Apache-2.0
 *
 * The report for a person: the verdict and its scope, the place, the bytes, what was not real, what to do next.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "gpu/catalogue.h"
#include "report/printer.h"
#include "report/report.h"

#define CHAIN_FRAMES 3
#define SHOWN_NAMES 4

/* ---- places ---- */

/* Outside PyTorch, other packages and the standard library: the same rule as the guest's (doc/design/0002). */
static bool
users_own(const char *file)
{
	static const char *const foreign[] = { "/site-packages/", "/dist-packages/", "/lib/python", "/tonnage/guest/" };
	if (file[0] == '<')
		return false;
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (strstr(file, foreign[i]) != NULL)
			return false;
	return true;
}

static const char *
relative(const struct tn_report *report, const char *file)
{
	size_t length = report->working_folder != NULL ? strlen(report->working_folder) : 0;
	if (length > 1 && strncmp(file, report->working_folder, length) == 0 && file[length] == '/')
		return file + length + 1;
	return file;
}

/* A path for a person: below the working folder, or below the folder that packages are installed in. */
static const char *
shown_path(const struct tn_report *report, const char *file)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *at = strstr(file, folders[i]);
		if (at != NULL)
			return at + strlen(folders[i]);
	}
	return relative(report, file);
}

/* The innermost frame of a package other than PyTorch, where it is deeper than the user's own. */
static const struct tn_place *
package_frame(const struct tn_places *stack)
{
	for (size_t i = 0; i < stack->count && !users_own(stack->items[i].file); i++) {
		const char *file = stack->items[i].file;
		bool package = strstr(file, "/site-packages/") != NULL || strstr(file, "/dist-packages/") != NULL;
		if (package && strstr(file, "-packages/torch/") == NULL)
			return &stack->items[i];
	}
	return NULL;
}

/* The frames to show, innermost first: where a package asked, then the last of the user's own. */
static size_t
choose_frames(const struct tn_report_oom *oom, const struct tn_place *shown[CHAIN_FRAMES + 1])
{
	const struct tn_place *package = package_frame(&oom->stack);
	size_t count = 0;
	if (package != NULL)
		shown[count++] = package;
	for (size_t i = 0, own = 0; i < oom->stack.count && own < CHAIN_FRAMES; i++) {
		if (users_own(oom->stack.items[i].file)) {
			shown[count++] = &oom->stack.items[i];
			own++;
		}
	}
	if (count == 0 && oom->at != NULL)
		shown[count++] = oom->at;
	return count;
}

/* "train.py:41 -> model.py:88 forward", outermost first. The caller frees. */
static char *
chain(const struct tn_report *report, struct tn_style style)
{
	const struct tn_place *shown[CHAIN_FRAMES + 1];
	size_t count = choose_frames(&report->oom, shown);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	for (size_t i = count; i-- > 0;)
		fprintf(out, "%s:%lld%s", shown_path(report, shown[i]->file), (long long)shown[i]->line,
		        i == 0 ? "" : style.utf8 ? " \u2192 " : " -> ");
	if (count > 0 && shown[0]->function != NULL && shown[0]->function[0] != '<')
		fprintf(out, " %s", shown[0]->function);
	fclose(out);
	return text;
}

/* ---- parts of the report ---- */

static const char *
card(const struct tn_report *report, char buffer[160])
{
	char total[32];
	tn__human_bytes((int64_t)report->gpu.total_bytes, total);
	if (report->gpus > 1)
		snprintf(buffer, 160, "%d x %s (%s each)", report->gpus, report->gpu.name, total);
	else
		snprintf(buffer, 160, "%s (%s)", report->gpu.name, total);
	return buffer;
}

static void
say_failure(const struct tn_printer *printer, const struct tn_report *report)
{
	int status = report->exit_status;
	if (status > 128 && status < 128 + 65)
		tn__say(printer, TN_TINT_BAD, 0, "The program was ended by signal %d (%s): no verdict about memory",
		        status - 128, strsignal(status - 128));
	else
		tn__say(printer, TN_TINT_BAD, 0, "The program failed with status %d: no verdict about memory", status);
	if (report->exception != NULL && report->exception_at != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "%s:%lld  %s", shown_path(report, report->exception_at->file),
		        (long long)report->exception_at->line, report->exception);
	else if (report->exception != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "%s", report->exception);
}

static void
say_verdict(const struct tn_printer *printer, const struct tn_report *report)
{
	char name[160], peak[32], spare[32];
	card(report, name);
	if (report->verdict == TN_VERDICT_OUT_OF_MEMORY) {
		tn__say(printer, TN_TINT_BAD, 0, "Does not fit on %s", name);
	} else if (report->stopped == TN_STOPPED_INTERRUPTED) {
		tn__say(printer, TN_TINT_BAD, 0, "Interrupted: no verdict for %s", name);
	} else if (report->verdict == TN_VERDICT_FAILED) {
		say_failure(printer, report);
	} else if (report->device_peak == 0) {
		tn__say(printer, TN_TINT_GOOD, 0, "Fits on %s: the program never used the GPU", name);
	} else if (report->device_peak == TN_UNKNOWN) {
		tn__say(printer, TN_TINT_GOOD, 0, "Fits on %s", name);
	} else {
		tn__say(printer, TN_TINT_GOOD, 0, "Fits on %s: %s at the peak, %s to spare", name,
		        tn__human_bytes(report->device_peak, peak),
		        tn__human_bytes((int64_t)report->gpu.total_bytes - report->device_peak, spare));
	}
	if (report->narrowly)
		tn__say(printer, TN_TINT_NONE, 2, "narrowly: the CUDA context is known only to within %s, and that decides",
		        tn__human_bytes(report->uncertainty_highest - report->uncertainty_lowest, peak));
}

static void
say_scratch(const struct tn_printer *printer, const struct tn_report *report)
{
	if (report->scratch != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "what the program wrote is in %s; nothing real was changed",
		        report->scratch);
	else if (!report->writes_allowed)
		tn__say(printer, TN_TINT_DIM, 2, "the program changed no file");
}

/* What the verdict has seen: without this it would claim too much. */
static void
say_scope(const struct tn_printer *printer, const struct tn_report *report)
{
	static const char *const why[] = { "stopped when memory had settled", "stopped at the limit of steps or time",
		                               "the program ran to its end",      "the program ran out of memory",
		                               "the program failed",              "interrupted" };
	char steps[96], shapes[64] = "";
	if (report->steps_seen == 0)
		snprintf(steps, sizeof(steps), "no complete step");
	else if (report->steps_seen == TN_UNKNOWN)
		snprintf(steps, sizeof(steps), "no steps were recognised");
	else
		snprintf(steps, sizeof(steps), "%lld step%s", (long long)report->steps_seen,
		         report->steps_seen == 1 ? "" : "s");
	if (report->steps_seen > 0 && report->input_shapes > 0)
		snprintf(shapes, sizeof(shapes), " with %lld input shape%s", (long long)report->input_shapes,
		         report->input_shapes == 1 ? "" : "s");
	tn__say(printer, TN_TINT_NONE, 2, "Seen: %s%s; %s, %.1f s", steps, shapes, why[report->stopped], report->seconds);
}

static void
say_oom_place(const struct tn_printer *printer, const struct tn_report *report)
{
	static const struct {
		const char *phase, *words;
	} phases[] = { { "forward", "in the forward pass" }, { "backward", "in the backward pass" },
		           { "optimizer", "in the optimizer" },  { "build", "while building the model" },
		           { "load", "while loading" },          { "save", "while saving" },
		           { "evaluation", "in evaluation" },    { "data", "while preparing data" } };
	const struct tn_report_oom *oom = &report->oom;
	const char *where = oom->at != NULL && oom->at->backward ? "in the backward pass" : "";
	char step[48] = "";
	for (size_t i = 0; oom->phase != NULL && i < sizeof(phases) / sizeof(phases[0]); i++)
		if (strcmp(phases[i].phase, oom->phase) == 0)
			where = phases[i].words;
	if (oom->step > 0)
		snprintf(step, sizeof(step), " %s step %lld", where[0] != '\0' ? "of" : "in", (long long)oom->step);
	else if (oom->step == 0 && where[0] == '\0')
		snprintf(step, sizeof(step), " before the first step");
	tn__say(printer, TN_TINT_NONE, 2, "Out of memory%s%s%s", where[0] != '\0' ? " " : "", where, step);
	char *places = chain(report, printer->style);
	if (places != NULL && places[0] != '\0')
		tn__say(printer, TN_TINT_NONE, 2, "%s", places);
	else
		tn__say(printer, TN_TINT_NONE, 2, "the place is unknown: no Python hook saw it");
	free(places);
}

static void
say_oom(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_report_oom *oom = &report->oom;
	char asked[32], available[32], missing[32];
	fputc('\n', printer->out);
	say_oom_place(printer, report);
	if (oom->requested_bytes == TN_UNKNOWN)
		return;
	tn__human_bytes(oom->requested_bytes, asked);
	if (oom->short_by_bytes != TN_UNKNOWN)
		tn__say(printer, TN_TINT_NONE, 2, "asked %s, %s free: short by %s", asked,
		        tn__human_bytes(oom->free_bytes, available), tn__human_bytes(oom->short_by_bytes, missing));
	else if (oom->free_bytes != TN_UNKNOWN)
		tn__say(printer, TN_TINT_NONE, 2, "asked %s, %s free on the card", asked,
		        tn__human_bytes(oom->free_bytes, available));
	else
		tn__say(printer, TN_TINT_NONE, 2, "asked %s", asked);
	if (oom->computed)
		tn__say(printer, TN_TINT_NONE, 2, "the size came from a value that was not computed (kernels do not run on a "
		                                  "virtual GPU): this may not be a real shortage");
}

static const char *
source_of(const struct tn_report *report, const char *field)
{
	for (size_t i = 0; i < report->source_count; i++)
		if (strcmp(report->sources[i].field, field) == 0)
			return report->sources[i].text;
	return NULL;
}

static void
say_pytorch(const struct tn_printer *printer, const char *what, int64_t reserved, int64_t allocated, int64_t requested)
{
	char a[32], b[32], c[32];
	if (reserved == TN_UNKNOWN)
		return;
	tn__human_bytes(reserved, a);
	if (requested != TN_UNKNOWN)
		tn__say(printer, TN_TINT_NONE, 2, "PyTorch %s: reserved %s, allocated %s, requested by tensors %s", what, a,
		        tn__human_bytes(allocated, b), tn__human_bytes(requested, c));
	else
		tn__say(printer, TN_TINT_NONE, 2, "PyTorch %s: reserved %s, allocated %s", what, a,
		        tn__human_bytes(allocated, b));
}

static void
say_bytes(const struct tn_printer *printer, const struct tn_report *report)
{
	bool oom = report->oom.seen && report->at_oom.context != TN_UNKNOWN;
	const struct tn_report_split *split = oom ? &report->at_oom : &report->at_peak;
	if (split->context != TN_UNKNOWN && report->device_peak > 0) {
		int64_t total = (int64_t)report->gpu.total_bytes;
		int64_t held = split->context + split->program + split->libraries + split->other_processes;
		fprintf(printer->out, "\n  %-42s     GiB\n", oom ? "At that moment" : "At the peak");
		tn__say_row(printer, "PyTorch", split->program, total, NULL);
		if (split->other_processes > 0)
			tn__say_row(printer, "other processes", split->other_processes, total,
			            source_of(report, "at_peak.by_category.other_processes"));
		tn__say_row(printer, "CUDA context", split->context, total, source_of(report, "gpu.context_bytes"));
		if (split->libraries > 0)
			tn__say_row(printer, "libraries", split->libraries, total, NULL);
		if (held <= total)
			tn__say_row(printer, "free", total - held, total, NULL);
	}
	if (report->oom.seen)
		say_pytorch(printer, "at that moment", report->oom.reserved_bytes, report->oom.allocated_bytes, TN_UNKNOWN);
	if (!report->oom.seen || report->oom.reserved_bytes != report->reserved_peak)
		say_pytorch(printer, "at most", report->reserved_peak, report->allocated_peak, report->requested_peak);
}

/* ---- what was not real ---- */

static void
append_names(FILE *out, const struct tn_report *report, const struct tn_counted_list *list)
{
	for (size_t i = 0; i < list->count && i < SHOWN_NAMES; i++) {
		const struct tn_counted *item = &list->items[i];
		if (item->name != NULL)
			fprintf(out, "%s%s", i > 0 ? ", " : "", item->name);
		else
			fprintf(out, "%s%s:%lld", i > 0 ? ", " : "", shown_path(report, item->place.file),
			        (long long)item->place.line);
	}
	if (list->count > SHOWN_NAMES)
		fprintf(out, " and %zu more", list->count - SHOWN_NAMES);
}

static char *
names(const struct tn_report *report, const struct tn_counted_list *list)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	append_names(out, report, list);
	fclose(out);
	return text;
}

static int64_t
total_count(const struct tn_counted_list *list)
{
	int64_t sum = 0;
	for (size_t i = 0; i < list->count; i++)
		sum += list->items[i].count;
	return sum;
}

static void
say_list(const struct tn_printer *printer, const struct tn_report *report, const struct tn_counted_list *list,
         const char *format)
{
	if (list->count == 0)
		return;
	char *text = names(report, list);
	long long count = (long long)total_count(list);
	char words[256];
	snprintf(words, sizeof(words), format, count, count == 1 ? "" : "s");
	tn__say(printer, TN_TINT_DIM, 2, "%s: %s", words, text != NULL ? text : "");
	free(text);
}

static void
say_caveats(const struct tn_printer *printer, const struct tn_report *report)
{
	char bytes[32];
	say_list(printer, report, &report->computed_reads,
	         "kernels do not run on a virtual GPU: %lld computed value%s read back");
	say_list(printer, report, &report->refused_calls, "the virtual GPU refused %lld call%s that it does not answer");
	say_list(printer, report, &report->handled_ooms, "%lld out-of-memory error%s that the program handled itself");
	say_list(printer, report, &report->uploads_suppressed, "%lld upload%s kept from happening");
	if (report->init_skipped_bytes > 0)
		tn__say(printer, TN_TINT_DIM, 2,
		        "random initialisation of %lld tensors (%s) on the CPU was skipped; --init real does it",
		        (long long)report->init_skipped_tensors, tn__human_bytes(report->init_skipped_bytes, bytes));
	for (size_t i = 0; i < report->finding_count; i++) {
		const struct tn_finding *finding = &report->findings[i];
		tn__say(printer, TN_TINT_NONE, 2, "%s: %s%s%s", tn__severity_text(finding->severity), finding->what,
		        finding->advice != NULL ? "; " : "", finding->advice != NULL ? finding->advice : "");
	}
}

static void
say_next(const struct tn_printer *printer, const struct tn_report *report)
{
	char total[32];
	const struct tn_gpu_row *row = report->smallest_gpu != NULL ? tn__gpu_find(report->smallest_gpu) : NULL;
	if (report->device_peak <= 0 || report->stopped == TN_STOPPED_INTERRUPTED)
		return;
	const char *at_least = report->verdict == TN_VERDICT_OUT_OF_MEMORY || report->verdict == TN_VERDICT_FAILED
	                           ? "Smallest card that would hold what was seen"
	                           : "Smallest card that would hold this peak";
	if (row == NULL) {
		tn__say(printer, TN_TINT_NONE, 2, "%s: none of the catalogue", at_least);
	} else {
		tn__say(printer, TN_TINT_NONE, 2, "%s: %s (%s)", at_least, row->figures.name,
		        tn__human_bytes((int64_t)row->figures.total_bytes, total));
	}
	if (report->verdict != TN_VERDICT_OUT_OF_MEMORY)
		return;
	if (strcmp(report->oom.cause, "memory_fraction_limit") == 0)
		tn__say(printer, TN_TINT_NONE, 2, "Next: raise the limit that the program has set itself "
		                                  "(set_per_process_memory_fraction): the card had room");
	else if (row == NULL)
		tn__say(printer, TN_TINT_NONE, 2, "Next: a smaller batch, or more than one card");
	else
		tn__say(printer, TN_TINT_NONE, 2, "Next: a smaller batch, or tonnage run --gpu %s -- %s", report->smallest_gpu,
		        report->command != NULL ? report->command : "PROGRAM");
}

tn_status
tn__report_text(const struct tn_report *report, struct tn_style style, FILE *out)
{
	struct tn_printer printer = { out, style };
	say_verdict(&printer, report);
	say_scratch(&printer, report);
	if (report->snapshot != NULL)
		tn__say(&printer, TN_TINT_NONE, 2, "PyTorch's memory snapshot is in %s", report->snapshot);
	if (report->oom.seen)
		say_oom(&printer, report);
	say_bytes(&printer, report);
	fputc('\n', out);
	say_scope(&printer, report);
	say_caveats(&printer, report);
	say_next(&printer, report);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "the report could not be written");
	return TN_OK;
}
