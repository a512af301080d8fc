/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of plain HTML, without a script: head, style and escaping. Internal to src/report. Writing errors are looked for
 * once, at the end (tn__html_end).
 */
#ifndef TN_REPORT_HTML_H
#define TN_REPORT_HTML_H

#include <stdio.h>

#include "tonnage/status.h"

/* The page up to the first element of <main>. */
void tn__html_begin(FILE *out, const char *title);
/* The rest, with a last line in small print (printf form). TN_IO when anything could not be written. */
tn_status tn__html_end(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Words of others: what HTML would obey is escaped, control characters are left out, what has the form of a secret is masked.
 * NULL is nothing. */
void tn__html_text(FILE *out, const char *text);
/* The same in printf form. */
void tn__html_say(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
