/* SPDX-License-Identifier: Apache-2.0
 *
 * What a memory snapshot adds to an out-of-memory error of a text. Internal to src/report.
 */
#ifndef TN_REPORT_EXPLAIN_SNAPSHOT_H
#define TN_REPORT_EXPLAIN_SNAPSHOT_H

#include <stdio.h>

#include "message/message.h"
#include "report/printer.h"
#include "tonnage/snapshot.h"

struct tn_evidence;

/* Takes note of the failed requests of a snapshot, which must outlive it. TN_NO_MEMORY. */
tn_status tn__evidence_new(const struct tn_snapshot *snapshot, struct tn_evidence **evidence);
void tn__evidence_free(struct tn_evidence *evidence); /* NULL is allowed */

/* Shows it an error of the text, the `number`th from 0. The last that is one of the snapshot's failed requests counts. */
void tn__evidence_match(struct tn_evidence *evidence, const struct tn_message *message, uint64_t number);

/* Looks at the moment of that request, or of the snapshot's last one; without any, at its end. To be called once, when
 * the text is over. TN_NO_MEMORY. */
tn_status tn__evidence_weigh(struct tn_evidence *evidence);

/* Both want tn__evidence_weigh first. `errors` were found in the text; 0 also where there was none. */
void tn__evidence_text(const struct tn_evidence *evidence, const struct tn_printer *printer, uint64_t errors);
void tn__evidence_json(const struct tn_evidence *evidence, FILE *out);

/* A JSON string of any bytes. Stands in explain.c. */
void tn__write_json_string(FILE *out, const char *text);

#endif
