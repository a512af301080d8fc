/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures, texts and categories as JSON, there and back.
 */
#include <string.h>

#include "report/json_parts.h"

json_t *
tn__json_figure(int64_t value)
{
	return value == TN_NO_FIGURE ? json_null() : json_integer(value);
}

/* Names of files need not be UTF-8: what is not is replaced, so that the rest of the report survives. */
json_t *
tn__json_text(const char *value)
{
	if (value == NULL)
		return json_null();
	json_t *string = json_string(value);
	if (string != NULL)
		return string;
	char plain[1024];
	size_t length = 0;
	for (; value[length] != '\0' && length + 1 < sizeof(plain); length++)
		plain[length] = (unsigned char)value[length] < 0x80 ? value[length] : '?';
	plain[length] = '\0';
	return json_string(plain);
}

/* ---- and back ---- */

int64_t
tn__json_read_figure(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value) : TN_NO_FIGURE;
}

char *
tn__json_read_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text != NULL ? strdup(text) : NULL;
}

int
tn__json_read_category(const json_t *object)
{
	const char *name = json_string_value(json_object_get(object, "category"));
	for (int i = 0; name != NULL && i < TN_CATEGORIES; i++)
		if (strcmp(tn__category_name((enum tn_category)i), name) == 0)
			return i;
	return -1;
}
