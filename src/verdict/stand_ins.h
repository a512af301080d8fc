/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of weights that a run stood in for (doc/design/0023-weights.md).
 */
#ifndef TN_VERDICT_STAND_INS_H
#define TN_VERDICT_STAND_INS_H

#include "verdict/model.h"

/* The path is copied. TN_NO_MEMORY leaves the list as it was. Not thread-safe. */
tn_status tn__stand_ins_add(struct tn_stand_in_list *list, const struct tn_stand_in *item);
void tn__stand_ins_free(struct tn_stand_in_list *list);

#endif
