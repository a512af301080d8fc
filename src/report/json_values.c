/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures, texts and categories as JSON.
 */
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
