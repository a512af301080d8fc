/* SPDX-License-Identifier: Apache-2.0
 *
 * What another system than Linux makes of a run: Windows and WSL (--host, doc/design/0040-windows.md).
 */
#ifndef TN_VERDICT_SYSTEM_H
#define TN_VERDICT_SYSTEM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tonnage/run.h" /* enum tn_system */

struct tn_report;

/* Figures are TN_NO_FIGURE where they are unknown. */
struct tn_host_system {
	enum tn_system kind; /* TN_SYSTEM_LINUX: nothing of this holds */
	bool forbidden;      /* the driver may not use the computer's memory in the place of the card's */
	int64_t display, display_lowest, display_highest; /* what the desktop holds of the card; 0: --other says it */
	int64_t limit;                                    /* of the computer's memory, for what the card does not hold */
	int64_t spilled;                                  /* of the peak; 0: none. Not known where the peak was not seen */
	int64_t pinned, pinned_limit;                     /* of the computer's memory, at most at once; what may be */
};

/* The figures of a system. `memory`: of the computer; 0: unknown. `told`: somebody has said what others hold of the card. */
struct tn_host_system tn__system_of(enum tn_system kind, bool forbidden, uint64_t memory, bool told);
const char *tn__system_text(enum tn_system kind);
/* "Windows", "WSL" */
const char *tn__system_name(enum tn_system kind);

/* Takes the verdict back where the card alone would not do, and adds what is to be said. Part of judging, after `decide`. */
void tn__system_judge(struct tn_report *report);
/* The object `system` of a run's JSON. */
void tn__system_read(const json_t *object, struct tn_host_system *out);

#endif
