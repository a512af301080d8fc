/* SPDX-License-Identifier: Apache-2.0
 *
 * Every block of a trace by category, once, for all that look at more than one moment.
 */
#include <stdlib.h>

#include "analyze/history.h"
#include "base/error.h"

static tn_status
add_parts(uint32_t interval, const struct tn_parts *parts, struct tn_budget *budget, struct tn_part_list *list)
{
	for (size_t category = 0; category < TN_CATEGORIES; category++) {
		if (parts->bytes[category] == 0)
			continue;
		TN_FORWARD_IF_ERROR(tn__grow(budget, &list->items, &list->capacity, list->count + 1, sizeof(*list->items)));
		list->items[list->count++] = (struct tn_part){ .bytes = parts->bytes[category],
			                                           .label = parts->labels[category],
			                                           .interval = interval,
			                                           .category = (uint8_t)category };
	}
	return TN_OK;
}

static tn_status
list_all(const struct tn_analysis *analysis, struct tn_scratch *scratch, struct tn_part_list *list)
{
	struct tn_budget budget = { .limit = UINT64_MAX };
	struct tn_parts parts;
	for (uint32_t number = 0; number < analysis->blocks.count; number++) {
		TN_FORWARD_IF_ERROR(tn__split_interval(analysis, number, scratch, &parts));
		TN_FORWARD_IF_ERROR(add_parts(number, &parts, &budget, list));
	}
	return TN_OK;
}

tn_status
tn__list_parts(const struct tn_analysis *analysis, struct tn_part_list *out)
{
	struct tn_scratch scratch = { 0 };
	struct tn_part_list list = { 0 };
	tn_status status = list_all(analysis, &scratch, &list);
	tn__scratch_free(&scratch);
	if (status == TN_OK)
		*out = list;
	else
		tn__part_list_free(&list);
	return status;
}

void
tn__part_list_free(struct tn_part_list *list)
{
	free(list->items);
	*list = (struct tn_part_list){ 0 };
}
