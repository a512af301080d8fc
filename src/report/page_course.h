/* SPDX-License-Identifier: Apache-2.0
 *
 * What a page shows of the trace: timeline, what was alive, segments (doc/format/page.md). Internal to src/report.
 */
#ifndef TN_REPORT_PAGE_COURSE_H
#define TN_REPORT_PAGE_COURSE_H

#include "report/page_tables.h"

/* Sets `timeline`, `moments`, `intervals`, `small` and `segments` of the object. TN_NO_MEMORY. */
tn_status tn__page_course(const struct tn_inspection *inspection, struct tn_page_tables *tables, json_t *object);

#endif
