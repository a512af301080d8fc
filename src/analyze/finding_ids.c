/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of findings.
 */
#include "analyze/finding_ids.h"

const char *
tn__finding_name(enum tn_finding_id id)
{
	static const char *const names[] = {
#define FINDING(id, kind, severity, advice, remedies) #id,
#include "verdict/findings.def"
#undef FINDING
	};
	return id < TN_FINDINGS ? names[id] : "unknown";
}
