/* SPDX-License-Identifier: Apache-2.0
 *
 * The unchanged program says early what it has seen, and changes are planned by that while it still waits for something new. Did its end bear
 * that out?
 */
#include <string.h>

#include "search/fix_search.h"

static bool
same_text(const char *one, const char *other)
{
	return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

static bool
same_peak(const struct tn_report *one, const struct tn_report *other)
{
	const struct tn_report_moment *peak = &one->at_peak, *later = &other->at_peak;
	return one->verdict == other->verdict && one->device_peak == other->device_peak &&
	       one->allocated_peak == other->allocated_peak && peak->step == later->step &&
	       same_text(peak->phase, later->phase) &&
	       memcmp(peak->by_category, later->by_category, sizeof(peak->by_category)) == 0;
}

static bool
same_possible(const struct tn_possible_change *one, const struct tn_possible_change *other)
{
	bool same = same_text(one->id, other->id) && one->results == other->results && one->at_most == other->at_most &&
	            one->values.count == other->values.count;
	for (size_t i = 0; same && i < one->values.count; i++)
		same = same_text(one->values.items[i], other->values.items[i]);
	return same;
}

bool
tn__fix_says_the_same(const struct tn_trial *early, const struct tn_trial *end)
{
	const struct tn_survey *survey = &early->outcome.changes.survey, *later = &end->outcome.changes.survey;
	bool same = end->end == TN_TRIAL_DONE && same_peak(tn__trial_report(early), tn__trial_report(end)) &&
	            survey->news_step == later->news_step && survey->news_epoch == later->news_epoch &&
	            survey->possible_count == later->possible_count;
	for (size_t i = 0; same && i < survey->possible_count; i++)
		same = same_possible(&survey->possible[i], &later->possible[i]);
	return same;
}
