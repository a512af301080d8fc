/* SPDX-License-Identifier: Apache-2.0
 *
 * A notebook as the program of a run: a Python program of ours runs its cells, executed by the notebook's own Python (doc/design/0033-notebooks.md).
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "supervise/internal.h"

#define LONGEST_COMPLAINT 2000

bool
tn__is_notebook(const char *name)
{
	size_t length = strlen(name);
	return length > 6 && strcmp(name + length - 6, ".ipynb") == 0;
}

/* The Python that was named, else that of the active environment; the runner goes on as the kernel's own. */
static tn_status
find_python(const struct tn_run_options *options, char path[PATH_MAX])
{
	static const char *const names[] = { "python", "python3" };
	int status;
	if (options->python != NULL)
		return tn__program_find(options->python, path, &status);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (tn__program_find(names[i], path, &status) == TN_OK)
			return TN_OK;
	return tn__fail(
		TN_NOT_FOUND,
		"no python on the PATH to run the notebook: activate its environment, or name its Python with --python");
}

static size_t
count_of(char *const *words)
{
	size_t count = 0;
	while (words[count] != NULL)
		count++;
	return count;
}

tn_status
tn__notebook_command(const struct tn_run_options *options, const struct tn_install *install, char ***out)
{
	char python[PATH_MAX], named[PATH_MAX], runner[PATH_MAX];
	size_t count = 0, given = count_of(options->arguments);
	*out = NULL;
	if (!tn__is_notebook(options->arguments[0])) {
		TN_RETURN_IF(options->python != NULL || options->cells != NULL || options->keep_going, TN_INVALID,
		             "--cells, --python and --keep-going go with a notebook: %s is none", options->arguments[0]);
		return TN_OK;
	}
	TN_RETURN_IF(given > 1, TN_INVALID, "a notebook takes no arguments: %s", options->arguments[1]);
	TN_FORWARD_IF_ERROR(find_python(options, python));
	TN_RETURN_IF(snprintf(named, sizeof(named), "%s/notebook/run_cells.py", install->libraries) >= PATH_MAX, TN_INVALID,
	             "the installation's path is too long");
	/* Without symbolic links, as the guest's: it tells our own frames from the user's by these folders. */
	TN_RETURN_IF(realpath(named, runner) == NULL, TN_NOT_FOUND, "the installation lacks %s: install tonnage again",
	             named);
	const char *words[10] = { python, runner };
	count = 2;
	if (options->cells != NULL) {
		words[count++] = "--cells";
		words[count++] = options->cells;
	}
	if (options->keep_going)
		words[count++] = "--keep-going";
	if (options->python != NULL)
		words[count++] = "--this-python";
	words[count++] = "--";
	words[count++] = options->arguments[0];
	char **command = calloc(count + 1, sizeof(*command));
	TN_RETURN_IF(command == NULL, TN_NO_MEMORY, "out of host memory");
	for (size_t i = 0; i < count; i++)
		if ((command[i] = strdup(words[i])) == NULL) {
			tn__notebook_free(command);
			return tn__fail(TN_NO_MEMORY, "out of host memory");
		}
	*out = command;
	return TN_OK;
}

void
tn__notebook_free(char **words)
{
	for (size_t i = 0; words != NULL && words[i] != NULL; i++)
		free(words[i]);
	free(words);
}

void
tn__notebook_collect(const struct tn_folder *folder, struct tn_report *report)
{
	char path[PATH_MAX], words[LONGEST_COMPLAINT];
	FILE *file = fopen(tn__folder_path(folder, "notebook-error", path), "re");
	if (file == NULL)
		return;
	size_t length = fread(words, 1, sizeof(words) - 1, file);
	fclose(file);
	words[length] = '\0';
	words[strcspn(words, "\n")] = '\0';
	report->misuse = TN_MISUSE_NOTEBOOK;
	free(report->exception);
	report->exception = strdup(words);
}
