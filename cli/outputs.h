/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command is asked to write must not be what it reads.
 */
#ifndef TN_CLI_OUTPUTS_H
#define TN_CLI_OUTPUTS_H

struct output {
	const char *option; /* "--json" */
	const char *path;   /* NULL or "-": no file */
};

/* 0, or the status for wrong usage, said: an output that is the same file as another one, or as one of the words (ended by
 * NULL; NULL is allowed) where these name a regular file, also behind "=" or through links. Outputs end with one without an
 * option. */
int check_outputs(const char *command, const struct output *outputs, char *const *words);

#endif
