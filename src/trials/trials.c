/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials side by side: started while there is room, watched, read when they have ended, and all ended with the command.
 *
 * A trial is ended by killing its supervisor: the reaper below it then ends the program and removes the run's folder.
 * Reapers become children of this process (a subreaper), so that it can wait for the last of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/seconds.h"
#include "supervise/internal.h"
#include "trials/trial_engine.h"
#include "trials/trial.h"

#define TICK_MILLISECONDS 250
#define LEAST_MEMORY 0.03 /* of the machine's, below which the youngest trial is ended */

bool
tn__trials_are_checked(const struct tn_trials *trials)
{
	return trials->checked || trials->unchecked == 0;
}

const char *
tn__trials_not_forked(const struct tn_trials *trials)
{
	return trials->server.state == TN_FORKS_BROKEN ? trials->server.why : NULL;
}

bool
tn__trials_some_run(const struct tn_trials *trials)
{
	return trials->running_count > 0 || trials->away > 0;
}

double
tn__trials_seconds(const struct tn_trials *trials)
{
	return tn__now() - trials->started;
}

/* ---- one trial ---- */

/* A pipe that ends when nothing is left of a forked trial: its reaper is no child of ours to be waited for. */
static int
open_alive(struct tn_trials *trials)
{
	int ends[2];
	if (!tn__array_add(&trials->alive, (size_t)trials->alive_count, sizeof(*trials->alive)) ||
	    pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	trials->alive[trials->alive_count++] = ends[0];
	return ends[1];
}

static tn_status
start(struct tn_trials *trials, struct tn_trial *trial)
{
	pid_t self = getpid();
	bool forked = trials->server.state == TN_FORKS_READY && trial != trials->first && !trial->fresh;
	trial->result = memfd_create("tonnage-trial", MFD_CLOEXEC);
	trial->said = trial->keep_words ? memfd_create("tonnage-words", MFD_CLOEXEC) : -1;
	trial->input = trials->input;
	trial->alive = forked ? open_alive(trials) : -1;
	trial->server = trial->alive >= 0 ? trials->server.channel : -1;
	TN_RETURN_IF(trial->result < 0, TN_IO, "no memory file can be made: %s", strerror(errno));
	tn__early_open(trial);
	trial->pid = fork();
	if (trial->pid == 0) {
		close(trials->signals);
		tn__trial_become(trial, &trials->old_mask, self);
	}
	TN_RETURN_IF(trial->pid < 0, TN_IO, "no process can be started: %s", strerror(errno));
	if (trial->alive >= 0)
		close(trial->alive);
	tn__early_close_told(trial);
	trials->forked += trial->server >= 0;
	trials->unchecked += trial->server >= 0 && trial != &trials->check && !trials->checked;
	trial->end = TN_TRIAL_RUNS;
	trial->started = tn__now();
	trials->running[trials->running_count++] = trial;
	trials->count++;
	return TN_OK;
}

/* ---- the fork server ---- */

/* A process that the server has forked must be to the program what a new one is. */
static void
compare(struct tn_trials *trials)
{
	const struct tn_outcome *one = &trials->first->outcome, *other = &trials->check.outcome;
	if (one->report == NULL || other->report == NULL || one->report->verdict != other->report->verdict)
		tn__forks_disable(&trials->server, "forked, the program ends differently");
	else if (one->report->device_peak != other->report->device_peak ||
	         one->report->allocated_peak != other->report->allocated_peak ||
	         one->report->oom.requested_bytes != other->report->oom.requested_bytes)
		tn__forks_disable(&trials->server, "forked, the program has a different peak");
}

/* It is over for good. That its result cannot be kept costs a trial the next time, and no more. */
static void
tell_caller(struct tn_trials *trials, struct tn_trial *trial)
{
	if (trials->store != NULL)
		(void)tn__store_put(trials->store, trial, trial->left);
	free(trial->left);
	trial->left = NULL;
	trials->ended_count++;
	trials->ended(trials->context, trial);
}

/* A trial that is made again counts once. */
static void
start_again(struct tn_trials *trials, struct tn_trial *trial)
{
	trials->count--;
	trials->forked -= trial->server >= 0;
	trial->again = false;
	tn__trial_clear(trial);
	tn_status status = start(trials, trial);
	if (status == TN_OK)
		return;
	trial->end = TN_TRIAL_FAILED;
	trial->outcome.error = strdup(tn_error_text());
	tell_caller(trials, trial);
}

/* How long the server, and the trial that checks it, may take: what forks may also wait for a lock for ever. */
static double
timeout_of(const struct tn_trials *trials)
{
	return 4 * trials->first->seconds + 10;
}

/* Before trials may be started: the check, or NULL with *wait set while the server is not known to be of use. */
static struct tn_trial *
first_or_check(struct tn_trials *trials, bool *wait)
{
	struct tn_forks *server = &trials->server;
	*wait = false;
	if (server->state == TN_FORKS_OFF || server->state == TN_FORKS_BROKEN || trials->first == NULL || trials->over)
		return NULL;
	bool ended = trials->first->end > TN_TRIAL_RUNS;
	if (!trials->checked && ended && trials->first->end != TN_TRIAL_DONE)
		tn__forks_disable(server, "there is nothing to compare with");
	if (ended && server->state == TN_FORKS_IMPORTS && tn__now() - trials->first->started > timeout_of(trials))
		tn__forks_disable(server, "importing once more took too long");
	*wait = !trials->checked && server->state != TN_FORKS_BROKEN;
	if (!*wait || !ended || server->state != TN_FORKS_READY)
		return NULL;
	if (!trials->listed) {
		trials->listed = true;
		tn__forks_import(server, trials->first->outcome.modules);
		return NULL;
	}
	if (trials->check.end != TN_TRIAL_WAITS)
		return NULL;
	trials->check.options = trials->first->options;
	trials->check.changes = trials->first->changes;
	return &trials->check;
}

/* ---- the end of a trial ---- */

static bool
failed_or_timed_out(const struct tn_trial *trial)
{
	return trial->end == TN_TRIAL_FAILED || trial->end == TN_TRIAL_SLOW;
}

static void
disable_forks(struct tn_trials *trials, const struct tn_trial *trial)
{
	tn__forks_disable(&trials->server, "a trial %s",
	                  trial->outcome.error != NULL ? trial->outcome.error : "took too long");
}

/* A trial that found too little of the computer's memory beside others is made again when it has it for itself. */
static bool
is_put_off(struct tn_trials *trials, struct tn_trial *trial)
{
	size_t room = sizeof(trials->run_exclusive) / sizeof(trials->run_exclusive[0]);
	if (trial->end != TN_TRIAL_HOST_MEMORY || trial->alone || trial == trials->first || trials->running_count == 0 ||
	    (size_t)trials->run_exclusive_count == room)
		return false;
	trials->count--;
	trials->forked -= trial->server >= 0;
	tn__trial_clear(trial);
	trial->alone = true;
	trials->run_exclusive[trials->run_exclusive_count++] = trial;
	return true;
}

/* Forked trials that were believed already, or run: nothing that was made of them counts, and the caller begins again without forks. */
static void
give_up_forks(struct tn_trials *trials)
{
	if (trials->over || tn__trials_are_checked(trials))
		return;
	trials->mistaken = true;
	for (int i = 0; i < trials->running_count; i++)
		tn__trial_end(trials->running[i], TN_TRIAL_STOPPED);
}

/* Tells the caller of a trial, unless it has to be made again. */
static void
tell(struct tn_trials *trials, struct tn_trial *trial)
{
	if (is_put_off(trials, trial))
		return;
	if (trial->server < 0 || !failed_or_timed_out(trial)) {
		tell_caller(trials, trial);
		return;
	}
	disable_forks(trials, trial);
	if (trials->checked)
		start_again(trials, trial);
	else
		give_up_forks(trials);
}

static void
finish_check(struct tn_trials *trials)
{
	if (failed_or_timed_out(&trials->check))
		disable_forks(trials, &trials->check);
	else
		compare(trials);
	if (trials->server.state == TN_FORKS_BROKEN)
		give_up_forks(trials);
	else
		trials->checked = true;
	tn__trial_clear(&trials->check);
}

static void
count_seconds(struct tn_trials *trials, const struct tn_trial *trial)
{
	struct tn_trial_seconds *took = &trials->took;
	if (trial == trials->first)
		took->fresh = trial->seconds;
	if (trial->server < 0 || trial->end == TN_TRIAL_STOPPED)
		return;
	int ended = ++trials->forked_ended;
	took->forked += (trial->seconds - took->forked) / ended;
	if (ended == 1 || trial->seconds < took->forked_least)
		took->forked_least = trial->seconds;
}

static void
finish(struct tn_trials *trials, int index)
{
	struct tn_trial *trial = trials->running[index];
	trials->running[index] = trials->running[--trials->running_count];
	trial->seconds = tn__now() - trial->started;
	count_seconds(trials, trial);
	tn__trial_read(trial, trials->store != NULL ? &trial->left : NULL);
	close(trial->result);
	if (trial->said >= 0)
		close(trial->said);
	tn__early_close(trial);
	if (trial->end == TN_TRIAL_STOPPED) {
		if (trial->again && trials->interrupted_by == 0)
			start_again(trials, trial);
		return;
	}
	if (trial == &trials->check)
		finish_check(trials);
	else
		tell(trials, trial);
}

/* ---- while they run ---- */

/* Trials that have ended, and reapers of those that were killed. */
static void
reap(struct tn_trials *trials)
{
	pid_t pid;
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (int i = 0; i < trials->running_count; i++)
			if (trials->running[i]->pid == pid) {
				finish(trials, i);
				break;
			}
}

static void
look_at_limits(struct tn_trials *trials)
{
	int64_t available = tn__machine_memory("MemAvailable"), total = tn__machine_memory("MemTotal");
	double now = tn__now();
	for (int i = 0; i < trials->running_count; i++) {
		struct tn_trial *trial = trials->running[i];
		double limit = trial == &trials->check ? timeout_of(trials) : trials->limit_seconds;
		if (limit > 0 && now - trial->started > limit)
			tn__trial_end(trial, TN_TRIAL_SLOW);
		else if (trials->memory_bound > 0 && tn__trial_bytes(trial) > trials->memory_bound) {
			trial->alone = true; /* it would not do better */
			tn__trial_end(trial, TN_TRIAL_HOST_MEMORY);
		}
	}
	if (available > 0 && (double)available < (double)total * LEAST_MEMORY && trials->running_count > 0)
		tn__trial_end(trials->running[trials->running_count - 1], TN_TRIAL_HOST_MEMORY);
}

/* Nothing of a trial outlives this: reapers end by themselves once the program and the folder are gone. */
static void
wait_for_reapers(struct tn_trials *trials)
{
	char nothing;
	for (int i = 0; i < trials->alive_count; i++) {
		while (read(trials->alive[i], &nothing, 1) > 0 || errno == EINTR)
			errno = 0;
		close(trials->alive[i]);
	}
	free(trials->alive);
	trials->alive = NULL;
	trials->alive_count = 0;
	tn__forks_end(&trials->server);
	errno = 0;
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	(void)tn__folder_remove_orphans(); /* of a supervisor that was killed before it had a reaper */
}

/* True while forked trials may be started although it is not known whether the server is of use: beside the first trial and the
 * check, where a core would stand idle. Not where results are kept for another time. */
static bool
may_go_beside(const struct tn_trials *trials)
{
	bool beside = trials->check.end == TN_TRIAL_RUNS || trials->first->end == TN_TRIAL_RUNS;
	return beside && trials->begins_again && trials->store == NULL && trials->server.state == TN_FORKS_READY;
}

/* The next trial, by the caller or of our own; NULL: none for now. */
static struct tn_trial *
next_of(struct tn_trials *trials)
{
	bool wait;
	struct tn_trial *own = first_or_check(trials, &wait);
	if (trials->run_exclusive_count > 0)
		return trials->running_count == 0 ? trials->run_exclusive[--trials->run_exclusive_count] : NULL;
	if (trials->running_count > 0 && trials->running[0]->alone)
		return NULL;
	if (own != NULL || (wait && !may_go_beside(trials)))
		return own;
	struct tn_trial *trial;
	while ((trial = trials->next(trials->context)) != NULL && trials->store != NULL &&
	       tn__store_find(trials->store, trial)) {
		trials->reused++;
		trials->ended_count++;
		trials->ended(trials->context, trial);
	}
	if (trial != NULL && trials->forks && trials->server.state == TN_FORKS_OFF) {
		trials->first = trial;
		trial->lists_modules = true;
		tn__forks_start(&trials->server, &trial->options, &trials->old_mask);
	}
	return trial;
}

static tn_status
fill(struct tn_trials *trials)
{
	struct tn_trial *trial;
	while (trials->interrupted_by == 0 && !trials->mistaken && trials->running_count < trials->jobs &&
	       (trial = next_of(trials)) != NULL)
		TN_FORWARD_IF_ERROR(start(trials, trial));
	return TN_OK;
}

/* Something runs, or will once the server is known. */
static bool
goes_on(struct tn_trials *trials)
{
	bool wait;
	(void)first_or_check(trials, &wait);
	return trials->running_count > 0 ||
	       ((wait || trials->run_exclusive_count > 0) && trials->interrupted_by == 0 && !trials->mistaken);
}

/* Those that the command makes itself. */
static tn_status
run_here(struct tn_trials *trials)
{
	tn_status status = fill(trials);
	double looked = 0;
	while (goes_on(trials)) {
		bool imports = trials->server.state == TN_FORKS_IMPORTS;
		struct pollfd watched[] = { { trials->signals, POLLIN, 0 },
			                        { tn__early_listens(trials), POLLIN, 0 },
			                        { imports ? trials->server.channel : -1, POLLIN, 0 } };
		(void)poll(watched, 3, TICK_MILLISECONDS);
		tn__trials_take_signals(trials);
		tn__forks_listen(&trials->server);
		tn__early_take(trials);
		if (trials->server.state == TN_FORKS_BROKEN && !trials->mistaken)
			give_up_forks(trials);
		reap(trials);
		if (tn__now() - looked >= TICK_MILLISECONDS / 1000.0) {
			looked = tn__now();
			look_at_limits(trials);
			if (trials->tick != NULL)
				trials->tick(trials->context);
		}
		if (status == TN_OK)
			status = fill(trials);
		for (int i = 0; status != TN_OK && i < trials->running_count; i++)
			tn__trial_end(trials->running[i], TN_TRIAL_STOPPED);
	}
	wait_for_reapers(trials);
	return status;
}

tn_status
tn__trials_run(struct tn_trials *trials)
{
	const struct tn_store *store = trials->store;
	bool dry_run = trials->engine != NULL && trials->engine->dry_run;
	tn_status status = trials->engine == NULL ? run_here(trials) : tn__trials_run_away(trials, run_here);
	if (store != NULL && !trials->no_table && !dry_run)
		(void)tn__store_tabulate(store);
	return status;
}
