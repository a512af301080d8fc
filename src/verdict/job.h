/* SPDX-License-Identifier: Apache-2.0
 *
 * A job of which not all ranks are run (doc/design/0031-absent-ranks.md): who stands for whom, and whether that is proven.
 */
#ifndef TN_VERDICT_JOB_H
#define TN_VERDICT_JOB_H

#include "verdict/model.h"

/* How many nodes the job has; 1 where all ranks are run. */
int64_t tn__job_nodes(const struct tn_report *report);
/* How many ranks that are not run one (of `ranks`) stands for, for this reason. */
int64_t tn__job_count_like(const struct tn_report *report, const struct tn_rank *rank, enum tn_likeness why);
bool tn__likeness_is_proof(enum tn_likeness why);
/* Whether every rank that is not run is proven to be like one that is; true where all ranks are run. */
bool tn__job_is_proven(const struct tn_report *report);

#endif
