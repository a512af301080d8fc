/* SPDX-License-Identifier: Apache-2.0
 *
 * The process of a trial: a supervisor like `tonnage run` that is quiet, and writes its result into a file that
 * its parent reads. Nothing of the program reaches the terminal, and a Ctrl-C is the parent's to act on.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "supervise/internal.h"
#include "trials/trial.h"
#include "verdict/executions.h"

/* The commands of a trial so far, and what is kept: of the first that does not fit, else as tn_trial.command says. */
struct chain {
	const struct tn_run_options *options; /* of the first one */
	int wanted, count;
	struct json_t *of_run; /* the start of the outcome */
	char *modules;         /* that the first one has imported: a fork server is of its program */
	bool decided;
	int64_t peak;
	int exit_status;
	const struct tn_early *early;
};

static void
keep_outcome(struct chain *chain, const struct tn_once *once, const struct tn_report *report)
{
	char changes[PATH_MAX];
	bool fits = report->verdict == TN_VERDICT_FITS, unused = tn__used_no_card(report);
	bool better = chain->wanted > 0 ? chain->count == chain->wanted : report->device_peak > chain->peak;
	if (chain->decided || (chain->of_run != NULL && (unused || (fits && !better))))
		return;
	json_decref(chain->of_run);
	char *work = tn__work_read(&once->folder);
	chain->of_run = tn__outcome_of_run(report, chain->count, tn__folder_path(&once->folder, "changes", changes), work,
	                                   chain->modules);
	free(work);
	chain->decided = !fits && !unused;
	chain->peak = report->device_peak;
	chain->exit_status = report->exit_status;
}

static tn_status take(void *context, struct tn_once *once, int *exit_status);

/* The next command, on what the one before has left (doc/design/0035-then.md). */
static tn_status
go_on(struct chain *chain, const struct tn_folder *folder, int *exit_status)
{
	struct tn_run_options options = *chain->options;
	struct tn_command command;
	TN_FORWARD_IF_ERROR(tn__command_words(options.then[chain->count - 1], &command));
	options.arguments = command.words;
	options.then_count = chain->options->then_count - chain->count; /* those behind it */
	options.after = folder->path;
	tn_status status = tn__run_once(&options, &(struct tn_once_way){ .ended = take, .context = chain }, exit_status);
	tn__command_free(&command);
	return status;
}

/* What is known of a run while its folder stands. `context` is a struct chain. */
static tn_status
take(void *context, struct tn_once *once, int *exit_status)
{
	struct chain *chain = context;
	struct tn_report report;
	tn__once_report(once, NULL, &report);
	if (chain->count++ == 0)
		chain->modules = tn__modules_read(&once->folder);
	keep_outcome(chain, once, &report);
	tn_status status = tn__explain_misuse(&report);
	bool goes_on = status == TN_OK && chain->count <= chain->options->then_count && tn__may_go_on(&report);
	tn__report_free(&report);
	if (goes_on)
		status = go_on(chain, &once->folder, exit_status);
	*exit_status = chain->exit_status;
	return status;
}

/* `context` is a struct chain, and both are this process's own. */
static void
tell_early(void *context, struct tn_once *once)
{
	struct chain *chain = context;
	struct tn_report report;
	tn__once_report(once, NULL, &report);
	chain->count++;
	keep_outcome(chain, once, &report);
	tn__early_tell(chain->early, chain->of_run, chain->exit_status);
}

/* A fork server is no run that anybody wants to hear of. */
static tn_status
take_nothing(void *context, struct tn_once *once, int *exit_status)
{
	(void)context;
	(void)once;
	*exit_status = 0;
	return TN_OK;
}

/* ---- the process ---- */

/* The command's input, nothing out; what the program says goes where the parent can read it, or nowhere. */
static void
redirect(int kept, int said)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), input = tn__input_open(kept);
	dup2(input >= 0 ? input : nothing, STDIN_FILENO);
	if (input > STDERR_FILENO)
		close(input);
	dup2(nothing, STDOUT_FILENO);
	dup2(said >= 0 ? said : nothing, STDERR_FILENO);
	if (nothing > STDERR_FILENO)
		close(nothing);
}

/* Programs that meet through a port would meet those of other trials: each gets one that is free now. TONNAGE_PORT is for a
 * program that names its port itself (guest/_tonnage_guest/ports.py). */
static void
choose_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);
	char number[16];
	int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (handle < 0)
		return;
	if (bind(handle, (struct sockaddr *)&address, length) == 0 &&
	    getsockname(handle, (struct sockaddr *)&address, &length) == 0) {
		snprintf(number, sizeof(number), "%d", ntohs(address.sin_port));
		setenv("TONNAGE_PORT", number, 1);
		setenv("MASTER_PORT", number, 1);
		setenv("PET_MASTER_PORT", number, 1); /* torchrun's */
	}
	close(handle);
}

static void
tell_of_news(const struct tn_trial *trial)
{
	char step[24] = "", epoch[24] = "", both[48];
	if (trial->late_news != NULL) {
		setenv("TONNAGE_LAST_NEWS", "later", 1);
		return;
	}
	if (trial->news_step > 0)
		snprintf(step, sizeof(step), "%lld", (long long)trial->news_step);
	if (trial->news_epoch > 0)
		snprintf(epoch, sizeof(epoch), "%lld", (long long)trial->news_epoch);
	snprintf(both, sizeof(both), "%s,%s", step, epoch);
	setenv("TONNAGE_LAST_NEWS", both, 1);
}

/* The same program twice must be the same run twice. */
static void
choose_environment(const struct tn_trial *trial)
{
	unsetenv(TN_FORKS_VARIABLE);
	if (trial->lists_modules)
		setenv(TN_MODULES_VARIABLE, "1", 1);
	else
		unsetenv(TN_MODULES_VARIABLE);
	tell_of_news(trial);
	if (trial->patient)
		setenv("TONNAGE_PATIENT", "1", 1);
	else
		unsetenv("TONNAGE_PATIENT");
	if (trial->tells_early != NULL)
		setenv(TN_EARLY_VARIABLE, "1", 1);
	else
		unsetenv(TN_EARLY_VARIABLE);
	if (trial->changes != NULL)
		setenv("TONNAGE_CHANGES", trial->changes, 1);
	else
		unsetenv("TONNAGE_CHANGES");
	if (trial->patch != NULL)
		setenv(TN_PATCH_VARIABLE, trial->patch, 1);
	else
		unsetenv(TN_PATCH_VARIABLE);
	setenv("PYTHONHASHSEED", "0", 1);
	setenv("TONNAGE_TRIAL", "1", 1);
	setenv("OMP_WAIT_POLICY", "PASSIVE",
	       0); /* trials side by side: threads that wait for work must not take it from others */
	choose_port();
}

/* This process ends with its parent, and is the first of a group. */
static void
setup_child(int input, int said, const sigset_t *mask, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(TN_EXIT_OWN_FAILURE);
	setpgid(0, 0);
	redirect(input, said);
	sigprocmask(SIG_SETMASK, mask, NULL);
}

static struct tn_run_options
quietly(const struct tn_run_options *wanted)
{
	struct tn_run_options options = *wanted;
	options.quiet = true;
	options.allow_writes = false;
	options.json_path = options.snapshot_path = options.html_path = NULL;
	return options;
}

_Noreturn void
tn__trial_become_server(const struct tn_run_options *wanted, int channel, const sigset_t *mask, pid_t parent)
{
	struct tn_run_options options = quietly(wanted);
	const struct tn_trial nothing = { .said = -1, .server = -1 };
	const struct tn_once_way way = { .ended = take_nothing, .serves = true };
	int exit_status = TN_EXIT_OWN_FAILURE;
	char number[16];
	setup_child(0, -1, mask, parent);
	choose_environment(&nothing);
	snprintf(number, sizeof(number), "%d", channel);
	setenv(TN_FORKS_VARIABLE, number, 1);
	fcntl(channel, F_SETFD, 0);
	options.steps = "all";
	(void)tn__run_once(&options, &way, &exit_status);
	_exit(exit_status);
}

_Noreturn void
tn__trial_become(const struct tn_trial *trial, const sigset_t *mask, pid_t parent)
{
	struct tn_run_options options = quietly(&trial->options);
	int exit_status = TN_EXIT_OWN_FAILURE;
	setup_child(trial->input, trial->said, mask, parent);
	choose_environment(trial);
	struct chain chain = { .options = &options, .wanted = trial->command, .early = &trial->early };
	const struct tn_once_way way = { .ended = take,
		                             .early = trial->tells_early != NULL ? tell_early : NULL,
		                             .tells = trial->tells_early,
		                             .news = trial->late_news,
		                             .context = &chain,
		                             .forked = trial->server >= 0,
		                             .server = trial->server,
		                             .alive = trial->alive };
	tn_status status = tn__run_once(&options, &way, &exit_status);
	FILE *out = fdopen(trial->result, "w");
	const char *error = status != TN_OK ? tn_error_text() : NULL;
	bool written = out != NULL && tn__outcome_write(chain.of_run, error, exit_status, out) == TN_OK;
	_exit(written ? 0 : TN_EXIT_OWN_FAILURE);
}
