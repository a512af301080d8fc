/* SPDX-License-Identifier: Apache-2.0
 *
 * The object that every page shows (doc/format/page.md): made with nothing on it, filled by the writer of a document, written.
 * Internal to src/report.
 */
#ifndef TN_REPORT_PAGE_OBJECT_H
#define TN_REPORT_PAGE_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/* All fields but `about` and `headline`, as of a page without a recording. NULL without memory; the caller frees. */
json_t *tn__page_new(const char *title);
/* A row of `about`; none where `text` is NULL. */
void tn__page_add_fact(json_t *about, const char *name, const char *text);
/* A line of text at the end of an array; none where it is NULL. */
void tn__page_add_line(json_t *lines, const char *text);
/* The page around the object, with secrets masked. TN_STATE when writing fails, TN_NO_MEMORY. */
tn_status tn__page_put(const json_t *page, FILE *out);

static inline tn_status
tn__page_set(json_t *object, const char *name, json_t *value)
{
	TN_RETURN_IF(json_object_set_new(object, name, value) != 0, TN_NO_MEMORY, "out of host memory for the page");
	return TN_OK;
}

#endif
