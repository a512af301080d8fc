/* SPDX-License-Identifier: Apache-2.0
 *
 * Several programs that ran at the same time on one card: what they held together, and what follows from it.
 */
#include "verdict/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/figure.h"
#include "base/json.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"
#include "verdict/run_reader_parts.h"

#define LONGEST_COMMAND 60

static int64_t
known(int64_t figure)
{
	return figure == TN_NO_FIGURE ? 0 : figure;
}

static const struct tn_report_moment *
part_of(const struct tn_program *program, bool out)
{
	return out ? &program->at_oom : &program->at_peak;
}

/* ---- the whole from its parts ---- */

static int
by_bytes(const void *one, const void *two)
{
	const struct tn_report_holder *a = one, *b = two;
	return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

static char *
copied(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

/* NULL without memory, or where there are none. */
static struct tn_report_holder *
all_holders(const struct tn_programs *programs, bool out, size_t *count)
{
	size_t room = 0;
	*count = 0;
	for (size_t i = 0; i < programs->count; i++)
		room += part_of(&programs->items[i], out)->holder_count;
	struct tn_report_holder *holders = room > 0 ? calloc(room, sizeof(*holders)) : NULL;
	for (size_t i = 0; i < programs->count && holders != NULL; i++) {
		const struct tn_report_moment *part = part_of(&programs->items[i], out);
		for (size_t j = 0; j < part->holder_count; j++) {
			struct tn_report_holder *holder = &holders[(*count)++];
			*holder = part->holders[j];
			holder->at.file = copied(holder->at.file);
			holder->at.function = copied(holder->at.function);
			holder->what = copied(holder->what);
		}
	}
	if (*count > 0)
		qsort(holders, *count, sizeof(*holders), by_bytes);
	return holders;
}

void
tn__programs_sum(const struct tn_programs *programs, bool out, struct tn_report_moment *whole)
{
	int64_t sums[TN_CATEGORIES] = { 0 }, all = known(whole->split.other_processes);
	bool detailed = false, inferred = false;
	size_t count;
	for (size_t i = 0; i < programs->count; i++) {
		const struct tn_report_moment *part = part_of(&programs->items[i], out);
		detailed |= part->detailed;
		inferred |= part->inferred;
		for (int category = 0; category < TN_CATEGORIES; category++) {
			sums[category] += known(part->by_category[category]);
			all += known(part->by_category[category]);
		}
	}
	if (!detailed || all != whole->device_bytes)
		return;
	struct tn_report_holder *holders = all_holders(programs, out, &count);
	if (holders == NULL)
		return;
	tn__report_free_holders(whole);
	whole->holders = holders;
	whole->holder_count = count;
	sums[TN_CATEGORY_other_processes] = known(whole->split.other_processes);
	memcpy(whole->by_category, sums, sizeof(sums));
	whole->detailed = true;
	whole->inferred = inferred;
}

/* ---- figures ---- */

int64_t
tn__programs_beside(const struct tn_report *report)
{
	const struct tn_programs *programs = &report->programs;
	int64_t bytes = 0;
	for (size_t i = 0; i < programs->count && programs->failing != TN_NO_FIGURE; i++)
		if ((int64_t)i != programs->failing)
			bytes += known(programs->items[i].at_oom.device_bytes);
	return bytes;
}

struct tn_report_split
tn__programs_split(const struct tn_report *report, const char *path, bool out, const struct tn_report_split *whole)
{
	const struct tn_programs *programs = &report->programs;
	struct tn_report_split split = *whole;
	size_t own = 0;
	while (own < programs->count) {
		const struct tn_program *program = &programs->items[own];
		const struct tn_record *record = out ? &program->oom_record : &program->record;
		if (record->path != NULL && strcmp(record->path, path) == 0)
			break;
		own++;
	}
	if (own == programs->count)
		return split;
	split.other_processes = known(whole->other_processes);
	for (size_t i = 0; i < programs->count; i++) {
		const struct tn_program *program = &programs->items[i];
		const struct tn_report_moment *held = out ? &program->at_oom : &program->at_peak;
		if (i != own) {
			split.other_processes += known(held->device_bytes);
			continue;
		}
		split.context = held->by_category[TN_CATEGORY_context];
		split.libraries = held->by_category[TN_CATEGORY_libraries];
		split.communication = held->split.communication;
	}
	return split;
}

int64_t
tn__programs_beside_at_most(const struct tn_report *report)
{
	const struct tn_programs *programs = &report->programs;
	int64_t bytes = 0;
	for (size_t i = 0; i < programs->count && programs->failing != TN_NO_FIGURE; i++) {
		int64_t need = report->need.program_count == programs->count ? report->need.programs[i] : 0;
		int64_t seen = known(programs->items[i].peak);
		if ((int64_t)i != programs->failing)
			bytes += need > seen ? need : seen;
	}
	return bytes > 0 ? bytes + known(report->at_oom.split.other_processes) : 0;
}

/* The command without the folders of interpreter and script, which say nothing to a person. */
static void
shorten(const char *command, char out[LONGEST_COMMAND + 8])
{
	size_t length = 0;
	for (int word = 0; *command != '\0' && length < LONGEST_COMMAND;) {
		size_t letters = strcspn(command, " ");
		const char *slash = word < 2 && *command == '/' ? memrchr(command, '/', letters) : NULL;
		if (slash != NULL) {
			letters -= (size_t)(slash + 1 - command);
			command = slash + 1;
		}
		letters += command[letters] == ' ';
		for (; letters > 0 && length < LONGEST_COMMAND; letters--)
			out[length++] = *command++;
		word++;
	}
	strcpy(out + length, *command != '\0' ? " ..." : "");
}

const char *
tn__program_words(const struct tn_report *report, size_t index, char out[160])
{
	const char *command = report->programs.items[index].command;
	char words[LONGEST_COMMAND + 8] = "";
	if (command != NULL)
		shorten(command, words);
	if (words[0] == '\0')
		snprintf(out, 160, "program %zu", index + 1);
	else
		snprintf(out, 160, "program %zu (%s)", index + 1, words);
	return out;
}

/* ---- judging ---- */

static void
doubt(struct tn_report *report, size_t index)
{
	const struct tn_program *program = &report->programs.items[index];
	char who[160], advice[160];
	tn__program_words(report, index, who);
	if (known(program->peak) == 0) {
		tn__report_add_doubt(report, TN_FINDING_card_unused, false,
		                     "leave it out, where it is to use none; else give the command that trains or infers",
		                     "%s never used a GPU", who);
		return;
	}
	if (program->passes > 0 || known(program->steps) > 0)
		return;
	if (!program->ended && report->limit_seconds > 0)
		snprintf(advice, sizeof(advice), "--seconds N gives all of them more time than %.0f s", report->limit_seconds);
	else
		snprintf(advice, sizeof(advice), "give the command that trains or infers");
	tn__report_add_doubt(report, TN_FINDING_no_step, false, advice,
	                     "%s completed no step or pass, so its peak may be still to come", who);
}

void
tn__programs_doubt(struct tn_report *report)
{
	for (size_t i = 0; i < report->programs.count; i++)
		doubt(report, i);
}

void
tn__programs_judge(struct tn_report *report)
{
	int64_t over = known(report->programs.together) - (int64_t)report->gpu.total_bytes;
	char together[32], more[32];
	if (report->programs.count == 0 || report->verdict != TN_VERDICT_FITS || over <= 0)
		return;
	report->narrowly = true;
	tn__report_add_finding(report, TN_FINDING_peaks_apart, over, NULL, NULL,
	                       "the programs were not at their peaks at once: that would be %s, %s more than the card has",
	                       tn__human_bytes(report->programs.together, together), tn__human_bytes(over, more));
}

/* ---- from JSON ---- */

static void
read_moment(const json_t *object, struct tn_report_moment *moment)
{
	const json_t *parts = json_object_get(object, "by_category");
	moment->device_bytes = tn__json_read_figure(object, "device_bytes");
	for (int i = 0; i < TN_CATEGORIES; i++)
		moment->by_category[i] = tn__json_read_figure(parts, tn__category_name((enum tn_category)i));
}

static void
read_program(const json_t *row, struct tn_program *program)
{
	const json_t *peak = json_object_get(row, "peak"), *steps = json_object_get(row, "steps");
	int64_t status = tn__json_read_figure(row, "exit_status");
	program->command = tn__json_read_text(row, "command");
	program->pid = tn__json_read_figure(row, "pid");
	program->ended = status != TN_NO_FIGURE;
	if (program->ended) /* as wait(2) would give it */
		program->wait_status = status > 128 ? (int)(status - 128) & 0x7f : (int)(status << 8);
	program->steps = tn__json_read_figure(steps, "seen");
	program->passes = known(tn__json_read_figure(steps, "passes"));
	program->unit = tn__json_read_text(steps, "unit");
	program->out_of_memory = tn__json_read_truth(row, "out_of_memory");
	program->allocated_peak = tn__json_read_figure(peak, "allocated_bytes");
	program->reserved_peak = tn__json_read_figure(peak, "reserved_bytes");
	program->peak = tn__json_read_figure(peak, "device_bytes");
	read_moment(json_object_get(row, "at_peak"), &program->at_peak);
	read_moment(json_object_get(row, "at_out_of_memory"), &program->at_oom);
}

void
tn__programs_read(const json_t *root, struct tn_report *report)
{
	const json_t *object = json_object_get(root, "programs"), *rows = json_object_get(object, "items"), *row;
	int64_t failing = tn__json_read_figure(object, "failing");
	size_t i;
	tn__programs_init(&report->programs, json_array_size(rows));
	report->programs.together = tn__json_read_figure(object, "together_bytes");
	if (failing > 0 && failing <= (int64_t)report->programs.count)
		report->programs.failing = failing - 1;
	size_t known_needs = 0;
	json_array_foreach(rows, i, row) {
		if (i == report->programs.count)
			break;
		read_program(row, &report->programs.items[i]);
		report->need.programs[i] = tn__json_read_figure(row, "need_bytes");
		known_needs += report->need.programs[i] != TN_NO_FIGURE;
	}
	report->need.program_count = known_needs == report->programs.count ? known_needs : 0;
}
