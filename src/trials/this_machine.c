/* SPDX-License-Identifier: Apache-2.0
 *
 * What the computer has, and what of it a trial takes: memory and cores, as the kernel tells.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervise/process.h"
#include "trials/trial.h"

int64_t
tn__machine_memory(const char *name)
{
	char line[128];
	long long kib = -1;
	size_t length = strlen(name);
	FILE *file = fopen("/proc/meminfo", "re");
	if (file == NULL)
		return TN_NO_FIGURE;
	while (kib < 0 && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, name, length) == 0 && line[length] == ':')
			kib = strtoll(line + length + 1, NULL, 10);
	fclose(file);
	return kib < 0 ? TN_NO_FIGURE : (int64_t)kib * 1024;
}

int
tn__machine_cores(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	return count > 0 ? count : 1;
}

/* What a process holds by itself: resident pages that are not shared. */
static int64_t
own_bytes(pid_t pid)
{
	char path[64];
	long long size = 0, resident = 0, shared = 0;
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return 0;
	int found = fscanf(file, "%lld %lld %lld", &size, &resident, &shared);
	fclose(file);
	return found == 3 && resident > shared ? (int64_t)(resident - shared) * sysconf(_SC_PAGESIZE) : 0;
}

int64_t
tn__trial_bytes(const struct tn_trial *trial)
{
	struct tn_process_list list = { 0 };
	int64_t bytes = 0;
	tn__process_descendants(&(struct tn_process_tree){ .root = trial->pid, .group = trial->pid }, &list);
	for (size_t i = 0; i < list.count; i++)
		bytes += own_bytes(list.pids[i]);
	tn__process_list_free(&list);
	return bytes;
}

/* ---- how many at once ---- */

void
tn__trials_adapt(struct tn_trials *trials, int64_t peak_rss_bytes)
{
	int64_t available = tn__machine_memory("MemAvailable");
	int most = (int)(sizeof(trials->running) / sizeof(trials->running[0]));
	int jobs = trials->wanted_jobs > 0 ? trials->wanted_jobs : tn__machine_cores();
	if (trials->wanted_jobs == 0 && peak_rss_bytes > 0 && available > 0) {
		int64_t bearable = (int64_t)((double)available * TN_SHARE_OF_MEMORY) / peak_rss_bytes;
		if (bearable < jobs)
			jobs = bearable < 1 ? 1 : (int)bearable;
	}
	trials->jobs = jobs > most ? most : jobs;
}
