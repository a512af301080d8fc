/* SPDX-License-Identifier: Apache-2.0
 *
 * A run that tells what it has seen before it has ended, and one that learns later how far it has to go: trials of a program that is tried beside
 * the unchanged one (doc/design/0010-trials.md).
 */
#ifndef TN_SUPERVISE_EARLY_H
#define TN_SUPERVISE_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#define TN_EARLY_VARIABLE "TONNAGE_EARLY" /* "1": the hook tells early */

/* The last step, and epoch of training, that a trial need not look behind for news (TONNAGE_LAST_NEWS); 0: unknown. */
struct tn_late_news {
	_Atomic bool step_known; /* the step, since memory has settled; the epoch is known later */
	_Atomic bool known;      /* both; written last */
	_Atomic int64_t step;
	int64_t epoch;
};

/* One on a page of its own, which processes that are forked from now on share; nothing is known yet. NULL where there is none to be had. Release
 * with the second, which takes NULL. */
struct tn_late_news *tn__late_news_make(void);
void tn__late_news_free(struct tn_late_news *news);

struct tn_ledger_guest;
/* Takes the step from the hook of the unchanged program, once that has told it. */
void tn__late_news_take_step(struct tn_late_news *news, const struct tn_ledger_guest *guest);
/* Tells the hook of a trial what is known. */
void tn__late_news_pass_on(const struct tn_late_news *news, struct tn_ledger_guest *guest);

struct tn_once;
/* Has a copy of this process hand over what was seen so far, as if the run had been stopped now: nothing that it does reaches the run. It ends with
 * the run's other processes at the latest. */
void tn__once_tell_early(struct tn_once *once);

#endif
