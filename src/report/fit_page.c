/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest batches as a page: for each card the answer, its plan, and the curve of memory against batch.
 */
#include <stdlib.h>

#include "report/fit.h"
#include "report/json_parts.h"
#include "report/page_object.h"
#include "report/search_words.h"

#define TITLE "The largest batch that fits"

static const char *
verdict(const struct tn_fit_card *card)
{
	return card->largest > 0 ? "fits" : card->largest == 0 ? "out_of_memory" : "undecided";
}

static void
add_answer(json_t *lines, const struct tn_fit_card *card, int batch)
{
	char words[TN_WORDS_ROOM];
	tn__page_add_line(lines, tn__fit_plan(card, batch, words));
	tn__page_add_line(lines, tn__fit_narrow(card, words));
}

static json_t *
headline(const struct tn_fits *fits)
{
	const struct tn_fit_card *only = fits->card_count == 1 ? &fits->cards[0] : NULL;
	char words[TN_WORDS_ROOM];
	json_t *lines = json_array();
	tn__page_add_line(lines, fits->interrupted ? TN_INTERRUPTED_WORDS : NULL);
	if (only != NULL)
		add_answer(lines, only, fits->batch);
	tn__page_add_line(lines, tn__fits_smallest(fits, words));
	return json_pack(
		"{s:o, s:o, s:o, s:[], s:n, s:[]}", "verdict", only != NULL ? json_string(verdict(only)) : json_null(), "title",
		tn__json_text(only != NULL ? tn__fit_title(only, words) : TITLE), "lines", lines, "at", "why", "do");
}

static json_t *
about(const struct tn_fits *fits)
{
	char words[TN_WORDS_ROOM];
	json_t *array = json_array();
	tn__page_add_fact(array, "command", fits->command);
	tn__page_add_fact(array, "search", tn__trials_words(fits->trials, fits->seconds, -1, words));
	return array;
}

static json_t *
curve(const struct tn_fit_card *card)
{
	json_t *array = json_array();
	for (size_t i = 0; i < card->curve_count; i++) {
		const struct tn_fit_point *point = &card->curve[i];
		json_array_append_new(array,
		                      json_pack("{s:i, s:o, s:b, s:s, s:b, s:o}", "batch", point->batch, "peak_device_bytes",
		                                tn__json_figure(point->device_peak), "fits", point->fits, "outcome",
		                                tn__fit_point_words(point), "tried", point->tried, "why_not",
		                                tn__json_text(point->fits ? NULL : point->why_not)));
	}
	return array;
}

/* What stands in the page's headline is not said again at the only card. */
static json_t *
card_object(const struct tn_fits *fits, const struct tn_fit_card *card)
{
	bool only = fits->card_count == 1;
	char title[TN_WORDS_ROOM];
	json_t *lines = json_array();
	if (!only)
		add_answer(lines, card, fits->batch);
	return json_pack("{s:o, s:I, s:s, s:o, s:o, s:o, s:o}", "name", tn__json_text(card->gpu.name), "total_bytes",
	                 (json_int_t)card->gpu.total_bytes, "verdict", verdict(card), "title",
	                 tn__json_text(only ? NULL : tn__fit_title(card, title)), "lines", lines, "largest_batch",
	                 card->largest < 0 ? json_null() : json_integer(card->largest), "curve", curve(card));
}

static json_t *
cards(const struct tn_fits *fits)
{
	json_t *array = json_array();
	for (size_t i = 0; i < fits->card_count; i++)
		json_array_append_new(array, card_object(fits, &fits->cards[i]));
	return json_pack("{s:o}", "cards", array);
}

static tn_status
fill(const struct tn_fits *fits, json_t *page)
{
	TN_FORWARD_IF_ERROR(tn__page_set(page, "about", about(fits)));
	TN_FORWARD_IF_ERROR(tn__page_set(page, "headline", headline(fits)));
	return tn__page_set(page, "fit", cards(fits));
}

tn_status
tn__fits_page(const struct tn_fits *fits, FILE *out)
{
	json_t *page = tn__page_new(TITLE);
	tn_status status = page != NULL ? fill(fits, page) : tn__fail(TN_NO_MEMORY, "out of host memory");
	if (status == TN_OK)
		status = tn__page_put(page, out);
	json_decref(page);
	return status;
}
