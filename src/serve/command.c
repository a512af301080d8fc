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
	if (option != NULL && asked > 0)
		append(line, " --%s %" PRId64, option, asked);
}

static void
append_flag(struct line *line, const char *option, bool asked)
{
	if (option != NULL && asked)
		append(line, " --%s", option);
}

const char *
tn__cache_type_word(const struct tn_engine_words *words, const char *name)
{
	if (words->fp8 != NULL && (strcmp(name, "fp8") == 0 || strcmp(name, "fp8_e4m3") == 0))
		return words->fp8;
	return words->fp8_e5m2 != NULL && strcmp(name, "fp8_e5m2") == 0 ? words->fp8_e5m2 : name;
}

/* LMDeploy has a word for 8 bits alone; 16 are its default. */
static bool
says_cache_type(const struct tn_engine_words *words, const struct tn_serve_request *asked)
{
	return asked->cache_type_name != NULL && (asked->cache_type == TN_CACHE_TYPE_8 || words->fp8_e5m2 == NULL);
}

void
tn__serve_command(const struct tn_serve_request *asked, const char *folder, enum tn_engine engine, char *text,
                  size_t room)
{
	const struct tn_engine_words *words = tn__engine_words(engine);
	struct line line = { text, 0, room };
	text[0] = '\0';
	append(&line, "%s ", words->command);
	append_quoted(&line, folder);
	append_number(&line, words->cards, asked->gpus > 1 ? asked->gpus : 0);
	append_number(&line, words->length, asked->max_model_len);
	append_number(&line, words->sequences, asked->max_num_seqs);
	append_number(&line, words->tokens, asked->max_num_batched_tokens);
	append_number(&line, words->cache_bytes, asked->cache_bytes);
	if (asked->utilization > 0 && engine == asked->engine) /* a share of the card means another thing to each engine */
		append(&line, " --%s %.4g", words->utilization, asked->utilization);
	if (says_cache_type(words, asked))
		append(&line, " --%s %s", words->cache_type, tn__cache_type_word(words, asked->cache_type_name));
	append_flag(&line, words->eager, asked->eager);
	append_flag(&line, words->prefix, asked->prefix_caching);
}
