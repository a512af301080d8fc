/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `tonnage validate` share. The results are kept as the JSON of doc/format/validate.schema.json from
 * the start: they are read again when a later call goes on with them.
 */
#ifndef TN_RUN_VALIDATE_H
#define TN_RUN_VALIDATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* How far the bytes of the whole process may be from the measured ones: the context is a figure of the catalogue. */
#define TN_VALIDATE_PROCESS_BYTES (INT64_C(100) << 20)

/* One job's entry, from what python/tonnage/kit/jobs.py has written on the measured card and on the virtual one; NULL
 * for a side that ended otherwise, whose reason is then given. Borrows all; NULL without memory. */
json_t *tn__validate_compare(const char *job, const json_t *measured, const char *measured_why, const json_t *copy,
                             const char *copy_why);

/* The counts over all entries: agree, allocated_equal, reserved_near, process_near, jobs. */
json_t *tn__validate_summary(const json_t *jobs);

#endif
