/* SPDX-License-Identifier: Apache-2.0
 *
 * serve-plan --verify: vLLM itself on a virtual card. This program starts itself (`tonnage run`) around the kit's probe, and reads the lines that
 * the probe prints. The number that is compared is a rule's: blocks for the memory that the engine found.
 */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/plain.h"
#include "inspect/serve_plan.h"

#define MARK "tonnage-serve: "
#define SECONDS "1500"

/* The paths of this binary and of the probe beside it; false where they are not there. */
static bool
find_parts(char self[PATH_MAX], char probe[PATH_MAX])
{
	char folder[PATH_MAX];
	const char *named = getenv("TONNAGE_LIB");
	ssize_t length = readlink("/proc/self/exe", self, PATH_MAX - 1);
	if (length <= 0)
		return false;
	self[length] = '\0';
	snprintf(folder, sizeof(folder), "%s", self);
	int written = named != NULL && named[0] != '\0' ? snprintf(probe, PATH_MAX, "%s/kit/serve_probe.py", named)
	                                                 : snprintf(probe, PATH_MAX, "%s/../lib/tonnage/kit/serve_probe.py", dirname(folder));
	return written < PATH_MAX && access(probe, R_OK) == 0;
}

/* vllm.LLM's arguments, which the caller frees. */
static char *
arguments_of(const struct tn_serving *serving, const char *folder)
{
	const struct tn_serve_request *request = &serving->plan.request;
	char whole[PATH_MAX];
	json_t *object = json_pack("{s:s, s:I, s:I, s:I, s:f, s:i, s:b}", "model", realpath(folder, whole) != NULL ? whole : folder, "max_model_len",
	                           (json_int_t)request->max_model_len, "max_num_seqs", (json_int_t)request->max_num_seqs, "max_num_batched_tokens",
	                           (json_int_t)request->max_num_batched_tokens, "gpu_memory_utilization", request->utilization, "tensor_parallel_size",
	                           request->gpus, "enforce_eager", request->eager);
	if (request->cache_type_name != NULL)
		json_object_set_new(object, "kv_cache_dtype", json_string(request->cache_type_name));
	if (request->cache_bytes > 0)
		json_object_set_new(object, "kv_cache_memory_bytes", json_integer((json_int_t)request->cache_bytes));
	if (request->prefix_caching)
		json_object_set_new(object, "enable_prefix_caching", json_true());
	char *text = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	return text;
}

/* The program's standard output, and its words on `log`. -1 where it cannot be started. */
static pid_t
start(char *const words[], FILE *log, FILE **output)
{
	posix_spawn_file_actions_t actions;
	pid_t child = -1;
	int ends[2];
	if (pipe2(ends, 0) != 0)
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fileno(log), STDERR_FILENO);
	posix_spawn_file_actions_addclose(&actions, ends[0]);
	posix_spawn_file_actions_addclose(&actions, ends[1]);
	int failed = posix_spawn(&child, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	*output = failed == 0 ? fdopen(ends[0], "r") : NULL;
	if (*output == NULL)
		close(ends[0]);
	errno = failed;
	return failed == 0 ? child : -1;
}

static void
read_line(const char *line, struct tn_serve_check *check)
{
	const char *at = strstr(line, MARK);
	json_t *object = at != NULL ? json_loads(at + strlen(MARK), 0, NULL) : NULL;
	const char *version = tn__json_borrow_text(object, "version");
	if (version != NULL) {
		snprintf(check->engine, sizeof(check->engine), "vLLM %s", version);
		tn__make_plain(check->engine, '?');
	}
	if (json_object_get(object, "blocks") != NULL) {
		check->blocks = tn__json_read_figure(object, "blocks");
		check->block_tokens = tn__json_read_figure(object, "block_tokens");
		check->available_bytes = tn__json_read_figure(object, "available");
	}
	check->started |= tn__json_read_truth(object, "started");
	json_decref(object);
}

/* The last line of a Python traceback, or of anything, that the program left. */
static void
read_problem(FILE *log, char problem[256])
{
	char *line = NULL;
	size_t room = 0;
	rewind(log);
	while (getline(&line, &room, log) > 0) {
		line[strcspn(line, "\n")] = '\0';
		const char *error = strstr(line, "Error: ");
		if (error != NULL && strncmp(line, "tonnage:", 8) != 0)
			snprintf(problem, 256, "%s", line);
	}
	free(line);
	tn__make_plain(problem, '?');
}

static void
compare(const struct tn_serving *serving, struct tn_serve_check *check)
{
	check->planned_blocks = tn__cache_blocks_in(&serving->plan.layout, check->available_bytes);
	check->planned_block_tokens = serving->plan.layout.block_tokens;
	check->agrees = check->blocks > 0 && check->planned_blocks == check->blocks && check->planned_block_tokens == check->block_tokens;
}

static void
watch(char *const words[], struct tn_serve_check *check)
{
	FILE *log = tmpfile(), *output = NULL;
	char *line = NULL, reason[256] = "";
	size_t room = 0;
	int status = 0;
	pid_t child = log != NULL ? start(words, log, &output) : -1;
	while (output != NULL && getline(&line, &room, output) > 0)
		read_line(line, check);
	if (child > 0)
		waitpid(child, &status, 0);
	if (log != NULL)
		read_problem(log, reason);
	if (check->blocks <= 0)
		snprintf(check->problem, sizeof(check->problem), "%.240s", reason[0] != '\0' ? reason : "the engine said nothing of its cache: is vLLM installed (--python)?");
	else if (!check->started)
		snprintf(check->problem, sizeof(check->problem), "it stopped after that: %.220s", reason[0] != '\0' ? reason : "without a word");
	free(line);
	if (output != NULL)
		fclose(output);
	if (log != NULL)
		fclose(log);
}

void
tn__serve_verify(const struct tn_serving *serving, const char *folder, const char *python, struct tn_serve_check *check)
{
	char self[PATH_MAX], probe[PATH_MAX], card[64], cards[24];
	*check = (struct tn_serve_check){ 0 };
	if (!find_parts(self, probe)) {
		snprintf(check->problem, sizeof(check->problem), "the installation is incomplete: kit/serve_probe.py was not found");
		return;
	}
	char *arguments = arguments_of(serving, folder);
	snprintf(card, sizeof(card), "--gpu=%s", serving->plan.request.gpu->figures.alias);
	snprintf(cards, sizeof(cards), "--gpus=%d", serving->plan.request.gpus);
	char *words[] = { self, "run", card, cards, "--seconds=" SECONDS, "--", (char *)(python != NULL ? python : "python3"), probe, arguments, NULL };
	if (arguments != NULL)
		watch(words, check);
	free(arguments);
	compare(serving, check);
}
