/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes that are options of the program's own, written onto its command line or into its environment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "change/change.h"

#define OPTION "option_"
/* How python/tonnage/changes/option.py spells what does not stand on the command line. */
#define VARIABLE "env:"
#define FILE_VALUE "file:"

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

/* What a word sets: an option of the command line, a variable of the environment, or a value in a configuration file. */
enum word_kind { WORD_TYPED, WORD_VARIABLE, WORD_FILE };

static enum word_kind
kind_of(const char *word)
{
	return strncmp(word, VARIABLE, strlen(VARIABLE)) == 0       ? WORD_VARIABLE
	       : strncmp(word, FILE_VALUE, strlen(FILE_VALUE)) == 0 ? WORD_FILE
	                                                            : WORD_TYPED;
}

static bool
part_has_words(const char *part, enum word_kind kind)
{
	char *copy = tn__change_is_option(part) && strchr(part, '=') != NULL ? strdup(strchr(part, '=') + 1) : NULL;
	char *rest = NULL, *word = copy != NULL ? strtok_r(copy, " ", &rest) : NULL;
	while (word != NULL && kind_of(word) != kind)
		word = strtok_r(NULL, " ", &rest);
	bool found = word != NULL;
	free(copy);
	return found;
}

/* True when an option among the changes has a word of this kind. */
static bool
has_words(const char *changes, enum word_kind kind)
{
	struct tn_change_list list;
	bool split = tn__change_split(changes, &list) == TN_OK, found = false;
	for (size_t i = 0; split && !found && i < list.count; i++)
		found = part_has_words(list.parts[i], kind);
	tn__change_list_free(&list);
	return found;
}

bool
tn__change_is_on_line(const char *changes)
{
	return has_words(changes, WORD_TYPED);
}

bool
tn__change_is_command(const char *changes)
{
	return tn__change_is_own(changes) && (has_words(changes, WORD_TYPED) || has_words(changes, WORD_VARIABLE));
}

/* ---- as a person reads them ---- */

/* Writes the words of a value as a person reads them: "a.yaml: b=1 c=2 LENGTH=512" of file:a.yaml:b=1 file:a.yaml:c=2 env:LENGTH=512. */
static void
show_words(FILE *out, const char *value)
{
	char *copy = strdup(value), *rest = NULL, *file = NULL;
	for (char *word = copy != NULL ? strtok_r(copy, " ", &rest) : NULL; word != NULL;
	     word = strtok_r(NULL, " ", &rest)) {
		fputs(word != copy ? " " : "", out);
		if (kind_of(word) == WORD_VARIABLE) {
			fputs(word + strlen(VARIABLE), out);
			continue;
		}
		char *name = kind_of(word) == WORD_FILE ? word + strlen(FILE_VALUE) : NULL;
		char *colon = name != NULL ? strchr(name, ':') : NULL;
		if (colon == NULL) {
			fputs(word, out);
			continue;
		}
		*colon = '\0';
		if (file == NULL || strcmp(file, name) != 0)
			fprintf(out, "%s: ", name);
		file = name;
		fputs(colon + 1, out);
	}
	free(copy);
}

char *
tn__change_title(const char *title, const char *value)
{
	char *words = NULL;
	size_t length;
	FILE *out = open_memstream(&words, &length);
	if (out == NULL)
		return NULL;
	fputs(title, out);
	if (value != NULL) {
		fputs(" (", out);
		show_words(out, value);
		fputs(")", out);
	}
	if (fclose(out) == 0)
		return words;
	free(words);
	return NULL;
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

/* Behind the script, or behind the module of -m: what stands before is Python's or a launcher's. */
static size_t
first_own(const struct words *words)
{
	for (size_t i = 0; i < words->count; i++)
		if (tn__ends_with(words->items[i], ".py"))
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

/* Puts "env NAME=value" before the command. */
static bool
set_variable(struct words *words, const char *word)
{
	bool begun = words->count > 0 && strcmp(words->items[0], "env") == 0;
	size_t before = words->count, at = 0;
	while (begun && at < before && (at == 0 || strchr(words->items[at], '=') != NULL))
		at++; /* behind those that stand there */
	if (!(begun || add(words, "env")) || !add(words, word))
		return false;
	size_t added = words->count - before;
	char *moved[2] = { words->items[before], words->items[words->count - 1] };
	memmove(words->items + at + added, words->items + at, (before - at) * sizeof(*words->items));
	memcpy(words->items + at, moved, added * sizeof(*moved));
	words->first += added;
	return true;
}

/* True for what stands behind an option as its value: "4" of "--batch-size 4". */
static bool
is_value(const char *word)
{
	return word != NULL && word[0] != '-' && strchr(word, '=') == NULL && kind_of(word) == WORD_TYPED;
}

/* The options of one part: "--batch-size 2 --amp"; variables only in a line to copy, a trial sets them itself. */
static bool
set_options(struct words *words, char *text, bool variables)
{
	char *rest = NULL, *word = strtok_r(text, " ", &rest);
	bool good = true;
	while (good && word != NULL) {
		const char *equals = strchr(word, '=');
		char *next = strtok_r(NULL, " ", &rest);
		if (kind_of(word) == WORD_VARIABLE) {
			good = !variables || set_variable(words, word + strlen(VARIABLE));
		} else if (kind_of(word) == WORD_FILE) {
			good = true; /* the file is patched */
		} else if (equals != NULL) {
			good = set_joined(words, word, (size_t)(equals - word));
		} else if (is_value(next)) {
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
set_changes(struct words *words, const char *changes, bool variables)
{
	struct tn_change_list list;
	bool good = tn__change_split(changes, &list) == TN_OK;
	for (size_t i = 0; good && i < list.count; i++)
		if (tn__change_is_option(list.parts[i]) && strchr(list.parts[i], '=') != NULL)
			good = set_options(words, strchr(list.parts[i], '=') + 1, variables);
	tn__change_list_free(&list);
	return good;
}

static char **
command_with(char *const *arguments, const char *changes, bool variables)
{
	struct words words = { .items = calloc(1, sizeof(char *)) };
	bool good = words.items != NULL;
	for (size_t i = 0; good && arguments[i] != NULL; i++)
		good = add(&words, arguments[i]);
	words.first = good ? first_own(&words) : 0;
	if (good && set_changes(&words, changes, variables))
		return words.items;
	tn__change_command_free(words.items);
	return NULL;
}

char **
tn__change_command(char *const *arguments, const char *changes)
{
	return command_with(arguments, changes, false);
}

char **
tn__change_command_to_copy(char *const *arguments, const char *changes)
{
	return command_with(arguments, changes, true);
}

void
tn__change_command_free(char **arguments)
{
	for (size_t i = 0; arguments != NULL && arguments[i] != NULL; i++)
		free(arguments[i]);
	free(arguments);
}
