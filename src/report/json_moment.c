/* SPDX-License-Identifier: Apache-2.0
 *
 * What the JSON of several commands says of a moment: its place, and its bytes by category.
 */
#include "report/json_parts.h"

json_t *
tn__json_place(const struct tn_place *at)
{
	if (at == NULL || at->file == NULL)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:b}", "file", tn__json_text(at->file), "line", tn__json_figure(at->line),
	                 "function", tn__json_text(at->function), "backward", at->backward);
}

json_t *
tn__json_categories(const struct tn_report_moment *moment)
{
	if (!tn__report_is_told(moment))
		return json_null();
	json_t *object = json_object();
	for (int i = 0; i < TN_CATEGORIES; i++)
		json_object_set_new(object, tn__category_name((enum tn_category)i), tn__json_figure(moment->by_category[i]));
	return object;
}
