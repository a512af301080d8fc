/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are lists of words.
 */
#ifndef TN_BASE_WORDS_H
#define TN_BASE_WORDS_H

#include <stdbool.h>

/* True where `word` is one of `words`, which are separated by spaces. False for an empty word. */
bool tn__has_word(const char *words, const char *word);

#endif
