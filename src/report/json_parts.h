/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects that the JSON of several commands share. Internal to src/report. All return a new reference, or NULL
 * without memory.
 */
#ifndef TN_REPORT_JSON_PARTS_H
#define TN_REPORT_JSON_PARTS_H

#include <jansson.h>

#include "base/json.h" /* tn__json_read_figure and others */
#include "verdict/model.h"

json_t *tn__json_figure(int64_t value);   /* null for TN_NO_FIGURE */
json_t *tn__json_text(const char *value); /* null for NULL; what is not UTF-8 is replaced */
json_t *tn__json_place(const struct tn_place *at);
json_t *tn__json_categories(const struct tn_report_moment *moment);

/* The whole of `tonnage run --json`, and fields of it by their names. */
json_t *tn__json_run(const struct tn_report *report);
json_t *tn__json_at_peak(const struct tn_report *report);
json_t *tn__json_out_of_memory(const struct tn_report *report);
json_t *tn__json_findings(const struct tn_report *report);
json_t *tn__json_peak(const struct tn_report *report);
json_t *tn__json_regions(const struct tn_report *report);
json_t *tn__json_network(const struct tn_report *report);

/* ---- json_facts.c ---- */

json_t *tn__json_facts(const struct tn_report *report);
json_t *tn__json_need(const struct tn_report *report);
json_t *tn__json_input(const struct tn_oom_input *input);

/* ---- stand_ins_json.c: the array `stand_ins` of `run --json` ---- */

json_t *tn__stand_ins_json(const struct tn_stand_in_list *list);

/* ---- inputs_json.c: the object `inputs` of `run --json` ---- */

json_t *tn__inputs_json(const struct tn_inputs *inputs);

/* ---- host_json.c: the object `host` of `run --json` ---- */

json_t *tn__host_json(const struct tn_report *report);

/* ---- programs.c: the object `programs` of `run --json` ---- */

json_t *tn__programs_json(const struct tn_report *report);

/* ---- system.c: the object `system` of `run --json` ---- */

json_t *tn__system_json(const struct tn_report *report);

/* ---- requests_json.c: the object `requests` of `run --json` ---- */

json_t *tn__requests_json(const struct tn_requests *requests);

/* ---- gate_json.c: the fields `budget` and `baseline` of `run --json` ---- */

json_t *tn__json_budget(const struct tn_report *report);
json_t *tn__json_baseline(const struct tn_report *report);

/* Writes a document with jansson's flags, in ASCII: nothing of it moves a terminal. 0, or -1 where writing failed. */
int tn__json_write(const json_t *object, FILE *out, size_t flags);

#endif
