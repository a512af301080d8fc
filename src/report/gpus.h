/* SPDX-License-Identifier: Apache-2.0
 *
 * Writers of the catalogue. Each gives TN_IO where writing fails.
 */
#ifndef TN_REPORT_GPUS_H
#define TN_REPORT_GPUS_H

#include "gpu/catalogue.h"
#include "report/report.h"

/* What is shown of the catalogue: one card, or all (NULL). */
struct tn_shown_cards {
	const struct tn_gpu_row *only;
};

tn_status tn__cards_text(const struct tn_shown_cards *cards, struct tn_style style, FILE *out);
/* The object of doc/format/gpus.schema.json. */
tn_status tn__cards_json(const struct tn_shown_cards *cards, FILE *out);
/* A card as a row of src/gpu/gpus.csv. */
tn_status tn__card_row(const struct tn_gpu_figures *card, const char *evidence, FILE *out);

#endif
