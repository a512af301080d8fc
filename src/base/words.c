/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are lists of words.
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
