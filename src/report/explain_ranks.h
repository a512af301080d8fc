/* SPDX-License-Identifier: Apache-2.0
 *
 * Writers of what a log says of its ranks. Internal to src/report.
 */
#ifndef TN_REPORT_EXPLAIN_RANKS_H
#define TN_REPORT_EXPLAIN_RANKS_H

#include "message/ranks_log.h"
#include "report/printer.h"

/* The member "ranks" of doc/format/explain.schema.json, with a comma before it; nothing where fewer than two ranks
 * are named, or none
 * failed. */
void tn__ranks_json(const struct tn_ranks_log *log, FILE *out);
/* A paragraph; nothing where there is no member. */
void tn__ranks_text(const struct tn_ranks_log *log, const struct tn_printer *printer);

/* The member "ranks" of an error of `rank` (-1: not printed), without a comma: with `all`, which is for the error
 * that came first,
 * every rank that failed or followed, else its own. */
void tn__ranks_of_error(const struct tn_ranks_log *log, int64_t rank, bool all, FILE *out);

#endif
