/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of a JSON document, read with their type. A library of its own: what runs in the program's process has no jansson.
 */
#include "base/json.h"

#include <string.h>

#include "base/figure.h"

int64_t
tn__json_read_figure(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value) : TN_NO_FIGURE;
}

double
tn__json_read_number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

bool
tn__json_read_truth(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

const char *
tn__json_borrow_text(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

char *
tn__json_read_text(const json_t *object, const char *name)
{
	const char *text = tn__json_borrow_text(object, name);
	return text != NULL ? strdup(text) : NULL;
}
