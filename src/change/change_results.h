/* SPDX-License-Identifier: Apache-2.0
 *
 * What the changes of a run reported, and what a survey found that can be tried: the documents that
 * python/tonnage/changes writes (doc/design/0009-changes.md), read into plain data at one place. They come from the program's
 * processes: fields that are missing, or of another kind, are unknown. Unknown is TN_NO_FIGURE or NULL.
 */
#ifndef TN_CHANGE_RESULTS_H
#define TN_CHANGE_RESULTS_H

#include <stddef.h>
#include <stdint.h>

#include "change/change.h"
#include "tonnage/status.h"

struct json_t;

struct tn_text_list {
	char **items; /* one may be NULL */
	size_t count;
};

struct tn_number_list {
	int64_t *items;
	size_t count;
};

#define TN_RATES 16
#define TN_FOLLOWED 4
#define TN_PRODUCTS 16

/* How large a product of two computed things is, near the loss. */
struct tn_product {
	int64_t rows, summed, columns;
};

/* What the updates of a process were made of. */
/* What the first updates of one parameter were made of, in backward passes. */
struct tn_followed {
	int64_t own[TN_RATES];   /* that added to its gradient */
	int64_t since[TN_RATES]; /* since the update before */
	size_t count;
};

struct tn_pace {
	int64_t updates;         /* that were seen; 0: none, and the rest says nothing */
	int64_t samples, tokens; /* of an update, at the model; 0 or TN_NO_FIGURE: unknown, or not the same in all */
	int64_t elements;        /* of an update, of what the model is called with; 0 or TN_NO_FIGURE: unknown */
	int64_t samples_of_call; /* the first dimension of that; 0 or TN_NO_FIGURE: unknown */
	int64_t backward;        /* passes of an update */
	double loss_share;       /* how often its losses count: 1 for a quarter of each of four; NAN: unknown */
	struct tn_followed followed[TN_FOLLOWED]; /* parameters of different optimizers */
	size_t followed_count;
	double rates[TN_RATES]; /* learning rates of the first updates */
	size_t rate_count;
	struct tn_product products[TN_PRODUCTS]; /* of the first loss, the nearest to it first */
	size_t product_count;
};

/* What one process says of one change. */
struct tn_change_result {
	char *id;
	bool applied;
	bool found_nothing; /* it could be applied, but this process has nothing that it acts on */
	int64_t effective;  /* how often it made a difference */
	enum tn_guarantee results;
	char *why_not, *how;
};

struct tn_change_process {
	int64_t rank; /* of the job; TN_NO_FIGURE: it is none */
	struct tn_pace pace;
	struct tn_change_result *items;
	size_t count;
	char *patch;        /* of all changes that were applied */
	bool patch_was_run; /* they do what it says and no more: what ran is the patch */
};

/* A change that can be tried in the program. */
struct tn_possible_change {
	char *id, *title;
	enum tn_guarantee results;
	struct tn_text_list values;   /* worth trying; NULL among them: it takes none */
	struct tn_number_list pieces; /* of each value: that a batch is cut into; 0: none. Empty: not told */
	int64_t at_most;              /* bytes that it can save; TN_NO_FIGURE: not known */
};

struct tn_survey {
	bool known;       /* else the rest says nothing */
	int64_t backward; /* passes that were seen */
	/* The step that brought something new last; TN_NO_FIGURE: memory has not settled, or inputs differ from step to step. */
	int64_t news_step;
	/* The epoch of training before which that was; TN_NO_FIGURE: the program was not ended since nothing new came. */
	int64_t news_epoch;
	int64_t blocks;                   /* of one kind, in the largest list of them */
	struct tn_text_list command_line; /* of the process, behind the script's name */
	struct tn_number_list batches, batch_options, evaluation_batches;
	struct tn_possible_change *possible;
	size_t possible_count;
};

struct tn_change_results {
	struct tn_pace pace; /* of the process that made most updates */
	struct tn_change_process *processes;
	size_t count;
	struct tn_survey survey; /* of the process that saw most backward passes */
};

/* The documents in a folder, as an array; NULL without memory. */
struct json_t *tn__change_documents(const char *folder);
/* Reads such an array; NULL gives no results. Release with tn__change_results_free. */
tn_status tn__change_results_of(const struct json_t *documents, struct tn_change_results *out);
/* Both. */
tn_status tn__change_results_read(const char *folder, struct tn_change_results *out);
void tn__change_results_free(struct tn_change_results *results);

/* The largest batch of training that a survey saw, of those up to `most`; 0 when it saw none. Loaders come before what the
 * command line says. */
int tn__survey_batch(const struct tn_survey *survey, int most);
/* The largest batch of evaluation that a survey saw; 0 when it saw none. */
int tn__survey_evaluation_batch(const struct tn_survey *survey);
/* The row of a change; NULL when it cannot be tried, or there was no survey. */
const struct tn_possible_change *tn__survey_find(const struct tn_survey *survey, const char *part);

#endif
