/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are lists of words, and words of a shell.
 */
#include "base/words.h"

#include <string.h>

bool
tn__has_word(const char *words, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = words + strspn(words, " "); *at != '\0'; at += strspn(at, " ")) {
		size_t here = strcspn(at, " ");
		if (here == length && strncmp(at, word, length) == 0)
			return true;
		at += here;
	}
	return false;
}

void
tn__quote_for_shell(const char *text, FILE *out)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
	if (*text != '\0' && text[strspn(text, plain)] == '\0') {
		fputs(text, out);
		return;
	}
	fputc('\'', out);
	for (; *text != '\0'; text++)
		fputs(*text == '\'' ? "'\\''" : (char[2]){ *text, '\0' }, out);
	fputc('\'', out);
}
