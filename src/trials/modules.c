/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists of modules that the hook leaves in a run's folder, for a fork server to import the same.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trials/trial.h"

#define LARGEST_LIST (4 << 20)

static char *
read_list(const char *path)
{
	struct stat about;
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char *text = NULL;
	if (file < 0)
		return NULL;
	if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= LARGEST_LIST &&
	    (text = calloc(1, (size_t)about.st_size + 1)) != NULL && read(file, text, (size_t)about.st_size) < 0)
		text[0] = '\0';
	close(file);
	return text;
}

char *
tn__modules_read(const struct tn_folder *folder)
{
	char path[PATH_MAX], file[PATH_MAX], *best = NULL;
	const struct dirent *item;
	DIR *listing = opendir(tn__folder_path(folder, "guest", path));
	while (listing != NULL && (item = readdir(listing)) != NULL) {
		const char *end = strstr(item->d_name, ".modules");
		if (end == NULL || strcmp(end, ".modules") != 0 ||
		    snprintf(file, sizeof(file), "%s/%s", path, item->d_name) >= PATH_MAX)
			continue;
		char *text = read_list(file);
		bool better = text != NULL && (best == NULL || strlen(text) > strlen(best));
		free(better ? best : text);
		best = better ? text : best;
	}
	if (listing != NULL)
		closedir(listing);
	return best;
}
