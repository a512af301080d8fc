/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of `tonnage validate` for a person.
 */
#ifndef TN_REPORT_VALIDATION_TEXT_H
#define TN_REPORT_VALIDATION_TEXT_H

#include "report/report.h"
#include "verdict/validation.h"

/* A line for one job, when both sides have ended. TN_IO when writing fails. */
tn_status tn__validation_line(const json_t *entry, struct tn_style style, FILE *out);
/* What the jobs of a document came to, as counted when it was saved; `left` of them have not run yet. */
tn_status tn__validation_summary(const json_t *document, int left, struct tn_style style, FILE *out);

#endif
