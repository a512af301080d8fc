/* SPDX-License-Identifier: Apache-2.0
 *
 * The writers of an inspection, one a format. Internal to src/report.
 */
#ifndef TN_REPORT_INSPECTION_WRITERS_H
#define TN_REPORT_INSPECTION_WRITERS_H

#include "report/report.h"
#include "verdict/inspection.h"

/* ---- writers: TN_STATE when writing fails, TN_NO_MEMORY ---- */

struct tn_shown_inspection {
	const struct tn_inspection *inspection;
	const struct tn_comparison *comparison; /* NULL: with nothing */
	size_t top;                             /* how many holders; 0: as many as the format usually has */
};

tn_status tn__inspection_text(const struct tn_shown_inspection *shown, struct tn_style style, FILE *out);

/* The parts of it that a page shows in other places: what happened, what was seen, and the finding that explains it
 * (NULL when nothing does). */
struct tn_printer;
void tn__inspection_head(const struct tn_inspection *inspection, const struct tn_printer *printer);
void tn__inspection_scope(const struct tn_inspection *inspection, const struct tn_printer *printer);
void tn__inspection_next(const struct tn_inspection *inspection, const struct tn_printer *printer);
void tn__inspection_findings(const struct tn_inspection *inspection, const struct tn_printer *printer);
/* One of these as text, its lines as long as they are; the caller frees. NULL without memory. */
typedef void tn_inspection_speaker(const struct tn_inspection *inspection, const struct tn_printer *printer);
char *tn__inspection_words(const struct tn_inspection *inspection, tn_inspection_speaker *say);
const struct tn_finding *tn__inspection_reason(const struct tn_inspection *inspection);

tn_status tn__inspection_json(const struct tn_shown_inspection *shown, FILE *out);
tn_status tn__inspection_page(const struct tn_shown_inspection *shown, FILE *out); /* page.c */

/* Markdown as GitHub and GitLab read it: for the summary of a job, or a comment. */
tn_status tn__inspection_markdown(const struct tn_inspection *inspection, FILE *out);

/* What a reviewer sees beside the lines of a change, for files below the working folder: workflow commands of GitHub, and
 * GitLab's report of code quality. These want the JSON of a run. */
tn_status tn__inspection_github(const struct tn_inspection *inspection, FILE *out);
tn_status tn__inspection_codequality(const struct tn_inspection *inspection, FILE *out);

/* These want a snapshot. */
tn_status tn__inspection_folded(const struct tn_inspection *inspection, FILE *out);
tn_status tn__inspection_csv(const struct tn_inspection *inspection, FILE *out);
tn_status tn__inspection_perfetto(const struct tn_inspection *inspection, FILE *out);

#endif
