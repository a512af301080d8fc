/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest batches as a page: for each card the answer, its plan, and the curve of memory against batch.
 */
#include "gpu/catalogue.h"
#include "report/fit.h"
#include "report/html.h"

enum { WIDE = 720, HIGH = 260, LEFT = 70, BELOW = 30, ABOVE = 14, ROOM = 60 };

struct scale {
	double most_batch, most_bytes;
};

static struct scale
scale_of(const struct tn_fit_card *card)
{
	struct scale scale = { 1, (double)card->gpu.total_bytes };
	for (size_t i = 0; i < card->curve_count; i++) {
		if (card->curve[i].device_peak == TN_NO_FIGURE)
			continue;
		if (card->curve[i].batch > scale.most_batch)
			scale.most_batch = card->curve[i].batch;
		if ((double)card->curve[i].device_peak > scale.most_bytes)
			scale.most_bytes = (double)card->curve[i].device_peak;
	}
	return scale;
}

static double
across(const struct scale *scale, double batch)
{
	return LEFT + (WIDE - LEFT - 20) * batch / scale->most_batch;
}

static double
up(const struct scale *scale, double bytes)
{
	return HIGH - BELOW - (HIGH - BELOW - ABOVE) * bytes / scale->most_bytes;
}

static void
put_axes(const struct tn_fit_card *card, const struct scale *scale, FILE *out)
{
	char total[32];
	double limit = up(scale, (double)card->gpu.total_bytes), floor = up(scale, 0);
	fprintf(out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT, WIDE, floor, floor);
	fprintf(out, "<line class=\"limit\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT, WIDE, limit, limit);
	fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 6, limit + 4,
	        tn__human_bytes((int64_t)card->gpu.total_bytes, total));
	fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">0</text>\n", LEFT - 6, floor + 4);
	fprintf(out, "<text x=\"%d\" y=\"%.1f\">batch 0</text>\n", LEFT, floor + 18);
	double end = across(scale, scale->most_batch), answer = across(scale, card->largest > 0 ? card->largest : 0);
	if (end - answer > ROOM) /* else the two numbers would lie on each other */
		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.0f</text>\n", end, floor + 18, scale->most_batch);
	if (card->largest > 0)
		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d</text>\n", across(scale, card->largest), floor + 18,
		        card->largest);
}

static void
put_curve(const struct tn_fit_card *card, FILE *out)
{
	struct scale scale = scale_of(card);
	fprintf(out, "<svg class=\"curve\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"memory against batch\">\n", WIDE, HIGH);
	put_axes(card, &scale, out);
	fputs("<polyline class=\"way\" points=\"", out);
	for (size_t i = 0; i < card->curve_count; i++)
		if (card->curve[i].device_peak != TN_NO_FIGURE)
			fprintf(out, "%.1f,%.1f ", across(&scale, card->curve[i].batch), up(&scale, (double)card->curve[i].device_peak));
	fputs("\"/>\n", out);
	for (size_t i = 0; i < card->curve_count; i++)
		if (card->curve[i].device_peak != TN_NO_FIGURE)
			fprintf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", card->curve[i].fits ? "good" : "bad",
			        across(&scale, card->curve[i].batch), up(&scale, (double)card->curve[i].device_peak));
	fputs("</svg>\n", out);
}

static void
put_points(const struct tn_fit_card *card, FILE *out)
{
	char bytes[32];
	fputs("<details><summary>every batch that was tried</summary>\n<table>\n<thead><tr><th>batch</th><th>peak of the card</th>"
	      "<th></th></tr></thead>\n<tbody>\n", out);
	for (size_t i = 0; i < card->curve_count; i++) {
		const struct tn_fit_point *point = &card->curve[i];
		fprintf(out, "<tr><td>%d</td><td>%s</td><td class=\"%s\">", point->batch,
		        tn__human_bytes(point->device_peak, bytes), point->fits ? "good" : "bad");
		fputs(point->fits ? "fits" : point->undecided ? "" : point->why_not != NULL ? "the program fails: " : "does not fit", out);
		fputs(point->tried ? "" : " (told from a larger card)", out);
		tn__html_text(out, point->fits ? NULL : point->why_not);
		fputs("</td></tr>\n", out);
	}
	fputs("</tbody>\n</table>\n</details>\n", out);
}

static void
put_answer(const struct tn_fit_card *card, FILE *out)
{
	char total[32], peak[32], spare[32];
	tn__human_bytes((int64_t)card->gpu.total_bytes, total);
	fprintf(out, "<h2><span class=\"sign %s\">%s</span>", card->largest > 0 ? "fits" : "out_of_memory",
	        card->largest > 0 ? "&#10003;" : "&#10007;");
	if (card->largest < 0)
		tn__html_say(out, "Not known for %s (%s)", card->gpu.name, total);
	else if (card->largest == 0)
		tn__html_say(out, "No batch fits on %s (%s)", card->gpu.name, total);
	else
		tn__html_say(out, "Batch %d%s fits on %s (%s): %s at the peak, %s to spare", card->largest,
		             card->unbounded ? " and perhaps more" : "", card->gpu.name, total, tn__human_bytes(card->device_peak, peak),
		             tn__human_bytes(card->margin, spare));
	fputs("</h2>\n", out);
}

static void
put_card(const struct tn_fit_card *card, int batch, FILE *out)
{
	fputs("<section>\n", out);
	put_answer(card, out);
	if (batch > 0 && card->largest >= batch)
		tn__html_say(out, "Batch %d fits as it is.", batch);
	else if (batch > 0 && card->micro_batch > 0)
		tn__html_say(out, "For batch %d: batch %d, with gradients accumulated over %d steps.", batch, card->micro_batch,
		             card->steps);
	if (card->curve_count > 0) {
		put_curve(card, out);
		put_points(card, out);
	}
	fputs("</section>\n", out);
}

tn_status
tn__fits_page(const struct tn_fits *fits, FILE *out)
{
	const struct tn_gpu_row *row = fits->smallest_gpu != NULL ? tn__gpu_find(fits->smallest_gpu) : NULL;
	tn__html_begin(out, "The largest batch that fits");
	fputs("<p class=\"code\">", out);
	tn__html_text(out, fits->command);
	fputs("</p>\n", out);
	if (fits->interrupted)
		fputs("<p class=\"bad\">Interrupted: this is what was known by then.</p>\n", out);
	if (row != NULL && fits->batch > 0)
		tn__html_say(out, "The smallest card of the catalogue for batch %d: %s", fits->batch, row->figures.name);
	for (size_t i = 0; i < fits->card_count; i++)
		put_card(&fits->cards[i], fits->batch, out);
	return tn__html_end(out, "%d trials on a virtual GPU in %.0f s; nothing real was changed. Tonnage %s", fits->trials,
	                    fits->seconds, TONNAGE_VERSION);
}
