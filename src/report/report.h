/* SPDX-License-Identifier: Apache-2.0
 *
 * The writers of a report: one a format, all from the same model.
 */
#ifndef TN_REPORT_REPORT_H
#define TN_REPORT_REPORT_H

#include <stdio.h>

#include "base/figure.h" /* tn__human_bytes */
#include "verdict/model.h"

/* How text may look where it is going to. */
struct tn_style {
	bool colour; /* a terminal that was not told NO_COLOR */
	bool utf8;   /* the locale's character set: else arrows and bars are ASCII */
	int columns; /* 0: 100 */
};

/* The style for a stream, from isatty, the terminal's width (at most 100 columns are used) and the environment (COLUMNS,
 * NO_COLOR, TERM, LC_ALL, LC_CTYPE, LANG). */
struct tn_style tn__style_of(FILE *stream);

/* For a person: never wider than the style's columns, but for a path that is longer by itself. TN_IO when writing fails. */
tn_status tn__report_text(const struct tn_report *report, struct tn_style style, FILE *out);

/* The object of doc/format/run.schema.json. TN_IO when writing fails, TN_NO_MEMORY when it cannot be built. */
tn_status tn__report_json(const struct tn_report *report, FILE *out);

/* The object of doc/format/baseline.schema.json. TN_IO, TN_NO_MEMORY. */
tn_status tn__baseline_write(const struct tn_report *report, FILE *out);

/* The page of doc/format/page.md, with the course of the memory where the run left a record. TN_IO when writing fails, and
 * what a record is refused for. */
tn_status tn__report_page(const struct tn_report *report, FILE *out);

#endif
