/* SPDX-License-Identifier: Apache-2.0
 *
 * tn_validate: the jobs of python/tonnage/kit/jobs.py on a real card and on its virtual copy, one after another.
 *
 * A pair runs side by side, since the copy needs no card; two jobs never share the measured one. After each job the file
 * of results is written anew, so that a call that was ended early is gone on with by the next.
 */
#include "tonnage/validate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "gpu/catalogue.h"
#include "report/report.h"
#include "report/validation_text.h"
#include "search/search.h"
#include "trials/trial.h"
#include "tonnage/gpu.h"

#define MOST_JOBS 512
#define MOST_SECONDS 300 /* for one job on one side */

enum { MEASURED, COPY, SIDES };

struct job {
	char *name; /* in `listed` */
	char *arguments[4];
	struct tn_trial trial[SIDES];
	bool started[SIDES], over[SIDES];
};

struct validation {
	const struct tn_validate_options *options;
	struct tn_trials trials;
	struct tn_progress_line line;
	struct tn_run_options card[SIDES];
	struct tn_gpu_figures figures;
	char program[PATH_MAX], kit[PATH_MAX];
	char *listed;
	struct job *jobs;
	int count;
	bool stand_in, late;
	struct tn_validation_results *results;
	tn_status status; /* of writing, or of results that do not belong together */
	char why[512];
};

/* ---- the list ---- */

/* All that a program writes on stdout; the caller frees. NULL when it fails. */
static char *
output_of(char *const *arguments)
{
	char *text = NULL;
	size_t size = 0, length;
	char buffer[4096];
	int ends[2], status = -1;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return NULL;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		execv(arguments[0], arguments);
		_exit(127);
	}
	close(ends[1]);
	FILE *in = fdopen(ends[0], "r"), *out = open_memstream(&text, &size);
	while (in != NULL && out != NULL && (length = fread(buffer, 1, sizeof(buffer), in)) > 0)
		fwrite(buffer, 1, length, out);
	if (in != NULL)
		fclose(in);
	if (out != NULL)
		fclose(out);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return text;
	free(text);
	return NULL;
}

static tn_status
list_jobs(struct validation *validation)
{
	char *const arguments[] = { validation->program, validation->kit, (char *)"--list", NULL };
	validation->listed = output_of(arguments);
	bool none = validation->listed == NULL || validation->listed[0] == '\0';
	TN_RETURN_IF(none, TN_INVALID, "%s cannot run %s --list: is it a Python of 3.9 or later?", validation->program,
	             validation->kit);
	validation->jobs = calloc(MOST_JOBS, sizeof(*validation->jobs));
	TN_RETURN_IF(validation->jobs == NULL, TN_NO_MEMORY, "out of host memory");
	const char *wanted = validation->options->jobs;
	char *rest = validation->listed, *name;
	while ((name = strsep(&rest, "\n")) != NULL)
		if (name[0] != '\0' && validation->count < MOST_JOBS && (wanted == NULL || strstr(name, wanted) != NULL))
			validation->jobs[validation->count++].name = name;
	TN_RETURN_IF(validation->count == 0, TN_INVALID, "no job's name holds \"%s\": tonnage validate --list lists them",
	             wanted);
	return TN_OK;
}

/* ---- results so far ---- */

/* The row of the catalogue as this machine measures it. */
static void
measure_row(struct validation *validation)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = validation->stand_in ? NULL : open_memstream(&text, &size);
	if (out == NULL)
		return;
	bool measured = tn_gpus_probe(out) == TN_OK;
	fclose(out);
	if (measured)
		tn__validation_set_row(validation->results, text);
	free(text);
}

static tn_status
open_results(struct validation *validation)
{
	const char *path = validation->options->json_path;
	validation->results = tn__validation_new(&validation->figures, validation->stand_in);
	TN_RETURN_IF(validation->results == NULL, TN_NO_MEMORY, "out of host memory");
	if (path != NULL && access(path, F_OK) == 0)
		return tn__validation_resume(validation->results, path);
	if (path != NULL)
		TN_FORWARD_IF_ERROR(tn__check_writable(path));
	measure_row(validation);
	return TN_OK;
}

/* ---- trials ---- */

static struct tn_trial *
start(struct validation *validation, struct job *job, int side)
{
	struct tn_trial *trial = &job->trial[side];
	job->started[side] = true;
	job->arguments[0] = validation->program;
	job->arguments[1] = validation->kit;
	job->arguments[2] = job->name;
	trial->options = validation->card[side];
	trial->options.arguments = job->arguments;
	trial->keep_words = true;
	return trial;
}

static struct tn_trial *
next(void *context)
{
	struct validation *validation = context;
	double limit = validation->options->seconds;
	bool busy = false;
	validation->late = limit > 0 && tn__trials_seconds(&validation->trials) > limit;
	for (int i = 0; i < validation->count && validation->status == TN_OK; i++) {
		struct job *job = &validation->jobs[i];
		if (tn__validation_has(validation->results, job->name))
			continue;
		if (job->started[MEASURED] && !job->started[COPY])
			return start(validation, job, COPY);
		if (!job->started[MEASURED] && !busy && !validation->late)
			return start(validation, job, MEASURED);
		busy |= job->started[MEASURED] && !job->over[MEASURED];
	}
	return NULL;
}

/* Why there is nothing: the last line that the job has said. */
static const char *
why_nothing(const struct tn_trial *trial, char buffer[256])
{
	const char *words = trial->outcome.error != NULL ? trial->outcome.error : trial->words != NULL ? trial->words : "";
	size_t end = strlen(words);
	if (trial->outcome.kit != NULL)
		return NULL;
	if (trial->end == TN_TRIAL_SLOW)
		return "it took too long and was stopped";
	while (end > 0 && (words[end - 1] == '\n' || words[end - 1] == ' '))
		end--;
	size_t begin = end;
	while (begin > 0 && words[begin - 1] != '\n')
		begin--;
	snprintf(buffer, 256, "%.*s", (int)(end - begin), end > begin ? words + begin : "it ended without output");
	return buffer;
}

static void
fail(struct validation *validation, tn_status status, const char *why)
{
	validation->status = status;
	snprintf(validation->why, sizeof(validation->why), "%s", why);
}

static void
judge(struct validation *validation, struct job *job)
{
	char buffer[SIDES][256], another[512];
	const struct tn_trial *measured = &job->trial[MEASURED], *copy = &job->trial[COPY];
	const struct tn_validate_options *options = validation->options;
	if (!tn__validation_learn(validation->results, measured->outcome.kit)) {
		snprintf(another, sizeof(another), "%s holds the results of another PyTorch or card: name another file",
		         options->json_path);
		fail(validation, TN_INVALID, another);
		return;
	}
	tn_status status = tn__validation_add(validation->results, job->name, measured->outcome.kit,
	                                      why_nothing(measured, buffer[MEASURED]), copy->outcome.kit,
	                                      why_nothing(copy, buffer[COPY]));
	bool added = status == TN_OK;
	if (added)
		status = tn__validation_save(validation->results, options->json_path);
	if (status != TN_OK)
		fail(validation, status, tn_error_text());
	if (added && !options->quiet) {
		tn__progress_line_erase(&validation->line);
		(void)tn__validation_line(tn__validation_last(validation->results), tn__style_of(options->messages),
		                          options->messages);
	}
}

/* A Python without PyTorch, a card that is gone: no other job would fare better. */
static void
stop_with(struct validation *validation, const struct tn_trial *trial)
{
	fail(validation, trial->outcome.exit_status == TN_EXIT_USAGE ? TN_INVALID : TN_STATE, trial->outcome.error);
}

static void
ended(void *context, struct tn_trial *trial)
{
	struct validation *validation = context;
	if (trial->end == TN_TRIAL_FAILED && trial->outcome.error != NULL && validation->status == TN_OK)
		stop_with(validation, trial);
	for (int i = 0; i < validation->count; i++) {
		struct job *job = &validation->jobs[i];
		for (int side = 0; side < SIDES; side++)
			if (&job->trial[side] == trial)
				job->over[side] = true;
		bool whole = job->over[MEASURED] && job->over[COPY] && job->trial[MEASURED].end != TN_TRIAL_STOPPED &&
		             job->trial[COPY].end != TN_TRIAL_STOPPED;
		if ((trial == &job->trial[MEASURED] || trial == &job->trial[COPY]) && whole && validation->status == TN_OK)
			judge(validation, job);
	}
}

static void
tick(void *context)
{
	struct validation *validation = context;
	tn__progress_line_show(&validation->line, "%zu of %d jobs, %.0f s", tn__validation_count(validation->results),
	                       validation->count, tn__trials_seconds(&validation->trials));
}

/* ---- the command ---- */

static tn_status
choose_cards(struct validation *validation)
{
	const struct tn_validate_options *options = validation->options;
	struct tn_card card;
	validation->stand_in = strcmp(options->gpu, "real") != 0;
	for (int side = 0; side < SIDES; side++) {
		struct tn_run_options *run = &validation->card[side];
		*run = tn_run_defaults();
		run->gpu = validation->stand_in ? options->gpu : side == MEASURED ? "real" : "auto";
		run->steps = "all";
		run->quiet = run->no_detail = true;
	}
	TN_FORWARD_IF_ERROR(tn__card_choose(&validation->card[MEASURED], &card));
	validation->figures = card.figures;
	return TN_OK;
}

static tn_status
prepare(struct validation *validation, int *exit_status)
{
	struct tn_install install;
	*exit_status = TN_EXIT_USAGE;
	TN_FORWARD_IF_ERROR(tn__program_find(validation->options->python, validation->program, exit_status));
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_FORWARD_IF_ERROR(tn__install_find(&install));
	bool fits = snprintf(validation->kit, PATH_MAX, "%s/kit/jobs.py", install.libraries) < PATH_MAX;
	TN_RETURN_IF(!fits || access(validation->kit, R_OK) != 0, TN_NOT_FOUND, "%s is missing: install tonnage again",
	             validation->kit);
	*exit_status = TN_EXIT_USAGE;
	return list_jobs(validation);
}

static int
left(const struct validation *validation)
{
	int count = 0;
	for (int i = 0; i < validation->count; i++)
		count += !tn__validation_has(validation->results, validation->jobs[i].name);
	return count;
}

static tn_status
run_jobs(struct validation *validation, int *exit_status)
{
	TN_FORWARD_IF_ERROR(tn__trials_open(&validation->trials));
	tn_status status = tn__trials_run(&validation->trials);
	tn__progress_line_erase(&validation->line);
	int signal = validation->trials.interrupted_by;
	tn__trials_close(&validation->trials);
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_FORWARD_IF_ERROR(status);
	if (validation->status != TN_OK) {
		*exit_status = validation->status == TN_INVALID ? TN_EXIT_USAGE : TN_EXIT_OWN_FAILURE;
		return tn__fail(validation->status, "%s", validation->why);
	}
	TN_FORWARD_IF_ERROR(tn__validation_save(validation->results, validation->options->json_path));
	if (!validation->options->quiet)
		TN_FORWARD_IF_ERROR(tn__validation_summary(tn__validation_document(validation->results), left(validation),
		                                           tn__style_of(validation->options->messages),
		                                           validation->options->messages));
	*exit_status = signal != 0 ? 128 + signal : tn__validation_all_agree(validation->results) ? 0 : 1;
	return TN_OK;
}

static void
release(struct validation *validation)
{
	for (int i = 0; i < validation->count; i++)
		for (int side = 0; side < SIDES; side++)
			tn__trial_clear(&validation->jobs[i].trial[side]);
	tn__validation_free(validation->results);
	free(validation->jobs);
	free(validation->listed);
	free(validation);
}

static struct validation *
open_validation(const struct tn_validate_options *options)
{
	struct validation *validation = calloc(1, sizeof(*validation));
	if (validation == NULL)
		return NULL;
	const struct tn_run_options words = { .quiet = options->quiet, .messages = options->messages };
	validation->options = options;
	validation->line = tn__progress_line_of(&words);
	validation->trials = (struct tn_trials){ .wanted_jobs = SIDES,
		                                     .limit_seconds = MOST_SECONDS,
		                                     .context = validation,
		                                     .next = next,
		                                     .ended = ended,
		                                     .tick = tick };
	return validation;
}

tn_status
tn_validate(const struct tn_validate_options *options, int *exit_status)
{
	struct validation *validation = open_validation(options);
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_RETURN_IF(validation == NULL, TN_NO_MEMORY, "out of host memory");
	tn_status status = prepare(validation, exit_status);
	if (status == TN_OK)
		status = choose_cards(validation);
	if (status == TN_OK)
		status = open_results(validation);
	if (status == TN_OK)
		status = run_jobs(validation, exit_status);
	release(validation);
	return status;
}

tn_status
tn_validate_list(const struct tn_validate_options *options, FILE *out)
{
	int exit_status;
	struct validation *validation = open_validation(options);
	TN_RETURN_IF(validation == NULL, TN_NO_MEMORY, "out of host memory");
	tn_status status = prepare(validation, &exit_status);
	for (int i = 0; i < validation->count && status == TN_OK; i++)
		if (fprintf(out, "%s\n", validation->jobs[i].name) < 0)
			status = tn__fail(TN_IO, "the list could not be written: %s", strerror(errno));
	release(validation);
	return status;
}
