/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines for a person: wrapped at words, never wider than TN_COLUMNS, indented. Internal to src/report.
 */
#ifndef TN_REPORT_PRINTER_H
#define TN_REPORT_PRINTER_H

#include <stdio.h>

#include "report/report.h"

#define TN_COLUMNS 100

enum tn_tint { TN_TINT_NONE, TN_TINT_GOOD, TN_TINT_BAD, TN_TINT_DIM };

struct tn_printer {
	FILE *out;
	struct tn_style style;
};

/* Prints a paragraph (printf form); lines after the first are indented by two more. Words longer than a line stay
 * whole: they are paths, to be copied. */
void tn__say(const struct tn_printer *printer, enum tn_tint tint, int indent, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Prints a row of a table of bytes: name, bar (share of `total`), figure in GiB, remark or NULL. */
void tn__say_row(const struct tn_printer *printer, const char *name, int64_t bytes, int64_t total, const char *remark);

/* How many columns a UTF-8 text takes, taking one for each code point. */
int tn__columns_of(const char *text);

#endif
