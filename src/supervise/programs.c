/* SPDX-License-Identifier: Apache-2.0
 *
 * Several programs at the same time on one card (doc/design/0039-several-programs.md): their commands, the process that starts
 * them, and what each held.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "supervise/internal.h"
#include "verdict/model_fill.h"
#include "verdict/programs.h"

#define SEPARATOR ":::"

/* ---- commands ---- */

static tn_status
add_command(struct tn_commands *commands, char *const *words, size_t count)
{
	TN_RETURN_IF(count == 0, TN_INVALID, "an empty command beside :::, which stands between two programs");
	TN_RETURN_IF(commands->count == TN_LEDGER_PROGRAMS, TN_INVALID, "at most %d programs at the same time",
	             TN_LEDGER_PROGRAMS);
	TN_RETURN_IF(tn__is_notebook(words[0]), TN_INVALID, "a notebook runs alone: leave ::: out, or %s", words[0]);
	char **copy = calloc(count + 1, sizeof(*copy));
	TN_RETURN_IF(copy == NULL, TN_NO_MEMORY, "out of host memory");
	memcpy(copy, words, count * sizeof(*copy));
	commands->items[commands->count++].words = copy;
	return TN_OK;
}

tn_status
tn__commands_split(const struct tn_run_options *options, struct tn_commands *commands, int *exit_status)
{
	char *const *first = options->arguments, *const *word = first;
	if (!options->several)
		return TN_OK;
	TN_RETURN_IF(options->python != NULL || options->cells != NULL || options->keep_going, TN_INVALID,
	             "--cells, --python and --keep-going go with a notebook, which runs alone");
	for (;; word++) {
		if (*word != NULL && strcmp(*word, SEPARATOR) != 0)
			continue;
		TN_FORWARD_IF_ERROR(add_command(commands, first, (size_t)(word - first)));
		if (*word == NULL)
			break;
		first = word + 1;
	}
	for (size_t i = 0; i < commands->count; i++)
		TN_FORWARD_IF_ERROR(tn__program_find(commands->items[i].words[0], commands->items[i].path, exit_status));
	return TN_OK;
}

void
tn__commands_free(struct tn_commands *commands)
{
	for (size_t i = 0; i < commands->count; i++)
		free(commands->items[i].words);
	commands->count = 0;
}

/* ---- the process that starts them ---- */

static void
send_news(int pipe, struct tn_news news)
{
	ssize_t ignored = write(pipe, &news, sizeof(news));
	(void)ignored; /* nobody reads any more: the reaper ends us */
}

/* `environment` and the program's number; NULL without memory. */
static char **
numbered(char *const *environment, size_t number)
{
	static char variable[32];
	size_t count = 0;
	while (environment[count] != NULL)
		count++;
	char **copy = calloc(count + 2, sizeof(*copy));
	if (copy == NULL)
		return NULL;
	snprintf(variable, sizeof(variable), "TONNAGE_PROGRAM=%zu", number);
	memcpy(copy, environment, count * sizeof(*copy));
	copy[count] = variable;
	return copy;
}

static _Noreturn void
become_command(const struct tn_start *start, size_t index, const sigset_t *mask, int news, pid_t starter)
{
	const struct tn_one_command *command = &start->several->items[index];
	char **environment = numbered(start->environment, index + 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != starter || environment == NULL)
		_exit(TN_EXIT_OWN_FAILURE);
	int nothing = index > 0 ? open("/dev/null", O_RDONLY) : -1;
	if (nothing > STDIN_FILENO && dup2(nothing, STDIN_FILENO) == STDIN_FILENO)
		close(nothing);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvpe(command->path, command->words, environment);
	send_news(news, (struct tn_news){ .kind = TN_NEWS_NOT_EXECUTED, .pid = getpid(), .status = errno });
	_exit(errno == ENOENT ? TN_EXIT_NOT_FOUND : TN_EXIT_NOT_EXECUTABLE);
}

/* Tells of those that have ended; how many are left. */
static size_t
reap(pid_t *pids, size_t count, size_t left, int news)
{
	struct rusage usage;
	int status;
	pid_t pid;
	while (left > 0 && (pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
		for (size_t i = 0; i < count; i++)
			if (pids[i] == pid) {
				send_news(news, (struct tn_news){ .kind = TN_NEWS_COMMAND_ENDED,
				                                  .pid = pid,
				                                  .status = status,
				                                  .program = (int32_t)(i + 1),
				                                  .peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024 });
				pids[i] = 0;
				left--;
			}
	return left;
}

/* One of the terminal has reached the programs as well; one that was sent to this process alone is passed on. */
static void
pass_on(const siginfo_t *info, const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < count && info->si_code <= 0; i++)
		if (pids[i] > 0)
			kill(pids[i], info->si_signo);
}

_Noreturn void
tn__commands_run(const struct tn_start *start, const sigset_t *mask, int news)
{
	pid_t pids[TN_LEDGER_PROGRAMS] = { 0 }, self = getpid();
	size_t count = start->several->count, left = 0;
	siginfo_t info;
	sigset_t watched;
	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, SIGINT);
	sigaddset(&watched, SIGTERM);
	sigaddset(&watched, SIGHUP);
	sigaddset(&watched, SIGQUIT);
	sigprocmask(SIG_BLOCK, &watched, NULL);
	prctl(PR_SET_NAME, "tonnage-several");
	for (size_t i = 0; i < count; i++) {
		pid_t pid = fork();
		if (pid == 0)
			become_command(start, i, mask, news, self);
		if (pid < 0)
			_exit(TN_EXIT_OWN_FAILURE);
		pids[i] = pid;
		left++;
		send_news(news, (struct tn_news){ .kind = TN_NEWS_COMMAND_STARTED, .pid = pid, .program = (int32_t)(i + 1) });
	}
	while ((left = reap(pids, count, left, news)) > 0)
		if (sigwaitinfo(&watched, &info) > 0 && info.si_signo != SIGCHLD)
			pass_on(&info, pids, count);
	_exit(0); /* how each ended has been told */
}

/* ---- while they run ---- */

void
tn__commands_take_news(struct tn_watch *watch, const struct tn_news *news)
{
	size_t index = (size_t)news->program - 1;
	if (news->program < 1 || index >= TN_LEDGER_PROGRAMS)
		return;
	struct tn_command_end *end = &watch->commands[index];
	end->pid = news->pid;
	if (news->kind != TN_NEWS_COMMAND_ENDED)
		return;
	end->ended = true;
	end->wait_status = news->status;
	watch->ledger->programs[index].ended = 1;
}

/* ---- what each held ---- */

static struct tn_report_split
split_of(const uint64_t bytes[TN_BYTES_CLASSES])
{
	return (struct tn_report_split){ .context = (int64_t)bytes[TN_BYTES_CONTEXT],
		                             .program = (int64_t)bytes[TN_BYTES_PROGRAM],
		                             .libraries = (int64_t)bytes[TN_BYTES_LIBRARY],
		                             .communication = (int64_t)bytes[TN_BYTES_COMMUNICATION] };
}

void
tn__commands_begin(const struct tn_run_options *options, const struct tn_watch *watch, struct tn_report *report)
{
	struct tn_commands commands = { 0 };
	int ignored;
	if (!options->several || tn__commands_split(options, &commands, &ignored) != TN_OK)
		return;
	tn__programs_init(&report->programs, commands.count);
	for (size_t i = 0; i < report->programs.count; i++) {
		struct tn_program *program = &report->programs.items[i];
		program->command = tn__program_quote(commands.items[i].words);
		program->pid = watch->commands[i].pid;
		program->ended = watch->commands[i].ended;
		program->wait_status = watch->commands[i].wait_status;
	}
	tn__commands_free(&commands);
}

/* What a record says of the moment at which its process held exactly what the ledger says; else it stays untold. */
static void
detail(const struct tn_folder *folder, const struct tn_report *report, const struct tn_record *record, bool at_end,
       struct tn_report_moment *moment)
{
	const struct tn_analysis *analysis;
	struct tn_moment pytorch;
	struct tn_view *view;
	if (record->path == NULL || moment->split.program <= 0 || !tn__folder_owns(folder, record->path) ||
	    tn__views_open(report->views, record->path, &view) != TN_OK ||
	    tn__view_analysis(view, record->device, &analysis) != TN_OK)
		return;
	tn_status status = at_end ? tn__moment_of_end(analysis, &pytorch)
	                          : tn__moment_of_peak(analysis, (uint64_t)moment->split.program, &pytorch);
	if (status != TN_OK)
		return;
	(void)tn__report_join(moment, &pytorch);
	tn__moment_free(&pytorch);
}

static void
collect_moment(const struct tn_folder *folder, const struct tn_ledger_split *held, bool out, struct tn_report *report)
{
	for (size_t i = 0; i < report->programs.count; i++) {
		struct tn_program *program = &report->programs.items[i];
		struct tn_report_moment *moment = out ? &program->at_oom : &program->at_peak;
		struct tn_report_split split = split_of(held->programs[i]);
		bool failed = out && report->programs.failing == (int64_t)i;
		tn__report_set_split(moment, &split);
		if (failed)
			detail(folder, report, &program->oom_record, true, moment);
		if (!moment->detailed)
			detail(folder, report, &program->record, false, moment);
		if (!moment->detailed)
			detail(folder, report, &program->oom_record, false, moment);
	}
}

void
tn__commands_collect(const struct tn_watch *watch, int device, const struct tn_ledger_device *refusing,
                     struct tn_report *report)
{
	struct tn_programs *programs = &report->programs;
	const struct tn_ledger_device *of = &watch->ledger->devices[device];
	if (programs->count == 0)
		return;
	programs->together = (int64_t)of->other_bytes;
	for (size_t i = 0; i < programs->count; i++) {
		programs->items[i].peak = (int64_t)watch->ledger->programs[i].peak_bytes[device];
		programs->together += programs->items[i].peak;
	}
	collect_moment(watch->folder, &of->at_peak, false, report);
	tn__programs_sum(programs, false, &report->at_peak);
	if (refusing == NULL || programs->failing == TN_NO_FIGURE ||
	    report->oom.free_bytes != (int64_t)refusing->refusal.free_bytes)
		return;
	collect_moment(watch->folder, &refusing->refusal.held, true, report);
	tn__programs_sum(programs, true, &report->at_oom);
}
