/* SPDX-License-Identifier: Apache-2.0
 *
 * Writers of what the doctor found. Internal to src/report. Each gives TN_IO where writing fails.
 */
#ifndef TN_REPORT_DIAGNOSIS_H
#define TN_REPORT_DIAGNOSIS_H

#include "doctor/doctor.h"
#include "report/printer.h"

struct tn_shown_diagnosis {
	const struct tn_diagnosis *diagnosis;
	const char *python; /* the path that was looked at, or NULL */
};

/* For a person: what was found first, the most serious first, then the facts. */
tn_status tn__diagnosis_text(const struct tn_shown_diagnosis *shown, struct tn_style style, FILE *out);
/* doc/format/doctor.schema.json. */
tn_status tn__diagnosis_json(const struct tn_shown_diagnosis *shown, FILE *out);

/* The names of levels and parts, for JSON and labels. */
const char *tn__level_name(enum tn_level level);
const char *tn__part_name(enum tn_machine_part part);

#endif
