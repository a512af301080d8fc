/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict/job.h"

int64_t
tn__job_nodes(const struct tn_report *report)
{
	const struct tn_job *job = &report->job;
	return job->cards > 0 && job->ranks > job->cards ? (job->ranks + job->cards - 1) / job->cards : 1;
}

const struct tn_rank *
tn__job_stand_in(const struct tn_report *report, int64_t rank)
{
	const struct tn_rank *below = NULL;
	for (size_t i = 0; i < report->rank_count && report->ranks[i].rank <= rank; i++)
		below = &report->ranks[i];
	return below;
}

int64_t
tn__job_behind(const struct tn_report *report, const struct tn_rank *rank)
{
	size_t next = (size_t)(rank - report->ranks) + 1;
	int64_t end = next < report->rank_count ? report->ranks[next].rank : report->job.ranks;
	return end > rank->rank ? end - rank->rank - 1 : 0;
}

bool
tn__job_is_like(const struct tn_report *report, const struct tn_rank *rank)
{
	size_t place = (size_t)(rank - report->ranks);
	if (rank->unlike_place)
		return false;
	if (place + 1 < report->rank_count)
		return rank->did_as_next;
	return place > 0 && report->ranks[place - 1].did_as_next;
}

bool
tn__job_is_proven(const struct tn_report *report)
{
	bool proven = true;
	for (size_t i = 0; report->job.ranks > 0 && i < report->rank_count; i++)
		proven = proven &&
		         (tn__job_behind(report, &report->ranks[i]) == 0 || tn__job_is_like(report, &report->ranks[i]));
	return proven;
}
