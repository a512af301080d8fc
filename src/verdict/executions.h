/* SPDX-License-Identifier: Apache-2.0
 *
 * Several commands, one after the other, as one run (doc/design/0035-then.md): which of them decides.
 */
#ifndef TN_VERDICT_EXECUTIONS_H
#define TN_VERDICT_EXECUTIONS_H

#include "verdict/model.h"

#define TN_MOST_EXECUTIONS 16

struct tn_executions {
	struct tn_report *reports[TN_MOST_EXECUTIONS]; /* of those that were started, in their order; lent */
	size_t count;
	const char *not_run[TN_MOST_EXECUTIONS]; /* commands that were not started; lent */
	size_t not_run_count;
};

/* May another command follow one with this report? */
bool tn__may_go_on(const struct tn_report *report);
/* True for a step between, as one that converts a checkpoint on the CPU. */
bool tn__used_no_card(const struct tn_report *report);
/* Which one decides: the first that does not fit, else the one with the highest peak. There is at least one. One that did not use
 * the card decides nothing where another did. */
size_t tn__deciding_execution(const struct tn_executions *executions);
/* A command that only got through when it was run again: what it left is not what the next one would find, which is therefore not
 * run, so that the whole is undecided. */
void tn__report_cannot_be_followed(struct tn_report *report);
/* What can only be said of a command that follows others: a resumed program that had nothing left to train. */
void tn__report_as_follower(struct tn_report *report);

#endif
