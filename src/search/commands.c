/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands that a search runs one after the other: the program's, and those of --then. Options of the program's own are
 * set in each command that starts the same script, as a person would who resumes what was trained with them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "change/change.h"
#include "search/search.h"
#include "supervise/internal.h"

/* The script or module that a command line starts; NULL: none is seen. */
static const char *
script_of(char *const *words)
{
	for (size_t i = 0; words[i] != NULL; i++) {
		size_t length = strlen(words[i]);
		if (strcmp(words[i], "-m") == 0)
			return words[i + 1];
		if (length > 3 && strcmp(words[i] + length - 3, ".py") == 0)
			return words[i];
	}
	return NULL;
}

bool
tn__search_same_script(char *const *one, char *const *other)
{
	const char *script = script_of(one), *another = script_of(other);
	return script != NULL && another != NULL && strcmp(script, another) == 0;
}

/* Words as a shell reads them; NULL without memory. Not tn__program_quote: that one is for people, and hides secrets. */
static char *
for_shell(char *const *words)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	for (size_t i = 0; words[i] != NULL; i++) {
		if (i > 0)
			fputc(' ', out);
		tn__quote_for_shell(words[i], out);
	}
	fclose(out);
	return text;
}

/* The command with the options; NULL where it is left as it is, or without memory. */
static char *
changed(const struct tn_run_options *options, const char *text, const char *changes)
{
	struct tn_command command;
	char *made = NULL;
	if (tn__command_words(text, &command) != TN_OK)
		return NULL;
	if (tn__search_same_script(options->arguments, command.words)) {
		char **words = tn__change_command(command.words, changes);
		made = words != NULL ? for_shell(words) : NULL;
		tn__change_command_free(words);
	}
	tn__command_free(&command);
	return made;
}

void
tn__search_commands_make(const struct tn_run_options *options, const char *changes, struct tn_search_commands *out)
{
	*out = (struct tn_search_commands){ .arguments = tn__change_command(options->arguments, changes) };
	for (int i = 0; i < options->then_count; i++)
		out->then[i] = changed(options, options->then[i], changes);
}

void
tn__search_commands_set(const struct tn_search_commands *commands, struct tn_run_options *options)
{
	if (commands->arguments != NULL)
		options->arguments = commands->arguments;
	for (int i = 0; i < options->then_count; i++)
		if (commands->then[i] != NULL)
			options->then[i] = commands->then[i];
}

void
tn__search_commands_free(struct tn_search_commands *commands)
{
	tn__change_command_free(commands->arguments);
	for (int i = 0; i < TN_MOST_THEN; i++)
		free(commands->then[i]);
	*commands = (struct tn_search_commands){ .arguments = NULL };
}
