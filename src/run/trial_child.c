/* SPDX-License-Identifier: Apache-2.0
 *
 * The process of a trial: a supervisor like `tonnage run` that is quiet, and writes its result into a file that
 * its parent reads. Nothing of the program reaches the terminal, and a Ctrl-C is the parent's to act on.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "run/internal.h"
#include "run/trial.h"

#define LARGEST_FILE (16 << 20)

/* ---- what the changes have told ---- */

static json_t *
read_told(const char *path)
{
	struct stat about;
	json_error_t error;
	if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > LARGEST_FILE)
		return NULL;
	json_t *document = json_load_file(path, 0, &error);
	const char *schema = json_string_value(json_object_get(document, "schema"));
	if (schema != NULL && strcmp(schema, "tonnage.changes/1") == 0)
		return document;
	json_decref(document);
	return NULL;
}

json_t *
tn__changes_read(const struct tn_folder *folder)
{
	char path[PATH_MAX], file[PATH_MAX];
	const struct dirent *item;
	json_t *all = json_array();
	DIR *listing = opendir(tn__folder_path(folder, "changes", path));
	while (listing != NULL && (item = readdir(listing)) != NULL) {
		size_t length = strlen(item->d_name);
		if (length < 6 || strcmp(item->d_name + length - 5, ".json") != 0 ||
		    snprintf(file, sizeof(file), "%s/%s", path, item->d_name) >= PATH_MAX)
			continue;
		json_t *document = read_told(file);
		if (document != NULL)
			json_array_append_new(all, document);
	}
	if (listing != NULL)
		closedir(listing);
	return all;
}

/* ---- the outcome ---- */

static json_t *
report_object(const struct tn_report *report)
{
	char *text = NULL;
	size_t size = 0;
	json_error_t error;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	tn_status status = tn__report_json(report, out);
	fclose(out);
	json_t *object = status == TN_OK ? json_loadb(text, size, 0, &error) : NULL;
	free(text);
	return object;
}

static json_t *
text_or_null(const char *text)
{
	json_t *string = text != NULL ? json_string(text) : NULL;
	return string != NULL ? string : json_null();
}

/* What a run tells of itself. `context` is a JSON object. */
static tn_status
take(void *context, struct tn_once *once, int *exit_status)
{
	struct tn_report report;
	tn__once_report(once, NULL, &report);
	*exit_status = report.exit_status;
	json_t *outcome = context, *object = report_object(&report);
	char *work = tn__work_read(&once->folder), *modules = tn__modules_read(&once->folder);
	json_object_set_new(outcome, "report", object != NULL ? object : json_null());
	json_object_set_new(outcome, "changes", tn__changes_read(&once->folder));
	json_object_set_new(outcome, "work", text_or_null(work));
	json_object_set_new(outcome, "exception", text_or_null(report.exception));
	json_object_set_new(outcome, "modules", text_or_null(modules));
	free(modules);
	free(work);
	tn_status status = tn__explain_misuse(&report);
	tn__report_free(&report);
	return status;
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

/* 0 in, nothing out; what the program says goes where the parent can read it, or nowhere. */
static void
redirect(int said)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(nothing, STDIN_FILENO);
	dup2(nothing, STDOUT_FILENO);
	dup2(said >= 0 ? said : nothing, STDERR_FILENO);
	if (nothing > STDERR_FILENO)
		close(nothing);
}

/* Programs that meet through a port would meet those of other trials: each gets one that is free now. */
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
		setenv("MASTER_PORT", number, 1);
		setenv("PET_MASTER_PORT", number, 1); /* torchrun's */
	}
	close(handle);
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
	if (trial->changes != NULL)
		setenv("TONNAGE_CHANGES", trial->changes, 1);
	else
		unsetenv("TONNAGE_CHANGES");
	setenv("PYTHONHASHSEED", "0", 1);
	setenv("TONNAGE_TRIAL", "1", 1);
	setenv("OMP_WAIT_POLICY", "PASSIVE", 0); /* trials side by side: threads that wait for work must not take it from others */
	choose_port();
}

/* This process ends with its parent, and is the first of a group. */
static void
settle(int said, const sigset_t *mask, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(TN_EXIT_OWN_FAILURE);
	setpgid(0, 0);
	redirect(said);
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
	settle(-1, mask, parent);
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
	settle(trial->said, mask, parent);
	choose_environment(trial);
	json_t *outcome = json_object();
	const struct tn_once_way way = { .ended = take, .context = outcome, .forked = trial->server >= 0,
		                             .server = trial->server, .alive = trial->alive };
	tn_status status = tn__run_once(&options, &way, &exit_status);
	if (status != TN_OK)
		json_object_set_new(outcome, "error", text_or_null(tn_error_text()));
	json_object_set_new(outcome, "exit_status", json_integer(exit_status));
	FILE *out = fdopen(trial->result, "w"); /* json_dumpfd would write word by word */
	bool written = out != NULL && json_dumpf(outcome, out, JSON_COMPACT) == 0 && fflush(out) == 0;
	_exit(written ? 0 : TN_EXIT_OWN_FAILURE);
}
