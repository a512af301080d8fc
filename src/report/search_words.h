/* SPDX-License-Identifier: Apache-2.0
 *
 * What `fix` and `fit` say in the same words, on the screen and on the page. Internal to src/report.
 */
#ifndef TN_REPORT_SEARCH_WORDS_H
#define TN_REPORT_SEARCH_WORDS_H

#include <stddef.h>
#include <stdint.h>

#define TN_INTERRUPTED_WORDS "Interrupted: what is known so far"

enum { TN_WORDS_ROOM = 384 };

/* That less is left than what is not known of the peak; NULL where more is. */
const char *tn__narrow_words(int64_t margin, int64_t uncertain, char words[TN_WORDS_ROOM]);
/* The same of the computer's memory. */
const char *tn__narrow_host_words(int64_t margin, int64_t uncertain, char words[TN_WORDS_ROOM]);
/* "12 trials on a virtual GPU in 3 s; nothing real was changed"; `first`: until something fitted; negative: not said. */
const char *tn__trials_words(int trials, double seconds, double first, char words[TN_WORDS_ROOM]);

#endif
