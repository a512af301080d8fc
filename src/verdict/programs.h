/* SPDX-License-Identifier: Apache-2.0
 *
 * Several programs that ran at the same time on one card, in the report (doc/design/0039-several-programs.md).
 */
#ifndef TN_VERDICT_PROGRAMS_H
#define TN_VERDICT_PROGRAMS_H

#include <jansson.h>

#include "verdict/model.h"

/* Nothing is known of any. */
void tn__programs_init(struct tn_programs *programs, size_t count);
void tn__programs_free(struct tn_programs *programs);

/* What all programs held at the card's peak, or (`out`) as one of them ran out of memory: the parts' categories and holders are
 * added up in the whole, whose split stays. Nothing changes where the parts do not add up to it. */
void tn__programs_sum(const struct tn_programs *programs, bool out, struct tn_report_moment *whole);
/* What the others held as one ran out of memory; 0: none did, or it is unknown. */
int64_t tn__programs_beside(const struct tn_report *report);
/* The split of the card as the program sees it whose record is at `path`, at the card's peak or (`out`) as one of them ran out of memory:
 * its own context and libraries; what the others held counts as other processes'. With one program: `whole`. */
struct tn_report_split tn__programs_split(const struct tn_report *report, const char *path, bool out,
                                          const struct tn_report_split *whole);
/* What the others hold at their peaks, with what --other says; 0 as above. */
int64_t tn__programs_beside_at_most(const struct tn_report *report);
/* A program without evidence leaves the run undecided. Part of judging. */
void tn__programs_doubt(struct tn_report *report);
/* Their peaks were not of one moment, and would not fit at once. Part of judging; after the verdict. */
void tn__programs_judge(struct tn_report *report);
/* "program 2 (python engine.py)" */
const char *tn__program_words(const struct tn_report *report, size_t index, char out[160]);
/* The array `programs` of a run's JSON. */
void tn__programs_read(const json_t *root, struct tn_report *report);

#endif
