/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the report for a person. Internal to src/report.
 */
#ifndef TN_REPORT_TEXT_H
#define TN_REPORT_TEXT_H

#include "report/printer.h"

#define TN_PLACE_TEXT 512

/* ---- text.c ---- */

/* The verdict of a run, with the place and the request where it failed, or the growth. */
void tn__say_head(const struct tn_printer *printer, const struct tn_report *report);

/* Why, what to do about it, and what else would help; nothing where the verdict needs no reason. */
void tn__say_next(const struct tn_printer *printer, const struct tn_report *report);

/* What the verdict has seen, and what was not real. */
void tn__say_scope(const struct tn_printer *printer, const struct tn_report *report);

/* One finding in one line; and all those that the head and the reason have not said. */
void tn__say_finding(const struct tn_printer *printer, const struct tn_report *report, const struct tn_finding *finding,
                     bool with_place);
void tn__say_findings(const struct tn_printer *printer, const struct tn_report *report);

/* The finding that explains a bad verdict; NULL when nothing does. */
const struct tn_finding *tn__reason_of(const struct tn_report *report);

/* ---- executions.c ---- */

/* "--then 'python train.py --resume' " for each command behind the first; the caller frees; NULL for a run of one. */
char *tn__then_options(const struct tn_report *report);
/* A line for each command of a run of several, and which of them the rest is about. Nothing for a run of one. */
void tn__say_executions(const struct tn_printer *printer, const struct tn_report *report);

/* ---- text_unreal.c ---- */

/* What was not real: assumed, read though it was not computed, refused, held back. */
void tn__say_unreal(const struct tn_printer *printer, const struct tn_report *report);

/* The parts of the program that the verdict does not speak of, in one line that the caller frees; NULL: there are none. */
char *tn__not_seen_words(const struct tn_report *report);
void tn__say_not_seen(const struct tn_printer *printer, const struct tn_report *report);

/* ---- inputs_text.c ---- */

/* Which inputs the verdict has seen, and which longer ones are known. */
void tn__say_inputs(const struct tn_printer *printer, const struct tn_report *report);

/* ---- host_text.c ---- */

/* The verdict's own line where the computer's memory is not enough; and what held it, where that was asked for. */
void tn__say_over_host(const struct tn_printer *printer, const struct tn_report *report, const char *card);
void tn__say_host(const struct tn_printer *printer, const struct tn_report *report);

/* ---- text_seen.c ---- */

/* What the verdict has seen: without this it would claim too much. */
void tn__say_seen(const struct tn_printer *printer, const struct tn_report *report);
/* In which step, and at which lines, memory ran out. */
/* ---- system.c ---- */

/* Windows and WSL: the first line where the card is too small, and what was taken for granted. */
void tn__say_spilled(const struct tn_printer *printer, const struct tn_report *report, const char *card);
void tn__say_system(const struct tn_printer *printer, const struct tn_report *report);

/* ---- programs.c ---- */

/* Several programs on one card: what each held, and which one ran out; nothing for one. */
void tn__say_programs(const struct tn_printer *printer, const struct tn_report *report);
void tn__say_failing_program(const struct tn_printer *printer, const struct tn_report *report);
void tn__say_oom_place(const struct tn_printer *printer, const struct tn_report *report);

/* ---- requests_text.c ---- */

/* What became of the requests of a run with --request. */
void tn__say_requests(const struct tn_printer *printer, const struct tn_report *report);
/* What a step of this run is called. */
const char *tn__step_word(const struct tn_report *report);

/* ---- gate_text.c ---- */

/* What the run was held against beside its card: the first line where it is above that, and the lines below it. */
void tn__say_over(const struct tn_printer *printer, const struct tn_report *report, const char *card);
void tn__say_gate(const struct tn_printer *printer, const struct tn_report *report);

/* ---- text_files.c ---- */

/* The closing lines: what the program changed, and how much of that is known. For runs that do not allow writes. */
void tn__say_changes(const struct tn_printer *printer, const struct tn_report *report);

/* ---- places.c ---- */

/* A path for a person: below the working folder, or below the folder that packages are installed in, its middle left out
 * where it is deep. Control characters are replaced. Returns `buffer`. */
const char *tn__shown_path(const struct tn_report *report, struct tn_style style, const char *file,
                           char buffer[TN_PLACE_TEXT]);

/* "train.py:41 -> model.py:88 forward", outermost first: how the program came to where it ran out. The caller frees. */
char *tn__place_chain(const struct tn_report *report, struct tn_style style);

/* "model.py:88 forward", with "backward of" where it is; "" for an unknown place. Returns `buffer`. */
const char *tn__place_words(const struct tn_report *report, struct tn_style style, const struct tn_place *place,
                            char buffer[TN_PLACE_TEXT]);

/* ---- bytes.c ---- */

#define TN_REMARK_TEXT 640
#define TN_MOMENT_LINES 3 /* of one category */
#define TN_INFERRED_WORDS \
	"inferred from source lines and lifetimes: nothing in the program's process reported what its memory is for"

/* A category at a moment, with the lines that hold most of it in words. */
struct tn_moment_row {
	enum tn_category category;
	const char *name; /* literal */
	int64_t bytes;
	char remarks[TN_MOMENT_LINES][TN_REMARK_TEXT];
	size_t remark_count;
};

struct tn_moment_rows {
	bool small;                               /* the figures read better in MiB than in GiB */
	struct tn_moment_row rows[TN_CATEGORIES]; /* largest first */
	size_t count;
};

/* The table of one moment, remarks as wide as the printer has room for. False when nothing is known of it. */
bool tn__moment_rows(const struct tn_printer *printer, const struct tn_report *report,
                     const struct tn_report_moment *moment, bool oom, struct tn_moment_rows *out);

/* The moment that a run's report is about, and its title; NULL where nothing is known. */
const struct tn_report_moment *tn__told_moment(const struct tn_report *report, const char **title, bool *oom);

/* What every byte was for, at the out-of-memory or at the peak. */
void tn__say_bytes(const struct tn_printer *printer, const struct tn_report *report);

/* The table of one moment. `oom`: of a request that failed. Nothing when nothing is known of it. */
void tn__say_moment(const struct tn_printer *printer, const struct tn_report *report,
                    const struct tn_report_moment *moment, const char *title, bool oom);

/* What PyTorch's allocator says of itself. */
void tn__say_allocator(const struct tn_printer *printer, const struct tn_report *report);

/* The peak of each phase, in one line. */
void tn__say_regions(const struct tn_printer *printer, const struct tn_report *report);
/* The same without a table of cells. */
void tn__say_regions_in_line(const struct tn_printer *printer, const struct tn_report *report);

#endif
