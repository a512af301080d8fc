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

/* What a run with changes said of them. */
struct looked {
	char *patch;         /* of all of them; NULL: none */
	char unapplied[512]; /* which one no process applied, and why; "" when each was */
};

static bool
is_applied(const struct tn_change_results *results, const char *id)
{
	for (size_t i = 0; i < results->count; i++)
		for (size_t j = 0; j < results->processes[i].count; j++)
			if (strcmp(results->processes[i].items[j].id, id) == 0 && results->processes[i].items[j].applied)
				return true;
	return false;
}

static void
look_at_changes(void *context, const struct tn_folder *folder, const struct tn_report *report)
{
	struct looked *looked = context;
	char path[PATH_MAX];
	struct tn_change_results results;
	(void)report;
	(void)tn__change_results_read(tn__folder_path(folder, "changes", path), &results);
	if (results.count == 0)
		snprintf(looked->unapplied, sizeof(looked->unapplied),
		         "%s was not applied: no process of the program could take it", getenv("TONNAGE_CHANGES"));
	for (size_t i = 0; i < results.count; i++) {
		const struct tn_change_process *process = &results.processes[i];
		if (process->patch != NULL && looked->patch == NULL)
			looked->patch = strdup(process->patch);
		for (size_t j = 0; j < process->count && looked->unapplied[0] == '\0'; j++)
			if (!is_applied(&results, process->items[j].id))
				snprintf(looked->unapplied, sizeof(looked->unapplied), "%s was not applied: %s", process->items[j].id,
				         process->items[j].why_not != NULL ? process->items[j].why_not : "nothing to act on");
	}
	tn__change_results_free(&results);
}

/* As tn_run; what the changes patched goes to the file that was asked for. A change that was not applied proves nothing. */
static tn_status
run_changed(const struct tn_fix_options *options, const struct tn_run_options *run, int *exit_status)
{
	bool by_name = !tn__fix_is_number(options->apply); /* by number, the search has written the patch */
	const char *path = by_name ? options->patch_path : NULL;
	struct looked looked = { .patch = NULL };
	if (path != NULL)
		TN_FORWARD_IF_ERROR(tn__check_writable(path));
	tn_status status = tn__run_and_look(run, look_at_changes, &looked, exit_status);
	const struct tn_fix_change change = { .patch = looked.patch };
	if (status == TN_OK && path != NULL && change.patch != NULL)
		status = tn__save_to(path, run->output, patch_writer, &change);
	else if (status == TN_OK && path != NULL)
		tn__tell(run->messages, "%s has no patch: %s is not written", getenv("TONNAGE_CHANGES"), path);
	if (status == TN_OK && looked.unapplied[0] != '\0') {
		tn__tell(run->messages, "%s", looked.unapplied);
		*exit_status = *exit_status == TN_EXIT_FITS ? TN_EXIT_USAGE : *exit_status;
	}
	free(looked.patch);
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
	tn_status status = run_changed(options, &run, exit_status);
	unsetenv("TONNAGE_CHANGES");
	tn__change_command_free(arguments);
	return status;
}
