/* SPDX-License-Identifier: Apache-2.0
 *
 * What main.c and the commands share. A command parses its own arguments, calls the library through public headers, and
 * returns the exit status.
 */
#ifndef TN_CLI_COMMAND_H
#define TN_CLI_COMMAND_H

#include <getopt.h>

/* What stands behind the options of a command. */
enum operands { NO_OPERAND, A_PROGRAM, A_FILE, A_CARD, A_SHELL };

/* All that --help and completion know of a command. */
struct command {
	const char *name, *summary;
	int (*run)(int argc, char **argv); /* argv[0] is the command's name */
	const struct option *options;      /* as getopt_long takes them */
	const char *help;                  /* tells each of these options in a line */
	enum operands operands;
};

extern const struct command run_command, fit_command, fix_command, gpus_command, explain_command, report_command,
	doctor_command, fetch_command, clean_command, validate_command, serve_plan_command, completion_command;

/* The commands that completion writes of, in their order; NULL is the end. main sets it before it runs one. */
extern const struct command *const *completed_commands;

/* Says one line, "tonnage: ...", on stderr; nothing in it that a terminal would obey. */
void say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says one line, "tonnage: ...", on stderr and returns 2. */
int wrong_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
