/* SPDX-License-Identifier: Apache-2.0
 *
 * The `tonnage` command: finds the subcommand.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "tonnage/run.h" /* exit statuses */

static const char help[] =
	"usage: tonnage COMMAND ...\n"
	"\n"
	"  run       run a program on a virtual GPU: does it fit, and if not, where\n"
	"  fit       the largest batch that fits, card by card\n"
	"  fix       changes that make a program fit, found by trying them\n"
	"  gpus      the cards that a virtual GPU can be\n"
	"  explain   an out-of-memory error, from a pasted text or a log\n"
	"  report    a memory snapshot, or the JSON of a run: what held the memory\n"
	"  doctor    this machine: driver, cards, who is on them, PyTorch, limits\n"
	"  clean     remove what earlier runs have left on the disk\n"
	"  validate  is the virtual card like this machine's own? shown job by job\n"
	"\n"
	"  tonnage run --gpu rtx3060 -- python train.py\n"
	"\n"
	"tonnage COMMAND --help says more; so does the manual page tonnage-COMMAND(1).\n";

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*command)(int argc, char **argv);
	} commands[] = { { "run", cmd_run }, { "gpus", cmd_gpus }, { "explain", cmd_explain }, { "report", cmd_report },
	                 { "fix", cmd_fix }, { "fit", cmd_fit },     { "validate", cmd_validate }, { "clean", cmd_clean },
	                 { "doctor", cmd_doctor } };
	const char *name = argc > 1 ? argv[1] : "";
	if (strcmp(name, "__keeper") == 0) /* a part of a run, started by another (src/supervise/keeper.c) */
		return tn_keeper_main(argc - 1, argv + 1);
	if (strcmp(name, "__cudnn") == 0) /* another (src/supervise/helper.c) */
		return tn_cudnn_main();
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		return printf("tonnage %s\n", TONNAGE_VERSION) < 0 || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(name, commands[i].name) == 0)
			return commands[i].command(argc - 1, argv + 1);
	if (name[0] == '\0')
		return wrong_usage("no command given: try tonnage run --gpu rtx3060 -- python train.py, or tonnage --help");
	return wrong_usage("unknown command \"%s\": tonnage --help lists them", name);
}
