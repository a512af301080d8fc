/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs of a run from JSON.
 */
#include "base/json.h"
#include "verdict/inputs.h"
#include "verdict/model.h"
#include "verdict/model_fill.h"

static struct tn_peaks_of_batches
read_peaks(const json_t *object)
{
	return (struct tn_peaks_of_batches){ tn__json_read_figure(object, "allocated_bytes"),
		                                 tn__json_read_figure(object, "reserved_bytes") };
}

void
tn__inputs_read(const json_t *object, struct tn_inputs *inputs)
{
	const json_t *at = json_object_get(object, "at");
	const char *file = tn__json_borrow_text(at, "file");
	if (!json_is_object(object) || inputs->known)
		return;
	inputs->known = true;
	inputs->order = tn__json_read_text(object, "order");
	inputs->unit = tn__json_read_text(object, "unit");
	inputs->why_not = tn__json_read_text(object, "why_not");
	inputs->seen = tn__json_read_figure(object, "seen");
	inputs->of = tn__json_read_figure(object, "of");
	inputs->looked = tn__json_read_figure(object, "looked");
	inputs->shortest = tn__json_read_figure(object, "shortest_known");
	inputs->middle = tn__json_read_figure(object, "middle_known");
	inputs->longest_seen = tn__json_read_figure(object, "longest_seen");
	inputs->longest_known = tn__json_read_figure(object, "longest_known");
	inputs->index = tn__json_read_figure(object, "index");
	inputs->in_last_batch = tn__json_read_truth(object, "in_last_batch");
	inputs->last_batch = tn__json_read_figure(object, "last_batch");
	inputs->longer = tn__json_read_truth(object, "longer");
	inputs->model_takes = tn__json_read_figure(object, "model_takes");
	inputs->padded_to = tn__json_read_figure(object, "padded_to");
	inputs->padded_batches = tn__json_read_figure(object, "padded_batches");
	inputs->largest_batch = read_peaks(json_object_get(object, "largest_batch"));
	inputs->longest_together = read_peaks(json_object_get(object, "longest_together"));
	inputs->together_failed = tn__json_read_truth(object, "together_failed");
	if (file != NULL)
		inputs->at = tn__report_new_place(file, tn__json_read_figure(at, "line"), tn__json_borrow_text(at, "function"),
		                                  false);
}
