/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of several commands (doc/design/0035-then.md): one line for each.
 */
#include "verdict/executions.h"

#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "report/text.h"

#define COMMAND_WIDTH 48

/* "out of memory while loading", "fits: 3.20 GiB at the peak". */
static const char *
result_of(const struct tn_report *report, char words[160])
{
	char peak[32];
	const char *phase = report->oom.phase != NULL ? report->oom.phase : "";
	switch (report->verdict) {
	case TN_VERDICT_FITS:
		if (report->device_peak == TN_NO_FIGURE)
			return "fits";
		snprintf(words, 160, "fits: %s at the peak", tn__human_bytes(report->device_peak, peak));
		return words;
	case TN_VERDICT_OUT_OF_MEMORY:
		return strcmp(phase, "load") == 0   ? "out of memory while loading"
		       : strcmp(phase, "save") == 0 ? "out of memory while saving"
		                                    : "out of memory";
	case TN_VERDICT_GROWS:
		return "memory grows until the card is full";
	case TN_VERDICT_SPILLS:
		return "does not fit: some of it would lie in the computer's memory";
	case TN_VERDICT_OVER_BUDGET:
		snprintf(words, 160, "above the budget: %s at the peak", tn__human_bytes(report->device_peak, peak));
		return words;
	case TN_VERDICT_OVER_HOST_MEMORY:
		snprintf(words, 160, "too much for the computer's memory: %s", tn__human_bytes(report->host.peak, peak));
		return words;
	case TN_VERDICT_FAILED:
		if (report->stopped == TN_STOPPED_INTERRUPTED)
			return "interrupted";
		snprintf(words, 160, "failed with status %d", report->exit_status);
		return words;
	default:
		return report->doubt_count > 0 && report->doubts[0].id == TN_FINDING_card_unused ? "did not use the card"
		                                                                                 : "undecided";
	}
}

static void
say_one(const struct tn_printer *printer, size_t number, const char *command, const char *result)
{
	size_t word = command != NULL ? strcspn(command, " ") : 0;
	while (word > 0 && command[0] != '\'' && command[word - 1] != '/')
		word--;
	if (command != NULL && command[0] != '\'')
		command += word; /* the program without its folder */
	int length = command != NULL ? (int)strlen(command) : 0;
	const char *cut = printer->style.utf8 ? "\u2026" : "...";
	tn__say(printer, TN_TINT_NONE, 2, "%zu. %.*s%s: %s", number, length > COMMAND_WIDTH ? COMMAND_WIDTH - 3 : length,
	        command != NULL ? command : "", length > COMMAND_WIDTH ? cut : "", result);
}

static void
put_then(const char *command, FILE *out)
{
	fputs("--then ", out);
	tn__quote_for_shell(command, out);
	fputc(' ', out);
}

char *
tn__then_options(const struct tn_report *report)
{
	const struct tn_executions *all = report->executions;
	char *text = NULL;
	size_t size = 0;
	FILE *out = all != NULL ? open_memstream(&text, &size) : NULL;
	if (out == NULL)
		return NULL;
	for (size_t i = 1; i < all->count; i++)
		if (all->reports[i]->command != NULL)
			put_then(all->reports[i]->command, out);
	for (size_t i = 0; i < all->not_run_count; i++)
		put_then(all->not_run[i], out);
	fclose(out);
	return text;
}

void
tn__say_executions(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_executions *all = report->executions;
	char words[160];
	if (all == NULL)
		return;
	tn__say(printer, TN_TINT_NONE, 0, "%zu commands, one after the other:", all->count + all->not_run_count);
	for (size_t i = 0; i < all->count; i++)
		say_one(printer, i + 1, all->reports[i]->command, result_of(all->reports[i], words));
	for (size_t i = 0; i < all->not_run_count; i++)
		say_one(printer, all->count + i + 1, all->not_run[i], "not run");
	fputc('\n', printer->out);
	tn__say(printer, TN_TINT_NONE, 0, "Command %zu:", tn__deciding_execution(all) + 1);
}
