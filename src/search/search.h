/* SPDX-License-Identifier: Apache-2.0
 *
 * What the searches of `fix` and `fit` share: the card with its margin, the line of progress, files.
 */
#ifndef TN_SEARCH_SEARCH_H
#define TN_SEARCH_SEARCH_H

#include "supervise/internal.h"
#include "tonnage/fix.h"

struct tn_search_card {
	struct tn_run_options options; /* of every trial: a virtual card, quiet, nothing written */
	struct tn_gpu_figures figures;
	uint64_t total;
	int64_t hidden; /* the margin: bytes that trials on the card must leave free */
};

/* Checks everything that can be checked before the first trial. On failure *exit_status is what the command ends
 * with. */
tn_status tn__search_card(const struct tn_search_options *options, const char *gpu, struct tn_search_card *out,
                          int *exit_status);

/* "--gpu rtx3060 --memory 8589934592 " as it was asked for; the caller frees; NULL without memory. */
char *tn__search_card_options(const struct tn_run_options *options);

/* ---- a line on a terminal ---- */

struct tn_progress_line {
	FILE *out; /* NULL: nothing is shown */
	bool shown;
};
struct tn_progress_line tn__progress_line_of(const struct tn_run_options *options);
/* Rewrites the line. */
void tn__progress_line_show(struct tn_progress_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A line that stays. */
void tn__progress_line_say(struct tn_progress_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tn__progress_line_erase(struct tn_progress_line *line);

#endif
