/* SPDX-License-Identifier: Apache-2.0
 *
 * From what the analysis finds in a trace to the findings of a report.
 */
#ifndef TN_VERDICT_TRACE_FINDINGS_H
#define TN_VERDICT_TRACE_FINDINGS_H

#include "analyze/history.h"
#include "verdict/model.h"

/* Adds what can be seen in a trace, behind findings of the same weight; one whose id is there already is left out.
 * `state` is the moment that the report is about. TN_NO_MEMORY. */
tn_status tn__report_add_trace_findings(const struct tn_analysis *analysis, const struct tn_part_list *parts,
                                        uint32_t state, struct tn_report *report);

/* The same of the record that tells of a run's verdict, which has been judged: growth is not looked for again. Without a
 * record nothing is added. */
void tn__report_add_trace_findings_of_run(struct tn_report *report);

/* A run that saw what keeps the tensors that pile up says so in its finding of growth, at the line that adds to it. */
void tn__report_name_retainer(struct tn_report *report);

#endif
