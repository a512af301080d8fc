/* SPDX-License-Identifier: Apache-2.0
 *
 * The writers of a study, one a format. Internal to src/report.
 */
#ifndef TN_REPORT_STUDY_WRITERS_H
#define TN_REPORT_STUDY_WRITERS_H

#include "report/report.h"
#include "verdict/study.h"

/* ---- writers: TN_STATE when writing fails, TN_NO_MEMORY ---- */

struct tn_shown_study {
	const struct tn_study *study;
	const struct tn_comparison *comparison; /* NULL: with nothing */
	size_t top; /* how many holders; 0: as many as the format usually has */
};

tn_status tn__study_text(const struct tn_shown_study *shown, struct tn_style style, FILE *out);

/* The parts of it that a page shows in other places: what happened, what was seen, and the finding that explains it
 * (NULL when nothing does). */
struct tn_printer;
void tn__study_head(const struct tn_study *study, const struct tn_printer *printer);
void tn__study_scope(const struct tn_study *study, const struct tn_printer *printer);
void tn__study_next(const struct tn_study *study, const struct tn_printer *printer);
void tn__study_findings(const struct tn_study *study, const struct tn_printer *printer);
/* One of these as text, its lines as long as they are; the caller frees. NULL without memory. */
typedef void tn_study_speaker(const struct tn_study *study, const struct tn_printer *printer);
char *tn__study_words(const struct tn_study *study, tn_study_speaker *say);
const struct tn_finding *tn__study_reason(const struct tn_study *study);

tn_status tn__study_json(const struct tn_shown_study *shown, FILE *out);
tn_status tn__study_page(const struct tn_shown_study *shown, FILE *out); /* page.c */

/* Markdown as GitHub and GitLab read it: for the summary of a job, or a comment. */
tn_status tn__study_markdown(const struct tn_study *study, FILE *out);

/* What a reviewer sees beside the lines of a change, for files below the working folder: workflow commands of GitHub, and
 * GitLab's report of code quality. These want the JSON of a run. */
tn_status tn__study_github(const struct tn_study *study, FILE *out);
tn_status tn__study_codequality(const struct tn_study *study, FILE *out);

/* These want a snapshot. */
tn_status tn__study_folded(const struct tn_study *study, FILE *out);
tn_status tn__study_csv(const struct tn_study *study, FILE *out);
tn_status tn__study_perfetto(const struct tn_study *study, FILE *out);

#endif
