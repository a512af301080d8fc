/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals of the command while trials run: held, taken, and obeyed by ending what runs.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/seconds.h"
#include "supervise/internal.h"
#include "trials/trial.h"

/* ---- opening and closing ---- */

static void
add_unless_ignored(sigset_t *set, int signal)
{
	struct sigaction action;
	if (sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
		sigaddset(set, signal);
}

tn_status
tn__trials_open(struct tn_trials *trials)
{
	sigset_t watched;
	sigemptyset(&watched);
	add_unless_ignored(&watched, SIGINT);
	add_unless_ignored(&watched, SIGTERM);
	add_unless_ignored(&watched, SIGHUP);
	add_unless_ignored(&watched, SIGQUIT);
	sigaddset(&watched, SIGCHLD);
	sigprocmask(SIG_BLOCK, &watched, &trials->old_mask);
	trials->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	if (trials->signals < 0) {
		sigprocmask(SIG_SETMASK, &trials->old_mask, NULL);
		return tn__fail(TN_IO, "signals cannot be watched: %s", strerror(errno));
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (trials->started == 0)
		trials->started = tn__now();
	trials->memory_bound = (int64_t)((double)tn__machine_memory("MemAvailable") * TN_SHARE_OF_MEMORY);
	tn__trials_adapt(trials, TN_NO_FIGURE);
	return TN_OK;
}

void
tn__trials_close(struct tn_trials *trials)
{
	const struct timespec none = { 0, 0 };
	sigset_t left;
	close(trials->signals);
	sigemptyset(&left);
	sigaddset(&left, SIGCHLD);
	if (trials->interrupted_by != 0)
		sigaddset(&left, trials->interrupted_by); /* it has been obeyed */
	while (sigtimedwait(&left, NULL, &none) > 0)
		;
	sigprocmask(SIG_SETMASK, &trials->old_mask, NULL);
}

/* ---- the end ---- */

void
tn__trial_end(struct tn_trial *trial, enum tn_trial_end why)
{
	if (trial->end != TN_TRIAL_RUNS)
		return;
	trial->end = why;
	if (trial->pid > 0) /* 0: an engine makes it */
		kill(trial->pid, SIGKILL);
}

void
tn__trials_stop(struct tn_trials *trials, struct tn_trial *trial)
{
	(void)trials;
	tn__trial_end(trial, TN_TRIAL_STOPPED);
}

void
tn__trials_take_signals(struct tn_trials *trials)
{
	struct signalfd_siginfo info;
	while (read(trials->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD && trials->interrupted_by == 0)
			trials->interrupted_by = (int)info.ssi_signo;
	if (trials->interrupted_by != 0)
		for (int i = 0; i < trials->running_count; i++)
			tn__trial_end(trials->running[i], TN_TRIAL_STOPPED);
}
