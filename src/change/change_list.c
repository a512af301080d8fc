/* SPDX-License-Identifier: Apache-2.0
 *
 * The spelling of several changes. python/tonnage/changes/spec.py reads the same; tests/golden/changes/spelling.json holds both to it.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "change/facts.h"

static bool
is_known(const char *part)
{
	return tn__change_is(part, TN_CHANGE_SURVEY) || tn__change_facts(part)->id[0] != '\0';
}

/* Adds the piece of that length as a part of its own; false without memory. */
static bool
add_part(struct tn_change_list *list, const char *piece, size_t length)
{
	if (!tn__array_room(&list->parts, &list->capacity, list->count + 1, sizeof(*list->parts), SIZE_MAX))
		return false;
	list->parts[list->count] = strndup(piece, length);
	return list->parts[list->count] != NULL && ++list->count > 0;
}

/* Adds a piece, without the blanks around it: a part, or more of the value before it. */
static bool
add_piece(struct tn_change_list *list, const char *piece, size_t length)
{
	char **last = list->count > 0 ? &list->parts[list->count - 1] : NULL, *joined = NULL;
	bool has_value = last != NULL && strchr(*last, '=') != NULL;
	char *name = strndup(piece, length);
	bool known = name != NULL && is_known(name);
	free(name);
	if (known || !has_value)
		return length == 0 || piece[0] == '=' || add_part(list, piece, length);
	if (asprintf(&joined, "%s,%.*s", *last, (int)length, piece) < 0)
		return false;
	free(*last);
	*last = joined;
	return true;
}

tn_status
tn__change_split(const char *changes, struct tn_change_list *list)
{
	bool good = true;
	*list = (struct tn_change_list){ 0 };
	for (const char *at = changes; good && at != NULL; at = *at == ',' ? at + 1 : NULL) {
		const char *end = at + strcspn(at, ","), *last = end;
		while (at < end && isspace((unsigned char)*at))
			at++;
		while (last > at && isspace((unsigned char)last[-1]))
			last--;
		good = add_piece(list, at, (size_t)(last - at));
		at = end;
	}
	if (!good)
		tn__change_list_free(list);
	TN_RETURN_IF(!good, TN_NO_MEMORY, "out of host memory");
	return TN_OK;
}

void
tn__change_list_free(struct tn_change_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->parts[i]);
	free(list->parts);
	*list = (struct tn_change_list){ 0 };
}
