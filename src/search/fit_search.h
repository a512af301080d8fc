/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a search for the largest batch. Internal to the files fit*.c: fit.c asks for trials, fit_table.c says what
 * they came to.
 */
#ifndef TN_SEARCH_FIT_SEARCH_H
#define TN_SEARCH_FIT_SEARCH_H

#include "report/fit.h"
#include "search/search.h"
#include "trials/trial.h"

#define TN_FIT_TRIALS 256
#define TN_FIT_LARGE (-1) /* in the place of a card's index: the card that is never full */

struct tn_fit_trial {
	int card;  /* TN_FIT_LARGE, or an index */
	int batch; /* 0: as the program has it */
	bool over, fits;
	char *changes;    /* NULL: none */
	char **arguments; /* with the batch in them; NULL: the program's */
	struct tn_trial trial;
};

struct tn_fit_target {
	struct tn_search_card card;
	char *asked;
	int low, high;       /* largest that fits, 0: none known; smallest that does not, INT_MAX: none known */
	int probes, strides; /* on the card; of them, beyond all that is known */
	int sightings;       /* on the card that is never full */
};

struct tn_fit_search {
	const struct tn_fit_options *options;
	struct tn_trials trials;
	struct tn_search_place place;
	struct tn_progress_line line;
	struct tn_fit_target targets[TN_SEARCH_CARDS];
	int target_count;
	struct tn_fit_trial *points[TN_FIT_TRIALS]; /* they do not move: trials point into them */
	int count;
	bool by_word, detail;
	int own_batch; /* the program's; 0: unknown */
	int most;
	const char *failure;
	char *doubt; /* the failure's words, where they are made */
	int failure_status;
};

/* ---- frontier.c ---- */

/* As tn_fit, for options with `vary`. */
tn_status tn__frontier(const struct tn_fit_options *options, int *exit_status);

/* ---- fit_table.c ---- */

/* The trial of a batch on a card; NULL: there is none. */
struct tn_fit_trial *tn__fit_find(struct tn_fit_search *search, int card, int batch);
/* The batch that a trial is about; 0 when that is not known. */
int tn__fit_batch_of(const struct tn_fit_search *search, const struct tn_fit_trial *point);
/* What a batch takes on a card, as far as a trial has told; TN_NO_FIGURE where it was not seen whole. */
int64_t tn__fit_device_of(const struct tn_fit_search *search, const struct tn_fit_trial *point,
                          const struct tn_fit_target *target);
/* True when the largest batch for a card is known. */
bool tn__fit_is_done(const struct tn_fit_search *search, const struct tn_fit_target *target);

/* Makes the table; release with tn__fits_free. */
void tn__fit_table(struct tn_fit_search *search, struct tn_fits *out);

#endif
