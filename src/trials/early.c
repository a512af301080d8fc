/* SPDX-License-Identifier: Apache-2.0
 *
 * A trial tells what it has seen before it has ended: the unchanged program waits seconds for something new, in which others can be tried
 * already. What it says then is a guess until it has ended, and the caller's to compare.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trials/trial.h"

void
tn__early_open(struct tn_trial *trial)
{
	int ends[2];
	if (trial->tells_early == NULL)
		return;
	trial->early.file = memfd_create("tonnage-early", MFD_CLOEXEC);
	if (trial->early.file >= 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
		trial->early.listens = ends[0];
		trial->early.told = ends[1];
		return;
	}
	trial->tells_early = NULL;
	if (trial->early.file >= 0)
		close(trial->early.file);
}

void
tn__early_close_told(struct tn_trial *trial)
{
	if (trial->tells_early != NULL)
		close(trial->early.told);
}

void
tn__early_close(struct tn_trial *trial)
{
	if (trial->tells_early == NULL)
		return;
	close(trial->early.file);
	if (trial->early.listens >= 0)
		close(trial->early.listens);
}

static struct tn_trial *
find(const struct tn_trials *trials)
{
	for (int i = 0; i < trials->running_count; i++)
		if (trials->running[i]->tells_early != NULL && trials->running[i]->early.listens >= 0)
			return trials->running[i];
	return NULL;
}

int
tn__early_listens(const struct tn_trials *trials)
{
	const struct tn_trial *trial = find(trials);
	return trial != NULL ? trial->early.listens : -1;
}

void
tn__early_take(struct tn_trials *trials)
{
	char nothing;
	struct tn_trial *trial = find(trials);
	if (trial == NULL)
		return;
	ssize_t length = read(trial->early.listens, &nothing, 1); /* it does not wait; the pipe's end: nothing will come */
	if (length < 0)
		return;
	close(trial->early.listens);
	trial->early.listens = -1;
	char *outcome = length > 0 ? tn__memory_file(trial->early.file, 0) : NULL;
	if (outcome != NULL && trial->end == TN_TRIAL_RUNS)
		trials->early(trials->context, trial, outcome);
	free(outcome);
}

void
tn__early_tell(const struct tn_early *early, struct json_t *of_run, int exit_status)
{
	FILE *out = fdopen(early->file, "w");
	if (out != NULL && tn__outcome_write(of_run, NULL, exit_status, out) == TN_OK)
		(void)!write(early->told, "", 1);
}
