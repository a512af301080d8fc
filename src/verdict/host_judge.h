/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the computer's memory is enough for a run. All of it where --host-memory was given; else nothing happens.
 */
#ifndef TN_VERDICT_HOST_JUDGE_H
#define TN_VERDICT_HOST_JUDGE_H

#include "verdict/model.h"

/* CPU memory that the program would have filled, and that was left as it was: initial values, weights that were stood in for. */
int64_t tn__host_unfilled(const struct tn_report *report);
/* Adds a doubt where what was left out decides. Before the verdict. */
void tn__report_doubt_host(struct tn_report *report);
/* Turns a verdict that fits the card into one that does not fit the computer, and says why. After the other limits. */
void tn__report_judge_host(struct tn_report *report);

#endif
