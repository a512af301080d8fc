/* SPDX-License-Identifier: Apache-2.0
 *
 * Files are the same when device and inode are; of files that are not there yet, when folder and name are.
 */
#include "outputs.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

static bool
is_file(const struct output *output)
{
	return output->path != NULL && strcmp(output->path, "-") != 0;
}

/* An existing file of the two must be a regular one: pipes and devices may take anything. */
static bool
are_same(const char *first, const char *second)
{
	struct stat a, b;
	char folders[2][PATH_MAX], copy[PATH_MAX];
	const char *const paths[2] = { first, second }, *names[2];
	bool there = stat(first, &a) == 0, also = stat(second, &b) == 0;
	if (there && also)
		return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
	if (there != also)
		return false;
	for (int i = 0; i < 2; i++) {
		const char *slash = strrchr(paths[i], '/');
		names[i] = slash != NULL ? slash + 1 : paths[i];
		if (slash == NULL)
			strcpy(copy, ".");
		else
			snprintf(copy, sizeof(copy), "%.*s/", (int)(slash - paths[i]), paths[i]);
		if (realpath(copy, folders[i]) == NULL)
			return false;
	}
	return strcmp(folders[0], folders[1]) == 0 && strcmp(names[0], names[1]) == 0;
}

/* Does the word, or what stands behind "=" in it, name the output? */
static bool
names(const char *word, const char *output)
{
	const char *value = strchr(word, '=');
	return (access(word, F_OK) == 0 && are_same(word, output)) ||
	       (value != NULL && value[1] != '\0' && access(value + 1, F_OK) == 0 && are_same(value + 1, output));
}

/* A program without a slash is found along PATH. */
static bool
is_program(const char *name, const char *output)
{
	const char *folder = getenv("PATH");
	char path[PATH_MAX];
	while (strchr(name, '/') == NULL && folder != NULL) {
		int length = (int)strcspn(folder, ":");
		if (snprintf(path, sizeof(path), "%.*s/%s", length, folder, name) < PATH_MAX && access(path, X_OK) == 0)
			return are_same(path, output);
		folder = folder[length] != '\0' ? folder + length + 1 : NULL;
	}
	return false;
}

int
check_outputs(const char *command, const struct output *outputs, char *const *words)
{
	for (const struct output *output = outputs; output->option != NULL; output++) {
		if (!is_file(output))
			continue;
		for (const struct output *other = outputs; other != output; other++)
			if (is_file(other) && are_same(other->path, output->path))
				return wrong_usage("%s: %s and %s name the same file, %s", command, other->option, output->option,
				                   output->path);
		for (char *const *word = words; word != NULL && *word != NULL; word++)
			if (names(*word, output->path) || (word == words && is_program(*word, output->path)))
				return wrong_usage("%s: %s %s would write over a file that the command line names: %s", command,
				                   output->option, output->path, *word);
	}
	return 0;
}
