/* SPDX-License-Identifier: Apache-2.0
 *
 * What `fit` varies, and where it stands in a program's arguments.
 */
#include "search/axes.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

static bool
add_value(struct tn_axis *axis, int value)
{
	if (axis->count == TN_AXIS_VALUES || (axis->count > 0 && value <= axis->values[axis->count - 1]))
		return false;
	axis->values[axis->count++] = value;
	return true;
}

static bool
read_number(const char **at, int *out)
{
	char *end;
	long value = strtol(*at, &end, 10);
	if (end == *at || !isdigit((unsigned char)**at) || value < 1 || value > INT_MAX / 2)
		return false;
	*out = (int)value;
	*at = end;
	return true;
}

/* Behind "1.." : "512", or "512:64" in steps. */
static bool
read_range(const char *at, int first, struct tn_axis *axis)
{
	int last, step = 0;
	if (!read_number(&at, &last) || last < first)
		return false;
	if (*at == ':' && (at++, !read_number(&at, &step)))
		return false;
	if (*at != '\0')
		return false;
	for (int value = first; value < last; value = step > 0 ? value + step : value * 2)
		if (!add_value(axis, value))
			return false;
	return add_value(axis, last);
}

static bool
read_values(const char *at, struct tn_axis *axis)
{
	for (int value; read_number(&at, &value); at++) {
		if (axis->count == 0 && strncmp(at, "..", 2) == 0)
			return read_range(at + 2, value, axis);
		if (!add_value(axis, value))
			return false;
		if (*at != ',')
			return *at == '\0';
	}
	return false;
}

tn_status
tn__axis_parse(const char *text, struct tn_axis *out)
{
	size_t named = strcspn(text, "=");
	*out = (struct tn_axis){ .count = 0 };
	TN_RETURN_IF(named == 0 || text[named] != '=' || named >= sizeof(out->name) || strcspn(text, "{}") < named,
	             TN_INVALID, "--vary takes a name and its values, as in batch=1..512, not \"%s\"", text);
	memcpy(out->name, text, named);
	out->name[named] = '\0';
	TN_RETURN_IF(
		!read_values(text + named + 1, out), TN_INVALID,
		"--vary %s: values are rising numbers from 1 on, at most %d: 1..512 (doubled), 512..4096:512 (in steps) or "
		"512,1024,3072",
		text, TN_AXIS_VALUES);
	return TN_OK;
}

/* ---- places ---- */

/* Whether the first `length` characters of a word are an option's name. */
static bool
is_name(const char *word, size_t length, const char *name)
{
	if (strlen(name) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		if (word[i] != name[i] && !(strchr("-_", word[i]) != NULL && strchr("-_", name[i]) != NULL))
			return false;
	return true;
}

static bool
is_number(const char *text)
{
	return *text != '\0' && strspn(text, "0123456789") == strlen(text);
}

/* Where the value of `--name=8` or `name=8` begins; NULL: the word is none. */
static const char *
value_within(const char *word, const char *name)
{
	const char *plain = word + strspn(word, "-"), *sign = strchr(plain, '=');
	return sign != NULL && is_name(plain, (size_t)(sign - plain), name) && is_number(sign + 1) ? sign + 1 : NULL;
}

/* Whether the word behind this one is the option's value. */
static bool
names_next(const char *word, const char *next, const char *name)
{
	const char *plain = word + strspn(word, "-");
	return word[0] == '-' && is_name(plain, strlen(plain), name) && next != NULL && is_number(next);
}

static const char *
find_mark(const char *word, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = word; (at = strchr(at, '{')) != NULL; at++)
		if (strncmp(at + 1, name, length) == 0 && at[1 + length] == '}')
			return at;
	return NULL;
}

bool
tn__axis_marked(const char *name, char *const *arguments)
{
	for (; *arguments != NULL; arguments++)
		if (find_mark(*arguments, name) != NULL)
			return true;
	return false;
}

bool
tn__axis_has_place(const char *name, char *const *arguments)
{
	for (char *const *word = arguments; *word != NULL; word++)
		if (value_within(*word, name) != NULL || names_next(word[0], word[1], name))
			return true;
	return tn__axis_marked(name, arguments);
}

static char *
replaced(const char *word, size_t kept, int value, const char *rest)
{
	char *made = NULL;
	return asprintf(&made, "%.*s%d%s", (int)kept, word, value, rest) < 0 ? NULL : made;
}

/* The word with all values that stand in it. */
static char *
fill_word(const struct tn_axis *axes, const int *values, int count, const char *before, const char *word)
{
	char *made = strdup(word);
	for (int i = 0; i < count && made != NULL; i++) {
		const char *name = axes[i].name, *at;
		char *next = made;
		if ((at = value_within(made, name)) != NULL) {
			next = replaced(made, (size_t)(at - made), values[i], "");
		} else if (before != NULL && names_next(before, made, name)) {
			next = replaced("", 0, values[i], "");
		} else {
			while (next != NULL && (at = find_mark(next, name)) != NULL) {
				char *longer = replaced(next, (size_t)(at - next), values[i], at + strlen(name) + 2);
				if (next != made)
					free(next);
				next = longer;
			}
		}
		if (next != made)
			free(made);
		made = next;
	}
	return made;
}

char **
tn__axes_arguments(const struct tn_axis *axes, const int *values, int count, char *const *arguments)
{
	size_t words = 0;
	while (arguments[words] != NULL)
		words++;
	char **made = calloc(words + 1, sizeof(*made));
	for (size_t i = 0; made != NULL && i < words; i++) {
		made[i] = fill_word(axes, values, count, i > 0 ? arguments[i - 1] : NULL, arguments[i]);
		if (made[i] == NULL) {
			tn__arguments_free(made);
			return NULL;
		}
	}
	return made;
}

void
tn__arguments_free(char **arguments)
{
	for (size_t i = 0; arguments != NULL && arguments[i] != NULL; i++)
		free(arguments[i]);
	free(arguments);
}
