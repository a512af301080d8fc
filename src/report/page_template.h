/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTML page around its data (doc/format/page.md). Knows nothing of what the data says.
 *
 * The page's text is made by src/report/page/build_page.py when the library is built.
 */
#ifndef TN_REPORT_PAGE_TEMPLATE_H
#define TN_REPORT_PAGE_TEMPLATE_H

#include <stddef.h>
#include <stdio.h>

#include "tonnage/status.h"

/* What comes before the data and after it; no final zero byte. */
extern const unsigned char tn__page_before[], tn__page_after[];
extern const size_t tn__page_before_size, tn__page_after_size;

/* Writes the page that shows `json`, `length` bytes of an object of doc/format/page.schema.json, which need not be
 * escaped for HTML. Neither flushes nor closes `out`. TN_IO when writing fails. Thread-safe for distinct streams. */
tn_status tn__page_write(FILE *out, const char *json, size_t length);

#endif
