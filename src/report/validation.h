/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of `tonnage validate` for a person; as JSON they are what doc/format/validate.schema.json says.
 */
#ifndef TN_REPORT_VALIDATION_H
#define TN_REPORT_VALIDATION_H

#include <jansson.h>

#include "report/report.h"

/* A line for one job, when both sides have ended. TN_IO when writing fails. */
tn_status tn__validation_line(const json_t *entry, struct tn_style style, FILE *out);
/* What the jobs came to; `left` of them have not run yet. */
tn_status tn__validation_text(const json_t *document, int left, struct tn_style style, FILE *out);

#endif
