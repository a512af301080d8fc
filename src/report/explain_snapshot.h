/* SPDX-License-Identifier: Apache-2.0
 *
 * Writers of what a memory snapshot adds to an out-of-memory error of a text. Internal to src/report.
 */
#ifndef TN_REPORT_EXPLAIN_SNAPSHOT_H
#define TN_REPORT_EXPLAIN_SNAPSHOT_H

#include <stdio.h>

#include "report/printer.h"
#include "verdict/snapshot_evidence.h"

/* Both want tn__evidence_weigh first. `errors` were found in the text; 0 also where there was none. */
void tn__evidence_text(const struct tn_evidence *evidence, const struct tn_printer *printer, uint64_t errors);
void tn__evidence_json(const struct tn_evidence *evidence, FILE *out);

/* A JSON string of any bytes. Stands in json_string.c. */
void tn__write_json_string(FILE *out, const char *text);

#endif
