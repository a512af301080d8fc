/* SPDX-License-Identifier: Apache-2.0
 *
 * Several programs that ran at the same time on one card, as JSON and for a person.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "report/json_parts.h"
#include "report/text.h"
#include "verdict/programs.h"

#define INDENT 4

/* The shell's convention. */
static int64_t
status_of(const struct tn_program *program)
{
	int status = program->wait_status;
	if (!program->ended)
		return TN_NO_FIGURE;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- JSON ---- */

static json_t *
moment(const struct tn_report_moment *of)
{
	if (of->device_bytes == TN_NO_FIGURE)
		return json_null();
	return json_pack("{s:o, s:o}", "device_bytes", tn__json_figure(of->device_bytes), "by_category",
	                 tn__json_categories(of));
}

static json_t *
item(const struct tn_report *report, size_t index)
{
	const struct tn_program *program = &report->programs.items[index];
	bool known = report->need.program_count == report->programs.count;
	return json_pack("{s:o, s:o, s:o, s:{s:o, s:o, s:I}, s:b, s:{s:o, s:o, s:o}, s:o, s:o, s:o}", "command",
	                 tn__json_text(program->command), "pid", tn__json_figure(program->pid), "exit_status",
	                 tn__json_figure(status_of(program)), "steps", "seen", tn__json_figure(program->steps), "unit",
	                 tn__json_text(program->unit), "passes", (json_int_t)program->passes, "out_of_memory",
	                 program->out_of_memory, "peak", "allocated_bytes", tn__json_figure(program->allocated_peak),
	                 "reserved_bytes", tn__json_figure(program->reserved_peak), "device_bytes",
	                 tn__json_figure(program->peak), "at_peak", moment(&program->at_peak), "at_out_of_memory",
	                 moment(&program->at_oom), "need_bytes",
	                 tn__json_figure(known ? report->need.programs[index] : TN_NO_FIGURE));
}

json_t *
tn__programs_json(const struct tn_report *report)
{
	const struct tn_programs *programs = &report->programs;
	if (programs->count == 0)
		return json_null();
	json_t *items = json_array();
	for (size_t i = 0; i < programs->count; i++)
		json_array_append_new(items, item(report, i));
	return json_pack("{s:o, s:o, s:o}", "items", items, "failing",
	                 tn__json_figure(programs->failing == TN_NO_FIGURE ? TN_NO_FIGURE : programs->failing + 1),
	                 "together_bytes", tn__json_figure(programs->together));
}

/* ---- for a person ---- */

/* "12 steps", "no complete step" */
static const char *
steps_of(const struct tn_program *program, char out[48])
{
	const char *unit = program->unit != NULL && strcmp(program->unit, "optimizer") != 0 ? "pass" : "step";
	int64_t count = program->steps;
	if (count > 0)
		snprintf(out, 48, "%lld %s%s", (long long)count, unit, count == 1 ? "" : unit[0] == 's' ? "s" : "es");
	else
		snprintf(out, 48, "no complete step");
	return out;
}

static const char *
end_of(const struct tn_programs *programs, size_t index, char out[48])
{
	const struct tn_program *program = &programs->items[index];
	if (program->out_of_memory)
		snprintf(out, 48, ", ran out of memory");
	else if (program->ended)
		snprintf(out, 48, ", ended with status %lld", (long long)status_of(program));
	else
		out[0] = '\0';
	return out;
}

static void
say_program(const struct tn_printer *printer, const struct tn_report *report, size_t index)
{
	const struct tn_program *program = &report->programs.items[index];
	const struct tn_report_moment *at = report->oom.seen ? &program->at_oom : &program->at_peak;
	char who[160], held[32], highest[32], steps[48], end[48], own[64] = "";
	if (program->peak != TN_NO_FIGURE && at->device_bytes != TN_NO_FIGURE && program->peak > at->device_bytes)
		snprintf(own, sizeof(own), " (%s at its own peak)", tn__human_bytes(program->peak, highest));
	tn__say(printer, TN_TINT_NONE, INDENT, "%s: %s%s, %s%s", tn__program_words(report, index, who),
	        at->device_bytes != TN_NO_FIGURE ? tn__human_bytes(at->device_bytes, held) : "unknown", own,
	        steps_of(program, steps), end_of(&report->programs, index, end));
}

void
tn__say_programs(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_programs *programs = &report->programs;
	char bytes[32];
	if (programs->count == 0)
		return;
	tn__say(printer, TN_TINT_NONE, 2, "By program, %s",
	        report->oom.seen ? "as one of them ran out" : "at the peak of the card");
	for (size_t i = 0; i < programs->count; i++)
		say_program(printer, report, i);
	if (!report->oom.seen && programs->together != TN_NO_FIGURE && programs->together > report->device_peak)
		tn__say(printer, TN_TINT_NONE, INDENT, "all at their own peaks at once: %s",
		        tn__human_bytes(programs->together, bytes));
}

/* Which one ran out; before the place. */
void
tn__say_failing_program(const struct tn_printer *printer, const struct tn_report *report)
{
	char who[160];
	if (report->programs.failing == TN_NO_FIGURE || report->programs.count == 0)
		return;
	tn__program_words(report, (size_t)report->programs.failing, who);
	tn__say(printer, TN_TINT_NONE, 2, "It was %s that ran out", who);
}
