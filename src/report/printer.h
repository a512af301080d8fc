/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines for a person: wrapped at words, never wider than the style's columns, indented. Internal to src/report.
 */
#ifndef TN_REPORT_PRINTER_H
#define TN_REPORT_PRINTER_H

#include <stdio.h>

#include "base/plain.h" /* tn__make_plain */
#include "report/report.h"

#define TN_COLUMNS 100

enum tn_tint { TN_TINT_NONE, TN_TINT_GOOD, TN_TINT_BAD, TN_TINT_DIM, TN_TINT_STRONG, TN_TINT_MODEL, TN_TINT_BATCH };

struct tn_printer {
	FILE *out;
	struct tn_style style;
};

/* A row of a table of bytes. */
struct tn_row {
	const char *name;
	int64_t bytes, total; /* the bar is bytes / total of its width */
	enum tn_tint tint;    /* of the bar */
	bool small;           /* the table is in MiB, not in GiB */
	const char *remark;   /* NULL: none; at most tn__remark_columns() wide */
};

/* How wide a line may be. */
int tn__columns(const struct tn_printer *printer);

/* Prints a paragraph (printf form); lines after the first are indented by two more. Words longer than a line stay
 * whole: they are paths, to be copied. */
void tn__say(const struct tn_printer *printer, enum tn_tint tint, int indent, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Prints a paragraph behind a label, at `column`: "  Why   the batch ...". */
void tn__say_labelled(const struct tn_printer *printer, const char *label, int column, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Prints a row of a table of bytes: name, bar (share of `total`), figure in GiB, remark or NULL. */
void tn__say_row(const struct tn_printer *printer, const char *name, int64_t bytes, int64_t total, const char *remark);
void tn__say_table_row(const struct tn_printer *printer, const struct tn_row *row);

/* The head of such a table: `title`, and the unit above the figures. */
void tn__say_table_head(const struct tn_printer *printer, const char *title, const char *unit);

/* One more remark, below that of the row before. */
void tn__say_remark(const struct tn_printer *printer, const char *remark);

/* How wide a remark may be. */
int tn__remark_columns(const struct tn_printer *printer);

/* How many columns a UTF-8 text takes, taking one for each code point. */
int tn__columns_of(const char *text);

#endif
