/* SPDX-License-Identifier: Apache-2.0
 *
 * The report as Markdown, as GitHub and GitLab read it: for the summary of a job, or a comment. Its words are those of the text
 * report; the table of bytes is a table.
 *
 * Texts of the program (names of files and functions, messages) come out as they are: nothing in them is taken for markup or HTML,
 * and nobody is mentioned by them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/inspection_writers.h"
#include "report/text.h"

#define LINE_INDENT 2  /* of the text report: a line of its own */
#define LABEL_COLUMN 8 /* "  Why   ...": the words behind the label */

/* ---- texts ---- */

static void
put_text(FILE *out, const char *text)
{
	for (const char *at = text; *at != '\0'; at++) {
		if (*at == '<')
			fputs("&lt;", out);
		else if (*at == '&')
			fputs("&amp;", out);
		else if (*at == '@')
			fputs("`@`", out); /* as code it mentions nobody */
		else if (strchr("\\`*_[]>|~$#", *at) != NULL)
			fprintf(out, "\\%c", *at);
		else
			fputc(*at, out);
	}
}

static size_t
longest_run(const char *text, char of)
{
	size_t longest = 0, run = 0;
	for (; *text != '\0'; text++) {
		run = *text == of ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

/* Fenced by more backticks than stand in it. */
static void
put_code(FILE *out, const char *text)
{
	size_t fence = longest_run(text, '`') + 1;
	const char *gap = fence > 1 ? " " : "";
	for (size_t i = 0; i < fence; i++)
		fputc('`', out);
	fprintf(out, "%s%s%s", gap, text, gap);
	for (size_t i = 0; i < fence; i++)
		fputc('`', out);
}

/* ---- parts of the text report ---- */

static const char *
mark_of(const struct tn_inspection *inspection)
{
	static const char *const metadata[TN_VERDICTS] = {
		[TN_VERDICT_FITS] = "\u2705 ", [TN_VERDICT_UNDECIDED] = "\u2754 "
	};
	bool run = inspection->snapshot == NULL || inspection->of_run;
	if (!run)
		return "";
	return metadata[inspection->report.verdict] != NULL ? metadata[inspection->report.verdict] : "\u274c ";
}

/* Lines of a paragraph; those that stand deeper are items of a list. */
static void
put_lines(FILE *out, char *text)
{
	enum { NOTHING, LINE, ITEM } before = NOTHING;
	char *rest = text;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		int indent = (int)strspn(line, " ");
		bool item = indent > LINE_INDENT;
		if (before == LINE)
			fputs(item ? "\n\n" : "<br>\n", out);
		else if (before == ITEM)
			fputs(item ? "\n" : "\n\n", out);
		fputs(item ? "- " : "", out);
		put_text(out, line + indent);
		before = item ? ITEM : LINE;
	}
	fputs(before != NOTHING ? "\n\n" : "", out);
}

static void
put_part(FILE *out, const struct tn_inspection *inspection, tn_inspection_speaker *say)
{
	char *text = tn__inspection_words(inspection, say);
	if (text != NULL)
		put_lines(out, text);
	free(text);
}

/* The first line of the head is the heading. */
static void
put_head(FILE *out, const struct tn_inspection *inspection)
{
	char *text = tn__inspection_words(inspection, tn__inspection_head), *rest = text;
	char *title = text != NULL ? strtok_r(text, "\n", &rest) : NULL;
	if (title != NULL) {
		fprintf(out, "### %s", mark_of(inspection));
		put_text(out, title);
		fputs("\n\n", out);
		put_lines(out, rest);
	}
	free(text);
}

static void
put_command(FILE *out, const struct tn_inspection *inspection)
{
	char *command = inspection->report.command != NULL ? strdup(inspection->report.command) : NULL;
	if (command == NULL)
		return;
	tn__make_plain(command, ' ');
	put_code(out, command);
	fputs("\n\n", out);
	free(command);
}

/* "  Why   the batch ...", and below it lines without a label. */
static void
put_next(FILE *out, const struct tn_inspection *inspection)
{
	char *text = tn__inspection_words(inspection, tn__inspection_next), *rest = text;
	bool any = false;
	for (char *line = text != NULL ? strtok_r(text, "\n", &rest) : NULL; line != NULL;
	     line = strtok_r(NULL, "\n", &rest)) {
		const char *words = strlen(line) > LABEL_COLUMN ? line + LABEL_COLUMN : "";
		int label = (int)strcspn(line + LINE_INDENT, " ");
		if (any)
			fputs("<br>\n", out);
		if (label > 0)
			fprintf(out, "**%.*s:** ", label, line + LINE_INDENT);
		if (strncmp(words, "tonnage ", 8) == 0)
			put_code(out, words);
		else
			put_text(out, words);
		any = true;
	}
	fputs(any ? "\n\n" : "", out);
	free(text);
}

/* ---- the table ---- */

static void
put_row(FILE *out, const struct tn_moment_rows *rows, const struct tn_moment_row *row, int64_t whole)
{
	double unit = rows->small ? 1 << 20 : 1 << 30;
	fputs("| ", out);
	put_text(out, row->name);
	fprintf(out, " | %.*f | ", rows->small ? 1 : 2, (double)row->bytes / unit);
	if (whole > 0 && row->bytes < whole / 200)
		fputs("&lt;1 % | ", out);
	else if (whole > 0)
		fprintf(out, "%.0f %% | ", 100 * (double)row->bytes / (double)whole);
	for (size_t i = 0; i < row->remark_count; i++) {
		fputs(i > 0 ? "<br>" : "", out);
		put_text(out, row->remarks[i]);
	}
	fputs(" |\n", out);
}

static void
put_table(FILE *out, const struct tn_inspection *inspection)
{
	const char *title = NULL;
	bool run = inspection->snapshot == NULL || inspection->of_run,
		 oom = !run && inspection->named[0].name == TN_MOMENT_OOM;
	const struct tn_report_moment *moment = run ? tn__told_moment(&inspection->report, &title, &oom)
	                                            : &inspection->report.at_peak;
	struct tn_printer printer = { out, { .utf8 = true, .columns = TN_REMARK_TEXT } };
	struct tn_moment_rows *rows = malloc(sizeof(*rows));
	if (moment != NULL && rows != NULL && tn__moment_rows(&printer, &inspection->report, moment, oom, rows)) {
		int64_t whole = moment->device_bytes;
		fprintf(out, "| %s | %s | %sWhere |\n|:--|--:|%s:--|\n",
		        title != NULL ? title : tn__moment_name_words(inspection->named[0].name), rows->small ? "MiB" : "GiB",
		        whole > 0 ? "Share | " : "", whole > 0 ? "--:|" : "");
		for (size_t i = 0; i < rows->count; i++)
			put_row(out, rows, &rows->rows[i], whole);
		fprintf(out, "%s\n", moment->inferred ? "\n_" TN_INFERRED_WORDS "_\n" : "");
	}
	free(rows);
}

tn_status
tn__inspection_markdown(const struct tn_inspection *inspection, FILE *out)
{
	put_head(out, inspection);
	put_command(out, inspection);
	put_table(out, inspection);
	put_next(out, inspection);
	put_part(out, inspection, tn__inspection_findings);
	fputs("<details><summary>What was seen</summary>\n\n", out);
	put_part(out, inspection, tn__inspection_scope);
	fputs("</details>\n", out);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_STATE, "the Markdown could not be written");
	return TN_OK;
}
