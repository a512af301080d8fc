/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines by name, and the one that is a fake: its workers are processes on this machine, all at once, for tests.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/seconds.h"
#include "trials/trial_engine.h"

static const struct tn_engine_kind *const kinds[] = { &tn__engine_ray, &tn__engine_slurm, &tn__engine_processes };

tn_status
tn__trial_engine(const char *text, struct tn_engine *out)
{
	size_t length = strcspn(text, "=");
	out->argument = text[length] == '=' && text[length + 1] != '\0' ? text + length + 1 : NULL;
	out->kind = NULL;
	out->to = out->from = -1;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strlen(kinds[i]->name) == length && strncmp(kinds[i]->name, text, length) == 0)
			out->kind = kinds[i];
	TN_RETURN_IF(out->kind == NULL, TN_INVALID, "--engine is ray, ray=ADDRESS or slurm, not \"%s\"", text);
	TN_RETURN_IF(text[length] == '=' && out->kind != &tn__engine_ray, TN_INVALID, "--engine %s takes no address",
	             out->kind->name);
	TN_RETURN_IF(out->dry_run && out->kind != &tn__engine_slurm, TN_INVALID, "--dry-run needs --engine slurm");
	ssize_t size = readlink("/proc/self/exe", out->tonnage, sizeof(out->tonnage) - 1);
	TN_RETURN_IF(size <= 0, TN_IO, "/proc is not mounted");
	out->tonnage[size] = '\0';
	sigprocmask(SIG_BLOCK, NULL, &out->mask);
	return out->kind->check(out);
}

/* ---- processes ---- */

static tn_status
check_processes(struct tn_engine *engine)
{
	(void)engine;
	return TN_OK;
}

static tn_status
open_processes(struct tn_engine *engine)
{
	engine->slots = engine->wanted_jobs > 0 ? engine->wanted_jobs : 2;
	snprintf(engine->words, sizeof(engine->words), "a fake: processes of this machine");
	return TN_OK;
}

static tn_status
submit_processes(struct tn_engine *engine, struct tn_slice *const *slices, int count)
{
	for (int i = 0; i < count; i++) {
		const char *const words[] = { engine->tonnage, "__trials", engine->store->folder, slices[i]->name, NULL };
		slices[i]->id = tn__engine_spawn(engine, words, slices[i]->name, NULL, NULL);
		TN_RETURN_IF(slices[i]->id < 0, TN_IO, "no worker can be started");
	}
	return TN_OK;
}

static tn_status
poll_processes(struct tn_engine *engine, struct tn_slice *const *slices, int count)
{
	(void)engine;
	for (int i = 0; i < count; i++)
		if (!slices[i]->over)
			slices[i]->over = waitpid((pid_t)slices[i]->id, NULL, WNOHANG) != 0;
	return TN_OK;
}

static void
close_processes(struct tn_engine *engine, struct tn_slice *const *slices, int count)
{
	(void)engine;
	for (int i = 0; i < count; i++)
		if (!slices[i]->over)
			kill((pid_t)slices[i]->id, SIGTERM);
	for (int i = 0; i < count; i++)
		if (!slices[i]->over)
			waitpid((pid_t)slices[i]->id, NULL, 0);
}

const struct tn_engine_kind tn__engine_processes = { .name = "processes",
	                                                 .settle = 0.2,
	                                                 .check = check_processes,
	                                                 .open = open_processes,
	                                                 .submit = submit_processes,
	                                                 .poll = poll_processes,
	                                                 .close = close_processes };
