/* SPDX-License-Identifier: Apache-2.0
 *
 * One change of the list, or one that was named: its patch, and the program run with it.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain.h"
#include "run/run_internal.h"
#include "search/fix_search.h"
#include "supervise/internal.h"

static tn_status
patch_writer(const void *what, FILE *out)
{
	const struct tn_fix_change *change = what;
	TN_RETURN_IF(fputs(change->patch, out) == EOF, TN_IO, "the patch could not be written: %s", strerror(errno));
	return TN_OK;
}

const struct tn_fix_change *
tn__fix_chosen(const struct tn_fixes *fixes, const char *number)
{
	int wanted = number != NULL ? atoi(number) : 1, seen = 0;
	for (size_t i = 0; i < fixes->change_count; i++)
		if (fixes->changes[i].end == TN_FIX_FITS && ++seen == wanted)
			return &fixes->changes[i];
	return NULL;
}

static const struct tn_fix_change *
first_with_patch(const struct tn_fixes *fixes)
{
	for (size_t i = 0; i < fixes->change_count; i++)
		if (fixes->changes[i].end == TN_FIX_FITS && fixes->changes[i].patch != NULL)
			return &fixes->changes[i];
	return NULL;
}

tn_status
tn__fix_write_patch(const struct tn_fix_search *search, const struct tn_fixes *fixes)
{
	const char *path = search->options->patch_path;
	const struct tn_fix_change *change = search->options->apply != NULL ? tn__fix_chosen(fixes, search->options->apply)
	                                                                    : first_with_patch(fixes);
	if (path == NULL)
		return TN_OK;
	if (change == NULL || change->patch == NULL) {
		tn__tell(search->options->search.run.messages, "%s has no patch: %s is not written",
		         change != NULL ? change->changes : "what fits", path);
		return TN_OK;
	}
	return tn__save_to(path, search->options->search.run.output, patch_writer, change);
}

bool
tn__fix_is_number(const char *text)
{
	return text != NULL && text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* `context` is a char *: the patch that a change made of the program. */
static void
take_patch(void *context, const struct tn_folder *folder, const struct tn_report *report)
{
	char **patch = context;
	char path[PATH_MAX];
	struct tn_change_results results;
	(void)report;
	(void)tn__change_results_read(tn__folder_path(folder, "changes", path), &results);
	for (size_t i = 0; i < results.count; i++)
		if (results.processes[i].patch != NULL && *patch == NULL)
			*patch = strdup(results.processes[i].patch);
	tn__change_results_free(&results);
}

/* As tn_run; what the changes patched goes to the file that was asked for. */
static tn_status
run_for_patch(const struct tn_fix_options *options, const struct tn_run_options *run, int *exit_status)
{
	struct tn_fix_change change = { .patch = NULL };
	TN_FORWARD_IF_ERROR(tn__check_writable(options->patch_path));
	tn_status status = tn__run_and_look(run, take_patch, &change.patch, exit_status);
	if (status == TN_OK && change.patch != NULL)
		status = tn__save_to(options->patch_path, run->output, patch_writer, &change);
	else if (status == TN_OK)
		tn__tell(run->messages, "%s has no patch: %s is not written", getenv("TONNAGE_CHANGES"), options->patch_path);
	free(change.patch);
	return status;
}

tn_status
tn__fix_apply(const struct tn_fix_options *options, const char *changes, int *exit_status)
{
	struct tn_run_options run = options->search.run;
	run.json_path = run.html_path = NULL;
	if (strcmp(changes, TN_CHANGE_WITHOUT_OTHERS) == 0) {
		run.other_bytes = 0;
		return tn_run(&run, exit_status);
	}
	char **arguments = tn__change_command(run.arguments, changes);
	TN_RETURN_IF(arguments == NULL, TN_NO_MEMORY, "out of host memory");
	run.arguments = arguments;
	setenv("TONNAGE_CHANGES", changes, 1);
	if (!run.quiet)
		tn__tell(run.messages, "running with %s", changes);
	bool by_name = options->patch_path != NULL &&
	               !tn__fix_is_number(options->apply); /* by number, the search has written it */
	tn_status status = by_name ? run_for_patch(options, &run, exit_status) : tn_run(&run, exit_status);
	unsetenv("TONNAGE_CHANGES");
	tn__change_command_free(arguments);
	return status;
}
