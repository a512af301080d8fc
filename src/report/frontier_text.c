/* SPDX-License-Identifier: Apache-2.0
 *
 * `fit --vary` for a person: for each card a table of the largest value of the first axis by the values of the others.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/frontier.h"
#include "report/printer.h"

#define GIB 1073741824.0

void
tn__frontier_free(struct tn_frontier *frontier)
{
	for (size_t i = 0; i < frontier->axis_count; i++) {
		free(frontier->axes[i].name);
		free(frontier->axes[i].values);
	}
	for (size_t i = 0; i < frontier->card_count; i++) {
		struct tn_frontier_card *card = &frontier->cards[i];
		for (size_t j = 0; card->points != NULL && j < (size_t)frontier->rows * frontier->axes[0].value_count; j++)
			free(card->points[j].why_not);
		free(card->rows);
		free(card->points);
		free(card->asked);
	}
	free(frontier->axes);
	free(frontier->cards);
	free(frontier->command);
	*frontier = (struct tn_frontier){ 0 };
}

int
tn__frontier_value(const struct tn_frontier *frontier, int row, size_t axis)
{
	size_t index = (size_t)row;
	for (size_t i = 1; i < axis; i++)
		index /= frontier->axes[i].value_count;
	return frontier->axes[axis].values[index % frontier->axes[axis].value_count];
}

const char *
tn__frontier_row_words(const struct tn_frontier *frontier, int row, char words[TN_WORDS_ROOM])
{
	size_t used = 0;
	words[0] = '\0';
	for (size_t i = 1; i < frontier->axis_count && used < TN_WORDS_ROOM; i++)
		used += (size_t)snprintf(words + used, TN_WORDS_ROOM - used, "%s%s %d", i > 1 ? ", " : "",
		                         frontier->axes[i].name, tn__frontier_value(frontier, row, i));
	return words;
}

const char *
tn__frontier_growth(const struct tn_frontier *frontier, char words[TN_WORDS_ROOM])
{
	size_t used = 0;
	for (size_t i = 0; i < frontier->axis_count && used < TN_WORDS_ROOM; i++) {
		double power = frontier->axes[i].power;
		char how[48];
		if (power == 0)
			continue;
		if (power < 0.8)
			snprintf(how, sizeof(how), "slower than");
		else if (power <= 1.2)
			snprintf(how, sizeof(how), "in proportion to");
		else if (power >= 1.75 && power <= 2.25)
			snprintf(how, sizeof(how), "with the square of");
		else
			snprintf(how, sizeof(how), "with the power %.1f of", power);
		used += (size_t)snprintf(words + used, TN_WORDS_ROOM - used, "%s%s %s", used > 0 ? ", " : "Memory grows ", how,
		                         frontier->axes[i].name);
	}
	return used > 0 ? words : NULL;
}

const char *
tn__frontier_plan(const struct tn_frontier *frontier, const struct tn_frontier_row *row, char words[TN_WORDS_ROOM])
{
	if (frontier->batch == 0 || row->micro_batch == 0)
		return NULL;
	if (row->steps == 1)
		snprintf(words, TN_WORDS_ROOM, "as it is");
	else
		snprintf(words, TN_WORDS_ROOM, "batch %d, accumulated over %d steps", row->micro_batch, row->steps);
	return words;
}

const char *
tn__frontier_largest(const struct tn_frontier_row *row, char words[TN_WORDS_ROOM])
{
	if (row->largest > 0)
		snprintf(words, TN_WORDS_ROOM, "%d%s", row->largest, row->unbounded ? " or more" : "");
	else
		snprintf(words, TN_WORDS_ROOM, "%s",
		         row->largest < 0 ? "not known"
		         : row->failed    ? "the program fails"
		                          : "none");
	return words;
}

/* "   10.31", or spaces where nothing was measured. */
static void
say_gib(FILE *out, int width, int64_t bytes)
{
	if (bytes == TN_NO_FIGURE)
		fprintf(out, "%*s", width, "");
	else
		fprintf(out, "%*.2f", width, (double)bytes / GIB);
}

static void
say_row(const struct tn_printer *printer, const struct tn_frontier *frontier, const struct tn_frontier_card *card,
        int index)
{
	const struct tn_frontier_row *row = &card->rows[index];
	char words[TN_WORDS_ROOM];
	const char *plan = tn__frontier_plan(frontier, row, words);
	char largest[TN_WORDS_ROOM];
	fputs("  ", printer->out);
	for (size_t i = 1; i < frontier->axis_count; i++)
		fprintf(printer->out, "%*d", (int)strlen(frontier->axes[i].name) + 4, tn__frontier_value(frontier, index, i));
	fprintf(printer->out, "  %17s", tn__frontier_largest(row, largest));
	if (row->device_peak != TN_NO_FIGURE || plan != NULL) {
		say_gib(printer->out, 11, row->device_peak);
		say_gib(printer->out, 11, row->margin);
	}
	if (row->margin != TN_NO_FIGURE && row->margin < row->uncertain)
		fputs("  narrowly", printer->out);
	if (plan != NULL)
		fprintf(printer->out, "   %s", plan);
	fputc('\n', printer->out);
}

static void
say_card(const struct tn_printer *printer, const struct tn_frontier *frontier, const struct tn_frontier_card *card)
{
	char total[32];
	tn__say(printer, TN_TINT_STRONG, 0, "Largest %s that fits on %s (%s)", frontier->axes[0].name, card->gpu.name,
	        tn__human_bytes((int64_t)card->gpu.total_bytes, total));
	fputs("  ", printer->out);
	for (size_t i = 1; i < frontier->axis_count; i++)
		fprintf(printer->out, "    %s", frontier->axes[i].name);
	fprintf(printer->out, "  %17s%11s%11s", frontier->axes[0].name, "peak, GiB", "to spare");
	if (frontier->batch != 0)
		fprintf(printer->out, "   for batch %d", frontier->batch);
	fputc('\n', printer->out);
	for (int i = 0; i < frontier->rows; i++)
		say_row(printer, frontier, card, i);
	fputc('\n', printer->out);
}

tn_status
tn__frontier_text(const struct tn_frontier *frontier, struct tn_style style, FILE *out)
{
	struct tn_printer printer = { out, style };
	char words[TN_WORDS_ROOM];
	size_t combinations = (size_t)frontier->rows * frontier->axes[0].value_count * frontier->card_count;
	if (frontier->interrupted)
		tn__say(&printer, TN_TINT_BAD, 0, TN_INTERRUPTED_WORDS);
	for (size_t i = 0; i < frontier->card_count; i++)
		say_card(&printer, frontier, &frontier->cards[i]);
	if (tn__frontier_growth(frontier, words) != NULL)
		tn__say(&printer, TN_TINT_NONE, 2, "%s", words);
	tn__say(&printer, TN_TINT_DIM, 2, "%zu combinations; %s", combinations,
	        tn__trials_words(frontier->trials, frontier->seconds, -1, words));
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "the table could not be written");
	return TN_OK;
}
