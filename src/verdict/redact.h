/* SPDX-License-Identifier: Apache-2.0
 *
 * What must not leave the machine, taken out of a report: secrets always, folders and what the program said where that is asked for.
 * A redactor serves one thread.
 */
#ifndef TN_VERDICT_REDACT_H
#define TN_VERDICT_REDACT_H

#include "verdict/model.h"

struct tn_secrets;
struct tn_redactor;

/* Takes secrets out of every text that the program, or its command line, may have put there. Call when all texts are
 * there. */
void tn__mask_report(struct tn_report *report);
/* The same of all paths. Call last: the files are not found by them any more. */
void tn__mask_paths(struct tn_report *report);

/* Names for files as a report may show them: without `secrets` (lent; NULL: what has the form of one) and, with `folders`, without
 * folders: the same folder has the same name in one report. TN_NO_MEMORY. */
tn_status tn__redactor_new(const struct tn_secrets *secrets, bool folders, struct tn_redactor **out);
void tn__redactor_free(struct tn_redactor *redactor); /* NULL is allowed */
/* Lives as long as the redactor. NULL stays NULL; what cannot be kept for want of memory is "?". */
const char *tn__redacted(struct tn_redactor *redactor, const char *file);
/* All places and paths of a report. */
void tn__redact_report(struct tn_redactor *redactor, struct tn_report *report);

#endif
