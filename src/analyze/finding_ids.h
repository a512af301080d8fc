/* SPDX-License-Identifier: Apache-2.0
 *
 * The ids of findings, from their one table, src/verdict/findings.def. Here and not there, since the rules of the analysis name them;
 * what else the table says is read in src/verdict/finding_rows.h.
 */
#ifndef TN_ANALYZE_FINDING_IDS_H
#define TN_ANALYZE_FINDING_IDS_H

enum tn_finding_id {
#define FINDING(id, kind, severity, advice, remedies) TN_FINDING_##id,
#include "verdict/findings.def"
#undef FINDING
	TN_FINDINGS /* how many there are; as an id: one that this version does not know */
};

/* What JSON calls it: "growth"; "unknown" for TN_FINDINGS. */
const char *tn__finding_name(enum tn_finding_id id);

#endif
