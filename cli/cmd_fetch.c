/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage fetch: what a run needs of a model on a hub, without its weights.
 */
#include <getopt.h>
#include <stdio.h>

#include "command.h"
#include "tonnage/fetch.h"
#include "tonnage/run.h" /* exit statuses */

static const char help[] =
	"usage: tonnage fetch MODEL [--revision REV] [--into DIR] [--python PATH] [--json]\n"
	"\n"
	"Fetches what a run needs of a model on a hub, and not its weights: configuration, tokenizer, and the\n"
	"headers of its safetensors files, which hold names, shapes and types. After that, tonnage run finds\n"
	"them where the program says from_pretrained(MODEL), without a network. This is the only command that\n"
	"opens the network itself, by the huggingface_hub of your Python: your token, HF_ENDPOINT, proxies.\n"
	"\n"
	"  --revision REV  branch, tag or commit (default: main)\n"
	"  --into DIR      into a new or empty folder, to be brought elsewhere: from_pretrained(DIR)\n"
	"  --python PATH   the Python that has huggingface_hub (default: python3 on the PATH)\n"
	"  --json          what was fetched as JSON\n"
	"  --help          this text\n"
	"\n"
	"Without --into the files go to Tonnage's own cache (~/.cache/tonnage/hub). The hub's cache is left\n"
	"alone: a file without its weights would break programs that run on a real card.\n"
	"\n"
	"Ends with 0 when the files are there, with 1 when nothing was fetched; one line says why.\n";

enum { REVISION = 1, INTO, PYTHON, JSON, HELP };

static const struct option long_options[] = {
	{ "revision", required_argument, NULL, REVISION },
	{ "into", required_argument, NULL, INTO },
	{ "python", required_argument, NULL, PYTHON },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static int
take_options(int argc, char **argv, struct tn_fetch_options *options, bool *help_wanted)
{
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (option == ':')
			return wrong_usage("fetch: %s needs a value (tonnage fetch --help)", argv[optind - 1]);
		if (option == '?')
			return wrong_usage("fetch: unknown option %s (tonnage fetch --help)", argv[optind - 1]);
		if (option < JSON && optarg[0] == '\0')
			return wrong_usage("fetch: a value is empty (tonnage fetch --help)");
		*help_wanted |= option == HELP;
		options->json |= option == JSON;
		options->revision = option == REVISION ? optarg : options->revision;
		options->into = option == INTO ? optarg : options->into;
		options->python = option == PYTHON ? optarg : options->python;
	}
	return 0;
}

static int
cmd_fetch(int argc, char **argv)
{
	struct tn_fetch_options options = { 0 };
	bool help_wanted = false;
	int wrong = take_options(argc, argv, &options, &help_wanted);
	if (wrong != 0)
		return wrong;
	if (help_wanted)
		return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
	if (optind != argc - 1 || argv[optind][0] == '\0')
		return wrong_usage("fetch: name one model, as from_pretrained takes it (tonnage fetch --help)");
	options.model = argv[optind];
	tn_status status = tn_fetch(&options);
	say_error("%s", tn_error_text());
	return status == TN_NOT_FOUND || status == TN_INVALID ? TN_EXIT_USAGE : TN_EXIT_OWN_FAILURE;
}

const struct command fetch_command = { "fetch",   "config, tokenizer and headers of a model on a hub, without weights",
	                                   cmd_fetch, long_options,
	                                   help,      NO_OPERAND };
