/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage clean: removes what runs have left on the disk.
 */
#include <getopt.h>
#include <stdio.h>

#include "command.h"
#include "tonnage/clean.h"
#include "tonnage/run.h" /* exit statuses */

static const char help[] =
	"usage: tonnage clean [--dry-run] [--caches] [--json]\n"
	"\n"
	"Lists and removes what your earlier runs have left in $TMPDIR (or /tmp) and /dev/shm: kept scratch\n"
	"folders, and folders of runs that were killed. Runs that are still going on are not touched.\n"
	"\n"
	"  --dry-run  list only\n"
	"  --caches   remove Tonnage's caches, too (cuDNN's answers, compiled kernels, fetched models)\n"
	"  --json     the list as JSON\n"
	"  --help     this text\n";

enum { DRY_RUN = 1, CACHES, JSON, HELP };

static const struct option long_options[] = {
	{ "dry-run", no_argument, NULL, DRY_RUN },
	{ "caches", no_argument, NULL, CACHES },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static int
cmd_clean(int argc, char **argv)
{
	struct tn_clean_options options = { .output = stdout };
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == HELP)
			return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
		if (option != DRY_RUN && option != CACHES && option != JSON)
			return wrong_usage("clean: unknown option %s (tonnage clean --help)", argv[optind - 1]);
		options.dry_run |= option == DRY_RUN;
		options.caches |= option == CACHES;
		options.json |= option == JSON;
	}
	if (optind < argc)
		return wrong_usage("clean: it takes no arguments (tonnage clean --help)");
	if (tn_clean(&options) == TN_OK)
		return 0;
	say_error("%s", tn_error_text());
	return TN_EXIT_OWN_FAILURE;
}

const struct command clean_command = { "clean",   "remove what earlier runs have left on the disk",
	                                   cmd_clean, long_options,
	                                   help,      NO_OPERAND };
