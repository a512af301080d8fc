/* SPDX-License-Identifier: Apache-2.0
 *
 * A job of which not all ranks are run (doc/design/0031-absent-ranks.md): who stands for whom, and whether that is proven.
 */
#ifndef TN_VERDICT_JOB_H
#define TN_VERDICT_JOB_H

#include "verdict/model.h"

/* How many nodes the job has; 1 where all ranks are run. */
int64_t tn__job_nodes(const struct tn_report *report);
/* The rank that is run and stands for `rank`: itself, or the next one below. NULL: none is. */
const struct tn_rank *tn__job_stand_in(const struct tn_report *report, int64_t rank);
/* How many ranks that are not run one stands for. */
int64_t tn__job_behind(const struct tn_report *report, const struct tn_rank *rank);
/* Whether those behind it are like it: the next rank that is run, or, behind the last one, the one before it, did the same, and those that have
 * the same place in a smaller group (`unlike_place`) did, too. */
bool tn__job_is_like(const struct tn_report *report, const struct tn_rank *rank);
/* Whether that holds for all; true where all ranks are run. */
bool tn__job_is_proven(const struct tn_report *report);

#endif
