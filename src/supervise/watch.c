/* SPDX-License-Identifier: Apache-2.0
 *
 * From the program's start to the end of its last process: signals, stop requests, dead processes' bytes, sampling.
 *
 * The run ends when the program does. What it leaves behind gets a second to end by itself and is killed then.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/seconds.h"
#include "gpu/machine.h"
#include "supervise/internal.h"
#include "supervise/leftovers.h"

#define POLL_MILLISECONDS 20
#define SAMPLE_SECONDS 0.25
#define HOST_SECONDS 0.01 /* where the computer's memory is looked at, too */
#define GUEST_SECONDS 0.5
#define LEFT_BEHIND_SECONDS 1.0 /* for what the program leaves running */
#define INTERRUPTED_SECONDS 5.0 /* for the program to end after Ctrl-C */
#define GRACE_SECONDS 5.0       /* for the hook to ask for the stop itself, with everything flushed */

struct state {
	struct tn_watch *watch;
	struct tn_leftovers leftovers;
	double sampled, guests_read, deadline; /* deadline: when everything is killed; 0: not yet known */
	double compilers_seen;                 /* when it was last looked for them */
	double torch_seen;                     /* when a usable torch was there; 0: not yet */
	bool program_ended, torch_is_fine, told_early, over;
	struct tn_rank_watch ranks;
	pid_t helper; /* 0: none runs */
	struct tn_process_others others;
};

static void
note_rss(struct tn_watch *watch, uint64_t bytes)
{
	if (bytes > watch->peak_rss_bytes)
		watch->peak_rss_bytes = bytes;
}

/* ---- news from the reaper ---- */

static void
program_ended(struct state *state, int status)
{
	state->program_ended = true;
	state->watch->ending.ended = true;
	state->watch->ending.wait_status = status;
	if (state->deadline == 0)
		state->deadline = tn__now() + LEFT_BEHIND_SECONDS;
}

static void
take_news(struct state *state, const struct tn_news *news)
{
	struct tn_watch *watch = state->watch;
	switch ((enum tn_news_kind)news->kind) {
	case TN_NEWS_STARTED:
		watch->program = news->pid;
		break;
	case TN_NEWS_ENDED:
		note_rss(watch, news->peak_rss_bytes);
		tn__process_list_add(&watch->seen, news->pid);
		tn__endings_add(&watch->endings, news->pid, news->status);
		if (news->program && !state->program_ended)
			program_ended(state, news->status);
		break;
	case TN_NEWS_COMMAND_STARTED:
		tn__commands_take_news(watch, news);
		break;
	case TN_NEWS_COMMAND_ENDED:
		note_rss(watch, news->peak_rss_bytes);
		tn__process_list_add(&watch->seen, news->pid);
		tn__endings_add(&watch->endings, news->pid, news->status);
		tn__commands_take_news(watch, news);
		if (news->status != 0 && !state->program_ended && watch->ending.stop_reason == 0)
			program_ended(state, news->status);
		break;
	case TN_NEWS_NOT_EXECUTED:
		watch->not_executed = true;
		watch->exec_errno = news->status;
		break;
	case TN_NEWS_NO_NET:
		watch->no_sandbox = true;
		break;
	case TN_NEWS_RAW_WALL:
		watch->raw_wall = news->status;
		break;
	}
}

static void
read_news(struct state *state)
{
	struct tn_news news;
	ssize_t length = read(state->watch->reaper.news, &news, sizeof(news));
	if (length == (ssize_t)sizeof(news)) {
		take_news(state, &news);
	} else if (length == 0) {
		state->watch->reaper_lost = true;
		state->over = true;
	}
}

/* ---- signals to the supervisor ---- */

/* A signal from the terminal has reached the program as well; one that was sent to us alone is passed on. */
static void
take_signal(struct state *state)
{
	struct signalfd_siginfo info;
	struct tn_watch *watch = state->watch;
	if (read(watch->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (watch->ending.interrupted_by != 0) {
		state->over = true;
		return;
	}
	watch->ending.interrupted_by = (int)info.ssi_signo;
	state->deadline = tn__now() + INTERRUPTED_SECONDS;
	if (info.ssi_code <= 0 && watch->program > 0 && !state->program_ended)
		kill(watch->program, (int)info.ssi_signo);
}

/* ---- sampling ---- */

/* Counts the time since the last look as compiling where it began and ends so, and tells the hooks. */
static void
look_at_compilers(struct state *state, bool child_compiles, double now)
{
	struct tn_watch *watch = state->watch;
	bool before = watch->compiling;
	watch->compiling = child_compiles || tn__guest_compiles(watch->folder);
	if (before && watch->compiling)
		watch->compiled_seconds += now - state->compilers_seen;
	if (watch->compiled_seconds > watch->compile_limit_seconds)
		watch->compiled_seconds = watch->compile_limit_seconds;
	state->compilers_seen = now;
	watch->ledger->guest.compiled = (uint64_t)(1000 * watch->compiled_seconds);
}

static void
sample(struct state *state, double now)
{
	bool compiles = false;
	struct tn_watch *watch = state->watch;
	struct tn_process_list list = { 0 };
	const struct tn_process_tree tree = { getpid(), watch->reaper.group, watch->reaper.pid };
	uint64_t bytes = 0;
	if (state->program_ended) /* that nothing is left must be true */
		tn__process_descendants(&tree, &list);
	else
		tn__process_descendants_again(&tree, &state->others, &list);
	for (size_t i = 0; i < list.count; i++) {
		tn__process_list_add(&watch->seen, list.pids[i]);
		note_rss(watch, tn__process_peak_rss(list.pids[i]));
		compiles = compiles || tn__is_compiler(list.pids[i]);
	}
	if (!state->program_ended)
		look_at_compilers(state, compiles, now);
	tn__host_look(watch, &list, state->helper);
	if (watch->real_gpu && tn__machine_process_bytes(list.pids, list.count, &bytes) == TN_OK &&
	    bytes > watch->real_device_peak)
		watch->real_device_peak = bytes;
	tn__ledger_sweep(watch->ledger);
	tn__ranks_look(watch->ledger, watch->folder, &watch->endings);
	if (!state->program_ended && tn__ranks_hang(watch->ledger, &watch->endings, &state->ranks, now))
		watch->ending.hung = state->over = true;
	if (state->program_ended && list.count == 0)
		state->over = true;
	tn__process_list_free(&list);
}

static void
look_at_guests(struct state *state, double now)
{
	if (state->torch_is_fine || now - state->guests_read < GUEST_SECONDS)
		return;
	state->guests_read = now;
	enum tn_misuse misuse = tn__guest_misuse(state->watch->folder, &state->torch_is_fine);
	if (state->torch_is_fine)
		state->torch_seen = now;
	if (misuse == TN_MISUSE_CPU_TORCH) { /* it would go on on the CPU, perhaps for hours */
		state->watch->misuse = misuse;
		state->over = true;
	}
}

static void
look_at_ledger(struct state *state)
{
	struct tn_watch *watch = state->watch;
	uint64_t reason = watch->ledger->guest.stop_reason;
	struct tn_ledger_guest *guest = &watch->ledger->guest;
	if (watch->early != NULL && guest->early != 0 && !state->told_early) {
		state->told_early = true;
		tn__once_tell_early(watch->early);
	}
	if (watch->tells != NULL)
		tn__late_news_take_step(watch->tells, guest);
	if (watch->news != NULL)
		tn__late_news_pass_on(watch->news, guest);
	if (reason == 0 || state->program_ended || watch->ending.interrupted_by != 0)
		return;
	watch->ending.stop_reason = (int)reason;
	state->over = true;
}

/* The server has so long until it listens, and as long from then on. */
static void
look_at_requests(struct state *state, double now)
{
	struct tn_watch *watch = state->watch;
	struct tn_request_run *requests = watch->requests;
	const struct tn_process_tree tree = { getpid(), watch->reaper.group, watch->reaper.pid };
	if (requests == NULL)
		return;
	tn__request_run_read(requests, now);
	if (state->program_ended || watch->ending.interrupted_by != 0)
		return;
	if (requests->all_since > 0) {
		watch->ending.stop_reason = TN_REASON_REQUESTS;
		state->over |= tn__request_run_end(requests, &tree, watch->program, now);
		return;
	}
	double since = requests->listens_since > 0 ? requests->listens_since
	               : state->torch_seen > 0     ? state->torch_seen
	                                           : watch->started;
	if (watch->limit_seconds > 0 && now - since >= watch->limit_seconds + watch->compiled_seconds) {
		watch->ending.stop_reason = TN_REASON_LIMIT;
		state->over = true;
	}
}

/* The hook looks at the time limit when a step ends. A program that never steps is stopped from here. */
static void
look_at_time(struct state *state, double now)
{
	struct tn_watch *watch = state->watch;
	if (watch->requests != NULL || watch->limit_seconds <= 0 || state->torch_seen <= 0 || state->program_ended ||
	    now - state->torch_seen < watch->limit_seconds + watch->compiled_seconds + GRACE_SECONDS)
		return;
	watch->ending.stop_reason = 2;
	state->over = true;
}

/* ---- the end ---- */

static void
before_kill(void *context, pid_t pid)
{
	struct state *state = context;
	tn__leftovers_note(&state->leftovers, pid);
	tn__process_list_add(&state->watch->seen, pid);
	note_rss(state->watch, tn__process_peak_rss(pid));
}

/* Our own children: the reaper's orphans, should it be gone. The reaper itself stays for tn__reaper_finish. */
static void
reap(void *context)
{
	struct state *state = context;
	const struct tn_watch *watch = state->watch;
	struct rusage usage;
	siginfo_t info = { .si_pid = 0 };
	if (!watch->reaper_lost)
		return;
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
	       info.si_pid != watch->reaper.pid && wait4(info.si_pid, NULL, WNOHANG, &usage) > 0) {
		note_rss(state->watch, (uint64_t)usage.ru_maxrss * 1024);
		info.si_pid = 0;
	}
}

static void
drain_news(struct state *state)
{
	struct pollfd news = { state->watch->reaper.news, POLLIN, 0 };
	while (!state->watch->reaper_lost && poll(&news, 1, 0) > 0 && news.revents & POLLIN)
		read_news(state);
}

static void
finish(struct state *state)
{
	struct tn_watch *watch = state->watch;
	bool lost = watch->reaper_lost;
	tn__ranks_look(watch->ledger, watch->folder, &watch->endings); /* what is killed here has not ended by itself */
	struct tn_endings endings = watch->endings;
	watch->endings = (struct tn_endings){ 0 };
	(void)tn__process_kill_all(&(struct tn_process_tree){ getpid(), watch->reaper.group, lost ? 0 : watch->reaper.pid },
	                           before_kill, reap, state);
	drain_news(state);
	watch->reaper_lost = lost;
	tn__endings_free(&watch->endings);
	watch->endings = endings;
	tn__leftovers_remove(&state->leftovers, watch->seen.pids, watch->seen.count);
	tn__leftovers_free(&state->leftovers);
	tn__ledger_sweep(watch->ledger);
	tn__progress_erase(&watch->progress);
	watch->seconds = tn__now() - watch->started;
}

/* While a helper is there, connections are its own to take. */
static int
asked_socket(struct state *state)
{
	if (state->helper > 0 && waitpid(state->helper, NULL, WNOHANG) != 0)
		state->helper = 0;
	return state->helper > 0 ? -1 : state->watch->asked;
}

void
tn__watch_until_end(struct tn_watch *watch)
{
	struct state state = { .watch = watch };
	struct pollfd watched[] = { { watch->reaper.news, POLLIN, 0 }, { watch->signals, POLLIN, 0 }, { -1, POLLIN, 0 } };
	const double pause = watch->host.wanted ? HOST_SECONDS : SAMPLE_SECONDS;
	while (!state.over) {
		watched[2].fd = asked_socket(&state);
		if (poll(watched, 3, watch->host.wanted ? POLL_MILLISECONDS / 2 : POLL_MILLISECONDS) > 0) {
			if (watched[0].revents & (POLLIN | POLLHUP))
				read_news(&state);
			if (watched[1].revents & POLLIN)
				take_signal(&state);
			if (watched[2].fd >= 0 && watched[2].revents & POLLIN)
				state.helper = tn__helper_start(watch->asked, watch->install);
		}
		double now = tn__now();
		look_at_ledger(&state);
		look_at_guests(&state, now);
		look_at_time(&state, now);
		look_at_requests(&state, now);
		if (now - state.sampled >= (state.program_ended ? POLL_MILLISECONDS / 1000.0 : pause)) {
			state.sampled = now;
			sample(&state, now);
		}
		tn__progress_show(&watch->progress, watch->ledger, now - watch->started, watch->compiling);
		if (state.deadline != 0 && now >= state.deadline)
			state.over = true;
	}
	finish(&state);
	tn__process_others_free(&state.others);
}
