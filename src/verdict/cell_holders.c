/* SPDX-License-Identifier: Apache-2.0
 *
 * The words for what holds memory between cells, one row a kind. Each remedy is one that the figure was measured with, or that comes before it.
 */
#include "verdict/cell_holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/figure.h"
#include "verdict/finding_rows.h"
#include "verdict/holder_words.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"

/* Words are made of: %N the holder's name, %C the cell that made the memory, %D the one that was run, %I that one without its run,
 * %V the variable of an output, %E statements that unbind. */
static const struct tn_holder_kind kinds[] = {
	{ "output", TN_FINDING_held_output, "%N keeps %B that %C made: IPython stores what a cell shows",
	  "end the line that shows it with ; so that it is not stored, or delete what is stored: %%xdel %V" },
	{ "shown", TN_FINDING_held_output, "IPython's %N keeps %B that %C made: it holds the values that were shown last",
	  "end the line that shows it with ; so that it is not stored, or show other values: the last three are kept" },
	{ "traceback", TN_FINDING_held_traceback,
	  "%N keeps %B that %C made: it holds the variables of the functions that the last error went through",
	  "let another error take its place: a cell with 1/0, run after it" },
	{ "variable", TN_FINDING_held_earlier_run, "%N keeps %B that %C made, although %D has made it anew",
	  "del %N before %I is run again, or run again the cell that makes it" },
	{ "variables", TN_FINDING_held_earlier_run, "%N together keep %B that %C made, although %D has made it anew",
	  "let go of all of them before %I is run again, or run again the cells that make them" },
	{ "rebound", TN_FINDING_rebound,
	  "%N still held the old value, %B, while %D made the new one, so both were on the card",
	  "%E at the top of %I, so that the old value is gone before the new one is made" },
};

/* "model and opt": model = opt = None */
static void
put_unbinding(const char *names, FILE *out)
{
	for (const char *c = names; *c != '\0'; c++)
		if (strncmp(c, " and ", 5) == 0 || strncmp(c, ", ", 2) == 0) {
			fputs(" = ", out);
			c += *c == ',' ? 1 : 4;
		} else {
			fputc(*c, out);
		}
	fputs(" = None", out);
}

static void
put_word(char letter, const void *context, FILE *out)
{
	const struct tn_cell_holder *holder = context;
	if (letter == 'N')
		fputs(holder->name, out);
	else if (letter == 'C')
		fputs(holder->cell != NULL ? holder->cell : "an earlier cell", out);
	else if (letter == 'D')
		fputs(holder->during != NULL ? holder->during : "a later cell", out);
	else if (letter == 'E')
		put_unbinding(holder->name, out);
	else if (letter == 'V') /* Out[3] is _3, too */
		fprintf(out, "_%d", atoi(holder->name + strcspn(holder->name, "[") + (strchr(holder->name, '[') != NULL)));
	else if (letter == 'I')
		fprintf(out, "cell %lld", (long long)holder->number);
}

void
tn__add_cell_holder(const struct tn_cell_holder *holder, struct tn_report *report)
{
	const struct tn_holder_kind *kind = tn__holder_kind(kinds, sizeof(kinds) / sizeof(kinds[0]), holder->kind);
	if (kind != NULL && holder->name != NULL && holder->bytes > 0)
		tn__holder_tell(kind, holder->bytes, NULL, put_word, holder, report);
}

static bool
is_of_cells(const struct tn_finding *finding)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (tn__finding_is(finding, kinds[i].id))
			return true;
	return false;
}

void
tn__weigh_cell_holders(struct tn_report *report)
{
	int64_t lacks = tn__report_short_by(report);
	struct tn_finding *most = NULL;
	if (!report->oom.seen || lacks <= 0)
		return;
	for (size_t i = 0; i < report->finding_count; i++) {
		struct tn_finding *finding = &report->findings[i];
		if (is_of_cells(finding) && finding->bytes >= lacks && (most == NULL || finding->bytes > most->bytes))
			most = finding;
	}
	if (most != NULL)
		tn__report_lead_with(report, most);
}
