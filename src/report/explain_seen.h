/* SPDX-License-Identifier: Apache-2.0
 *
 * Writers of what a text says of a run beside its errors. Internal to src/report.
 */
#ifndef TN_REPORT_EXPLAIN_SEEN_H
#define TN_REPORT_EXPLAIN_SEEN_H

#include "message/seen.h"
#include "report/printer.h"

/* The member "seen" of doc/format/explain.schema.json, with a comma before it; nothing where nothing was seen. */
void tn__seen_json(const struct tn_seen *seen, FILE *out);

/* A paragraph; nothing where nothing was seen. */
void tn__seen_text(const struct tn_seen *seen, const struct tn_printer *printer);

#endif
