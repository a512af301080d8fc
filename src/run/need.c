/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program that ran out of memory needs: a few steps of it once more, on a card that is never full. The first request
 * that fails says little of that: it may lack 100 MiB with 10 GiB still to come.
 *
 * Under the rules of a trial: nothing that the program says is shown again, its scratch folder is its own and empty, its
 * input is at its end. Not where that costs much, or where files or devices are real.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/seconds.h"
#include "trials/outcome.h"
#include "run/run_internal.h"
#include "supervise/internal.h"
#include "trials/trial.h"
#include "verdict/judge.h"

#define STEPS "3"          /* the second update has the state that the first one made */
#define LONGEST_RUN 60.0   /* seconds: a longer one is not done again for this */
#define LEAST_TIMEOUT 15.0 /* seconds, or twice what the run took */
#define LARGEST_ANSWER (32 << 20)

/* Seconds for the second run; 0: none. TONNAGE_NEED says them, else they follow from how long the first one took. */
static double
timeout_for(double seconds)
{
	const char *wish = getenv("TONNAGE_NEED");
	if (wish != NULL && *wish != '\0')
		return strtod(wish, NULL);
	if (seconds > LONGEST_RUN)
		return 0;
	return 2 * seconds > LEAST_TIMEOUT ? 2 * seconds : LEAST_TIMEOUT;
}

static bool
is_wanted(const struct tn_run_options *options, const struct tn_report *report)
{
	if (report->verdict != TN_VERDICT_OUT_OF_MEMORY || report->real_gpu ||
	    (options->gpus != 1 && report->rank_count > 0))
		return false;
	return !options->no_detail && !options->allow_writes && strcmp(options->steps, "auto") == 0;
}

/* Everything that comes before the end, a signal to this process, or the time; false when it was not the end. */
static bool
read_answer(int pipe, int signals, double until, struct tn_outcome *out)
{
	char *text = NULL;
	size_t size = 0, room = 0;
	bool ended = false;
	while (!ended && size < LARGEST_ANSWER) {
		struct pollfd waiting[2] = { { .fd = pipe, .events = POLLIN }, { .fd = signals, .events = POLLIN } };
		double left = until - tn__now();
		if (left <= 0 || (poll(waiting, 2, (int)(left * 1000) + 1) < 0 && errno != EINTR) || waiting[1].revents != 0)
			break;
		if (waiting[0].revents == 0)
			continue;
		if (!tn__array_room(&text, &room, size + PIPE_BUF, 1, LARGEST_ANSWER + PIPE_BUF))
			break;
		ssize_t got = read(pipe, text + size, room - size);
		ended = got == 0;
		if (got < 0 && errno != EINTR)
			break;
		size += got > 0 ? (size_t)got : 0;
	}
	tn__outcome_read(ended ? text : NULL, size, out);
	free(text);
	return out->report != NULL;
}

struct tn_need
tn__need_find(const struct tn_run_options *options, const struct tn_report *report, int signals, const sigset_t *mask)
{
	struct tn_need need = { 0 };
	double timeout = timeout_for(report->seconds);
	int answer[2];
	if (!(timeout > 0) || !is_wanted(options, report) || pipe2(answer, O_CLOEXEC) != 0)
		return need;
	struct tn_trial trial = { .options = *options, .said = -1, .server = -1, .result = answer[1] };
	trial.options.memory_bytes = TN_UNLIMITED_CARD;
	trial.options.steps = STEPS " updates";
	trial.options.budget_bytes = 0;
	trial.options.baseline_path = trial.options.write_baseline_path = NULL;
	pid_t parent = getpid(), child = fork();
	if (child == 0)
		tn__trial_become(&trial, mask, parent);
	close(answer[1]);
	if (child > 0) {
		struct tn_outcome outcome;
		bool answered = read_answer(answer[0], signals, tn__now() + timeout, &outcome);
		kill(child, SIGKILL); /* the reaper below it ends the program and removes its folder */
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		if (answered)
			need = tn__need_of(outcome.report);
		tn__outcome_free(&outcome);
	}
	close(answer[0]);
	return need;
}
