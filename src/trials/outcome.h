/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trial leaves, on its way from its process to the one that asked for it: written and read here, and nowhere else.
 * Between the two it is one JSON object with the report as `tonnage run --json` writes it.
 *
 * Unknown is as in the model. Plain data: not thread-safe.
 */
#ifndef TN_TRIALS_OUTCOME_H
#define TN_TRIALS_OUTCOME_H

#include <stdio.h>

#include "change/change_results.h"
#include "verdict/model.h"

struct tn_outcome {
	struct tn_report *report; /* of the run; NULL: it did not come to one */
	struct tn_change_results changes;
	char *work;    /* what its steps did, as the virtual GPU has written it (src/search/cost.c) */
	char *modules; /* that were imported: lines "name\tfile" */
	int command;   /* whose report it is, from 1: of the commands that follow one another (--then) */
	char *error;   /* of ours; NULL: none */
	int exit_status;
	struct json_t *kit;      /* what a job of `tonnage validate` counted; NULL: it was none */
	struct json_t *document; /* the report borrows from it */
};

/* What is known of a run while its folder stands, the n-th command of a trial; `work` and `modules` may be NULL. NULL without
 * memory. */
struct json_t *tn__outcome_of_run(const struct tn_report *report, int command, const char *changes_folder,
                                  const char *work, const char *modules);
/* Writes that (NULL: there was no run to speak of), which is released, with how it ended. `error` may be NULL. */
tn_status tn__outcome_write(struct json_t *of_run, const char *error, int exit_status, FILE *out);

/* Reads what was written. What is broken or missing leaves an outcome without a report. Release with tn__outcome_free. */
void tn__outcome_read(const char *text, size_t size, struct tn_outcome *out);
void tn__outcome_free(struct tn_outcome *outcome);

#endif
