/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line that starts an engine as planned. Only what was asked for is named, not the engine's own defaults.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "serve/serve.h"

struct line {
	char *text;
	size_t length, room;
};

static void __attribute__((format(printf, 2, 3)))
append(struct line *line, const char *format, ...)
{
	va_list arguments;
	if (line->length >= line->room)
		return;
	va_start(arguments, format);
	int written = vsnprintf(line->text + line->length, line->room - line->length, format, arguments);
	va_end(arguments);
	line->length += written > 0 ? (size_t)written : 0;
}

/* A word for a shell. */
static void
append_quoted(struct line *line, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
	if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
		append(line, "%s", word);
		return;
	}
	append(line, "'");
	for (; *word != '\0'; word++)
		append(line, *word == '\'' ? "'\\''" : "%c", *word);
	append(line, "'");
}

static void
append_number(struct line *line, const char *option, int64_t asked)
{
	if (asked > 0)
		append(line, " %s %" PRId64, option, asked);
}

static void
vllm_line(struct line *line, const struct tn_serve_request *asked, const char *folder)
{
	append(line, "vllm serve ");
	append_quoted(line, folder);
	append_number(line, "--tensor-parallel-size", asked->gpus > 1 ? asked->gpus : 0);
	append_number(line, "--max-model-len", asked->max_model_len);
	append_number(line, "--max-num-seqs", asked->max_num_seqs);
	append_number(line, "--max-num-batched-tokens", asked->max_num_batched_tokens);
	append_number(line, "--kv-cache-memory-bytes", asked->cache_bytes);
	if (asked->utilization > 0)
		append(line, " --gpu-memory-utilization %.4g", asked->utilization);
	if (asked->cache_type_name != NULL)
		append(line, " --kv-cache-dtype %s", asked->cache_type_name);
	if (asked->eager)
		append(line, " --enforce-eager");
	if (asked->prefix_caching)
		append(line, " --enable-prefix-caching");
}

static void
sglang_line(struct line *line, const struct tn_serve_request *asked, const char *folder)
{
	append(line, "python -m sglang.launch_server --model-path ");
	append_quoted(line, folder);
	append_number(line, "--tp", asked->gpus > 1 ? asked->gpus : 0);
	append_number(line, "--context-length", asked->max_model_len);
	append_number(line, "--max-running-requests", asked->max_num_seqs);
	append_number(line, "--chunked-prefill-size", asked->max_num_batched_tokens);
	if (asked->utilization > 0)
		append(line, " --mem-fraction-static %.4g", asked->utilization);
	if (asked->cache_type_name != NULL)
		append(line, " --kv-cache-dtype %s", strcmp(asked->cache_type_name, "fp8") == 0 ? "fp8_e4m3" : asked->cache_type_name);
	if (asked->eager)
		append(line, " --disable-cuda-graph");
}

void
tn__serve_command(const struct tn_serve_request *asked, const char *folder, enum tn_engine engine, char *text, size_t room)
{
	struct line line = { text, 0, room };
	text[0] = '\0';
	/* A share of the card means another thing to each engine. */
	struct tn_serve_request request = *asked;
	if (engine != asked->engine)
		request.utilization = 0;
	if (engine == TN_ENGINE_VLLM)
		vllm_line(&line, &request, folder);
	else
		sglang_line(&line, &request, folder);
}
