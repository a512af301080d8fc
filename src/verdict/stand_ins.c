/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of stand-ins. Must not know how they are made.
 */
#include "verdict/stand_ins.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"

tn_status
tn__stand_ins_add(struct tn_stand_in_list *list, const struct tn_stand_in *item)
{
	bool room = tn__array_add(&list->items, list->count, sizeof(*list->items));
	TN_RETURN_IF(!room, TN_NO_MEMORY, "no memory for the list of stand-ins");
	struct tn_stand_in *items = list->items;
	items[list->count] = *item;
	items[list->count].path = strdup(item->path);
	TN_RETURN_IF(items[list->count].path == NULL, TN_NO_MEMORY, "no memory for the list of stand-ins");
	list->count++;
	return TN_OK;
}

const char *
tn__stand_in_name(enum tn_stand_in_kind kind)
{
	static const char *const names[TN_STAND_IN_KINDS] = {
		[TN_STAND_IN_WEIGHTS] = "weights",
		[TN_STAND_IN_WEIGHTS_NOT_READ] = "weights_not_read",
		[TN_STAND_IN_WEIGHTS_NOT_DOWNLOADED] = "weights_not_downloaded",
		[TN_STAND_IN_IMAGES] = "images",
		[TN_STAND_IN_DATA_SET] = "data_set"
	};
	return names[kind];
}

bool
tn__stand_in_is_data(const struct tn_stand_in *item)
{
	return item->kind == TN_STAND_IN_IMAGES || item->kind == TN_STAND_IN_DATA_SET;
}

unsigned
tn__stand_ins_assumed(const struct tn_stand_in_list *list)
{
	unsigned assumed = 0;
	for (size_t i = 0; i < list->count; i++)
		assumed |= list->items[i].assumed;
	return assumed;
}

void
tn__stand_ins_free(struct tn_stand_in_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
	*list = (struct tn_stand_in_list){ NULL, 0 };
}
