/* SPDX-License-Identifier: Apache-2.0
 *
 * What to do about a card that is full: every piece of advice in one table, each with the condition under which it is given.
 * A condition is asked on what the run has seen of the program, so that nobody is told to do what he does already.
 *
 * Invariant: what is not known does not forbid a piece; what was seen to be so already does.
 */
#ifndef TN_VERDICT_ADVICE_H
#define TN_VERDICT_ADVICE_H

#include "verdict/model.h"

struct tn_advice {
	const char *id;
	const char *text;                              /* "checkpointing (torch.utils.checkpoint)" */
	const char *condition;                         /* in words: "it trains, and checkpoints nothing yet" */
	bool (*holds)(const struct tn_report *report); /* NULL: the finding that it belongs to is condition enough */
};

/* True when a list of ids, separated by spaces, has it. */
bool tn__advice_is_among(const struct tn_advice *advice, const char *ids);

/* A row of the table; NULL past its end. */
const struct tn_advice *tn__advice_at(size_t index);

/* The pieces of a finding whose conditions hold, of `wanted` (ids, separated by spaces, best first). In words, joined by
 * ", or "; the caller frees. *held are their ids, as `wanted` has them; the caller frees. Both NULL where none holds, and
 * without memory. */
char *tn__advice_words(const struct tn_report *report, const char *wanted, char **held);

/* Gives a finding of the report those of the pieces in `wanted` (ids, separated by spaces, best first) whose conditions hold,
 * in the place of what it has. Nothing happens where either is NULL. */
void tn__report_advise(const struct tn_report *report, struct tn_finding *finding, const char *wanted);

#endif
