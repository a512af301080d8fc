/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of findings.
 */
#include "verdict/finding_rows.h"

#include <string.h>

#include "base/words.h"

static const struct tn_finding_row rows[] = {
#define FINDING(id, kind, severity, advice, remedies) { TN_KIND_##kind, TN_SEVERITY_##severity, advice, remedies },
#include "verdict/findings.def"
#undef FINDING
};

const struct tn_finding_row *
tn__finding_row(enum tn_finding_id id)
{
	return &rows[id];
}

enum tn_finding_id
tn__finding_of(const char *name)
{
	for (int id = 0; name != NULL && id < TN_FINDINGS; id++)
		if (strcmp(tn__finding_name((enum tn_finding_id)id), name) == 0)
			return (enum tn_finding_id)id;
	return TN_FINDINGS;
}

bool
tn__finding_is(const struct tn_finding *finding, enum tn_finding_id id)
{
	return strcmp(finding->id, tn__finding_name(id)) == 0;
}

bool
tn__finding_has_remedy(enum tn_finding_id id, const char *change)
{
	return id < TN_FINDINGS && tn__has_word(rows[id].remedies, change);
}

bool
tn__report_has_finding(const struct tn_report *report, enum tn_finding_id id)
{
	for (size_t i = 0; i < report->finding_count; i++)
		if (tn__finding_is(&report->findings[i], id))
			return true;
	return false;
}
