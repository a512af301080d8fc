/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage validate: the options, and the call.
 */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "options.h"
#include "outputs.h"
#include "tonnage/run.h" /* exit statuses */
#include "tonnage/validate.h"

static const char help[] =
	"usage: tonnage validate [OPTIONS] [PYTHON]\n"
	"\n"
	"Runs small jobs on this machine's GPU and on its virtual copy, with the PyTorch of PYTHON (default:\n"
	"python3), and compares what PyTorch and the driver counted: every counter of memory_stats(), the sizes\n"
	"of all segments in their order, cuDNN's workspaces, the bytes of the process.\n"
	"\n"
	"  --json FILE    keep the results; when FILE is there, go on with the jobs that it lacks\n"
	"  --jobs TEXT    only the jobs whose name holds TEXT\n"
	"  --minutes N    no job is started later (default 9; 0: no limit)\n"
	"  --gpu NAME     let a virtual card of that name stand in for the real one, to try the kit\n"
	"  --list         the names of the jobs\n"
	"  --quiet        no line for each job, and no counts\n"
	"  --help         this text\n"
	"\n"
	"Ends with 0 all that ran agree, 1 something differs, 2 wrong usage, 125 a failure of tonnage itself.\n";

enum { JSON = 1, JOBS, MINUTES, GPU, LIST, QUIET, HELP };

static const struct option long_options[] = {
	{ "json", required_argument, NULL, JSON },
	{ "jobs", required_argument, NULL, JOBS },
	{ "minutes", required_argument, NULL, MINUTES },
	{ "gpu", required_argument, NULL, GPU },
	{ "list", no_argument, NULL, LIST },
	{ "quiet", no_argument, NULL, QUIET },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static int
take_minutes(double *seconds)
{
	int minutes = strcmp(optarg, "0") == 0 ? 0 : option_number(optarg);
	if (minutes < 0)
		return wrong_usage("--minutes is a number of 0 or more, not \"%s\"", optarg);
	*seconds = 60.0 * minutes;
	return 0;
}

static int
take_option(int option, char **argv, struct tn_validate_options *out, bool *list)
{
	switch (option) {
	case JSON:
		out->json_path = optarg;
		return 0;
	case JOBS:
		out->jobs = optarg;
		return 0;
	case MINUTES:
		return take_minutes(&out->seconds);
	case GPU:
		out->gpu = optarg;
		return 0;
	case LIST:
		*list = true;
		return 0;
	case QUIET:
		out->quiet = true;
		return 0;
	case ':':
		return wrong_usage("validate: %s needs a value (tonnage validate --help)", argv[optind - 1]);
	default:
		return wrong_usage("validate: unknown option %s (tonnage validate --help)", argv[optind - 1]);
	}
}

static int
cmd_validate(int argc, char **argv)
{
	struct tn_validate_options options = { .gpu = "real", .python = "python3", .seconds = 9 * 60, .messages = stderr };
	bool list = false;
	int option, exit_status = TN_EXIT_USAGE;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (option == HELP)
			return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
		int wrong = take_option(option, argv, &options, &list);
		if (wrong != 0)
			return wrong;
	}
	if (argc - optind > 1)
		return wrong_usage("validate: one Python at most (tonnage validate --help)");
	if (optind < argc)
		options.python = argv[optind];
	const struct output outputs[] = { { "--json", options.json_path }, { NULL, NULL } };
	char *inputs[] = { (char *)(uintptr_t)options.python, NULL };
	int usage = check_outputs("validate", outputs, inputs);
	if (usage != 0)
		return usage;
	tn_status status = list ? tn_validate_list(&options, stdout) : tn_validate(&options, &exit_status);
	if (status != TN_OK)
		say_error("%s", tn_error_text());
	return list && status == TN_OK ? 0 : exit_status;
}

const struct command validate_command = { "validate",   "is the virtual card like this machine's own? shown job by job",
	                                      cmd_validate, long_options,
	                                      help,         A_FILE };
