/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of --then (doc/design/0035-then.md): each is a run of its own (run/run.c, trials/trial_child.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "supervise/internal.h"

#define BLANKS " \t"

static bool
needs_shell(const char *command)
{
	static const char special[] = "\n'\"\\$`|&;<>()*?[]{}~#!";
	const char *word = command + strspn(command, BLANKS);
	size_t assigned = strcspn(word, "=");
	return strpbrk(command, special) != NULL || assigned < strcspn(word, BLANKS);
}

tn_status
tn__command_words(const char *text, struct tn_command *out)
{
	size_t count = 0;
	*out = (struct tn_command){ .text = strdup(text), .words = calloc(strlen(text) + 4, sizeof(*out->words)) };
	if (out->text == NULL || out->words == NULL) {
		tn__command_free(out);
		return tn__fail(TN_NO_MEMORY, "out of host memory");
	}
	if (needs_shell(text)) {
		static char shell[] = "sh", option[] = "-c";
		out->words[count++] = shell;
		out->words[count++] = option;
		out->words[count++] = out->text;
		return TN_OK;
	}
	char *rest = NULL;
	for (char *word = strtok_r(out->text, BLANKS, &rest); word != NULL; word = strtok_r(NULL, BLANKS, &rest))
		out->words[count++] = word;
	return TN_OK;
}

void
tn__command_free(struct tn_command *command)
{
	free(command->text);
	free(command->words);
	*command = (struct tn_command){ 0 };
}

tn_status
tn__check_commands(const struct tn_run_options *options, int *exit_status)
{
	char program[PATH_MAX];
	for (int i = 0; i < options->then_count; i++) {
		struct tn_command command;
		*exit_status = TN_EXIT_OWN_FAILURE;
		TN_FORWARD_IF_ERROR(tn__command_words(options->then[i], &command));
		tn_status status = TN_OK;
		if (!tn__is_notebook(command.words[0]))
			status = tn__program_find(command.words[0], program, exit_status);
		tn__command_free(&command);
		TN_FORWARD_IF_ERROR(status);
	}
	return TN_OK;
}
