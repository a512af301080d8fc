/* SPDX-License-Identifier: Apache-2.0
 *
 * What the searches of `fix` and `fit` share: the card with its margin, the line of progress, files.
 */
#ifndef TN_SEARCH_SEARCH_H
#define TN_SEARCH_SEARCH_H

#include "supervise/internal.h"
#include "tonnage/fix.h"
#include "trials/trial_engine.h"

struct tn_progress_line;

struct tn_search_card {
	struct tn_run_options options; /* of every trial: a virtual card, quiet, nothing written */
	struct tn_gpu_figures figures;
	uint64_t total;
	int64_t hidden; /* the margin: bytes that trials on the card must leave free */
};

#define TN_SEARCH_CARDS 16

/* Checks everything that can be checked before the first trial. On failure *exit_status is what the command ends
 * with. */
tn_status tn__search_card(const struct tn_search_options *options, const char *gpu, struct tn_search_card *out,
                          int *exit_status);

/* The same for each of the cards that run.gpu names, "rtx3060,a100-40", into `cards` of TN_SEARCH_CARDS items. `asked` has their names as
 * they were given; the caller frees each, also after a failure. */
tn_status tn__search_cards(const struct tn_search_options *options, struct tn_search_card *cards, char **asked,
                           int *count, int *exit_status);

/* The options of a trial on the card with its margin held back, or on one that is never full. */
struct tn_run_options tn__search_trial_options(const struct tn_search_card *card, bool never_full);

/* Where trials are made, and their results kept. */
struct tn_search_place {
	struct tn_store store;
	struct tn_engine engine;
};
/* What a search begins with: `next`, `ended` and `tick` are those of struct tn_trials. */
struct tn_trials tn__search_trials(const struct tn_search_options *options, void *context,
                                   struct tn_trial *(*next)(void *context),
                                   void (*ended)(void *context, struct tn_trial *trial), void (*tick)(void *context));
/* Makes the trials where the options ask for it, with results kept in *place, and erases the line of progress at the end. *dry: it was a dry
 * run, after which there is nothing to conclude. *exit_status is set where the command ends: a failure, or 0 after a dry run. */
tn_status tn__search_make_trials(const struct tn_search_options *options, struct tn_search_place *place,
                                 struct tn_trials *trials, struct tn_progress_line *line, bool *dry, int *exit_status);
/* Says what the engine came to, in a line. Where trials had to be given up, *exit_status, when not NULL, becomes a failure. */
void tn__search_place_say(const struct tn_search_options *options, const struct tn_trials *trials, int *exit_status);
/* "12 of at most 300 trials, 4 run, 1.5/s, at most 3 min left; 2 nodes, 4 cores", as far as it is known. `most` 0: unknown. */
const char *tn__search_progress(const struct tn_trials *trials, int most, char words[200]);

/* The change that sets the batch of the data loader; the caller frees; NULL without memory. */
char *tn__search_batch_change(int batch);

/* How a wanted batch comes about in equal pieces of at most `largest`; 0 and 0 where nothing is wanted or nothing fits. */
void tn__search_plan(int wanted, int largest, int *micro_batch, int *steps);

/* Why a search cannot begin, from the trial of the program that came first; NULL: it can. The text is borrowed from the trial,
 * or is *made, which the caller frees; *exit_status is what the command ends with. Shows what a program that fails said. */
struct tn_trial;
const char *tn__search_failure(const struct tn_trial *trial, struct tn_progress_line *line, char **made,
                               int *exit_status);

/* ---- commands.c ---- */

/* The program's command line and those of --then, each with options of its own set; NULL: as it was. */
struct tn_search_commands {
	char **arguments;
	char *then[TN_MOST_THEN];
};
/* True where both command lines start the same script or module. */
bool tn__search_same_script(char *const *one, char *const *other);
/* Sets the options of these changes in the program's line, and in each that starts the same script. Release with
 * tn__search_commands_free. */
void tn__search_commands_make(const struct tn_run_options *options, const char *changes,
                              struct tn_search_commands *out);
/* Has a run take them; they are lent to it. */
void tn__search_commands_set(const struct tn_search_commands *commands, struct tn_run_options *options);
void tn__search_commands_free(struct tn_search_commands *commands);

/* ---- search.c ---- */

/* "--gpu rtx3060 --memory 8GiB --cells 1-4 " as it was asked for; the caller frees; NULL without memory. */
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
