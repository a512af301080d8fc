/* SPDX-License-Identifier: Apache-2.0
 *
 * What main.c and the commands share. A command parses its own arguments, calls the library through public headers, and
 * returns the exit status.
 */
#ifndef TN_CLI_COMMAND_H
#define TN_CLI_COMMAND_H

/* argv[0] is the command's name. */
int cmd_run(int argc, char **argv);
int cmd_gpus(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_fix(int argc, char **argv);
int cmd_fit(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_clean(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

/* Says one line, "tonnage: ...", on stderr; nothing in it that a terminal would obey. */
void say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says one line, "tonnage: ...", on stderr and returns 2. */
int wrong_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
