/* SPDX-License-Identifier: Apache-2.0
 *
 * What the table of findings (findings.def) says of each.
 */
#ifndef TN_VERDICT_FINDING_ROWS_H
#define TN_VERDICT_FINDING_ROWS_H

#include "verdict/model.h"

enum tn_finding_kind { TN_KIND_ROOM, TN_KIND_MISTAKE, TN_KIND_NOTE };

struct tn_finding_row {
	enum tn_finding_kind kind;
	enum tn_severity severity;
	const char *advice;   /* ids of the table of advice, best first; NULL: none */
	const char *remedies; /* ids of changes */
};

/* The row of an id below TN_FINDINGS; never NULL. */
const struct tn_finding_row *tn__finding_row(enum tn_finding_id id);
/* The finding of that name; TN_FINDINGS where there is none, and for NULL. */
enum tn_finding_id tn__finding_of(const char *name);
/* True when a finding of a report, which may have been read from a document, is that one. */
bool tn__finding_is(const struct tn_finding *finding, enum tn_finding_id id);
/* True when a report has that finding. */
bool tn__report_has_finding(const struct tn_report *report, enum tn_finding_id id);
/* True when `fix` tries that change for it before others. False for TN_FINDINGS. */
bool tn__finding_has_remedy(enum tn_finding_id id, const char *change);

#endif
