/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of weights that a run stood in for as JSON, there and back.
 */
#include "verdict/stand_ins.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/json_parts.h"

json_t *
tn__stand_ins_json(const struct tn_stand_in_list *list)
{
	json_t *array = json_array();
	for (size_t i = 0; i < list->count; i++) {
		const struct tn_stand_in *item = &list->items[i];
		json_t *path = json_string(item->path); /* need not be UTF-8 */
		json_array_append_new(array, json_pack("{s:s, s:o, s:o, s:o, s:o}", "kind",
		                                       item->whole ? "weights_not_read" : "weights", "path",
		                                       path != NULL ? path : json_null(), "tensors", tn__json_figure(item->tensors),
		                                       "bytes", tn__json_figure(item->bytes), "read_bytes", tn__json_figure(item->read_bytes)));
	}
	return array;
}

tn_status
tn__stand_ins_read(const json_t *array, struct tn_stand_in_list *list)
{
	size_t i;
	const json_t *object;
	json_array_foreach(array, i, object) {
		char *kind = tn__json_read_text(object, "kind"), *path = tn__json_read_text(object, "path");
		struct tn_stand_in item = { .path = path != NULL ? path : (char[]){ "?" },
			                        .whole = kind != NULL && strcmp(kind, "weights_not_read") == 0,
			                        .tensors = tn__json_read_figure(object, "tensors"),
			                        .bytes = tn__json_read_figure(object, "bytes"),
			                        .read_bytes = tn__json_read_figure(object, "read_bytes") };
		tn_status status = kind != NULL ? tn__stand_ins_add(list, &item) : TN_OK;
		free(kind);
		free(path);
		TN_FORWARD_IF_ERROR(status);
	}
	return TN_OK;
}
