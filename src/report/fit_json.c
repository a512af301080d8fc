/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest batches as JSON (doc/format/fit.schema.json).
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/fit.h"
#include "report/json_parts.h"

void
tn__fits_free(struct tn_fits *fits)
{
	for (size_t i = 0; i < fits->card_count; i++) {
		struct tn_fit_card *card = &fits->cards[i];
		for (size_t j = 0; j < card->curve_count; j++)
			free(card->curve[j].why_not);
		free(card->curve);
		free(card->asked);
	}
	free(fits->cards);
	free(fits->command);
	*fits = (struct tn_fits){ 0 };
}

static json_t *
count_or_null(int count)
{
	return count > 0 ? json_integer(count) : json_null();
}

static json_t *
curve(const struct tn_fit_card *card)
{
	json_t *array = json_array();
	for (size_t i = 0; i < card->curve_count; i++) {
		const struct tn_fit_point *point = &card->curve[i];
		const char *verdict = point->fits              ? "fits"
		                      : point->undecided       ? "undecided"
		                      : point->why_not != NULL ? "failed"
		                                               : "out_of_memory";
		json_array_append_new(array,
		                      json_pack("{s:i, s:o, s:o, s:s, s:b, s:o}", "batch", point->batch, "peak_reserved_bytes",
		                                tn__json_figure(point->reserved_peak), "peak_device_bytes",
		                                tn__json_figure(point->device_peak), "verdict", verdict, "tried", point->tried,
		                                "why_not", tn__json_text(point->why_not)));
	}
	return array;
}

static json_t *
accumulation(const struct tn_fit_card *card)
{
	if (card->micro_batch == 0)
		return json_null();
	return json_pack("{s:i, s:i}", "micro_batch", card->micro_batch, "steps", card->steps);
}

static json_t *
cards(const struct tn_fits *fits)
{
	json_t *array = json_array();
	for (size_t i = 0; i < fits->card_count; i++) {
		const struct tn_fit_card *card = &fits->cards[i];
		bool some = card->largest > 0;
		json_array_append_new(
			array,
			json_pack("{s:o, s:o, s:I, s:o, s:b, s:o, s:o, s:o, s:I, s:o, s:o, s:b}", "gpu", tn__json_text(card->asked),
		              "name", tn__json_text(card->gpu.name), "total_bytes", (json_int_t)card->gpu.total_bytes,
		              "largest_batch", card->largest < 0 ? json_null() : json_integer(card->largest), "unbounded",
		              card->unbounded, "peak_reserved_bytes", some ? tn__json_figure(card->reserved_peak) : json_null(),
		              "peak_device_bytes", some ? tn__json_figure(card->device_peak) : json_null(), "margin_bytes",
		              some ? tn__json_figure(card->margin) : json_null(), "margin_wanted_bytes",
		              (json_int_t)card->margin_wanted, "accumulation", accumulation(card), "curve", curve(card),
		              "narrowly", some && card->margin < card->uncertain));
	}
	return array;
}

tn_status
tn__fits_json(const struct tn_fits *fits, FILE *out)
{
	json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:s, s:i, s:i, s:o, s:i, s:f, s:b}", "schema", "tonnage.fit/1",
	                           "cards", cards(fits), "batch", count_or_null(fits->batch), "smallest_card",
	                           tn__json_text(fits->smallest_gpu), "batch_set_by", fits->by_word ? "argument" : "loader",
	                           "trials", fits->trials, "forked_trials", fits->forked, "not_forked_because",
	                           tn__json_text(fits->not_forked), "out_of_memory_trials", fits->out_of_memory, "seconds",
	                           fits->seconds, "interrupted", fits->interrupted);
	TN_RETURN_IF(object == NULL, TN_NO_MEMORY, "out of host memory");
	bool good = tn__json_write(object, out, JSON_INDENT(1)) == 0 && fputc('\n', out) != EOF && fflush(out) == 0;
	json_decref(object);
	TN_RETURN_IF(!good, TN_IO, "the table could not be written: %s", strerror(errno));
	return TN_OK;
}
