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

tn_status
tn__fix_write_patch(const struct tn_fix_search *search, const struct tn_fixes *fixes)
{
	const char *path = search->options->patch_path;
	const struct tn_fix_change *change = tn__fix_chosen(fixes, search->options->apply);
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

#define MOST_PARTS 16 /* changes that are looked at */

/* What a run with changes said of them, or its commands one after the other: each may apply some. */
struct looked {
	char *patch;    /* of the command that applied most of them; NULL: none */
	size_t patched; /* how many that did */
	struct {
		char id[64], why[256];
		bool applied;
	} parts[MOST_PARTS];
	size_t count;
};

static void
look_at_part(struct looked *looked, const struct tn_change_result *result)
{
	size_t at = 0;
	while (at < looked->count && strcmp(looked->parts[at].id, result->id) != 0)
		at++;
	if (at == MOST_PARTS)
		return;
	if (at == looked->count)
		snprintf(looked->parts[looked->count++].id, sizeof(looked->parts[at].id), "%s", result->id);
	looked->parts[at].applied |= result->applied;
	snprintf(looked->parts[at].why, sizeof(looked->parts[at].why), "%s",
	         result->why_not != NULL ? result->why_not : "nothing to act on");
}

static void
look_at_changes(void *context, const struct tn_folder *folder, const struct tn_report *report)
{
	struct looked *looked = context;
	char path[PATH_MAX];
	struct tn_change_results results;
	(void)report;
	(void)tn__change_results_read(tn__folder_path(folder, "changes", path), &results);
	for (size_t i = 0; i < results.count; i++) {
		const struct tn_change_process *process = &results.processes[i];
		size_t applied = 0;
		for (size_t j = 0; j < process->count; j++) {
			look_at_part(looked, &process->items[j]);
			applied += process->items[j].applied;
		}
		if (process->patch != NULL && applied > looked->patched) {
			free(looked->patch);
			looked->patch = strdup(process->patch);
			looked->patched = applied;
		}
	}
	tn__change_results_free(&results);
}

/* Says which change no process applied; false where each was applied by some. */
static bool
say_unapplied(const struct looked *looked, FILE *messages)
{
	for (size_t i = 0; i < looked->count; i++)
		if (!looked->parts[i].applied) {
			tn__tell(messages, "%s was not applied: %s", looked->parts[i].id, looked->parts[i].why);
			return true;
		}
	if (looked->count == 0)
		tn__tell(messages, "%s was not applied: no process of the program could take it", getenv("TONNAGE_CHANGES"));
	return looked->count == 0;
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
	if (status == TN_OK && say_unapplied(&looked, run->messages) && *exit_status == TN_EXIT_FITS)
		*exit_status = TN_EXIT_USAGE;
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
	struct tn_search_commands commands;
	tn__search_commands_make(&options->search.run, changes, &commands);
	TN_RETURN_IF(commands.arguments == NULL, TN_NO_MEMORY, "out of host memory");
	tn__search_commands_set(&commands, &run);
	setenv("TONNAGE_CHANGES", changes, 1);
	if (!run.quiet)
		tn__tell(run.messages, "running with %s", changes);
	tn_status status = run_changed(options, &run, exit_status);
	unsetenv("TONNAGE_CHANGES");
	tn__search_commands_free(&commands);
	return status;
}
