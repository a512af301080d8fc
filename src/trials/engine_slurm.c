/* SPDX-License-Identifier: Apache-2.0
 *
 * Slurm: slices are the elements of an array job. Its own commands hand it in, look at it and end it; what a site wants is said by
 * sbatch's environment variables.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain.h"
#include "base/seconds.h"
#include "supervise/internal.h"
#include "trials/trial_engine.h"

#define ELEMENTS 32       /* of an array, where --jobs says nothing */
#define SECONDS_BETWEEN 3 /* two looks at the queue */

static tn_status
check(struct tn_engine *engine)
{
	char path[PATH_MAX];
	int ignored;
	engine->slots = engine->wanted_jobs > 0 ? engine->wanted_jobs : ELEMENTS;
	if (engine->dry_run)
		return TN_OK;
	TN_RETURN_IF(tn__program_find("sbatch", path, &ignored) != TN_OK, TN_NOT_FOUND,
	             "--engine slurm: sbatch was not found: run this where jobs are handed in, or see --dry-run");
	return TN_OK;
}

static tn_status
open_queue(struct tn_engine *engine)
{
	snprintf(engine->words, sizeof(engine->words), "arrays of up to %d", engine->slots);
	return TN_OK;
}

static void
quote(const char *word, FILE *out)
{
	fputc('\'', out);
	for (; *word != '\0'; word++)
		fputs(*word == '\'' ? "'\\''" : (char[2]){ *word, '\0' }, out);
	fputc('\'', out);
}

/* #SBATCH lines end at a line end and know quotes, but no escapes. */
static bool
is_plain(const char *path)
{
	return strpbrk(path, "\"\n\\") == NULL;
}

/* The job's script. The names of slices that are handed in together end in numbers that follow each other. */
static char *
script(const struct tn_engine *engine, struct tn_slice *const *slices, int count)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	fprintf(out,
	        "#!/bin/sh\n"
	        "#SBATCH --job-name=tonnage\n"
	        "#SBATCH --array=0-%d\n"
	        "#SBATCH --ntasks=1\n"
	        "#SBATCH --cpus-per-task=1\n"
	        "#SBATCH --requeue\n"
	        "#SBATCH --chdir=\"%s\"\n"
	        "#SBATCH --output=\"%s/log/slurm-%%A-%%a\"\n",
	        count - 1, engine->directory, engine->store->folder);
	fputs("exec ", out);
	quote(engine->tonnage, out);
	fputs(" __trials ", out);
	quote(engine->store->folder, out);
	const char *name = slices[0]->name, *number = strrchr(name, '-') + 1;
	fprintf(out, " %.*s$((%s + SLURM_ARRAY_TASK_ID))\n", (int)(number - name), name, number);
	fclose(out);
	return text;
}

static tn_status
submit(struct tn_engine *engine, struct tn_slice *const *slices, int count)
{
	const char *const words[] = { "sbatch", "--parsable", NULL };
	char *said = NULL;
	TN_RETURN_IF(!is_plain(engine->directory) || !is_plain(engine->store->folder), TN_INVALID,
	             "--engine slurm: a folder's name has a quote or a backslash, which #SBATCH lines cannot have");
	char *text = script(engine, slices, count);
	TN_RETURN_IF(text == NULL, TN_NO_MEMORY, "out of host memory");
	if (engine->dry_run) {
		bool good = fputs(text, engine->output) != EOF && fflush(engine->output) == 0;
		free(text);
		TN_RETURN_IF(!good, TN_IO, "the script could not be written");
		return TN_OK;
	}
	int status = tn__engine_run(engine, words, text, true, &said);
	long job = status == 0 ? strtol(said, NULL, 10) : 0;
	free(text);
	if (job <= 0) {
		char *line = said != NULL ? said : (char *)"it could not be started";
		line[strcspn(line, "\n")] = '\0';
		tn__make_plain(line, '?');
		tn_status failed = tn__fail(TN_STATE, "sbatch refuses the job: %s", line);
		free(said);
		return failed;
	}
	free(said);
	for (int i = 0; i < count; i++) {
		slices[i]->id = job;
		slices[i]->index = i;
	}
	engine->looked = tn__now();
	return TN_OK;
}

static void
mark_over(struct tn_slice *const *slices, int count, const char *listed)
{
	for (int i = 0; i < count; i++) {
		char wanted[64];
		snprintf(wanted, sizeof(wanted), "%ld\n", slices[i]->index);
		size_t length = strlen(wanted);
		bool there = false;
		for (const char *line = listed; *line != '\0' && !there; line += strcspn(line, "\n") + 1) {
			there = strncmp(line, wanted, length) == 0;
			if (line[strcspn(line, "\n")] == '\0')
				break;
		}
		slices[i]->over |= !there;
	}
}

/* A controller that does not answer says nothing of the job. */
static tn_status
poll_queue(struct tn_engine *engine, struct tn_slice *const *slices, int count)
{
	char job[32], *said;
	const char *const words[] = { "squeue", "--noheader", "--array", "--format=%K", "--jobs", job, NULL };
	if (count == 0 || tn__now() - engine->looked < SECONDS_BETWEEN)
		return TN_OK;
	engine->looked = tn__now();
	snprintf(job, sizeof(job), "%ld", slices[0]->id); /* one array at a time */
	int status = tn__engine_run(engine, words, NULL, true, &said);
	if (status == 0)
		mark_over(slices, count, said);
	else if (status > 0 && strstr(said, "Invalid job id") != NULL) /* it is over, and forgotten */
		mark_over(slices, count, "");
	free(said);
	return TN_OK;
}

static void
close_queue(struct tn_engine *engine, struct tn_slice *const *slices, int count)
{
	char job[32], *said;
	const char *const words[] = { "scancel", job, NULL };
	if (engine->dry_run || count == 0)
		return;
	snprintf(job, sizeof(job), "%ld", slices[0]->id);
	(void)tn__engine_run(engine, words, NULL, true, &said);
	free(said);
}

const struct tn_engine_kind tn__engine_slurm = { .name = "slurm",
	                                             .waits = true,
	                                             .settle = 5, /* what a network file system may take to show a file */
	                                             .check = check,
	                                             .open = open_queue,
	                                             .submit = submit,
	                                             .poll = poll_queue,
	                                             .close = close_queue };
