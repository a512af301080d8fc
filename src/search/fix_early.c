/* SPDX-License-Identifier: Apache-2.0
 *
 * The unchanged program says early what it has seen. Changes are planned and tried by that while it goes on; their trials are told how far they have
 * to go once it has ended. Then it is planned again, by all that it has shown, and what was begun stays.
 */
#include <stdlib.h>
#include <string.h>

#include "search/fix_search.h"

static struct tn_attempt *
find(const struct tn_fix_search *search, const char *part)
{
	for (int i = 0; i < search->count; i++)
		if (search->attempts[i].found.part_count == 1 && strcmp(search->attempts[i].found.parts[0], part) == 0)
			return &search->attempts[i];
	return NULL;
}

static bool
is_begun(const struct tn_attempt *attempt)
{
	return attempt->found.trial != 0;
}

void
tn__fix_plan_again(struct tn_fix_search *search)
{
	struct tn_fix_search again = *search;
	again.count = 0;
	again.attempts = calloc(TN_FIX_ATTEMPTS, sizeof(*again.attempts));
	if (again.attempts == NULL)
		return;
	tn__fix_plan(&again);
	search->batch = again.batch;
	for (int i = 0; i < search->count; i++)
		search->attempts[i].unplanned = true;
	for (int i = 0; i < again.count; i++) {
		struct tn_attempt *attempt = &again.attempts[i], *before = find(search, attempt->found.parts[0]);
		if (before == NULL && search->count < TN_FIX_ATTEMPTS) {
			search->attempts[search->count++] = *attempt;
			continue;
		}
		if (before != NULL) {
			before->unplanned = false;
			before->turn = attempt->turn;
			before->most = attempt->most;
			before->found.remedy = attempt->found.remedy;
			if (!is_begun(before))
				before->stage = attempt->stage;
		}
		tn__fix_change_free(&attempt->found);
	}
	free(again.attempts);
	for (int i = 0; i < search->count; i++)
		if (search->attempts[i].unplanned && !is_begun(&search->attempts[i]))
			search->attempts[i].stage = TN_STAGE_LOW_PRIORITY;
}

bool
tn__fix_tell_news(struct tn_fix_search *search)
{
	const struct tn_survey *survey = &search->unchanged_large.outcome.changes.survey;
	struct tn_late_news *news = search->late_news;
	if (news == NULL)
		return true;
	int64_t step = survey->known && survey->news_step > 0 ? survey->news_step : 0;
	bool holds = step > 0 && (!news->step_known || news->step == step);
	news->step = step;
	news->epoch = survey->known && survey->news_epoch > 0 ? survey->news_epoch : 0;
	news->known = true;
	return holds;
}

void
tn__fix_take_news(const struct tn_fix_search *search, struct tn_trial *trial)
{
	const struct tn_survey *survey = &search->unchanged_large.outcome.changes.survey;
	if (survey->known && trial->options.then_count == 0) {
		trial->news_step = survey->news_step;
		trial->news_epoch = survey->news_epoch;
	}
}
