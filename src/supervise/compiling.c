/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the run compiles at this moment: a process of it says so itself (guest/<pid>.compiling, written by
 * _tonnage_guest/compiling.py), or is a compiler by its name (ninja, nvcc, ptxas, g++ and the like). The time limit
 * waits for that, up to a limit of its own. Looked at as often as processes are sampled.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervise/internal.h"

#define END ".compiling"

static bool
is_compiler(const char *name)
{
	static const char *const names[] = { "ninja",  "nvcc",    "cicc", "ptxas",  "cudafe++", "fatbinary",
		                                 "nvlink", "g++",     "gcc",  "c++",    "cc1",      "cc1plus",
		                                 "clang",  "clang++", "lld",  "ld",     "as",       "collect2",
		                                 "hipcc",  "cmake",   "make", "ccache", "rustc",    "zig" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

bool
tn__is_compiler(pid_t pid)
{
	char path[64], name[32];
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	FILE *file = fopen(path, "re");
	bool read = file != NULL && fgets(name, sizeof(name), file) != NULL;
	if (file != NULL)
		fclose(file);
	if (!read)
		return false;
	name[strcspn(name, "\n")] = '\0';
	return is_compiler(name);
}

/* The pid of a guest's note, while that process lives; else 0. */
static pid_t
compiling_pid(const char *name)
{
	char *end;
	errno = 0;
	long pid = strtol(name, &end, 10);
	if (errno != 0 || pid <= 0 || pid > INT32_MAX || strcmp(end, END) != 0)
		return 0;
	return kill((pid_t)pid, 0) == 0 || errno == EPERM ? (pid_t)pid : 0;
}

bool
tn__guest_compiles(const struct tn_folder *folder)
{
	char path[PATH_MAX];
	const struct dirent *item;
	bool found = false;
	DIR *listing = opendir(tn__folder_path(folder, "guest", path));
	if (listing == NULL)
		return false;
	while (!found && (item = readdir(listing)) != NULL)
		found = compiling_pid(item->d_name) != 0;
	closedir(listing);
	return found;
}
