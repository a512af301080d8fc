/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrapping, bars and colour.
 */
#include "report/printer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BAR_COLUMNS 22

int
tn__columns_of(const char *text)
{
	int columns = 0;
	for (; *text != '\0'; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

static const char *
tint_code(const struct tn_printer *printer, enum tn_tint tint)
{
	static const char *const codes[] = { "", "\033[1;32m", "\033[1;31m", "\033[2m" };
	return printer->style.colour ? codes[tint] : "";
}

/* Control characters of a program's own words must not reach the terminal. */
static void
make_plain(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = ' ';
}

static void
print_wrapped(const struct tn_printer *printer, int indent, char *text)
{
	int column = indent;
	bool first = true;
	char *rest = text;
	fprintf(printer->out, "%*s", indent, "");
	for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
		int width = tn__columns_of(word);
		if (!first && column + 1 + width > TN_COLUMNS) {
			fprintf(printer->out, "\n%*s", indent + 2, "");
			column = indent + 2;
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
	char *text = NULL;
	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	make_plain(text);
	fputs(tint_code(printer, tint), printer->out);
	print_wrapped(printer, indent, text);
	if (printer->style.colour && tint != TN_TINT_NONE)
		fputs("\033[0m", printer->out);
	fputc('\n', printer->out);
	free(text);
}

static void
print_bar(const struct tn_printer *printer, int64_t bytes, int64_t total)
{
	int64_t eighths = total > 0 ? (int64_t)((double)bytes / (double)total * BAR_COLUMNS * 8 + 0.5) : 0;
	int full = (int)(eighths / 8), column = 0;
	for (; column < full && column < BAR_COLUMNS; column++)
		fputs(printer->style.utf8 ? "\u2588" : "#", printer->out);
	if (column < BAR_COLUMNS && (eighths % 8 >= 4 || (full == 0 && bytes > 0))) {
		fputs(printer->style.utf8 ? "\u258c" : "-", printer->out);
		column++;
	}
	fprintf(printer->out, "%*s", BAR_COLUMNS - column, "");
}

void
tn__say_row(const struct tn_printer *printer, const char *name, int64_t bytes, int64_t total, const char *remark)
{
	if (bytes == TN_UNKNOWN)
		return;
	fprintf(printer->out, "    %-18s", name);
	print_bar(printer, bytes, total);
	fprintf(printer->out, "%8.2f", (double)bytes / (double)(INT64_C(1) << 30));
	if (remark != NULL)
		fprintf(printer->out, "   %s", remark);
	fputc('\n', printer->out);
}
