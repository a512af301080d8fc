/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are lists of words, and words of a shell.
 */
#ifndef TN_BASE_WORDS_H
#define TN_BASE_WORDS_H

#include <stdbool.h>
#include <stdio.h>

/* True where `word` is one of `words`, which are separated by spaces. False for an empty word. */
bool tn__has_word(const char *words, const char *word);

/* Writes the text as one word of a POSIX shell: in single quotes, unless it is plain. */
void tn__quote_for_shell(const char *text, FILE *out);

#endif
