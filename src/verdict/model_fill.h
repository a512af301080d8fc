/* SPDX-License-Identifier: Apache-2.0
 *
 * How a report is filled: its lists, findings, doubts, places and moments.
 */
#ifndef TN_VERDICT_MODEL_FILL_H
#define TN_VERDICT_MODEL_FILL_H

#include "verdict/model.h"

/* Adds an assumption, or its reads to the one that is there for the line; texts are copied. */
tn_status tn__report_add_assumption(struct tn_report *report, const struct tn_assumption *item);
void tn__assumptions_free(struct tn_assumed_list *list);
/* Sets `bound` from what hangs on the assumptions. Call when `bytes` are known as far as they will be. */
void tn__report_set_bound(struct tn_report *report);
/* Adds to a list; texts are copied. TN_NO_MEMORY leaves the list as it was. Lists of fixed size drop what is too
 * much. */
tn_status tn__report_add_counted(struct tn_counted_list *list, const struct tn_counted *item);
tn_status tn__report_add_place(struct tn_place_list *list, const struct tn_place *place);
/* Takes in what one process says of a sensor; what is lost in one process is lost. Texts are copied. States that are not known
 * and what is too much are left out. */
void tn__report_add_sensor(struct tn_report *report, const char *name, const char *state, const char *costs,
                           const char *error);
/* Findings stand by severity, then in the order of adding. `at` and `advice` are copied and may be NULL: without advice the table's
 * is given, as far as its conditions hold. Returns where it stands until the next one is added; NULL when there are too many. */
struct tn_finding *tn__report_add_finding(struct tn_report *report, enum tn_finding_id id, int64_t bytes,
                                          const struct tn_place *at, const char *advice, const char *what_format, ...)
	__attribute__((format(printf, 6, 7)));
/* The same with another severity than the table's, and only with the advice that is given. */
struct tn_finding *tn__report_add_finding_as(struct tn_report *report, enum tn_finding_id id, enum tn_severity severity,
                                             int64_t bytes, const struct tn_place *at, const char *advice,
                                             const char *what_format, ...) __attribute__((format(printf, 7, 8)));
/* Makes a finding that stands there the first one, and an error; other errors become hints. */
void tn__report_lead_with(struct tn_report *report, struct tn_finding *finding);
/* Takes out the findings of that id. */
void tn__report_drop_findings(struct tn_report *report, enum tn_finding_id id);
void tn__report_add_source(struct tn_report *report, const char *field, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Adds a doubt (above); the verdict is undecided where it would be `fits` otherwise, or also `failed`. Call before judging.
 * `advice` says what would decide it, and is copied. */
void tn__report_add_doubt(struct tn_report *report, enum tn_finding_id id, bool failed_too, const char *advice,
                          const char *what_format, ...) __attribute__((format(printf, 5, 6)));
void tn__report_add_not_seen(struct tn_report *report, const char *what);
void tn__report_add_region(struct tn_report *report, const char *name, int64_t device_peak, int64_t reserved_peak,
                           int64_t taken_peak);
struct tn_place *tn__report_new_place(const char *file, int64_t line, const char *function, bool backward);
void tn__report_free_place(struct tn_place *place); /* NULL is allowed */

/* Sets the device's part of a moment: the split, what it adds up to, and the categories that follow from it. */
void tn__report_free_holders(struct tn_report_moment *moment);
void tn__report_init_moment(struct tn_report_moment *moment);
void tn__report_set_split(struct tn_report_moment *moment, const struct tn_report_split *split);

/* Adds what PyTorch's allocator knows of the same moment: categories and holders. What the device held beyond that is
 * `other`. TN_STATE when the allocator claims more than the device held: then the moment stays as it was. TN_NO_MEMORY. */
tn_status tn__report_join(struct tn_report_moment *moment, const struct tn_moment *pytorch);

#endif
