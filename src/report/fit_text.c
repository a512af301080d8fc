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

static void
say_card(const struct tn_printer *printer, const struct tn_fit_card *card)
{
	char total[32], peak[32], spare[32];
	tn__human_bytes((int64_t)card->gpu.total_bytes, total);
	if (card->largest < 0)
		tn__say(printer, TN_TINT_BAD, 0, "Not known for %s (%s)", card->gpu.name, total);
	else if (card->largest == 0)
		tn__say(printer, TN_TINT_BAD, 0, "No batch fits on %s (%s)", card->gpu.name, total);
	else
		tn__say(printer, TN_TINT_GOOD, 0, "Batch %d%s fits on %s (%s): %s at the peak, %s to spare", card->largest,
		        card->unbounded ? " and perhaps more" : "", card->gpu.name, total,
		        tn__human_bytes(card->device_peak, peak), tn__human_bytes(card->margin, spare));
	if (card->largest > 0 && card->margin != TN_NO_FIGURE && card->margin < card->uncertain)
		tn__say(printer, TN_TINT_NONE, 2, "narrowly: the peak may be up to %s higher (the CUDA context, kernels as they "
		        "load), and that decides", tn__human_bytes(card->uncertain, peak));
}

/* How the batch that was asked for comes about in pieces. */
static void
say_plan(const struct tn_printer *printer, const struct tn_fit_card *card, int batch)
{
	if (batch == 0 || card->largest <= 0)
		return;
	if (card->largest >= batch)
		tn__say(printer, TN_TINT_NONE, 2, "batch %d fits as it is", batch);
	else if (card->micro_batch > 0)
		tn__say(printer, TN_TINT_NONE, 2, "for batch %d: batch %d, gradients accumulated over %d steps", batch,
		        card->micro_batch, card->steps);
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
		struct tn_row row = { .name = name, .bytes = point->device_peak, .total = most,
			                  .tint = point->fits ? TN_TINT_GOOD : TN_TINT_BAD,
			                  .remark = point->fits              ? "fits"
			                            : point->undecided       ? "undecided"
			                            : point->why_not != NULL ? "the program fails"
			                                                     : "does not fit" };
		snprintf(name, sizeof(name), "batch %d", point->batch);
		if (point->device_peak != TN_NO_FIGURE)
			tn__say_table_row(printer, &row);
	}
}

tn_status
tn__fits_text(const struct tn_fits *fits, struct tn_style style, FILE *out)
{
	struct tn_printer printer = { out, style };
	const struct tn_gpu_row *row = fits->smallest_gpu != NULL ? tn__gpu_find(fits->smallest_gpu) : NULL;
	char total[32];
	if (fits->interrupted)
		tn__say(&printer, TN_TINT_BAD, 0, "Interrupted: what is known so far");
	for (size_t i = 0; i < fits->card_count; i++) {
		say_card(&printer, &fits->cards[i]);
		say_plan(&printer, &fits->cards[i], fits->batch);
	}
	for (size_t i = 0; i < fits->card_count; i++)
		if (fits->cards[i].curve_count > 0)
			say_curve(&printer, &fits->cards[i], fits->card_count > 1);
	fputc('\n', out);
	if (fits->batch > 0 && row != NULL)
		tn__say(&printer, TN_TINT_NONE, 2, "Smallest card for batch %d: %s (%s)", fits->batch, row->figures.name,
		        tn__human_bytes((int64_t)row->figures.total_bytes, total));
	else if (fits->batch > 0)
		tn__say(&printer, TN_TINT_NONE, 2, "Smallest card for batch %d: none of the catalogue", fits->batch);
	tn__say(&printer, TN_TINT_DIM, 2, "%d trial%s on a virtual GPU in %.0f s; nothing real was changed", fits->trials,
	        fits->trials == 1 ? "" : "s", fits->seconds);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "the table could not be written");
	return TN_OK;
}
