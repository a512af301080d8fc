/* SPDX-License-Identifier: Apache-2.0
 *
 * What is worth trying, by what has come so far. The search goes on until something fits safely: what fits only narrowly ends
 * nothing.
 */
#include "search/fix_search.h"

#define ENOUGH_KEPT 3 /* that fit and keep the results: then nothing is tried that trains differently */
#define ENOUGH_FOUND 6

int
tn__fix_fitting(const struct tn_fix_search *search, enum tn_guarantee worst, bool safely)
{
	int count = 0;
	for (int i = 0; i < search->count; i++) {
		const struct tn_fix_change *found = &search->attempts[i].found;
		count += found->end == TN_FIX_FITS && found->results <= worst && !(safely && tn__fix_is_narrow(found));
	}
	return count;
}

/* True when fewer pieces of a batch, or a setting that takes less away, are seen to be enough. */
static bool
is_outdone(const struct tn_fix_search *search, const struct tn_attempt *attempt)
{
	for (int i = 0; i < search->count; i++) {
		const struct tn_fix_change *other = &search->attempts[i].found;
		if (attempt->found.pieces > 0 && other->end == TN_FIX_FITS && !tn__fix_is_narrow(other) && other->pieces > 0 &&
		    other->pieces < attempt->found.pieces && tn__fix_excludes(&search->attempts[i], attempt))
			return true;
	}
	return false;
}

/* Once something fits the time is limited; for something that keeps the results, and fits safely, there is twice as much. */
static bool
time_is_up(const struct tn_fix_search *search)
{
	double limit = search->options->search.seconds;
	if (limit <= 0 || tn__fix_fitting(search, TN_GUARANTEE_DIFFERENT, false) == 0)
		return false;
	return tn__trials_seconds(&search->trials) >
	       (tn__fix_fitting(search, TN_GUARANTEE_ROUNDING, true) > 0 ? limit : 2 * limit);
}

/* Once something keeps the results, and fits safely: true for what is tried only to join it with others, or to tell how much is lacking, or
 * how safely another training fits. */
static bool
is_for_completeness(const struct tn_fix_search *search, const struct tn_attempt *attempt)
{
	if (attempt->stage == TN_STAGE_TOO_SMALL)
		return true;
	if (attempt->stage == TN_STAGE_RETRY_WITH_LESS)
		return attempt->found.results == TN_GUARANTEE_DIFFERENT;
	return search->missing != TN_NO_FIGURE && attempt->most < search->missing;
}

bool
tn__fix_is_worth_it(const struct tn_fix_search *search, const struct tn_attempt *attempt)
{
	int kept = tn__fix_fitting(search, TN_GUARANTEE_ROUNDING, true);
	int all = tn__fix_fitting(search, TN_GUARANTEE_DIFFERENT, true);
	if (attempt->wished)
		return true;
	if (is_outdone(search, attempt))
		return false;
	if (attempt->found.remedy)
		return true;
	if (attempt->soon && kept == 0)
		return true;
	if (time_is_up(search))
		return false;
	if (kept > 0 && is_for_completeness(search, attempt))
		return false;
	if (attempt->found.results == TN_GUARANTEE_DIFFERENT)
		return kept < ENOUGH_KEPT && all < ENOUGH_FOUND;
	return kept == 0 || all < ENOUGH_FOUND;
}
