/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of a run from JSON.
 */
#include <stdlib.h>

#include "base/json.h"
#include "verdict/model.h"

static void
read_row(const json_t *object, struct tn_request_row *row)
{
	row->name = tn__json_read_text(object, "request");
	row->from = tn__json_read_text(object, "from");
	row->sent = tn__json_read_figure(object, "sent");
	row->answered = tn__json_read_figure(object, "answered");
	row->failed = tn__json_read_figure(object, "first_failed");
	row->failed = row->failed > 0 ? row->failed : 0;
	row->status = tn__json_read_figure(object, "status");
	row->status = row->status > 0 ? row->status : 0;
	row->words = tn__json_read_text(object, "words");
	row->peak = tn__json_read_figure(object, "peak_taken_bytes");
	row->out_of_memory = tn__json_read_truth(object, "out_of_memory");
}

void
tn__requests_model_read(const json_t *object, struct tn_requests *requests)
{
	const json_t *rows = json_object_get(object, "requests"), *row;
	size_t i;
	if (!json_is_object(object) || requests->known)
		return;
	requests->known = true;
	requests->port = tn__json_read_figure(object, "port");
	requests->port = requests->port > 0 ? requests->port : 0;
	requests->others = tn__json_read_text(object, "listens_at");
	requests->sent = tn__json_read_figure(object, "sent");
	requests->rounds = tn__json_read_figure(object, "rounds");
	requests->all = tn__json_read_truth(object, "all");
	requests->rises = tn__json_read_figure(object, "peak_rises_bytes");
	requests->rising_rounds = tn__json_read_figure(object, "rising_rounds");
	requests->full_at = tn__json_read_figure(object, "full_at_round");
	requests->rows = calloc(json_array_size(rows) + 1, sizeof(*requests->rows));
	if (requests->rows == NULL)
		return;
	json_array_foreach(rows, i, row)
		read_row(row, &requests->rows[requests->count++]);
}
