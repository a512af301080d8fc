/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that came from elsewhere (names of files, messages of programs, documents), made fit for a terminal. The one place that
 * says what a terminal must not get.
 */
#ifndef TN_BASE_PLAIN_H
#define TN_BASE_PLAIN_H

#include <stdint.h>
#include <stdio.h>

/* The length of the well-formed UTF-8 sequence at `text`, which ends with a zero, and what it encodes; 0 where it is none. */
int tn__utf8(const char *text, uint32_t *code);
/* Replaces, in place, what a terminal would obey or what would show text in another order: control characters of ASCII (line
 * ends and tabs too) and of Latin-1, marks of direction and of no width, separators of lines, and bytes that are no UTF-8.
 * Each becomes `instead`, so the text never grows. */
void tn__make_plain(char *text, char instead);
/* One line: "tonnage: ", the text made plain, a line end. */
void tn__tell(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
