/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest batches for a person: one line a card, the curve of memory against batch, the plan for the batch that was
 * asked for.
 */
#include <string.h>

#include "base/error.h"
#include "gpu/catalogue.h"
#include "report/fit.h"
#include "report/printer.h"

#define MOST_POINTS 12

const char *
tn__fit_title(const struct tn_fit_card *card, char words[TN_WORDS_ROOM])
{
	char total[48], peak[32], spare[32], name[160];
	tn__human_bytes((int64_t)card->gpu.total_bytes, total);
	if (card->gpus > 1) {
		snprintf(name, sizeof(name), "%d x %s", card->gpus, card->gpu.name);
		strcat(total, " each");
	} else {
		snprintf(name, sizeof(name), "%s", card->gpu.name);
	}
	if (card->largest < 0)
		snprintf(words, TN_WORDS_ROOM, "Not known for %s (%s)", name, total);
	else if (card->largest == 0)
		snprintf(words, TN_WORDS_ROOM, "No batch fits on %s (%s)", name, total);
	else
		snprintf(words, TN_WORDS_ROOM, "Batch %d%s fits on %s (%s): %s at the peak, %s to spare", card->largest,
		         card->unbounded ? " and perhaps more" : "", name, total, tn__human_bytes(card->device_peak, peak),
		         tn__human_bytes(card->margin, spare));
	return words;
}

const char *
tn__fit_narrow(const struct tn_fit_card *card, char words[TN_WORDS_ROOM])
{
	return card->largest > 0 ? tn__narrow_words(card->margin, card->uncertain, words) : NULL;
}

const char *
tn__fit_plan(const struct tn_fit_card *card, int batch, char words[TN_WORDS_ROOM])
{
	if (batch == 0 || card->largest <= 0)
		return NULL;
	if (card->largest >= batch)
		snprintf(words, TN_WORDS_ROOM, "batch %d fits as it is", batch);
	else if (card->micro_batch > 0)
		snprintf(words, TN_WORDS_ROOM, "for batch %d: batch %d, gradients accumulated over %d steps", batch,
		         card->micro_batch, card->steps);
	else
		return NULL;
	return words;
}

const char *
tn__fits_smallest(const struct tn_fits *fits, char words[TN_WORDS_ROOM])
{
	const struct tn_gpu_row *row = fits->smallest_gpu != NULL ? tn__gpu_find(fits->smallest_gpu) : NULL;
	char total[32];
	if (fits->batch <= 0)
		return NULL;
	if (row != NULL)
		snprintf(words, TN_WORDS_ROOM, "Smallest card for batch %d: %s (%s)", fits->batch, row->figures.name,
		         tn__human_bytes((int64_t)row->figures.total_bytes, total));
	else
		snprintf(words, TN_WORDS_ROOM, "Smallest card for batch %d: none of the catalogue", fits->batch);
	return words;
}

const char *
tn__fit_point_words(const struct tn_fit_point *point)
{
	return point->fits              ? "fits"
	       : point->undecided       ? "undecided"
	       : point->why_not != NULL ? "the program fails"
	                                : "does not fit";
}

static void
say_card(const struct tn_printer *printer, const struct tn_fit_card *card, int batch)
{
	char words[TN_WORDS_ROOM];
	const char *line;
	tn__say(printer, card->largest > 0 ? TN_TINT_GOOD : TN_TINT_BAD, 0, "%s", tn__fit_title(card, words));
	if ((line = tn__fit_narrow(card, words)) != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "%s", line);
	if ((line = tn__fit_plan(card, batch, words)) != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "%s", line);
}

/* What was seen of one card; `named` where there are several, since a batch may fit one and not another. */
static void
say_curve(const struct tn_printer *printer, const struct tn_fit_card *card, bool named)
{
	int64_t most = (int64_t)card->gpu.total_bytes;
	char title[sizeof(card->gpu.name) + 16] = "Memory by batch";
	if (named)
		snprintf(title, sizeof(title), "Batches on %s", card->gpu.name);
	for (size_t i = 0; i < card->curve_count; i++)
		if (card->curve[i].device_peak > most)
			most = card->curve[i].device_peak;
	fputc('\n', printer->out);
	tn__say_table_head(printer, title, "GiB");
	for (size_t i = 0; i < card->curve_count && i < MOST_POINTS; i++) {
		const struct tn_fit_point *point = &card->curve[i];
		char name[32];
		struct tn_row row = { .name = name,
			                  .bytes = point->device_peak,
			                  .total = most,
			                  .tint = point->fits ? TN_TINT_GOOD : TN_TINT_BAD,
			                  .remark = tn__fit_point_words(point) };
		snprintf(name, sizeof(name), "batch %d", point->batch);
		if (point->device_peak != TN_NO_FIGURE)
			tn__say_table_row(printer, &row);
	}
}

tn_status
tn__fits_text(const struct tn_fits *fits, struct tn_style style, FILE *out)
{
	struct tn_printer printer = { out, style };
	char words[TN_WORDS_ROOM];
	if (fits->interrupted)
		tn__say(&printer, TN_TINT_BAD, 0, TN_INTERRUPTED_WORDS);
	for (size_t i = 0; i < fits->card_count; i++)
		say_card(&printer, &fits->cards[i], fits->batch);
	for (size_t i = 0; i < fits->card_count; i++)
		if (fits->cards[i].curve_count > 0)
			say_curve(&printer, &fits->cards[i], fits->card_count > 1);
	fputc('\n', out);
	if (tn__fits_smallest(fits, words) != NULL)
		tn__say(&printer, TN_TINT_NONE, 2, "%s", words);
	tn__say(&printer, TN_TINT_DIM, 2, "%s", tn__trials_words(fits->trials, fits->seconds, -1, words));
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "the table could not be written");
	return TN_OK;
}
