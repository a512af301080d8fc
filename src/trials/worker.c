/* SPDX-License-Identifier: Apache-2.0
 *
 * `tonnage __trials [--until-eof] FOLDER SLICE`: a worker of an engine. It makes the trials of a slice that have no result yet, one after
 * another, as the command would, and keeps each result as soon as it is there.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/plain.h"
#include "supervise/internal.h"
#include "tonnage/fix.h"
#include "trials/trial_engine.h"
#include "trials/trial_file.h"

#define WORTH_A_SERVER 4 /* trials, from which on importing once is quicker */

struct worker {
	struct tn_store store;
	struct tn_trials trials;
	struct tn_read_trial *asked;
	size_t count, next;
	bool until_eof;
};

extern char **environ;

/* A program that finds itself in a job of the cluster's would take that for its own. */
static void
leave_job(void)
{
	static const char *const prefixes[] = { "SLURM_", "SLURMD_", "SBATCH_", "SRUN_", "PMI_", "PMIX_", "RAY_" };
	for (size_t at = 0; environ[at] != NULL;) {
		char name[128];
		bool left = false;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(environ[at], "="), environ[at]);
		for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
			left |= strncmp(name, prefixes[i], strlen(prefixes[i])) == 0;
		if (!left || unsetenv(name) != 0)
			at++;
	}
}

/* Reads the trials; those that have a result are left out. */
static tn_status
read_slice(struct worker *worker, const char *name)
{
	char *list = tn__store_read(&worker->store, "slices", name), *rest = list, *key;
	tn_status status = TN_OK;
	TN_RETURN_IF(list == NULL, TN_NOT_FOUND, "there is no slice %s in %s", name, worker->store.folder);
	while (status == TN_OK && (key = strsep(&rest, "\n")) != NULL) {
		if (key[0] == '\0' || tn__store_has(&worker->store, key))
			continue;
		char *text = tn__store_read(&worker->store, "trials", key);
		if (text == NULL)
			status = tn__fail(TN_NOT_FOUND, "there is no trial %s in %s", key, worker->store.folder);
		else if (!tn__array_add(&worker->asked, worker->count, sizeof(*worker->asked))) {
			free(text);
			status = tn__fail(TN_NO_MEMORY, "out of host memory");
		} else {
			status = tn__trial_parse(text, &worker->asked[worker->count++]);
		}
	}
	free(list);
	return status;
}

/* The program that the trials are of, its placeholders as the user wrote them; the words lie in *kept. */
static char **
read_program(const struct worker *worker, char **kept)
{
	char *text = tn__store_read(&worker->store, "", "program"), *rest = text, *word,
		 **words = calloc(16, sizeof(*words));
	size_t count = 0;
	*kept = text;
	while (words != NULL && text != NULL && tn__line_next(&rest, &word) != NULL && rest != NULL)
		if (tn__array_add(&words, count + 1, sizeof(*words)))
			words[count++] = word, words[count] = NULL;
	if (count > 0)
		return words;
	free(words);
	return NULL;
}

/* The same files here as where the command is. */
static tn_status
check_files(struct worker *worker)
{
	char *text, **words = read_program(worker, &text);
	if (words == NULL) {
		free(text);
		return tn__fail(TN_FORMAT, "%s has no program", worker->store.folder);
	}
	tn__fingerprint(words, worker->store.fingerprint);
	char *there = tn__store_read(&worker->store, "", "fingerprint");
	bool same = there != NULL && strcmp(there, worker->store.fingerprint) == 0;
	free(there);
	free(text);
	free(words);
	TN_RETURN_IF(
		!same, TN_STATE,
		"this machine has other files: another Tonnage, program or packages of its Python than the command that asks");
	return TN_OK;
}

/* ---- the trials ---- */

static struct tn_trial *
next(void *context)
{
	struct worker *worker = context;
	if (worker->next == worker->count)
		return NULL;
	struct tn_read_trial *asked = &worker->asked[worker->next++];
	worker->trials.limit_seconds = asked->limit_seconds;
	return &asked->trial;
}

/* The result is kept already. */
static void
ended(void *context, struct tn_trial *trial)
{
	(void)context;
	tn__trial_clear(trial);
	trial->end = TN_TRIAL_STOPPED;
}

/* Whoever started this worker is gone when its input ends. */
static void
tick(void *context)
{
	const struct worker *worker = context;
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };
	char byte;
	if (worker->until_eof && poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) == 0)
		kill(getpid(), SIGTERM);
}

static tn_status
work(struct worker *worker, const char *slice)
{
	TN_FORWARD_IF_ERROR(read_slice(worker, slice));
	if (worker->count == 0)
		return TN_OK;
	TN_RETURN_IF(chdir(worker->asked[0].directory) != 0, TN_IO, "this machine has no folder %s: %s",
	             worker->asked[0].directory, strerror(errno));
	TN_FORWARD_IF_ERROR(check_files(worker));
	worker->trials = (struct tn_trials){ .wanted_jobs = 1,
		                                 .store = &worker->store,
		                                 .no_table = true,
		                                 .forks = worker->count >= WORTH_A_SERVER,
		                                 .context = worker,
		                                 .next = next,
		                                 .ended = ended,
		                                 .tick = tick };
	tn__tell(stderr, "a worker: %zu trials to make", worker->count); /* for the log */
	TN_FORWARD_IF_ERROR(tn__trials_open(&worker->trials));
	tn_status status = tn__trials_run(&worker->trials);
	tn__trials_close(&worker->trials);
	return status;
}

int
tn_worker_main(int count, char **words)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	int at = 1;
	bool until_eof = count > 1 && strcmp(words[1], "--until-eof") == 0;
	if (until_eof)
		at++;
	if (worker == NULL || count - at != 2 || strlen(words[at]) >= sizeof(worker->store.folder) ||
	    strchr(words[at + 1], '/') != NULL) {
		free(worker);
		return TN_EXIT_USAGE;
	}
	worker->until_eof = until_eof;
	strcpy(worker->store.folder, words[at]);
	leave_job();
	tn_status status = work(worker, words[at + 1]);
	if (status != TN_OK)
		tn__tell(stderr, "%s", tn_error_text());
	int interrupted = worker->trials.interrupted_by;
	for (size_t i = 0; i < worker->count; i++)
		tn__read_trial_free(&worker->asked[i]);
	free(worker->asked);
	free(worker);
	return status == TN_OK ? interrupted != 0 ? 128 + interrupted : 0 : status == TN_STATE ? 3 : TN_EXIT_OWN_FAILURE;
}
