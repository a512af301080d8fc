/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage doctor: what stands between CUDA programs and the cards of this machine.
 */
#include <getopt.h>
#include <stdio.h>

#include "command.h"
#include "tonnage/doctor.h"
#include "tonnage/run.h" /* exit statuses */

#define FOUND 1

static const char help[] =
	"usage: tonnage doctor [--python PATH] [--json]\n"
	"\n"
	"Looks at the driver, the cards, who holds their memory, the toolkit, the PyTorch of a Python, the\n"
	"environment and the limits of this machine, and says what keeps CUDA programs from running well, what\n"
	"follows from it and what to do. It starts nothing, needs no PyTorch and changes nothing.\n"
	"\n"
	"  --python PATH  the Python whose torch is looked at (default: python3 on the PATH)\n"
	"  --json         as JSON\n"
	"  --help         this text\n"
	"\n"
	"Ends with 0 when nothing was found, or hints only; with 1 after an error or a warning.\n";

enum { PYTHON = 1, JSON, HELP };

static const struct option long_options[] = {
	{ "python", required_argument, NULL, PYTHON },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static int
cmd_doctor(int argc, char **argv)
{
	struct tn_doctor_options options = { .output = stdout };
	bool found = false;
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (option == HELP)
			return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
		if (option == ':')
			return wrong_usage("doctor: %s needs a path (tonnage doctor --help)", argv[optind - 1]);
		if (option != PYTHON && option != JSON)
			return wrong_usage("doctor: unknown option %s (tonnage doctor --help)", argv[optind - 1]);
		if (option == PYTHON)
			options.python = optarg;
		options.json |= option == JSON;
	}
	if (optind < argc)
		return wrong_usage("doctor: it takes no arguments (tonnage doctor --help)");
	tn_status status = tn_doctor(&options, &found);
	if (status == TN_OK)
		return found ? FOUND : 0;
	say_error("%s", tn_error_text());
	return status == TN_NOT_FOUND ? TN_EXIT_USAGE : TN_EXIT_OWN_FAILURE;
}

const struct command doctor_command = { "doctor",   "this machine: driver, cards, who is on them, PyTorch, limits",
	                                    cmd_doctor, long_options,
	                                    help,       NO_OPERAND };
