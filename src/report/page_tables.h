/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a page that others point into: strings, frames, stacks and sites, each row once (doc/format/page.md).
 *
 * Want of memory is remembered, not returned: rows are 0 from then on, and tn__page_tables_failed says so. Internal to
 * src/report.
 */
#ifndef TN_REPORT_PAGE_TABLES_H
#define TN_REPORT_PAGE_TABLES_H

#include <jansson.h>

#include "report/inspection_writers.h"

struct tn_page_tables;

/* NULL without memory. The inspection must outlive it. */
struct tn_page_tables *tn__page_tables_new(const struct tn_inspection *inspection);
void tn__page_tables_free(struct tn_page_tables *tables); /* NULL is allowed */
bool tn__page_tables_failed(const struct tn_page_tables *tables);

/* Numbers of rows. NULL is the empty string; a place without a file has no frame: -1. */
uint32_t tn__page_string(struct tn_page_tables *tables, const char *text);
int64_t tn__page_frame(struct tn_page_tables *tables, const struct tn_place *place);
uint32_t tn__page_site_of_place(struct tn_page_tables *tables, const struct tn_place *place);
uint32_t tn__page_site_of_block(struct tn_page_tables *tables, uint32_t interval);

/* The columns, for the object of the page; set once all rows are there. */
bool tn__page_tables_write(const struct tn_page_tables *tables, json_t *object);

#endif
