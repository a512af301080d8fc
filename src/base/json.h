/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of a JSON document that comes from elsewhere, read with their type: one that is missing, or of another type, is unknown. An
 * object of NULL has no fields. Thread-safe as jansson's reading is: the document must not change meanwhile.
 */
#ifndef TN_BASE_JSON_H
#define TN_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A whole number that is not negative; else TN_NO_FIGURE. */
int64_t tn__json_read_figure(const json_t *object, const char *name);
/* A number of any kind; else 0. */
double tn__json_read_number(const json_t *object, const char *name);
/* True for `true`. */
bool tn__json_read_truth(const json_t *object, const char *name);
/* A text that the document owns; else NULL. */
const char *tn__json_borrow_text(const json_t *object, const char *name);
/* A copy of it, which the caller frees; NULL without memory, too. */
char *tn__json_read_text(const json_t *object, const char *name);

#endif
