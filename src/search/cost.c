/* SPDX-License-Identifier: Apache-2.0
 *
 * What a change costs in time: the ratio, by the roofline, of what the steps of two trials did
 * (doc/design/0012-step-time.md).
 */
#include <math.h>

#include "change/facts.h"
#include "search/fix_search.h"

/* How much of the samples of an unchanged step a changed one sees; 0: unknown. */
static double
share_of_samples(const struct tn_fix_search *search, const struct tn_fix_change *change, const struct tn_trial *trial)
{
	double share = 1, seen = tn__fix_share_of_samples(search, trial);
	for (size_t i = 0; i < change->part_count; i++)
		if (tn__change_facts(change->parts[i])->choice == TN_CHOICE_PIECES)
			return 1; /* two optimizers that take turns are held back unevenly: what one update is made of says nothing then */
	if (seen > 0)
		return seen;
	for (size_t i = 0; i < change->part_count; i++)
		if (tn__change_facts(change->parts[i])->choice == TN_CHOICE_BATCH)
			share = search->batch > 0 ? (double)tn__change_number(change->parts[i]) / search->batch : 0;
	return share;
}

void
tn__fix_judge_time(const struct tn_fix_search *search, struct tn_attempt *attempt, const struct tn_trial *trial)
{
	const struct tn_steps *unchanged = &search->unchanged_large.steps;
	double share = share_of_samples(search, &attempt->found, trial);
	if (unchanged->count < 2)
		unchanged = &search->unchanged_card.steps;
	for (size_t i = 0; i < attempt->found.part_count; i++)
		if (tn__change_is(attempt->found.parts[i], TN_CHANGE_SHARD_STATE))
			return;   /* what cards send each other is not counted, so that only what is saved would be */
	if (search->host) /* neither is how long batches are waited for */
		return;
	if (attempt->without_others)
		attempt->found.time = (struct tn_time_ratio){ true, 1, 1, 1 };
	else if (share > 0)
		attempt->found.time = tn__time_ratio(unchanged, &trial->steps, share, &search->card.figures);
}

double
tn__fix_time(const struct tn_fix_change *change)
{
	/* of changes whose time is not known: by the rank of what they cost */
	static const double usual[] = { 1, 1.02, 1.05, 1.1, 1.3, 1.5, 2, 3 };
	size_t last = sizeof(usual) / sizeof(usual[0]) - 1;
	size_t rank = change->cost < 0 ? 0 : (size_t)change->cost < last ? (size_t)change->cost : last;
	double ratio = change->time.known ? change->time.ratio : usual[rank];
	/* what is nearly the same, or faster, is told apart by other things: steps of a fifth */
	return ratio <= 1.15 ? 0 : floor(log(ratio / 1.15) / log(1.2)) + 1;
}
