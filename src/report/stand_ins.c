/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of stand-ins: grown, written, read and said. Must not know how they are made.
 */
#include "report/stand_ins.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/json_parts.h"
#include "report/model.h"
#include "report/printer.h"

tn_status
tn__stand_ins_add(struct tn_stand_in_list *list, const struct tn_stand_in *item)
{
	struct tn_stand_in *items = realloc(list->items, (list->count + 1) * sizeof(*items));
	TN_RETURN_IF(items == NULL, TN_NO_MEMORY, "no memory for the list of stand-ins");
	list->items = items;
	items[list->count] = *item;
	items[list->count].path = strdup(item->path);
	TN_RETURN_IF(items[list->count].path == NULL, TN_NO_MEMORY, "no memory for the list of stand-ins");
	list->count++;
	return TN_OK;
}

void
tn__stand_ins_free(struct tn_stand_in_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
	*list = (struct tn_stand_in_list){ NULL, 0 };
}

static json_t *
figure(int64_t value)
{
	return value == TN_NO_FIGURE ? json_null() : json_integer(value);
}

json_t *
tn__stand_ins_json(const struct tn_stand_in_list *list)
{
	json_t *array = json_array();
	for (size_t i = 0; i < list->count; i++) {
		const struct tn_stand_in *item = &list->items[i];
		json_t *path = json_string(item->path); /* need not be UTF-8 */
		json_array_append_new(array, json_pack("{s:s, s:o, s:o, s:o, s:o}", "kind",
		                                       item->whole ? "weights_not_read" : "weights", "path",
		                                       path != NULL ? path : json_null(), "tensors", figure(item->tensors),
		                                       "bytes", figure(item->bytes), "read_bytes", figure(item->read_bytes)));
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

void
tn__say_stand_ins(const struct tn_printer *printer, const struct tn_stand_in_list *list)
{
	int64_t bytes = 0;
	size_t whole = 0;
	char room[32];
	for (size_t i = 0; i < list->count; i++) {
		bytes += list->items[i].bytes > 0 ? list->items[i].bytes : 0;
		whole += list->items[i].whole;
	}
	if (list->count == 0)
		return;
	const char *name = strrchr(list->items[0].path, '/');
	name = name != NULL ? name + 1 : list->items[0].path;
	tn__say(printer, TN_TINT_NONE, 2, "%zu file%s of weights (%s, %s%s) %s: shapes stood in for the tensors", list->count,
	        list->count == 1 ? "" : "s", tn__human_bytes(bytes, room), name, list->count == 1 ? "" : " ...",
	        whole == list->count ? "left unread (--weights shape)" : list->count == 1 ? "is a header only" : "are headers only");
}
