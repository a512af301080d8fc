/* SPDX-License-Identifier: Apache-2.0
 *
 * What a change may do for a run that was seen. What is known of each change stands in change/facts.h; what it remedies, in
 * src/verdict/findings.def.
 */
#ifndef TN_SEARCH_REMEDIES_H
#define TN_SEARCH_REMEDIES_H

#include "change/facts.h"
#include "trials/trial.h"

/* True when the change remedies what the run as it is was found to suffer from; *not_of_room: and that is no want of
 * room, so that the remedy comes first whatever it saves. */
bool tn__remedy_fits(const struct tn_change_facts *facts, const struct tn_trial *unchanged, bool *not_of_room);
/* True for findings that are want of room: each change that saves enough is a remedy. False for what is wrong. */
bool tn__finding_is_room(const char *id);
/* True when a trial tells what its peak was made of. */
bool tn__remedy_is_told(const struct tn_trial *large);
/* The most that the change may save, by what the peak of `large` was made of. `pieces` is k where a batch becomes k. */
int64_t tn__remedy_most(const struct tn_change_facts *facts, const struct tn_trial *large, int pieces);

#endif
