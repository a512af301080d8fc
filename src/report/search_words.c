/* SPDX-License-Identifier: Apache-2.0 */
#include "report/search_words.h"

#include <stdio.h>

#include "report/report.h"

const char *
tn__narrow_words(int64_t margin, int64_t uncertain, char words[TN_WORDS_ROOM])
{
	char above[32];
	if (margin == TN_NO_FIGURE || margin >= uncertain)
		return NULL;
	snprintf(words, TN_WORDS_ROOM,
	         "narrowly: the peak may be up to %s higher (the CUDA context, kernels as they load), and "
	         "that decides",
	         tn__human_bytes(uncertain, above));
	return words;
}

const char *
tn__narrow_host_words(int64_t margin, int64_t uncertain, char words[TN_WORDS_ROOM])
{
	char above[32];
	if (margin == TN_NO_FIGURE || margin >= uncertain)
		return NULL;
	snprintf(words, TN_WORDS_ROOM,
	         "narrowly: it would be %s more, were every process at its highest at once, and that decides",
	         tn__human_bytes(uncertain, above));
	return words;
}

const char *
tn__trials_words(int trials, double seconds, double first, char words[TN_WORDS_ROOM])
{
	char found[64] = "";
	if (first >= 0)
		snprintf(found, sizeof(found), ", the first that fits after %.0f s", first);
	snprintf(words, TN_WORDS_ROOM, "%d trial%s on a virtual GPU in %.0f s%s; nothing real was changed", trials,
	         trials == 1 ? "" : "s", seconds, found);
	return words;
}
