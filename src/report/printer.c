/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrapping, bars and colour.
 */
#include "report/printer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/secrets.h"

#define NAME_INDENT 4
#define NAME_COLUMNS 17
#define FIGURE_COLUMNS 8
#define REMARK_GAP 3
#define WIDEST_BAR 20
#define NARROWEST_BAR 10

int
tn__columns_of(const char *text)
{
	int columns = 0;
	for (; *text != '\0'; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

int
tn__columns(const struct tn_printer *printer)
{
	return printer->style.columns > 0 ? printer->style.columns : TN_COLUMNS;
}

/* A narrow terminal takes from the bars, so that remarks stay readable. */
static int
bar_columns(const struct tn_printer *printer)
{
	int columns = WIDEST_BAR - (TN_COLUMNS - tn__columns(printer)) / 2;
	return columns < NARROWEST_BAR ? NARROWEST_BAR : columns;
}

static int
remark_column(const struct tn_printer *printer)
{
	return NAME_INDENT + NAME_COLUMNS + bar_columns(printer) + FIGURE_COLUMNS + REMARK_GAP;
}

int
tn__remark_columns(const struct tn_printer *printer)
{
	return tn__columns(printer) - remark_column(printer);
}

static const char *
tint_code(const struct tn_printer *printer, enum tn_tint tint)
{
	static const char *const codes[] = { "", "\033[1;32m", "\033[1;31m", "\033[2m", "\033[1m", "\033[34m", "\033[33m" };
	return printer->style.colour ? codes[tint] : "";
}

/* What was said, fit for a terminal and without what has the form of a secret; the caller frees. NULL without memory. */
static char *
text_of(const char *format, va_list arguments)
{
	char *text = NULL;
	if (vasprintf(&text, format, arguments) < 0)
		return NULL;
	char *masked = tn__mask_known(NULL, text);
	free(text);
	if (masked != NULL)
		tn__make_plain(masked, ' ');
	return masked;
}

/* From column `at` on; further lines begin at column `hang`. */
static void
print_wrapped(const struct tn_printer *printer, int at, int hang, char *text)
{
	int column = at;
	bool first = true;
	char *rest = text;
	for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
		int width = tn__columns_of(word);
		if (!first && column + 1 + width > tn__columns(printer)) {
			fprintf(printer->out, "\n%*s", hang, "");
			column = hang;
		} else if (!first) {
			fputc(' ', printer->out);
			column++;
		}
		fputs(word, printer->out);
		column += width;
		first = false;
	}
}

void
tn__say(const struct tn_printer *printer, enum tn_tint tint, int indent, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *text = text_of(format, arguments);
	va_end(arguments);
	if (text == NULL)
		return;
	fprintf(printer->out, "%s%*s", tint_code(printer, tint), indent, "");
	print_wrapped(printer, indent, indent + 2, text);
	if (printer->style.colour && tint != TN_TINT_NONE)
		fputs("\033[0m", printer->out);
	fputc('\n', printer->out);
	free(text);
}

void
tn__say_labelled(const struct tn_printer *printer, const char *label, int column, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *text = text_of(format, arguments);
	va_end(arguments);
	if (text == NULL)
		return;
	fprintf(printer->out, "  %s%-*s%s", tint_code(printer, TN_TINT_STRONG), column - 2, label,
	        printer->style.colour ? "\033[0m" : "");
	print_wrapped(printer, column, column, text);
	fputc('\n', printer->out);
	free(text);
}

static void
print_bar(const struct tn_printer *printer, int64_t bytes, int64_t total)
{
	int columns = bar_columns(printer), column = 0;
	int64_t eighths = total > 0 ? (int64_t)((double)bytes / (double)total * columns * 8 + 0.5) : 0;
	int full = (int)(eighths / 8);
	for (; column < full && column < columns; column++)
		fputs(printer->style.utf8 ? "\u2588" : "#", printer->out);
	if (column < columns && (eighths % 8 >= 4 || (full == 0 && bytes > 0))) {
		fputs(printer->style.utf8 ? "\u258c" : "-", printer->out);
		column++;
	}
	fprintf(printer->out, "%*s", columns - column, "");
}

void
tn__say_table_row(const struct tn_printer *printer, const struct tn_row *row)
{
	const char *off = printer->style.colour && row->tint != TN_TINT_NONE ? "\033[0m" : "";
	double unit = (double)(INT64_C(1) << (row->small ? 20 : 30));
	fprintf(printer->out, "%*s%-*s%s", NAME_INDENT, "", NAME_COLUMNS, row->name, tint_code(printer, row->tint));
	print_bar(printer, row->bytes, row->total);
	fprintf(printer->out, "%s%*.*f", off, FIGURE_COLUMNS, row->small ? 1 : 2, (double)row->bytes / unit);
	if (row->remark != NULL)
		fprintf(printer->out, "%*s%s", REMARK_GAP, "", row->remark);
	fputc('\n', printer->out);
}

void
tn__say_row(const struct tn_printer *printer, const char *name, int64_t bytes, int64_t total, const char *remark)
{
	if (bytes != TN_NO_FIGURE)
		tn__say_table_row(printer, &(struct tn_row){ .name = name, .bytes = bytes, .total = total, .remark = remark });
}

void
tn__say_table_head(const struct tn_printer *printer, const char *title, const char *unit)
{
	int width = NAME_INDENT + NAME_COLUMNS + bar_columns(printer) + FIGURE_COLUMNS - 2;
	fprintf(printer->out, "  %-*s%*s\n", width - (int)strlen(unit), title, (int)strlen(unit), unit);
}

void
tn__say_remark(const struct tn_printer *printer, const char *remark)
{
	fprintf(printer->out, "%*s%s\n", remark_column(printer), "", remark);
}
