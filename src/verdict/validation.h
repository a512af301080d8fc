/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of `tonnage validate`: made job by job, and kept in a file that a later call goes on with. They are
 * the JSON of doc/format/validate.schema.json from the start; only report/validation_text.c looks into it, too.
 */
#ifndef TN_VERDICT_VALIDATION_H
#define TN_VERDICT_VALIDATION_H

#include <jansson.h>

#include "verdict/model.h"

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
/* The entry of the job that was added last (NULL: there is none), and the whole document: for who writes them. */
const json_t *tn__validation_last(const struct tn_validation_results *results);
const json_t *tn__validation_document(const struct tn_validation_results *results);

/* ---- validation_compare.c ---- */

/* One job's entry, from what python/tonnage/kit/jobs.py has written on the measured card and on the virtual one; NULL
 * for a side that ended otherwise, whose reason is then given. Borrows all; NULL without memory. */
json_t *tn__validate_compare(const char *job, const json_t *measured, const char *measured_why, const json_t *copy,
                             const char *copy_why);
/* The counts over all entries: agree, allocated_equal, reserved_near, process_near, jobs. */
json_t *tn__validate_summary(const json_t *jobs);

#endif
