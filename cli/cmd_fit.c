/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage fit: the options, and the call.
 */
#include <getopt.h>
#include <stdio.h>

#include "command.h"
#include "options.h"
#include "outputs.h"
#include "search_options.h"
#include "tonnage/fix.h"

static const char help[] =
	"usage: tonnage fit [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
	"\n"
	"Finds the largest batch of PROGRAM that fits each card, on virtual GPUs. The batch is set through its\n"
	"data loader, or where {batch} stands in ARGUMENTS:\n"
	"\n"
	"  tonnage fit --gpu rtx3060,a100-40 -- python train.py --batch-size {batch}\n"
	"  tonnage fit --vary batch=1..64 --vary length=512..8192 -- python train.py --length {length}\n"
	"\n"
	"  --gpu NAMES      cards, separated by commas: names or aliases of tonnage gpus; auto (default): a\n"
	"                   virtual copy of this machine's GPU, else of rtx3060\n"
	"  --gpus N         how many of each, 1 to 8 (default 1)\n"
	"  --memory SIZE    total memory of a card instead of its own (12GiB, 500MiB, bytes)\n"
	"  --other SIZE     memory that other processes hold on each card\n"
	"  --margin SHARE   what must stay free: 5% of the card, for example (default 0)\n"
	"  --batch N        the batch that is wanted (default: the program's own): how to reach it, and the\n"
	"                   smallest card that holds it\n"
	"  --most N         no larger batch is tried (default 65536)\n"
	"  --vary NAME=VALUES  these values of an argument instead, where {NAME} or its option stands; may be\n"
	"                   repeated: batch=1..512 (doubled), length=512..4096:512, length=512,1024. The answer\n"
	"                   is the largest batch for each combination of the others\n"
	"  --all            with --vary: try every combination, not only those that tell the answer\n"
	"  --steps N        as for tonnage run\n"
	"  --init MODE      as for tonnage run\n"
	"  --values MODE, --weights MODE, --data MODE, --inputs ORDER  as for tonnage run\n"
	"  --cells LIST, --python PATH, --keep-going  of a notebook, as for tonnage run\n"
	"  --assume SHARE   as for tonnage run\n"
	"  --network MODE   as for tonnage run\n"
	"  --jobs N         trials side by side (default: as cores and memory bear)\n"
	"  --fresh          start Python anew for each trial, even where forking it is seen to be the same\n"
	"  --engine NAME    have trials made on a cluster that has the same files: ray, ray=ADDRESS, slurm\n"
	"  --results DIR    keep the result of each trial there, and use those that are there already\n"
	"                   (with --engine: tonnage-results)\n"
	"  --dry-run        with --engine slurm: print the array job, and do nothing\n"
	"  --json FILE      write the table as JSON (- is stdout)\n"
	"  --html FILE      write the table and the curves as a page that needs nothing but a browser\n"
	"  --quiet          no progress line and no table\n"
	"  --help           this text\n"
	"\n"
	"Ends with 0 some batch fits some card, 10 none does, 2 wrong usage, 125 a failure of tonnage itself,\n"
	"126 or 127 PROGRAM cannot be executed or was not found, else with the status of a program that fails.\n";

enum { BATCH = SEARCH_OPTIONS_END, MOST, VARY, ALL };

static const struct option long_options[] = {
	SEARCH_OPTIONS,
	{ "batch", required_argument, NULL, BATCH },
	{ "most", required_argument, NULL, MOST },
	{ "vary", required_argument, NULL, VARY },
	{ "all", no_argument, NULL, ALL },
	{ NULL, 0, NULL, 0 },
};

#define VARY_MOST 4

static int
take_batch(const char *option, int *out)
{
	*out = option_number(optarg);
	return *out < 0 ? wrong_usage("--%s is a number from 1 on, not \"%s\"", option, optarg) : 0;
}

static int
cmd_fit(int argc, char **argv)
{
	const char *vary[VARY_MOST];
	struct tn_fit_options options = { .search = search_defaults(), .vary = vary };
	int option, exit_status = TN_EXIT_OWN_FAILURE;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", long_options, NULL)) != -1) {
		int wrong;
		if (option == SEARCH_HELP)
			return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
		if (option == BATCH)
			wrong = take_batch("batch", &options.batch);
		else if (option == MOST)
			wrong = take_batch("most", &options.most);
		else if (option == VARY && options.vary_count < VARY_MOST)
			vary[options.vary_count++] = optarg, wrong = 0;
		else if (option == ALL)
			options.all = true, wrong = 0;
		else if (option == VARY)
			wrong = wrong_usage("--vary takes %d names at most", VARY_MOST);
		else
			wrong = search_option("fit", option, argv, &options.search);
		if (wrong != 0)
			return wrong;
	}
	if (optind >= argc)
		return wrong_usage("fit: no program given: tonnage fit --gpu rtx3060 -- python train.py");
	if (options.all && options.vary_count == 0)
		return wrong_usage("fit: --all needs --vary");
	options.search.run.arguments = argv + optind;
	if (has_separator(options.search.run.arguments))
		return wrong_usage(
			"fit: one program at a time: what others hold beside it is --other SIZE (::: is for tonnage run)");
	const struct output outputs[] = { { "--json", options.search.run.json_path },
		                              { "--html", options.search.run.html_path },
		                              { NULL, NULL } };
	int usage = check_outputs("fit", outputs, options.search.run.arguments);
	if (usage != 0)
		return usage;
	if (tn_fit(&options, &exit_status) != TN_OK)
		say_error("%s", tn_error_text());
	return exit_status;
}

const struct command fit_command = { "fit",    "the largest batch that fits, card by card", cmd_fit, long_options, help,
	                                 A_PROGRAM };
