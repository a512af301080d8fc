/* SPDX-License-Identifier: Apache-2.0
 *
 * tn_run: one run, again where that tells more, and the report of it; or several commands, one after the other.
 */
#include "tonnage/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/run_internal.h"
#include "supervise/internal.h"
#include "verdict/executions.h"
#include "verdict/redact.h"

/* What is wanted of all commands together, and what has become of them. */
struct whole {
	const struct tn_run_options *options; /* of the first one */
	struct tn_input input;
	tn__run_looker *look;
	void *context;
	struct tn_executions executions;
	const struct tn_folder *folders[TN_MOST_EXECUTIONS];
	bool written; /* the report of all, or why there is none, has been given */
};

struct tn_run_options
tn_run_defaults(void)
{
	return (struct tn_run_options){ .gpu = "auto",
		                            .gpus = 1,
		                            .nodes = 1,
		                            .steps = "auto",
		                            .inputs = "as_is",
		                            .compile_seconds = -1,
		                            .tolerance = -1,
		                            .assume = 1,
		                            .messages = stderr,
		                            .output = stdout };
}

/* With what the program needs in all, other causes may be the right ones: all is judged anew. */
static void
collect_with_need(struct tn_once *once, struct tn_report *report)
{
	tn__once_report(once, NULL, report);
	struct tn_need need = tn__need_find(once->options, report, once->signals, &once->old_mask);
	if (need.bytes <= 0)
		return;
	tn__report_free(report);
	tn__once_report(once, &need, report);
}

/* ---- the whole ---- */

/* What is shown is the command that decides; what was written is what the last one left. */
static struct tn_report *
shown_of(struct whole *whole)
{
	struct tn_executions *executions = &whole->executions;
	struct tn_report *last = executions->reports[executions->count - 1];
	struct tn_report *shown = executions->reports[tn__deciding_execution(executions)];
	for (size_t i = 0; i + 1 < executions->count; i++) {
		free(executions->reports[i]->scratch);
		executions->reports[i]->scratch = NULL;
	}
	if (shown != last && last->scratch != NULL)
		shown->scratch = strdup(last->scratch);
	if (whole->options->then_count > 0)
		shown->executions = executions;
	return shown;
}

static tn_status
write_all(struct whole *whole, int *exit_status)
{
	struct tn_executions *executions = &whole->executions;
	const struct tn_run_options *options = whole->options;
	struct tn_report *shown = shown_of(whole);
	whole->written = true;
	const struct tn_folder *folder = whole->folders[tn__deciding_execution(executions)];
	tn_status status = tn__save_snapshot(options, folder, shown);
	for (size_t i = 0; i < executions->count; i++)
		if (executions->reports[i] != shown)
			tn__mask_paths(executions->reports[i]);
	if (status == TN_OK)
		status = tn__save_report(options, shown);
	*exit_status = status == TN_OK ? shown->exit_status : TN_EXIT_OWN_FAILURE;
	if (status == TN_OK && shown->misuse != TN_MISUSE_NONE)
		status = tn__explain_misuse(shown);
	else if (status == TN_OK)
		(void)tn__print_document(&tn__run_document, shown, options);
	return status;
}

/* ---- one command, and the next ---- */

static tn_status report_run(void *context, struct tn_once *once, int *exit_status);

/* The next command, on what the folder's scratch holds. Where it cannot be started the whole is what was seen until then. */
static tn_status
go_on(struct whole *whole, const struct tn_folder *folder, int *exit_status)
{
	struct tn_run_options options = *whole->options;
	struct tn_command command;
	TN_FORWARD_IF_ERROR(tn__command_words(options.then[whole->executions.count - 1], &command));
	options.arguments = command.words;
	options.then_count = whole->options->then_count - (int)whole->executions.count; /* those behind it */
	options.after = options.allow_writes ? NULL : folder->path;
	whole->input = tn__input_of_run();
	tn_status status = tn__run_once(&options, &(struct tn_once_way){ .ended = report_run, .context = whole },
	                                exit_status);
	tn__command_free(&command);
	return status;
}

/* `context` is a struct whole. */
static tn_status
report_run(void *context, struct tn_once *once, int *exit_status)
{
	struct whole *whole = context;
	struct tn_executions *executions = &whole->executions;
	struct tn_report report;
	tn_status status = TN_OK;
	collect_with_need(once, &report);
	if (whole->look != NULL)
		whole->look(whole->context, &once->folder, &report);
	const char *scratch = report.scratch;
	tn__look_again(&(struct tn_again){ once->options, whole->input, report.views }, &report);
	bool own = report.scratch == scratch; /* another run's report tells of its own */
	if (executions->count > 0)
		tn__report_as_follower(&report);
	whole->folders[executions->count] = &once->folder;
	executions->reports[executions->count++] = &report;
	size_t last = executions->count, left = (size_t)whole->options->then_count + 1 - last;
	bool goes_on = left > 0 && tn__may_go_on(&report);
	if (goes_on && !own)
		tn__report_cannot_be_followed(&report); /* what it left is that of a run whose folder has gone */
	goes_on = goes_on && own;
	if (goes_on)
		status = go_on(whole, &once->folder, exit_status);
	if (!whole->written) {
		int seen;
		for (size_t i = 0; i < left; i++)
			executions->not_run[executions->not_run_count++] = whole->options->then[last - 1 + i];
		tn_status written = write_all(whole, &seen);
		if (!goes_on || status == TN_OK) {
			*exit_status = seen;
			status = written;
		}
	}
	once->keep_files = report.scratch != NULL && own && last == executions->count;
	tn__report_free(&report);
	return status;
}

tn_status
tn__run_and_look(const struct tn_run_options *options, tn__run_looker *look, void *context, int *exit_status)
{
	struct whole whole = { .options = options, .input = tn__input_of_run(), .look = look, .context = context };
	TN_FORWARD_IF_ERROR(tn__check_commands(options, exit_status));
	return tn__run_once(options, &(struct tn_once_way){ .ended = report_run, .context = &whole }, exit_status);
}

tn_status
tn_run(const struct tn_run_options *options, int *exit_status)
{
	return tn__run_and_look(options, NULL, NULL, exit_status);
}
