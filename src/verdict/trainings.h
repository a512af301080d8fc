/* SPDX-License-Identifier: Apache-2.0
 *
 * What earlier trainings of the same process left on the card while a later one went on, as findings (doc/design/0038-trainings.md).
 */
#ifndef TN_VERDICT_TRAININGS_H
#define TN_VERDICT_TRAININGS_H

#include "verdict/model.h"

/* What holds it, as the guest hook tells; texts are borrowed, and NULL where unknown. */
struct tn_training_holder {
	const char *kind; /* "variable", "container", "exception", "handled", "cache", "garbage" */
	const char *name; /* "results", "model and optimizer", "trainer_for" */
	const struct tn_place *at;
	int64_t trainings; /* whose things are held */
	int64_t during;    /* the number of the one that went on, or was being set up */
	int64_t bytes;     /* that are free without the holder */
};

/* Adds its finding. Nothing happens for a kind that is not known, and for less than is worth a word. */
void tn__add_training_holder(const struct tn_training_holder *holder, struct tn_report *report);

/* Where what is held is more than an out-of-memory lacked, it is the reason. After judging. */
void tn__weigh_trainings(struct tn_report *report);

#endif
