/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads /proc/<pid>/maps before the process is killed; afterwards only names are left.
 */
#include "supervise/leftovers.h"
#include "base/array.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARED_FOLDER "/dev/shm/"

/* PyTorch's storages, multiprocessing's semaphores and shared memory, joblib's semaphores. */
static bool
known_name(const char *name)
{
	static const char *const beginnings[] = { "torch_", "sem.mp-", "psm_", "sem.loky-" };
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

static void
add(struct tn_leftovers *leftovers, const char *name)
{
	if (strlen(name) >= sizeof(leftovers->names[0]) || strchr(name, '/') != NULL)
		return;
	for (size_t i = 0; i < leftovers->count; i++)
		if (strcmp(leftovers->names[i], name) == 0)
			return;
	if (!tn__array_room(&leftovers->names, &leftovers->capacity, leftovers->count + 1, sizeof(leftovers->names[0]),
	                    SIZE_MAX))
		return;
	strcpy(leftovers->names[leftovers->count++], name);
}

void
tn__leftovers_note(struct tn_leftovers *leftovers, pid_t pid)
{
	char path[64], *line = NULL;
	size_t capacity = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(path, "re");
	if (maps == NULL)
		return;
	while (getline(&line, &capacity, maps) > 0) {
		char *name = strstr(line, SHARED_FOLDER);
		if (name == NULL)
			continue;
		name += strlen(SHARED_FOLDER);
		name[strcspn(name, " \n")] = '\0';
		if (known_name(name))
			add(leftovers, name);
	}
	free(line);
	fclose(maps);
}

static bool
names_pid(const char *name, const pid_t *pids, size_t count)
{
	int pid = 0;
	if (sscanf(name, "torch_%d_", &pid) != 1)
		return false;
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

void
tn__leftovers_remove(struct tn_leftovers *leftovers, const pid_t *pids, size_t count)
{
	DIR *folder = opendir(SHARED_FOLDER);
	const struct dirent *item;
	if (folder == NULL)
		return;
	while ((item = readdir(folder)) != NULL)
		if (names_pid(item->d_name, pids, count))
			add(leftovers, item->d_name);
	for (size_t i = 0; i < leftovers->count; i++) {
		struct stat about;
		if (fstatat(dirfd(folder), leftovers->names[i], &about, AT_SYMLINK_NOFOLLOW) == 0 && about.st_uid == getuid())
			unlinkat(dirfd(folder), leftovers->names[i], 0);
	}
	closedir(folder);
}

void
tn__leftovers_free(struct tn_leftovers *leftovers)
{
	free(leftovers->names);
	*leftovers = (struct tn_leftovers){ 0 };
}
