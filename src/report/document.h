/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of result that a command ends with, and how each is written: for a person, as JSON, as a page. Not among them: `explain`,
 * which writes each error as soon as it is read, and `validate`, whose result is a file that it goes on with (verdict/validation.h).
 */
#ifndef TN_REPORT_DOCUMENT_H
#define TN_REPORT_DOCUMENT_H

#include "report/report.h"

/* `what` is of the kind's own type. Each function fails as the writer that it stands for; one without a page has NULL. */
struct tn_document {
	tn_status (*text)(const void *what, struct tn_style style, FILE *out);
	tn_status (*json)(const void *what, FILE *out);
	tn_status (*page)(const void *what, FILE *out);
};

extern const struct tn_document tn__run_document;        /* of a struct tn_report */
extern const struct tn_document tn__fix_document;        /* of a struct tn_fixes */
extern const struct tn_document tn__fit_document;        /* of a struct tn_fits */
extern const struct tn_document tn__frontier_document;   /* of a struct tn_frontier */
extern const struct tn_document tn__inspection_document; /* of a struct tn_shown_inspection */
extern const struct tn_document tn__clean_document;      /* of a struct tn_cleaned; no page */
extern const struct tn_document tn__doctor_document;     /* of a struct tn_shown_diagnosis; no page */
extern const struct tn_document tn__serving_document;    /* of a struct tn_shown_serving; no page */
extern const struct tn_document tn__gpus_document;       /* of a struct tn_shown_cards; no page */

#endif
