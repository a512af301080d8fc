/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers of parts of a run's JSON. Internal to the reader (run_reader.c). What is malformed is left out; TN_NO_MEMORY.
 */
#ifndef TN_VERDICT_RUN_READER_PARTS_H
#define TN_VERDICT_RUN_READER_PARTS_H

#include <jansson.h>

#include "verdict/model.h"

/* The category that the field "category" of an object names; -1 where it names none. */
int tn__json_read_category(const json_t *object);
/* The fields `budget` and `baseline`. */
tn_status tn__gate_read(const json_t *root, struct tn_report *report);
/* The array `stand_ins`. */
tn_status tn__stand_ins_read(const json_t *array, struct tn_stand_in_list *list);
/* The fields `assumptions`, `retry` and `bound`. */
tn_status tn__assumptions_read(const json_t *root, struct tn_report *report);

/* `cards` of a program that has no ranks: how much each held. */
void tn__cards_read(const json_t *root, struct tn_report *report);
/* `input` of an out-of-memory; what is malformed is left out. */
void tn__oom_input_read(const json_t *object, struct tn_oom_input *out);

#endif
