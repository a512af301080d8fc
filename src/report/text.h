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

/* What the verdict has seen, and what was not real. */
void tn__say_scope(const struct tn_printer *printer, const struct tn_report *report);

/* The finding that explains a bad verdict; NULL when nothing does. */
const struct tn_finding *tn__reason_of(const struct tn_report *report);

/* ---- text_unreal.c ---- */

/* What was not real: assumed, read though it was not computed, refused, held back. */
void tn__say_unreal(const struct tn_printer *printer, const struct tn_report *report);

/* The parts of the program that the verdict does not speak of. */
void tn__say_not_seen(const struct tn_printer *printer, const struct tn_report *report);

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

/* What every byte was for, at the out-of-memory or at the peak. */
void tn__say_bytes(const struct tn_printer *printer, const struct tn_report *report);

/* The table of one moment. `oom`: of a request that failed. Nothing when nothing is known of it. */
void tn__say_moment(const struct tn_printer *printer, const struct tn_report *report, const struct tn_report_moment *moment,
                    const char *title, bool oom);

/* What PyTorch's allocator says of itself. */
void tn__say_allocator(const struct tn_printer *printer, const struct tn_report *report);

/* The peak of each phase, in one line. */
void tn__say_regions(const struct tn_printer *printer, const struct tn_report *report);

#endif
