/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of weights, and data, that a run stood in for (doc/design/0023-weights.md, 0042-data.md).
 */
#ifndef TN_VERDICT_STAND_INS_H
#define TN_VERDICT_STAND_INS_H

#include "verdict/model.h"

/* The path is copied. TN_NO_MEMORY leaves the list as it was. Not thread-safe. */
tn_status tn__stand_ins_add(struct tn_stand_in_list *list, const struct tn_stand_in *item);
/* The name of a kind in JSON. */
const char *tn__stand_in_name(enum tn_stand_in_kind kind);
bool tn__stand_in_is_data(const struct tn_stand_in *item);
/* What was assumed (TN_ASSUMED_*) of all of them together. */
unsigned tn__stand_ins_assumed(const struct tn_stand_in_list *list);
void tn__stand_ins_free(struct tn_stand_in_list *list);

#endif
