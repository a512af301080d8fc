/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes that are options of the program's own, written onto its command line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change/change.h"

#define OPTION "option_"

bool
tn__change_is_option(const char *part)
{
	return strncmp(part, OPTION, strlen(OPTION)) == 0;
}

bool
tn__change_is_own(const char *changes)
{
	struct tn_change_list list;
	bool own = tn__change_split(changes, &list) == TN_OK && list.count > 0;
	for (size_t i = 0; own && i < list.count; i++)
		own = tn__change_is_option(list.parts[i]);
	tn__change_list_free(&list);
	return own;
}

/* ---- a command line that grows ---- */

struct words {
	char **items; /* ended by NULL */
	size_t count;
	size_t first; /* where the program's own begin */
};

static bool
add(struct words *words, const char *text)
{
	char **items = reallocarray(words->items, words->count + 2, sizeof(*items));
	if (items == NULL)
		return false;
	words->items = items;
	items[words->count] = strdup(text);
	items[words->count + 1] = NULL;
	return items[words->count++] != NULL;
}

static bool
replace(struct words *words, size_t index, char *text)
{
	if (text == NULL)
		return false;
	free(words->items[index]);
	words->items[index] = text;
	return true;
}

static bool
ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);
	return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* Behind the script, or behind the module of -m: what stands before is Python's or a launcher's. */
static size_t
first_own(const struct words *words)
{
	for (size_t i = 0; i < words->count; i++)
		if (ends_with(words->items[i], ".py"))
			return i + 1;
	for (size_t i = 0; i + 1 < words->count; i++)
		if (strcmp(words->items[i], "-m") == 0)
			return i + 2;
	return 1;
}

/* ---- one option ---- */

/* Sets "--name value"; `value` NULL: a flag. The last one of the line counts. */
static bool
set_option(struct words *words, const char *name, const char *value)
{
	size_t length = strlen(name);
	char *joined = NULL;
	for (size_t i = words->count; i-- > words->first;) {
		if (strcmp(words->items[i], name) == 0) {
			if (value == NULL)
				return true;
			return i + 1 < words->count ? replace(words, i + 1, strdup(value)) : add(words, value);
		}
		if (value != NULL && strncmp(words->items[i], name, length) == 0 && words->items[i][length] == '=')
			return asprintf(&joined, "%s=%s", name, value) >= 0 && replace(words, i, joined);
	}
	return add(words, name) && (value == NULL || add(words, value));
}

/* Sets a word "name=value", which stays as it is written. */
static bool
set_joined(struct words *words, const char *word, size_t length)
{
	for (size_t i = words->count; i-- > words->first;)
		if (strncmp(words->items[i], word, length + 1) == 0)
			return replace(words, i, strdup(word));
	return add(words, word);
}

/* The options of one part: "--batch-size 2 --amp". */
static bool
set_options(struct words *words, char *text)
{
	char *rest = NULL, *word = strtok_r(text, " ", &rest);
	bool good = true;
	while (good && word != NULL) {
		const char *equals = strchr(word, '=');
		char *next = strtok_r(NULL, " ", &rest);
		if (equals != NULL) {
			good = set_joined(words, word, (size_t)(equals - word));
		} else if (next != NULL && next[0] != '-') {
			good = set_option(words, word, next);
			next = strtok_r(NULL, " ", &rest);
		} else {
			good = set_option(words, word, NULL);
		}
		word = next;
	}
	return good;
}

/* The options of those changes that are options of the program's own. */
static bool
set_changes(struct words *words, const char *changes)
{
	struct tn_change_list list;
	bool good = tn__change_split(changes, &list) == TN_OK;
	for (size_t i = 0; good && i < list.count; i++)
		if (tn__change_is_option(list.parts[i]) && strchr(list.parts[i], '=') != NULL)
			good = set_options(words, strchr(list.parts[i], '=') + 1);
	tn__change_list_free(&list);
	return good;
}

char **
tn__change_command(char *const *arguments, const char *changes)
{
	struct words words = { .items = calloc(1, sizeof(char *)) };
	bool good = words.items != NULL;
	for (size_t i = 0; good && arguments[i] != NULL; i++)
		good = add(&words, arguments[i]);
	words.first = good ? first_own(&words) : 0;
	if (good && set_changes(&words, changes))
		return words.items;
	tn__change_command_free(words.items);
	return NULL;
}

void
tn__change_command_free(char **arguments)
{
	for (size_t i = 0; arguments != NULL && arguments[i] != NULL; i++)
		free(arguments[i]);
	free(arguments);
}
