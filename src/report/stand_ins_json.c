/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of weights, and data, that a run stood in for as JSON; src/verdict/run_reader_parts.c reads it back.
 */
#include "verdict/stand_ins.h"

#include "report/json_parts.h"

static json_t *
assumed_json(unsigned assumed)
{
	static const char *const words[] = { "rows", "lengths", "sizes" }; /* by bit */
	json_t *array = json_array();
	for (unsigned i = 0; i < 3; i++)
		if (assumed & 1u << i)
			json_array_append_new(array, json_string(words[i]));
	return array;
}

json_t *
tn__stand_ins_json(const struct tn_stand_in_list *list)
{
	json_t *array = json_array();
	for (size_t i = 0; i < list->count; i++) {
		const struct tn_stand_in *item = &list->items[i];
		json_t *path = json_string(item->path); /* need not be UTF-8 */
		json_array_append_new(
			array, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", tn__stand_in_name(item->kind), "path",
		                     path != NULL ? path : json_null(), "tensors", tn__json_figure(item->tensors), "bytes",
		                     tn__json_figure(item->bytes), "read_bytes", tn__json_figure(item->read_bytes), "count",
		                     tn__json_figure(item->count), "assumed", assumed_json(item->assumed)));
	}
	return array;
}
