/* SPDX-License-Identifier: Apache-2.0
 *
 * The object `inputs` of `run --json`; src/verdict/inputs.c reads it back.
 */
#include "report/json_parts.h"

static json_t *
peaks(const struct tn_peaks_of_batches *of)
{
	if (of->allocated == TN_NO_FIGURE)
		return json_null();
	return json_pack("{s:o, s:o}", "allocated_bytes", tn__json_figure(of->allocated), "reserved_bytes",
	                 tn__json_figure(of->reserved));
}

json_t *
tn__inputs_json(const struct tn_inputs *inputs)
{
	const struct {
		const char *name;
		int64_t value;
	} figures[] = {
		{ "seen", inputs->seen },
		{ "of", inputs->of },
		{ "looked", inputs->looked },
		{ "shortest_known", inputs->shortest },
		{ "middle_known", inputs->middle },
		{ "longest_seen", inputs->longest_seen },
		{ "longest_known", inputs->longest_known },
		{ "index", inputs->index },
		{ "last_batch", inputs->last_batch },
		{ "model_takes", inputs->model_takes },
		{ "padded_to", inputs->padded_to },
		{ "padded_batches", inputs->padded_batches },
	};
	if (!inputs->known)
		return json_null();
	json_t *object = json_pack("{s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:o, s:o}", "order", tn__json_text(inputs->order),
	                           "unit", tn__json_text(inputs->unit), "why_not", tn__json_text(inputs->why_not), "at",
	                           tn__json_place(inputs->at), "in_last_batch", inputs->in_last_batch, "longer",
	                           inputs->longer, "together_failed", inputs->together_failed, "largest_batch",
	                           peaks(&inputs->largest_batch), "longest_together", peaks(&inputs->longest_together));
	for (size_t i = 0; object != NULL && i < sizeof(figures) / sizeof(figures[0]); i++)
		json_object_set_new(object, figures[i].name, tn__json_figure(figures[i].value));
	return object;
}
