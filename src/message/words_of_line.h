/* SPDX-License-Identifier: Apache-2.0
 *
 * What the readers of a clean line ask of its letters.
 */
#ifndef TN_MESSAGE_WORDS_OF_LINE_H
#define TN_MESSAGE_WORDS_OF_LINE_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static inline bool
tn__name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* How many characters of the set the line opens with. */
static inline size_t
tn__skip_any(const char *line, size_t length, const char *set)
{
	size_t i = 0;
	while (i < length && strchr(set, line[i]) != NULL)
		i++;
	return i;
}

/* Whether the text begins with one of the words, separated by '|'; behind one that ends with a letter none may follow. */
static inline bool
tn__begins_with(const char *text, size_t length, const char *words, bool any_case)
{
	for (size_t size; *words != '\0'; words += size + (words[size] == '|')) {
		size = strcspn(words, "|");
		if (size <= length && (any_case ? strncasecmp(text, words, size) : strncmp(text, words, size)) == 0 &&
		    (!tn__name_char(words[size - 1]) || size == length || !tn__name_char(text[size])))
			return true;
	}
	return false;
}

/* Copies the word that ends at `end`, with a blank at each side, in small letters; returns its length, 0 where none ends there. */
static inline size_t
tn__word_ending(const char *line, size_t end, char padded[24])
{
	size_t first = end, used = 1;
	while (first > 0 && (isalpha((unsigned char)line[first - 1]) || line[first - 1] == '\''))
		first--;
	padded[0] = ' ';
	for (size_t i = first; i < end && used < 22; i++)
		padded[used++] = (char)tolower((unsigned char)line[i]);
	padded[used++] = ' ';
	padded[used] = '\0';
	return end - first;
}

#endif
