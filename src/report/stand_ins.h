/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of weights that a run stood in for (doc/design/0023-weights.md), in the model, as JSON and as words.
 */
#ifndef TN_REPORT_STAND_INS_H
#define TN_REPORT_STAND_INS_H

#include <jansson.h>

#include "report/model.h"

struct tn_printer;

/* The path is copied. TN_NO_MEMORY leaves the list as it was. Not thread-safe. */
tn_status tn__stand_ins_add(struct tn_stand_in_list *list, const struct tn_stand_in *item);
void tn__stand_ins_free(struct tn_stand_in_list *list);

/* The array `stand_ins` of `run --json`. The caller owns it. */
json_t *tn__stand_ins_json(const struct tn_stand_in_list *list);
/* Reads it back; what is malformed is left out. */
tn_status tn__stand_ins_read(const json_t *array, struct tn_stand_in_list *list);

/* One closing line, or nothing. */
void tn__say_stand_ins(const struct tn_printer *printer, const struct tn_stand_in_list *list);

#endif
