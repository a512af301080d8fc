/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage run: the options, and the call.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "options.h"
#include "outputs.h"
#include "tonnage/run.h"

static const char help[] =
	"usage: tonnage run [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
	"       tonnage run [OPTIONS] [--] NOTEBOOK.ipynb\n"
	"       tonnage run [OPTIONS] [--] PROGRAM [ARGUMENTS] ::: PROGRAM [ARGUMENTS]...\n"
	"\n"
	"Runs PROGRAM, unmodified, on a virtual GPU and says whether it fits, and if not, where and why.\n"
	"Several with ::: between them run at the same time, on the same card.\n"
	"\n"
	"  --gpu NAME       the card: a name or alias of tonnage gpus; auto (default): a virtual copy of this\n"
	"                   machine's GPU, else of rtx3060; real: the machine's own GPU, no virtual one\n"
	"  --gpus N         how many of them on each node, 1 to 8 (default 1)\n"
	"  --nodes M        how many nodes the job has; of its M x N ranks only some are run, and each of the\n"
	"                   others is taken to be like one of these\n"
	"  --ranks LIST     the ranks that are run, such as 0,1,7; default with several nodes: the first two\n"
	"                   and the last of the first node, the first of the second, and the last two\n"
	"  --memory SIZE    total memory of a card instead of its own (12GiB, 500MiB, bytes)\n"
	"  --other SIZE     memory that other processes hold on each card\n"
	"  --host SYSTEM    what the program is to run on: linux (default), windows or wsl, where a desktop\n"
	"                   holds a part of the card, and the driver goes on in the computer's memory\n"
	"  --sysmem-fallback MODE  allow (default) or forbid that, as the driver's policy does\n"
	"  --steps N        stop after N steps; auto (default): when memory has settled, at the latest after\n"
	"                   200 steps or --seconds N; all: let the program end by itself\n"
	"  --seconds N      the time limit of auto, counted after the imports (default 120)\n"
	"  --compile-seconds N  what compiling may take beside that (torch.compile, nvcc; default 900)\n"
	"  --init MODE      skip (default): leave out large random initialisation on the CPU; real: do it\n"
	"  --weights MODE   auto (default): shapes stand in for checkpoints that are headers only; shape: for\n"
	"                   whole ones, too, which are not read; real: files are read as they are\n"
	"  --data MODE      real (default); shape: images are not decoded, and data that is not there is made\n"
	"                   up from names, sizes and schemas (image files, data sets of `datasets`, MNIST\n"
	"                   and CIFAR of torchvision)\n"
	"  --inputs ORDER   as_is (default); longest: the largest batch comes first, and again after\n"
	"                   the first update; pad=N: batches of a data loader are padded to a length of N\n"
	"  --values MODE    small (default): copies up to 1 MiB keep their values; all: all copies do\n"
	"  --assume SHARE   how much is selected where only a kernel would know (masks, nonzero, unique):\n"
	"                   full (default): the most that can be; none; or a share from 0 to 1\n"
	"  --writes MODE    scratch (default): what the program writes goes to a scratch folder and changes\n"
	"                   nothing real; allow: it writes where it wants, made-up values included\n"
	"  --network MODE   closed (default): uploads and trackers are held back, and after the first kernel\n"
	"                   only hosts that were used before can be read from; allow: nothing is held back\n"
	"  --scratch SIZE   the scratch folder's limit on the disk: beyond it writing fails with ENOSPC\n"
	"  --cells LIST     of a notebook: the cells to run, in this order (1-4,4); default: all\n"
	"  --python PATH    what runs a notebook; default: its kernel's Python, else the active environment's\n"
	"  --keep-going     a cell that fails does not end the notebook\n"
	"  --then COMMAND   another command after the first one, on what that left in the scratch folder, as\n"
	"                   'python train.py --resume'; may be repeated\n"
	"  --request FILE   PROGRAM is a server: the requests of FILE (.http, .har), or a GET of an address,\n"
	"                   are sent once it listens, each of them a step; may be repeated\n"
	"  --repeat N       send all of them N times (default: until memory has settled or grows for certain)\n"
	"  --json FILE      write the report as JSON (- is stdout)\n"
	"  --html FILE      write the report as a page that needs nothing but a browser\n"
	"  --snapshot FILE  write PyTorch's memory snapshot of the peak or of the out-of-memory\n"
	"  --host-memory SIZE  the computer's own memory: what all processes of the run hold of it at once\n"
	"                   (workers, pinned memory, /dev/shm) may not be above this\n"
	"  --budget SIZE    the device's peak may not be above this\n"
	"  --baseline FILE  nor above that of an earlier run\n"
	"  --tolerance SHARE  by more than this (default 1%)\n"
	"  --write-baseline FILE  write this run's peak and what made it, for --baseline\n"
	"  --no-detail      leave out what every byte is for: categories, lines, growth\n"
	"  --quiet          no progress line and no report\n"
	"  --help           this text\n"
	"\n"
	"Ends with 0 fits, 10 out of memory, now or since memory only grows, or spilled, 11 above the\n"
	"budget, the baseline or the computer's memory, 12 undecided (nothing decisive was seen), 2 wrong\n"
	"usage, 125 a failure of tonnage itself, 126 or 127 PROGRAM cannot be executed or was not found,\n"
	"else with the program's own status.\n";

enum {
	GPU = 1,
	GPUS,
	MEMORY,
	OTHER,
	NODES,
	RANKS,
	HOST,
	SYSMEM_FALLBACK,
	STEPS,
	INPUTS,
	SECONDS,
	COMPILE_SECONDS,
	INIT,
	VALUES,
	ASSUME,
	WEIGHTS,
	DATA,
	WRITES,
	NETWORK,
	CELLS,
	PYTHON,
	KEEP_GOING,
	THEN,
	REQUEST,
	REPEAT,
	JSON,
	HTML,
	SNAPSHOT,
	HOST_MEMORY,
	BUDGET,
	BASELINE,
	TOLERANCE,
	WRITE_BASELINE,
	NO_DETAIL,
	SCRATCH,
	QUIET,
	HELP
};

static const struct option long_options[] = {
	{ "gpu", required_argument, NULL, GPU },
	{ "gpus", required_argument, NULL, GPUS },
	{ "nodes", required_argument, NULL, NODES },
	{ "ranks", required_argument, NULL, RANKS },
	{ "memory", required_argument, NULL, MEMORY },
	{ "other", required_argument, NULL, OTHER },
	{ "host", required_argument, NULL, HOST },
	{ "sysmem-fallback", required_argument, NULL, SYSMEM_FALLBACK },
	{ "seconds", required_argument, NULL, SECONDS },
	{ "compile-seconds", required_argument, NULL, COMPILE_SECONDS },
	{ "steps", required_argument, NULL, STEPS },
	{ "init", required_argument, NULL, INIT },
	{ "assume", required_argument, NULL, ASSUME },
	{ "weights", required_argument, NULL, WEIGHTS },
	{ "data", required_argument, NULL, DATA },
	{ "inputs", required_argument, NULL, INPUTS },
	{ "values", required_argument, NULL, VALUES },
	{ "writes", required_argument, NULL, WRITES },
	{ "network", required_argument, NULL, NETWORK },
	{ "cells", required_argument, NULL, CELLS },
	{ "python", required_argument, NULL, PYTHON },
	{ "keep-going", no_argument, NULL, KEEP_GOING },
	{ "then", required_argument, NULL, THEN },
	{ "request", required_argument, NULL, REQUEST },
	{ "repeat", required_argument, NULL, REPEAT },
	{ "json", required_argument, NULL, JSON },
	{ "html", required_argument, NULL, HTML },
	{ "snapshot", required_argument, NULL, SNAPSHOT },
	{ "host-memory", required_argument, NULL, HOST_MEMORY },
	{ "budget", required_argument, NULL, BUDGET },
	{ "baseline", required_argument, NULL, BASELINE },
	{ "tolerance", required_argument, NULL, TOLERANCE },
	{ "write-baseline", required_argument, NULL, WRITE_BASELINE },
	{ "scratch", required_argument, NULL, SCRATCH },
	{ "no-detail", no_argument, NULL, NO_DETAIL },
	{ "quiet", no_argument, NULL, QUIET },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

/* Several programs share a card; what speaks of one is not for them. */
static int
check_several(struct tn_run_options *options)
{
	options->several = has_separator(options->arguments);
	if (!options->several)
		return 0;
	if (options->then_count > 0 || options->request_count > 0)
		return wrong_usage("run: --then and --request speak of one program: leave ::: out");
	if (options->nodes > 1 || options->ranks != NULL)
		return wrong_usage("run: --nodes and --ranks speak of one program: leave ::: out");
	if (options->baseline_path != NULL || options->write_baseline_path != NULL)
		return wrong_usage("run: --baseline and --write-baseline speak of one program: leave ::: out");
	return 0;
}

/* One case an option, so that it is as long as there are options. */
static int
take_option(int option, char **argv, struct tn_run_options *out)
{
	switch (option) {
	case GPU:
		out->gpu = optarg;
		return 0;
	case GPUS:
		return option_count("gpus", TN_RUN_GPUS, &out->gpus);
	case NODES:
		return option_count("nodes", TN_RUN_NODES, &out->nodes);
	case RANKS:
		out->ranks = optarg;
		return 0;
	case STEPS:
		return option_steps(&out->steps);
	case SECONDS:
		return option_seconds("seconds", false, &out->seconds);
	case COMPILE_SECONDS:
		return option_seconds("compile-seconds", true, &out->compile_seconds);
	case MEMORY:
		return option_size("memory", false, &out->memory_bytes);
	case OTHER:
		out->other_told = true;
		return option_size("other", true, &out->other_bytes);
	case HOST:
		return option_system(&out->system);
	case SYSMEM_FALLBACK:
		return option_word("sysmem-fallback", "allow", "forbid", &out->forbid_fallback);
	case INIT:
		return option_word("init", "skip", "real", &out->real_initialization);
	case VALUES:
		return option_word("values", "small", "all", &out->all_values);
	case WEIGHTS:
		return option_weights(&out->weights);
	case DATA:
		return option_word("data", "real", "shape", &out->data_shape);
	case INPUTS:
		return option_inputs(&out->inputs);
	case ASSUME:
		return option_assume(&out->assume);
	case WRITES:
		return option_word("writes", "scratch", "allow", &out->allow_writes);
	case NETWORK:
		return option_word("network", "closed", "allow", &out->allow_network);
	case SCRATCH:
		return option_size("scratch", false, &out->scratch_bytes);
	case CELLS:
		return option_cells(&out->cells);
	case PYTHON:
		out->python = optarg;
		return 0;
	case KEEP_GOING:
		out->keep_going = true;
		return 0;
	case THEN:
		return option_then("run", out);
	case REQUEST:
		return option_request("run", out);
	case REPEAT:
		return option_count("repeat", TN_RUN_ROUNDS, &out->repeat);
	case JSON:
		out->json_path = optarg;
		return 0;
	case HTML:
		out->html_path = optarg;
		return 0;
	case SNAPSHOT:
		out->snapshot_path = optarg;
		return 0;
	case HOST_MEMORY:
		return option_size("host-memory", false, &out->host_memory_bytes);
	case BUDGET:
		return option_size("budget", false, &out->budget_bytes);
	case BASELINE:
		out->baseline_path = optarg;
		return 0;
	case TOLERANCE:
		return option_share("tolerance", &out->tolerance);
	case WRITE_BASELINE:
		out->write_baseline_path = optarg;
		return 0;
	case NO_DETAIL:
		out->no_detail = true;
		return 0;
	case QUIET:
		out->quiet = true;
		return 0;
	case ':':
		return wrong_usage("run: %s needs a value (tonnage run --help)", argv[optind - 1]);
	default:
		return wrong_usage("run: unknown option %s (tonnage run --help)", argv[optind - 1]);
	}
}

static int
cmd_run(int argc, char **argv)
{
	struct tn_run_options options = tn_run_defaults();
	int option, exit_status = TN_EXIT_OWN_FAILURE;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", long_options, NULL)) != -1) {
		if (option == HELP)
			return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
		int wrong = take_option(option, argv, &options);
		if (wrong != 0)
			return wrong;
	}
	if (optind >= argc)
		return wrong_usage("run: no program given: tonnage run --gpu rtx3060 -- python train.py");
	if (options.tolerance >= 0 && options.baseline_path == NULL)
		return wrong_usage("run: --tolerance goes with --baseline FILE");
	if (options.then_count > 0 && (options.baseline_path != NULL || options.write_baseline_path != NULL))
		return wrong_usage("run: --baseline and --write-baseline speak of one command: leave --then out");
	if (options.forbid_fallback && options.system == TN_SYSTEM_LINUX)
		return wrong_usage("run: --sysmem-fallback goes with --host windows or wsl");
	int with_requests = check_requests("run", &options);
	if (with_requests != 0)
		return with_requests;
	options.arguments = argv + optind;
	int together = check_several(&options);
	if (together != 0)
		return together;
	const struct output outputs[] = { { "--json", options.json_path },
		                              { "--html", options.html_path },
		                              { "--snapshot", options.snapshot_path },
		                              { "--write-baseline", options.write_baseline_path },
		                              { NULL, NULL } };
	int wrong = check_outputs("run", outputs, options.arguments);
	if (wrong != 0)
		return wrong;
	if (tn_run(&options, &exit_status) != TN_OK)
		say_error("%s", tn_error_text());
	return exit_status;
}

const struct command run_command = { "run",   "run a program on a virtual GPU: does it fit, and if not, where",
	                                 cmd_run, long_options,
	                                 help,    A_PROGRAM };
