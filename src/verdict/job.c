/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict/job.h"

int64_t
tn__job_nodes(const struct tn_report *report)
{
	const struct tn_job *job = &report->job;
	return job->cards > 0 && job->ranks > job->cards ? (job->ranks + job->cards - 1) / job->cards : 1;
}

int64_t
tn__job_count_like(const struct tn_report *report, const struct tn_rank *rank, enum tn_likeness why)
{
	int64_t count = 0;
	for (size_t i = 0; i < report->job.absent_count; i++)
		count += &report->ranks[report->job.absent[i].like] == rank && report->job.absent[i].why == why;
	return count;
}

bool
tn__likeness_is_proof(enum tn_likeness why)
{
	return why == TN_LIKENESS_NEXT || why == TN_LIKENESS_PLACE;
}

bool
tn__job_is_proven(const struct tn_report *report)
{
	const struct tn_job *job = &report->job;
	bool proven = job->ranks <= (int64_t)(report->rank_count + job->absent_count);
	for (size_t i = 0; i < job->absent_count; i++)
		proven = proven && tn__likeness_is_proof(job->absent[i].why);
	return proven;
}
