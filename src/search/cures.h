/* SPDX-License-Identifier: Apache-2.0
 *
 * What Tonnage knows of each change before it is tried: what it costs, what it may save. One table; what it cures stands in
 * src/verdict/findings.def.
 */
#ifndef TN_SEARCH_CURES_H
#define TN_SEARCH_CURES_H

#include "trials/trial.h"

struct tn_cure {
	const char *id;
	int cost;               /* rank of the time it costs a step, least first; two equal ones cost about the same */
	/* the most it may save of each, as a share */
	double parameters, gradients, state, activations, temporaries, rounding;
	const char *phases;     /* words: it helps only where the peak is in one of these; NULL: in any */
};

/* The row of a change; one that knows nothing for an unknown name. */
const struct tn_cure *tn__cure_of(const char *id);
/* True when the change cures what the run as it is was found to suffer from; *not_of_room: and that is no want of
 * room, so that the cure comes first whatever it saves. */
bool tn__cure_fits(const struct tn_cure *cure, const struct tn_trial *unchanged, bool *not_of_room);
/* True for findings that are want of room: each change that saves enough is a cure. False for what is wrong. */
bool tn__finding_is_room(const char *id);
/* True when a trial tells what its peak was made of. */
bool tn__cure_is_told(const struct tn_trial *large);
/* The most that the change may save, by what the peak of `large` was made of. `pieces` is k where a batch becomes k. */
int64_t tn__cure_most(const struct tn_cure *cure, const struct tn_trial *large, int pieces);

#endif
