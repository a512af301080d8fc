/* SPDX-License-Identifier: Apache-2.0
 *
 * serve-plan --verify: the engine itself on a virtual card. This program starts itself (`tonnage run`) around the kit's probe, and reads the lines
 * that the probe prints. The number that is compared is a rule's: blocks (or tokens) for the memory that the engine found.
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
	int written = named != NULL && named[0] != '\0'
	                  ? snprintf(probe, PATH_MAX, "%s/kit/serve_probe.py", named)
	                  : snprintf(probe, PATH_MAX, "%s/../lib/tonnage/kit/serve_probe.py", dirname(folder));
	return written < PATH_MAX && access(probe, R_OK) == 0;
}

static void
set_option(json_t *object, const char *option, json_t *value)
{
	char name[40];
	if (option == NULL || value == NULL) {
		json_decref(value);
		return;
	}
	snprintf(name, sizeof(name), "%s", option);
	for (char *letter = name; *letter != '\0'; letter++)
		if (*letter == '-')
			*letter = '_';
	json_object_set_new(object, name, value);
}

static json_t *
number_or_none(int64_t number)
{
	return number > 0 ? json_integer((json_int_t)number) : NULL;
}

/* A word, or a number where the engine says a number. */
static json_t *
cache_type_of(const struct tn_engine_words *words, const struct tn_serve_request *request)
{
	if (request->cache_type_name == NULL)
		return NULL;
	const char *word = tn__cache_type_word(words, request->cache_type_name);
	return word[0] >= '0' && word[0] <= '9' ? json_integer(atoi(word)) : json_string(word);
}

/* The options of the engine's own interface, which the caller frees. */
static char *
options_of(const struct tn_serving *serving)
{
	const struct tn_serve_request *request = &serving->plan.request;
	const struct tn_engine_words *words = tn__engine_words(request->engine);
	json_t *object = json_object();
	set_option(object, words->cards, json_integer(request->gpus));
	set_option(object, words->length, number_or_none(request->max_model_len));
	set_option(object, words->sequences, number_or_none(request->max_num_seqs));
	set_option(object, words->tokens, number_or_none(request->max_num_batched_tokens));
	set_option(object, words->utilization, json_real(request->utilization));
	set_option(object, words->cache_bytes, number_or_none(request->cache_bytes));
	set_option(object, words->cache_type, cache_type_of(words, request));
	set_option(object, words->eager, json_boolean(request->eager));
	set_option(object, words->prefix, request->prefix_caching ? json_true() : NULL);
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
read_line(const char *line, const char *engine, struct tn_serve_check *check)
{
	const char *at = strstr(line, MARK);
	json_t *object = at != NULL ? json_loads(at + strlen(MARK), 0, NULL) : NULL;
	const char *version = tn__json_borrow_text(object, "version");
	if (version != NULL) {
		snprintf(check->engine, sizeof(check->engine), "%s %s", engine, version);
		tn__make_plain(check->engine, '?');
	}
	if (json_object_get(object, "blocks") != NULL) {
		check->blocks = tn__json_read_figure(object, "blocks");
		check->block_tokens = tn__json_read_figure(object, "block_tokens");
		check->available_bytes = tn__json_read_figure(object, "available");
		check->states = json_integer_value(json_object_get(object, "states"));
		check->tokens_alone = tn__json_read_truth(object, "tokens_alone");
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
	struct tn_serve_plan plan = serving->plan;
	bool pools = plan.request.engine == TN_ENGINE_SGLANG;
	check->planned_states = pools && !check->tokens_alone ? tn__pools_in(&plan.layout, check->available_bytes).states
	                                                      : check->states;
	if (check->tokens_alone) /* states had their memory before */
		plan.layout.state_bytes = 0;
	check->planned_blocks = tn__serve_count(&plan, check->available_bytes);
	check->planned_block_tokens = pools ? plan.layout.page_tokens : plan.layout.block_tokens;
	check->agrees = check->blocks > 0 && check->planned_blocks == check->blocks &&
	                check->planned_block_tokens == check->block_tokens && check->planned_states == check->states;
}

static void
watch(char *const words[], const struct tn_engine_words *engine, struct tn_serve_check *check)
{
	FILE *log = tmpfile(), *output = NULL;
	char *line = NULL, reason[256] = "";
	size_t room = 0;
	int status = 0;
	pid_t child = log != NULL ? start(words, log, &output) : -1;
	while (output != NULL && getline(&line, &room, output) > 0)
		read_line(line, engine->title, check);
	if (child > 0)
		waitpid(child, &status, 0);
	if (log != NULL)
		read_problem(log, reason);
	if (check->blocks <= 0)
		snprintf(check->problem, sizeof(check->problem),
		         reason[0] != '\0' ? "%.240s" : "the engine said nothing of its cache: is %s installed (--python)?",
		         reason[0] != '\0' ? reason : engine->title);
	else if (!check->started)
		snprintf(check->problem, sizeof(check->problem), "it stopped after that: %.220s",
		         reason[0] != '\0' ? reason : "without a word");
	free(line);
	if (output != NULL)
		fclose(output);
	if (log != NULL)
		fclose(log);
}

void
tn__serve_verify(const struct tn_serving *serving, const char *folder, const char *python, struct tn_serve_check *check)
{
	char self[PATH_MAX], probe[PATH_MAX], whole[PATH_MAX], card[64], cards[24];
	const char *model = realpath(folder, whole) != NULL ? whole : folder;
	*check = (struct tn_serve_check){ 0 };
	if (!find_parts(self, probe)) {
		snprintf(check->problem, sizeof(check->problem),
		         "the installation is incomplete: kit/serve_probe.py was not found");
		return;
	}
	const struct tn_engine_words *engine = tn__engine_words(serving->plan.request.engine);
	char *options = options_of(serving);
	snprintf(card, sizeof(card), "--gpu=%s", serving->plan.request.gpu->figures.alias);
	snprintf(cards, sizeof(cards), "--gpus=%d", serving->plan.request.gpus);
	char *words[] = { self,
		              "run",
		              card,
		              cards,
		              "--seconds=" SECONDS,
		              "--",
		              (char *)(python != NULL ? python : "python3"),
		              probe,
		              (char *)engine->name,
		              (char *)model,
		              options,
		              NULL };
	if (options != NULL)
		watch(words, engine, check);
	free(options);
	compare(serving, check);
}
