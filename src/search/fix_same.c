/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a change that promises the same results made the same updates: as many samples, the same loss, the same learning
 * rates. What a trial and the unchanged program were seen to do (python/tonnage/changes/pace.py) is held against each other.
 */
#include <math.h>
#include <stdlib.h>

#include "search/fix_search.h"

#define NEAR 1e-4 /* shares and rates are sums of rounded numbers */

static bool
are_near(double one, double two)
{
	return fabs(one - two) <= NEAR * fmax(fabs(one), fabs(two));
}

/* The first update whose learning rate differs; -1: none of those that both have seen. */
static int64_t
other_rate(const struct tn_pace *before, const struct tn_pace *after)
{
	for (size_t i = 0; i < before->rate_count && i < after->rate_count; i++)
		if (!are_near(before->rates[i], after->rates[i]))
			return (int64_t)i;
	return -1;
}

/* Why the updates are not the same; the caller frees; NULL: nothing that was seen differs. */
static char *
difference(const struct tn_pace *before, const struct tn_pace *after, bool cuts)
{
	char *words = NULL;
	int64_t rate = other_rate(before, after);
	int length = 0;
	if (after->updates <= 0)
		length = cuts ? asprintf(&words, "no update was seen") : 0;
	else if (before->samples > 0 && after->samples > 0 && before->samples != after->samples)
		length = asprintf(&words, "an update uses %lld samples, %lld when unchanged", (long long)after->samples,
		                  (long long)before->samples);
	else if (before->tokens > 0 && after->tokens > 0 && before->tokens != after->tokens)
		length = asprintf(&words, "an update uses %lld tokens, %lld when unchanged", (long long)after->tokens,
		                  (long long)before->tokens);
	else if (!isnan(before->loss_share) && !isnan(after->loss_share) &&
	         !are_near(before->loss_share, after->loss_share))
		length = asprintf(&words, "the losses of an update are weighted %.3g times, %.3g times when unchanged",
		                  after->loss_share, before->loss_share);
	else if (rate >= 0)
		length = asprintf(&words, "the learning rate of update %lld is %g, %g when unchanged", (long long)rate + 1,
		                  after->rates[rate], before->rates[rate]);
	return length < 0 ? NULL : words;
}

void
tn__fix_judge_updates(const struct tn_fix_search *search, struct tn_attempt *attempt, const struct tn_trial *trial)
{
	const struct tn_pace *before = &search->unchanged_large.outcome.changes.pace, *after = &trial->outcome.changes.pace;
	struct tn_fix_change *found = &attempt->found;
	if (attempt->without_others || found->results == TN_GUARANTEE_DIFFERENT || before->updates <= 0)
		return;
	char *why = difference(before, after, found->pieces > 0), *how = NULL;
	if (why != NULL) {
		found->results = TN_GUARANTEE_DIFFERENT;
		if (asprintf(&how, "%s\nNot the same training: %s.", found->how != NULL ? found->how : "", why) >= 0) {
			free(found->how);
			found->how = how;
		}
	}
	free(why);
}

double
tn__fix_share_of_samples(const struct tn_fix_search *search, const struct tn_trial *trial)
{
	const struct tn_pace *before = &search->unchanged_large.outcome.changes.pace, *after = &trial->outcome.changes.pace;
	return before->samples > 0 && after->samples > 0 ? (double)after->samples / (double)before->samples : 0;
}
