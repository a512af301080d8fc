/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of `tonnage validate`: made job by job, kept in a file that a later call goes on with, and written for a
 * person. They are the JSON of doc/format/validate.schema.json from the start; nobody else looks into it.
 */
#ifndef TN_REPORT_VALIDATION_H
#define TN_REPORT_VALIDATION_H

#include <jansson.h>

#include "report/report.h"

/* How far the bytes of the whole process may be from the measured ones: the context is a figure of the catalogue. */
#define TN_VALIDATE_PROCESS_BYTES (INT64_C(100) << 20)

/* ---- validation.c ---- */

struct tn_validation_results; /* of one card and one PyTorch */

/* Results of no job yet; NULL without memory. `stand_in`: a virtual card is measured in the real one's place. */
struct tn_validation_results *tn__validation_new(const struct tn_gpu_figures *gpu, bool stand_in);
void tn__validation_free(struct tn_validation_results *results); /* NULL is allowed */
/* Goes on with those in a file, which is there. TN_INVALID with words where they are of something else. */
tn_status tn__validation_resume(struct tn_validation_results *results, const char *path);
/* The row of the catalogue as this machine measures it. */
void tn__validation_set_row(struct tn_validation_results *results, const char *row);

bool tn__validation_has(const struct tn_validation_results *results, const char *job);
size_t tn__validation_count(const struct tn_validation_results *results);
bool tn__validation_all_agree(const struct tn_validation_results *results);
/* What only the measured card can tell, from what a job counted there: PyTorch's build, the driver, what cuDNN says of the
 * card. False where they are of another PyTorch or card than those that are there. NULL tells nothing. */
bool tn__validation_learn(struct tn_validation_results *results, const json_t *measured);
/* Adds a job, as tn__validate_compare. TN_NO_MEMORY. */
tn_status tn__validation_add(struct tn_validation_results *results, const char *job, const json_t *measured,
                             const char *measured_why, const json_t *copy, const char *copy_why);
/* Counts anew, and writes to a file by way of a temporary name (an interrupted call leaves what was known); NULL: no file. */
tn_status tn__validation_save(struct tn_validation_results *results, const char *path);
/* For a person: a line for the job that was added last; and what all came to, as counted when they were saved, where
 * `left` jobs have not run yet. TN_IO when writing fails. */
tn_status tn__validation_last_line(const struct tn_validation_results *results, struct tn_style style, FILE *out);
tn_status tn__validation_text(const struct tn_validation_results *results, int left, struct tn_style style, FILE *out);

/* ---- validation_compare.c ---- */

/* One job's entry, from what python/tonnage/kit/jobs.py has written on the measured card and on the virtual one; NULL
 * for a side that ended otherwise, whose reason is then given. Borrows all; NULL without memory. */
json_t *tn__validate_compare(const char *job, const json_t *measured, const char *measured_why, const json_t *copy,
                             const char *copy_why);
/* The counts over all entries: agree, allocated_equal, reserved_near, process_near, jobs. */
json_t *tn__validate_summary(const json_t *jobs);

/* ---- validation_text.c ---- */

/* A line for one job, when both sides have ended. TN_IO when writing fails. */
tn_status tn__validation_line(const json_t *entry, struct tn_style style, FILE *out);
/* What the jobs of a document came to; `left` of them have not run yet. */
tn_status tn__validation_summary(const json_t *document, int left, struct tn_style style, FILE *out);

#endif
