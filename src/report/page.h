/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTML page of a study: its data (doc/format/page.md), and the page around it. Internal to src/report.
 */
#ifndef TN_REPORT_PAGE_H
#define TN_REPORT_PAGE_H

#include "report/study_writers.h"

/* `comparison` may be NULL. TN_STATE when writing fails, TN_NO_MEMORY. */
tn_status tn__study_page(const struct tn_study *study, const struct tn_comparison *comparison, FILE *out);

#endif
