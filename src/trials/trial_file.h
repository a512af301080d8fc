/* SPDX-License-Identifier: Apache-2.0
 *
 * A trial and its result as text (doc/design/0041-engines.md): for workers on other machines, and to use a result again.
 *
 * Lines of "name value"; in values a backslash is "\\" and a line end "\n". Nothing here knows where the text is kept. Not thread-safe.
 */
#ifndef TN_TRIALS_TRIAL_FILE_H
#define TN_TRIALS_TRIAL_FILE_H

#include <stdio.h>

#include "trials/trial.h"

/* A line; nothing where the value is NULL. */
void tn__line_put(const char *name, const char *value, FILE *out);
/* The next line, cut out of the text: *value is what follows the name. NULL: there is no more. */
char *tn__line_next(char **text, char **value);

/* Writes what is tried. With `for_key` what may only change how long it takes, or where it is made, is left out. */
void tn__trial_write(const struct tn_trial *trial, double limit_seconds, bool for_key, FILE *out);

/* A trial that was read; its texts are kept here. */
struct tn_read_trial {
	struct tn_trial trial;
	double limit_seconds;
	char *directory;
	char **arguments;
	char *text; /* that the other texts lie in */
};
/* Reads what was written. TN_FORMAT where it is something else. The text is taken over; release with tn__read_trial_free, also after
 * a failure. */
tn_status tn__trial_parse(char *text, struct tn_read_trial *out);
void tn__read_trial_free(struct tn_read_trial *read);

/* Writes the result of a trial, `outcome` being the text that its process left. */
void tn__trial_result_write(const struct tn_trial *trial, const char *outcome, FILE *out);
/* Fills the result of a trial from that text, which is changed. TN_FORMAT where it is something else; nothing is filled then. */
tn_status tn__trial_result_parse(char *text, struct tn_trial *trial, char host[64]);

#endif
