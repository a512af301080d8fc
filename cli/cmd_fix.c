/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage fix: the options, and the call.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "options.h"
#include "outputs.h"
#include "search_options.h"
#include "tonnage/fix.h"

static const char help[] =
	"usage: tonnage fix [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
	"\n"
	"Tries changes to PROGRAM on a virtual GPU and lists those that make it fit, best first.\n"
	"\n"
	"  --gpu NAME       the card: a name or alias of tonnage gpus; auto (default): a virtual copy of this\n"
	"                   machine's GPU, else of rtx3060\n"
	"  --gpus N         how many of them, 1 to 8 (default 1)\n"
	"  --memory SIZE    total memory of a card instead of its own (12GiB, 500MiB, bytes)\n"
	"  --other SIZE     memory that other processes hold on each card\n"
	"  --host-memory SIZE  the computer's own memory: what all processes of the run may hold of it at once\n"
	"  --margin SHARE   what must stay free: 5% of the card, for example (default 0)\n"
	"  --apply N        run PROGRAM with the change number N of the list afterwards, on the card named,\n"
	"                   --gpu real included; --apply NAME=VALUE does it without a search\n"
	"  --patch FILE     write the first change that fits (or that of --apply) as a diff (- is stdout)\n"
	"  --steps N        as for tonnage run\n"
	"  --init MODE      as for tonnage run\n"
	"  --values MODE, --weights MODE, --data MODE, --inputs ORDER  as for tonnage run\n"
	"  --cells LIST, --python PATH, --keep-going  of a notebook, as for tonnage run\n"
	"  --then COMMAND   another command after the first one, as for tonnage run; all have to fit, and a\n"
	"                   change acts on all; may be repeated\n"
	"  --request FILE, --repeat N  PROGRAM is a server, as for tonnage run\n"
	"  --writes MODE    with --apply: as for tonnage run; trials change nothing real\n"
	"  --assume SHARE   as for tonnage run\n"
	"  --network MODE   as for tonnage run\n"
	"  --seconds N      start no trial after that, once a change fits (default 90; 0: no limit)\n"
	"  --jobs N         trials side by side (default: as cores and memory bear)\n"
	"  --fresh          start Python anew for each trial, even where forking it is seen to be the same\n"
	"  --engine NAME    have trials made on a cluster that has the same files: ray, ray=ADDRESS, slurm\n"
	"  --results DIR    keep the result of each trial there, and use those that are there already\n"
	"                   (with --engine: tonnage-results)\n"
	"  --dry-run        with --engine slurm: print the first array job, and do nothing\n"
	"  --json FILE      write the list as JSON (- is stdout)\n"
	"  --html FILE      write everything that was tried as a page that needs nothing but a browser\n"
	"  --quiet          no progress line and no list\n"
	"  --help           this text\n"
	"\n"
	"Ends with 0 something fits, 10 nothing that was tried does, 2 wrong usage (also --apply of a change\n"
	"that does not apply to PROGRAM), 125 a failure of tonnage itself, 126 or 127 PROGRAM cannot be\n"
	"executed or was not found, else with the status of a program that fails as it is.\n";

enum { APPLY = SEARCH_OPTIONS_END, PATCH };

static const struct option long_options[] = {
	SEARCH_OPTIONS,
	{ "host-memory", required_argument, NULL, SEARCH_HOST_MEMORY },
	{ "then", required_argument, NULL, SEARCH_THEN },
	{ "request", required_argument, NULL, SEARCH_REQUEST },
	{ "repeat", required_argument, NULL, SEARCH_REPEAT },
	{ "apply", required_argument, NULL, APPLY },
	{ "patch", required_argument, NULL, PATCH },
	{ NULL, 0, NULL, 0 },
};

static int
cmd_fix(int argc, char **argv)
{
	struct tn_fix_options options = { .search = search_defaults() };
	int option, exit_status = TN_EXIT_OWN_FAILURE;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", long_options, NULL)) != -1) {
		int wrong = 0;
		if (option == SEARCH_HELP)
			return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
		if (option == APPLY)
			options.apply = optarg;
		else if (option == PATCH)
			options.patch_path = optarg;
		else
			wrong = search_option("fix", option, argv, &options.search);
		if (wrong != 0)
			return wrong;
	}
	if (optind >= argc)
		return wrong_usage("fix: no program given: tonnage fix --gpu rtx3060 -- python train.py");
	if (options.apply != NULL && strcmp(options.apply, "0") == 0)
		return wrong_usage("fix: the list begins with 1");
	int with_requests = check_requests("fix", &options.search.run);
	if (with_requests != 0)
		return with_requests;
	options.search.run.arguments = argv + optind;
	if (has_separator(options.search.run.arguments))
		return wrong_usage(
			"fix: one program at a time: what others hold beside it is --other SIZE (::: is for tonnage run)");
	const struct output outputs[] = { { "--json", options.search.run.json_path },
		                              { "--html", options.search.run.html_path },
		                              { "--patch", options.patch_path },
		                              { NULL, NULL } };
	int usage = check_outputs("fix", outputs, options.search.run.arguments);
	if (usage != 0)
		return usage;
	if (tn_fix(&options, &exit_status) != TN_OK)
		say_error("%s", tn_error_text());
	return exit_status;
}

const struct command fix_command = { "fix",   "changes that make a program fit, found by trying them",
	                                 cmd_fix, long_options,
	                                 help,    A_PROGRAM };
