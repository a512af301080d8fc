/* SPDX-License-Identifier: Apache-2.0
 *
 * The object `requests` of `run --json`; src/verdict/requests_reader.c reads it back.
 */
#include "report/json_parts.h"

static json_t *
above_zero(int64_t figure)
{
	return tn__json_figure(figure > 0 ? figure : TN_NO_FIGURE);
}

json_t *
tn__requests_json(const struct tn_requests *requests)
{
	if (!requests->known)
		return json_null();
	json_t *rows = json_array();
	for (size_t i = 0; i < requests->count; i++) {
		const struct tn_request_row *row = &requests->rows[i];
		json_array_append_new(
			rows, json_pack("{s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:b}", "request", tn__json_text(row->name),
		                    "from", tn__json_text(row->from), "sent", (json_int_t)row->sent, "answered",
		                    (json_int_t)row->answered, "first_failed", above_zero(row->failed), "status",
		                    above_zero(row->status), "words", tn__json_text(row->words), "peak_taken_bytes",
		                    tn__json_figure(row->peak), "out_of_memory", row->out_of_memory));
	}
	return json_pack("{s:o, s:o, s:I, s:I, s:b, s:o, s:o, s:o, s:o}", "port", above_zero(requests->port), "listens_at",
	                 tn__json_text(requests->others), "sent", (json_int_t)requests->sent, "rounds",
	                 (json_int_t)requests->rounds, "all", requests->all, "peak_rises_bytes",
	                 above_zero(requests->rises), "rising_rounds", above_zero(requests->rising_rounds), "full_at_round",
	                 tn__json_figure(requests->full_at), "requests", rows);
}
