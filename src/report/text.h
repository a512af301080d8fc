/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the report for a person. Internal to src/report.
 */
#ifndef TN_REPORT_TEXT_H
#define TN_REPORT_TEXT_H

#include "report/printer.h"

#define TN_PLACE_TEXT 512

/* ---- places.c ---- */

/* A path for a person: below the working folder, or below the folder that packages are installed in, its middle left out
 * where it is deep. Control characters are replaced. Returns `buffer`. */
const char *tn__shown_path(const struct tn_report *report, struct tn_style style, const char *file,
                           char buffer[TN_PLACE_TEXT]);

/* The last part of a path. */
const char *tn__file_name(const char *file);

/* "train.py:41 -> model.py:88 forward", outermost first: how the program came to where it ran out. The caller frees. */
char *tn__place_chain(const struct tn_report *report, struct tn_style style);

/* "model.py:88 forward", with "backward of" where it is; "" for an unknown place. Returns `buffer`. */
const char *tn__place_words(const struct tn_report *report, struct tn_style style, const struct tn_place *place,
                            char buffer[TN_PLACE_TEXT]);

/* ---- bytes.c ---- */

/* What every byte was for, at the out-of-memory or at the peak. */
void tn__say_bytes(const struct tn_printer *printer, const struct tn_report *report);

/* What PyTorch's allocator says of itself. */
void tn__say_allocator(const struct tn_printer *printer, const struct tn_report *report);

/* The peak of each phase, in one line. */
void tn__say_regions(const struct tn_printer *printer, const struct tn_report *report);

#endif
