/* SPDX-License-Identifier: Apache-2.0
 *
 * tn_run: one run, again where that tells more, and the report of it.
 */
#include "tonnage/run.h"

#include <stdio.h>

#include "run/run_internal.h"
#include "supervise/internal.h"

struct wish { /* what is wanted of a run beside its report */
	struct tn_input input;
	tn__run_looker *look;
	void *context;
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

/* `context` is a struct wish. */
static tn_status
report_run(void *context, struct tn_once *once, int *exit_status)
{
	const struct wish *wish = context;
	const struct tn_run_options *options = once->options;
	struct tn_report report;
	collect_with_need(once, &report);
	if (wish->look != NULL)
		wish->look(wish->context, &once->folder, &report);
	tn_status status = tn__save_snapshot(options, &once->folder, &report);
	const char *scratch = report.scratch;
	tn__look_again(&(struct tn_again){ options, wish->input, report.views }, &report);
	once->keep_files = report.scratch != NULL && report.scratch == scratch; /* another run's report tells of its own */
	if (status == TN_OK)
		status = tn__save_report(options, &report);
	*exit_status = status == TN_OK ? report.exit_status : TN_EXIT_OWN_FAILURE;
	if (status == TN_OK && report.misuse != TN_MISUSE_NONE)
		status = tn__explain_misuse(&report);
	else if (status == TN_OK)
		(void)tn__print_document(&tn__run_document, &report, options);
	tn__report_free(&report);
	return status;
}

tn_status
tn__run_and_look(const struct tn_run_options *options, tn__run_looker *look, void *context, int *exit_status)
{
	struct wish wish = { tn__input_of_run(), look, context };
	return tn__run_once(options, &(struct tn_once_way){ .ended = report_run, .context = &wish }, exit_status);
}

tn_status
tn_run(const struct tn_run_options *options, int *exit_status)
{
	return tn__run_and_look(options, NULL, NULL, exit_status);
}
