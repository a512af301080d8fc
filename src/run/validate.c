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
#include "report/validation.h"
#include "run/search.h"
#include "run/trial.h"
#include "run/validate.h"
#include "tonnage/gpu.h"

#define SCHEMA "tonnage.validate/1"
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
	json_t *document;
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
	TN_RETURN_IF(validation->count == 0, TN_INVALID,
	             "no job's name holds \"%s\": tonnage validate --list lists them", wanted);
	return TN_OK;
}

/* ---- results so far ---- */

static json_t *
results(const struct validation *validation)
{
	return json_object_get(validation->document, "jobs");
}

static bool
is_known(const struct validation *validation, const char *name)
{
	const json_t *entry;
	size_t i;
	json_array_foreach(results(validation), i, entry) {
		const char *its = json_string_value(json_object_get(entry, "job"));
		if (its != NULL && strcmp(its, name) == 0)
			return true;
	}
	return false;
}

static json_t *
new_document(const struct validation *validation)
{
	const struct tn_gpu_figures *gpu = &validation->figures;
	char capability[32];
	snprintf(capability, sizeof(capability), "%d.%d", gpu->compute_major, gpu->compute_minor);
	return json_pack("{s:s, s:s, s:{s:s, s:s, s:I, s:I}, s:b, s:n, s:n, s:n, s:n, s:[], s:n}", "schema", SCHEMA, "tonnage",
	                 TONNAGE_VERSION, "gpu", "name", gpu->name, "compute_capability", capability, "total_bytes",
	                 (json_int_t)gpu->total_bytes, "context_bytes", (json_int_t)gpu->context_bytes, "stand_in",
	                 validation->stand_in, "about", "driver", "catalogue_row", "cudnn_properties", "jobs",
	                 "summary");
}

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
	json_t *row = measured ? json_string(text) : NULL;
	if (row != NULL)
		json_object_set_new(validation->document, "catalogue_row", row);
	free(text);
}

static tn_status
go_on_with(struct validation *validation, const char *path)
{
	json_error_t error;
	json_t *document = json_load_file(path, 0, &error);
	const char *schema = json_string_value(json_object_get(document, "schema"));
	bool ours = schema != NULL && strcmp(schema, SCHEMA) == 0 && json_is_array(json_object_get(document, "jobs"));
	const json_t *gpu = json_object_get(document, "gpu"), *here = json_object_get(validation->document, "gpu");
	bool same = ours && json_equal((json_t *)gpu, (json_t *)here) &&
	            json_is_true(json_object_get(document, "stand_in")) == validation->stand_in;
	if (same) {
		json_decref(validation->document);
		validation->document = document;
		return TN_OK;
	}
	json_decref(document);
	return ours ? tn__fail(TN_INVALID, "%s holds the results of another card: name another file", path)
	            : tn__fail(TN_INVALID, "%s is there and holds no results of tonnage validate: name another file", path);
}

static tn_status
open_results(struct validation *validation)
{
	const char *path = validation->options->json_path;
	validation->document = new_document(validation);
	TN_RETURN_IF(validation->document == NULL, TN_NO_MEMORY, "out of host memory");
	if (path != NULL && access(path, F_OK) == 0)
		return go_on_with(validation, path);
	if (path != NULL)
		TN_FORWARD_IF_ERROR(tn__check_writable(path));
	measure_row(validation);
	return TN_OK;
}

/* By way of a temporary name: an interrupted call leaves what was known. */
static tn_status
save_results(struct validation *validation)
{
	const char *path = validation->options->json_path;
	char part[PATH_MAX];
	json_object_set_new(validation->document, "summary", tn__validate_summary(results(validation)));
	if (path == NULL)
		return TN_OK;
	TN_RETURN_IF(snprintf(part, sizeof(part), "%s.part", path) >= PATH_MAX, TN_INVALID, "the name is too long: %s", path);
	bool good = json_dump_file(validation->document, part, JSON_INDENT(1)) == 0 && rename(part, path) == 0;
	TN_RETURN_IF(!good, TN_IO, "%s could not be written: %s", path, strerror(errno));
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
		if (is_known(validation, job->name))
			continue;
		if (job->started[MEASURED] && !job->started[COPY])
			return start(validation, job, COPY);
		if (!job->started[MEASURED] && !busy && !validation->late)
			return start(validation, job, MEASURED);
		busy |= job->started[MEASURED] && !job->over[MEASURED];
	}
	return NULL;
}

/* What the job has written; NULL when it did not come to that. */
static const json_t *
counted(const struct tn_trial *trial)
{
	return trial->outcome.kit;
}

/* Why there is nothing: the last line that the job has said. */
static const char *
why_nothing(const struct tn_trial *trial, char buffer[256])
{
	const char *words = trial->outcome.error != NULL ? trial->outcome.error : trial->words != NULL ? trial->words : "";
	size_t end = strlen(words);
	if (counted(trial) != NULL)
		return NULL;
	if (trial->end == TN_TRIAL_SLOW)
		return "it took too long and was ended";
	while (end > 0 && (words[end - 1] == '\n' || words[end - 1] == ' '))
		end--;
	size_t begin = end;
	while (begin > 0 && words[begin - 1] != '\n')
		begin--;
	snprintf(buffer, 256, "%.*s", (int)(end - begin), end > begin ? words + begin : "it ended without a word");
	return buffer;
}

/* What only the measured card can tell: its driver, and what cuDNN says of it, so that its heuristics can be asked where
 * there is none. */
static void
keep_facts(struct validation *validation, const json_t *kit)
{
	static const char *const names[] = { "driver", "cudnn_properties" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (json_is_string(json_object_get(kit, names[i])))
			json_object_set(validation->document, names[i], json_object_get(kit, names[i]));
}

/* All results of a file are of one PyTorch. */
static void
check_about(struct validation *validation, const json_t *kit)
{
	const json_t *about = json_object_get(kit, "about"), *known = json_object_get(validation->document, "about");
	if (about == NULL || json_equal((json_t *)about, (json_t *)known))
		return;
	if (json_is_object(known)) {
		validation->status = TN_INVALID;
		snprintf(validation->why, sizeof(validation->why),
		         "%s holds the results of another PyTorch or card: name another file", validation->options->json_path);
		return;
	}
	json_object_set(validation->document, "about", (json_t *)about);
}

static void
judge(struct validation *validation, struct job *job)
{
	char buffer[SIDES][256];
	const struct tn_trial *measured = &job->trial[MEASURED], *copy = &job->trial[COPY];
	check_about(validation, counted(measured));
	if (validation->status != TN_OK)
		return;
	keep_facts(validation, counted(measured));
	json_t *entry = tn__validate_compare(job->name, counted(measured), why_nothing(measured, buffer[MEASURED]),
	                                     counted(copy), why_nothing(copy, buffer[COPY]));
	if (entry == NULL || json_array_append_new(results(validation), entry) != 0) {
		validation->status = TN_NO_MEMORY;
		snprintf(validation->why, sizeof(validation->why), "out of host memory");
		return;
	}
	validation->status = save_results(validation);
	if (validation->status != TN_OK)
		snprintf(validation->why, sizeof(validation->why), "%s", tn_error_text());
	if (!validation->options->quiet) {
		tn__progress_line_erase(&validation->line);
		(void)tn__validation_line(entry, tn__style_of(validation->options->messages), validation->options->messages);
	}
}

/* A Python without PyTorch, a card that is gone: no other job would fare better. */
static void
stop_with(struct validation *validation, const struct tn_trial *trial)
{
	validation->status = trial->outcome.exit_status == TN_EXIT_USAGE ? TN_INVALID : TN_STATE;
	snprintf(validation->why, sizeof(validation->why), "%s", trial->outcome.error);
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
	tn__progress_line_show(&validation->line, "%zu of %d jobs, %.0f s", json_array_size(results(validation)),
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
		count += !is_known(validation, validation->jobs[i].name);
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
	TN_FORWARD_IF_ERROR(save_results(validation));
	if (!validation->options->quiet)
		TN_FORWARD_IF_ERROR(tn__validation_text(validation->document, left(validation),
		                                        tn__style_of(validation->options->messages),
		                                        validation->options->messages));
	const json_t *summary = json_object_get(validation->document, "summary");
	bool agree = json_equal(json_object_get(summary, "agree"), json_object_get(summary, "jobs"));
	*exit_status = signal != 0 ? 128 + signal : agree ? 0 : 1;
	return TN_OK;
}

static void
release(struct validation *validation)
{
	for (int i = 0; i < validation->count; i++)
		for (int side = 0; side < SIDES; side++)
			tn__trial_clear(&validation->jobs[i].trial[side]);
	json_decref(validation->document);
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
	validation->trials = (struct tn_trials){ .wanted_jobs = SIDES, .limit_seconds = MOST_SECONDS, .context = validation,
		                                     .next = next, .ended = ended, .tick = tick };
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
