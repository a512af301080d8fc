/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage gpus: the catalogue, or a row measured on this machine.
 */
#include <getopt.h>
#include <stdio.h>

#include "command.h"
#include "tonnage/gpu.h"
#include "tonnage/run.h" /* exit statuses */

static const char help[] =
	"usage: tonnage gpus [--json] [NAME]\n"
	"       tonnage gpus --probe\n"
	"\n"
	"Lists the cards that tonnage run --gpu knows, or says all about one: figures, and how sure.\n"
	"\n"
	"  --json   as JSON, each figure with its source\n"
	"  --probe  measure this machine's GPU and print it as a row of the catalogue (CSV)\n"
	"  --help   this text\n";

enum { JSON = 1, PROBE, HELP };

static const struct option long_options[] = {
	{ "json", no_argument, NULL, JSON },
	{ "probe", no_argument, NULL, PROBE },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static int
finish(tn_status status)
{
	if (status == TN_OK)
		return 0;
	say_error("%s", tn_error_text());
	return status == TN_NOT_FOUND ? TN_EXIT_USAGE : TN_EXIT_OWN_FAILURE;
}

static int
cmd_gpus(int argc, char **argv)
{
	bool json = false, probe = false;
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == HELP)
			return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
		if (option != JSON && option != PROBE)
			return wrong_usage("gpus: unknown option %s (tonnage gpus --help)", argv[optind - 1]);
		json |= option == JSON;
		probe |= option == PROBE;
	}
	const char *name = optind < argc ? argv[optind] : NULL;
	if (argc - optind > 1)
		return wrong_usage("gpus: one name at most (tonnage gpus --help)");
	if (probe && (json || name != NULL))
		return wrong_usage("gpus: --probe stands alone");
	return finish(probe ? tn_gpus_probe(stdout) : tn_gpus_write(stdout, name, json));
}

const struct command gpus_command = { "gpus", "the cards that a virtual GPU can be", cmd_gpus, long_options, help,
	                                  A_CARD };
