/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `tonnage run` share: one run, again where that tells more.
 */
#ifndef TN_RUN_RUN_INTERNAL_H
#define TN_RUN_RUN_INTERNAL_H

#include <signal.h>
#include <sys/types.h>

#include "verdict/model.h"
#include "supervise/folder.h"
#include "tonnage/run.h"

/* ---- run.c ---- */

/* Sees the report of a run before it is written, while the run's folder still stands; both are the caller's. */
typedef void tn__run_looker(void *context, const struct tn_folder *folder, const struct tn_report *report);
/* As tn_run, with a look at the report. */
tn_status tn__run_and_look(const struct tn_run_options *options, tn__run_looker *look, void *context, int *exit_status);

/* ---- again.c ---- */

/* What the program's standard input is, before it starts. */
struct tn_input {
	enum { TN_INPUT_NOTHING, TN_INPUT_FILE, TN_INPUT_GONE } kind;
	off_t offset; /* of a file */
};
struct tn_input tn__input_of_run(void);

struct tn_again {
	const struct tn_run_options *options;
	struct tn_input input;
	struct tn_views *views; /* of the run that was made: its folder stands longer than that of another */
};
/* After a run: makes it again with other assumptions where that may tell more, and replaces or completes its report. */
void tn__look_again(const struct tn_again *again, struct tn_report *report);

/* ---- need.c: what a program that ran out of memory needs in all ---- */

/* Runs a few steps of it again, on a card that is never full; bytes are 0 when that is not known, too dear, or ended by a
 * signal. `mask` is what the program's processes get; `signals` tells of those that end the run. */
struct tn_need tn__need_find(const struct tn_run_options *options, const struct tn_report *report, int signals,
                             const sigset_t *mask);

#endif
