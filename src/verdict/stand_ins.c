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

void
tn__stand_ins_free(struct tn_stand_in_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
	*list = (struct tn_stand_in_list){ NULL, 0 };
}
