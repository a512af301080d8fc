/* SPDX-License-Identifier: Apache-2.0
 *
 * One error that explain has found, as its two forms. Nothing is kept.
 */
#ifndef TN_REPORT_EXPLAIN_ERROR_H
#define TN_REPORT_EXPLAIN_ERROR_H

#include <stdio.h>

#include "message/message.h"
#include "report/printer.h"

#define TN_RANKS_HERE '\001' /* in an error's JSON, before the rank and a blank; strings of JSON hold no such byte */

/* An item of `errors` (doc/format/explain.schema.json); the ranks are put in later, at TN_RANKS_HERE. `number` counts from 0. */
void tn__explain_error_json(FILE *out, const struct tn_message *message, uint64_t number);
/* A paragraph with figures and advice. `number` counts from 0. */
void tn__explain_error_text(const struct tn_printer *printer, const struct tn_message *message, uint64_t number);
void tn__explain_error_line(const struct tn_printer *printer, const struct tn_message *message);

#endif
