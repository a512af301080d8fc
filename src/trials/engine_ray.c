/* SPDX-License-Identifier: Apache-2.0
 *
 * Ray: a driver in Python (python/tonnage/engines/ray_trials.py) hands slices to Ray as tasks. Lines go both ways:
 *
 *     to it     slice NAME
 *     from it   ready NODES CORES, nodes NODES CORES, over NAME, error WORDS
 *
 * The end of its input tells it to cancel what is out, and to end.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/plain.h"
#include "base/seconds.h"
#include "supervise/internal.h"
#include "trials/trial_engine.h"

#define SECONDS_TO_CONNECT 60
#define SECONDS_TO_END 20
#define LOG "ray"

/* ---- the Python that has ray ---- */

static bool
has_ray(const struct tn_engine *engine, const char *python)
{
	static const char question[] = "import importlib.util, sys; sys.exit(importlib.util.find_spec('ray') is None)";
	const char *const words[] = { python, "-c", question, NULL };
	char *said;
	int status = tn__engine_run(engine, words, NULL, false, &said);
	free(said);
	return status == 0;
}

/* The program's own, where it is one: what it runs in, tests run in, too. */
static const char *
find_python(const struct tn_engine *engine)
{
	const char *named = getenv("TONNAGE_RAY_PYTHON"), *program = engine->arguments[0], *slash = strrchr(program, '/');
	if (named != NULL && named[0] != '\0')
		return has_ray(engine, named) ? named : NULL;
	if (strncmp(slash != NULL ? slash + 1 : program, "python", 6) == 0 && has_ray(engine, program))
		return program;
	return has_ray(engine, "python3") ? "python3" : NULL;
}

static tn_status
check(struct tn_engine *engine)
{
	TN_RETURN_IF(
		find_python(engine) == NULL, TN_NOT_FOUND,
		"--engine ray: no Python with Ray's package was found: pip install ray, or name one in TONNAGE_RAY_PYTHON");
	return TN_OK;
}

/* ---- lines ---- */

static void
obey(struct tn_engine *engine, char *line, struct tn_slice *const *slices, int count, bool *ready, tn_status *status)
{
	int nodes, cores;
	if (sscanf(line, "ready %d %d", &nodes, &cores) == 2 || sscanf(line, "nodes %d %d", &nodes, &cores) == 2) {
		*ready = true;
		engine->slots = engine->wanted_jobs > 0 ? engine->wanted_jobs : cores > 0 ? cores : 1;
		snprintf(engine->words, sizeof(engine->words), "%d node%s, %d core%s", nodes, nodes == 1 ? "" : "s", cores,
		         cores == 1 ? "" : "s");
	} else if (strncmp(line, "over ", 5) == 0) {
		for (int i = 0; i < count; i++)
			if (strcmp(slices[i]->name, line + 5) == 0)
				slices[i]->over = true;
	} else if (strncmp(line, "error ", 6) == 0) {
		tn__make_plain(line, '?');
		*status = tn__fail(TN_STATE, "--engine ray: %s", line + 6);
	}
}

/* Takes what the driver has said; an end of it is a failure. */
static tn_status
listen(struct tn_engine *engine, struct tn_slice *const *slices, int count, bool *ready)
{
	char byte;
	tn_status status = TN_OK;
	ssize_t length;
	while (status == TN_OK && (length = read(engine->from, &byte, 1)) == 1) {
		if (byte != '\n') {
			if (engine->line_length + 1 < sizeof(engine->line))
				engine->line[engine->line_length++] = byte;
			continue;
		}
		engine->line[engine->line_length] = '\0';
		engine->line_length = 0;
		obey(engine, engine->line, slices, count, ready, &status);
	}
	if (status == TN_OK && length == 0)
		return tn__fail(TN_STATE, "--engine ray: its driver ended: %s/log/" LOG " says more", engine->store->folder);
	return status;
}

/* ---- the engine ---- */

static void
end_driver(struct tn_engine *engine)
{
	double until = tn__now() + SECONDS_TO_END;
	if (engine->pid <= 0)
		return;
	close(engine->to); /* it cancels what is out */
	close(engine->from);
	engine->to = engine->from = -1;
	while (waitpid(engine->pid, NULL, WNOHANG) == 0) {
		if (tn__now() > until)
			kill(engine->pid, SIGKILL);
		(void)poll(NULL, 0, 50);
	}
	engine->pid = 0;
	signal(SIGPIPE, engine->on_broken_pipe);
}

static tn_status
open_ray(struct tn_engine *engine)
{
	char script[PATH_MAX];
	struct tn_install install;
	const char *python = find_python(engine);
	bool ready = false;
	double until = tn__now() + SECONDS_TO_CONNECT;
	TN_FORWARD_IF_ERROR(tn__install_find(&install));
	TN_RETURN_IF(snprintf(script, sizeof(script), "%s/engines/ray_trials.py", install.libraries) >= PATH_MAX ||
	                 access(script, R_OK) != 0,
	             TN_NOT_FOUND, "the installation is incomplete: %s is missing", script);
	TN_RETURN_IF(python == NULL, TN_NOT_FOUND, "--engine ray: no Python with Ray's package was found");
	const char *const words[] = {
		python, script, engine->tonnage, engine->store->folder, engine->argument != NULL ? engine->argument : "auto",
		NULL
	};
	engine->pid = tn__engine_spawn(engine, words, LOG, &engine->to, &engine->from);
	TN_RETURN_IF(engine->pid < 0, TN_IO, "no process can be started: %s", strerror(errno));
	engine->on_broken_pipe = signal(SIGPIPE, SIG_IGN);
	tn_status status = TN_OK;
	while (status == TN_OK && !ready && tn__now() < until) {
		struct pollfd watched = { engine->from, POLLIN, 0 };
		(void)poll(&watched, 1, 250);
		status = listen(engine, NULL, 0, &ready);
	}
	if (status == TN_OK && !ready)
		status = tn__fail(TN_STATE, "--engine ray: the cluster did not answer in %d seconds", SECONDS_TO_CONNECT);
	if (status != TN_OK)
		end_driver(engine);
	return status;
}

static tn_status
submit(struct tn_engine *engine, struct tn_slice *const *slices, int count)
{
	for (int i = 0; i < count; i++)
		TN_RETURN_IF(dprintf(engine->to, "slice %s\n", slices[i]->name) < 0, TN_STATE,
		             "--engine ray: its driver ended: %s/log/" LOG " says more", engine->store->folder);
	return TN_OK;
}

static tn_status
poll_ray(struct tn_engine *engine, struct tn_slice *const *slices, int count)
{
	bool ready;
	return listen(engine, slices, count, &ready);
}

static void
close_ray(struct tn_engine *engine, struct tn_slice *const *slices, int count)
{
	(void)slices;
	(void)count;
	end_driver(engine);
}

const struct tn_engine_kind tn__engine_ray = { .name = "ray",
	                                           .settle = 5, /* as for Slurm */
	                                           .check = check,
	                                           .open = open_ray,
	                                           .submit = submit,
	                                           .poll = poll_ray,
	                                           .close = close_ray };
