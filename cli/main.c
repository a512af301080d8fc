/* SPDX-License-Identifier: Apache-2.0
 *
 * The `tonnage` command: finds the subcommand.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "tonnage/fix.h"
#include "tonnage/run.h" /* exit statuses */

/* In the order of --help. */
static const struct command *const all_commands[] = { &run_command,
	                                                  &fit_command,
	                                                  &fix_command,
	                                                  &gpus_command,
	                                                  &explain_command,
	                                                  &report_command,
	                                                  &doctor_command,
	                                                  &fetch_command,
	                                                  &clean_command,
	                                                  &validate_command,
	                                                  &serve_plan_command,
	                                                  &completion_command,
	                                                  NULL };

static int
print_help(void)
{
	fputs("usage: tonnage COMMAND ...\n\n", stdout);
	for (const struct command *const *command = all_commands; *command != NULL; command++)
		printf("  %-10s %s\n", (*command)->name, (*command)->summary);
	fputs("\n"
	      "  tonnage run --gpu rtx3060 -- python train.py\n"
	      "\n"
	      "tonnage COMMAND --help says more; so does the manual page tonnage-COMMAND(1).\n",
	      stdout);
	return fflush(stdout) != 0 || ferror(stdout) ? TN_EXIT_OWN_FAILURE : 0;
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (strcmp(name, "__reaper") == 0) /* a part of a run, started by another (src/supervise/reaper.c) */
		return tn_reaper_main(argc - 1, argv + 1);
	if (strcmp(name, "__cudnn") == 0) /* another (src/supervise/helper.c) */
		return tn_cudnn_main();
	if (strcmp(name, "__trials") == 0) /* a worker of --engine (src/trials/worker.c) */
		return tn_worker_main(argc - 1, argv + 1);
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		return printf("tonnage %s\n", TONNAGE_VERSION) < 0 || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		return print_help();
	completed_commands = all_commands;
	for (const struct command *const *command = all_commands; *command != NULL; command++)
		if (strcmp(name, (*command)->name) == 0)
			return (*command)->run(argc - 1, argv + 1);
	if (name[0] == '\0')
		return wrong_usage("no command given: try tonnage run --gpu rtx3060 -- python train.py, or tonnage --help");
	return wrong_usage("unknown command \"%s\": tonnage --help lists them", name);
}
