/* SPDX-License-Identifier: Apache-2.0
 *
 * A run over several cards, or of several ranks (doc/design/0022-many-cards.md): what each held, and what they sent to
 * each other.
 */
#ifndef TN_REPORT_RANKS_H
#define TN_REPORT_RANKS_H

#include <jansson.h>

#include "verdict/model.h"
#include "report/printer.h"

/* "all_reduce" and so on, by enum tn_collective's number; "init" for anything else: ranks that make a communicator. */
const char *tn__operation_text(int64_t operation);

/* The fields `cards`, `ranks` and `hang` of `run --json`; the caller owns them. `hang` is null where no ranks waited for ever. */
json_t *tn__json_cards(const struct tn_report *report);
json_t *tn__json_ranks(const struct tn_report *report);
json_t *tn__json_hang(const struct tn_report *report);
json_t *tn__json_dead(const struct tn_report *report);
/* The field `job`: null where all ranks are run. */
json_t *tn__json_job(const struct tn_report *report);

/* The table of cards, the worst first, and why they differ; nothing for one card. */
void tn__say_cards(const struct tn_printer *printer, const struct tn_report *report);
/* The ranks that waited for ever, each with its operation and line; nothing where none did. */
void tn__say_hang(const struct tn_printer *printer, const struct tn_report *report);

#endif
