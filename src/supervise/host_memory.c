/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of the computer's memory the processes of a run hold at once (doc/design/0036-hosts.md), looked at while they run.
 *
 * A look reads counters, and now and then the pages of all processes are walked. Invariant: looks take no more than a fifth of the
 * time of one core, but where the hook asks for one. Nothing here knows what is enough.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/seconds.h"
#include "supervise/internal.h"

#define LEAST_SECONDS 0.01
#define TIMES_A_LOOK 4
#define WALK_SECONDS 0.25
#define TIMES_A_WALK 19
#define BLOCK 512          /* of st_blocks: stat(2) */
#define ENDING_SECONDS 2.0 /* of a process, at most: its first thread may have ended long before the others do */
#define DEEPEST 8          /* folders below the run's part of /dev/shm */

struct object { /* of shared memory */
	dev_t device;
	ino_t inode;
};

struct objects {
	struct object *items;
	size_t count, capacity;
	int64_t bytes;
};

/* Of this thread's own work: on a busy machine a look lasts far longer than it costs, and would then come too seldom. */
static double
worked(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static ssize_t
read_text(pid_t pid, const char *name, char *buffer, size_t capacity)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -1;
	size_t length = 0;
	ssize_t part;
	while (length + 1 < capacity && (part = read(file, buffer + length, capacity - 1 - length)) > 0)
		length += (size_t)part;
	close(file);
	buffer[length] = '\0';
	return (ssize_t)length;
}

/* Of a line "Pss_Anon:   116 kB"; -1: there is none. */
static int64_t
kilobytes(const char *text, const char *label)
{
	const char *line = strstr(text, label);
	return line != NULL ? (int64_t)strtoull(line + strlen(label), NULL, 10) * 1024 : -1;
}

static void
add_object(struct objects *objects, const struct stat *about)
{
	for (size_t i = 0; i < objects->count; i++)
		if (objects->items[i].inode == about->st_ino && objects->items[i].device == about->st_dev)
			return;
	if (!tn__array_room(&objects->items, &objects->capacity, objects->count + 1, sizeof(*objects->items), SIZE_MAX))
		return;
	objects->items[objects->count++] = (struct object){ about->st_dev, about->st_ino };
	objects->bytes += (int64_t)about->st_blocks * BLOCK;
}

/* What a process has open of memory that has a file's descriptor and lies on no disk. */
static void
add_open(pid_t pid, struct objects *objects)
{
	char folder[64];
	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	DIR *files = opendir(folder);
	const struct dirent *item;
	while (files != NULL && (item = readdir(files)) != NULL) {
		char target[256];
		struct stat about;
		ssize_t length = isdigit((unsigned char)item->d_name[0])
		                     ? readlinkat(dirfd(files), item->d_name, target, sizeof(target) - 1)
		                     : -1;
		if (length <= 0)
			continue;
		target[length] = '\0';
		bool shared = strncmp(target, "/dev/shm/", 9) == 0 || strncmp(target, "/memfd:", 7) == 0;
		if (shared && fstatat(dirfd(files), item->d_name, &about, 0) == 0 && S_ISREG(about.st_mode))
			add_object(objects, &about);
	}
	if (files != NULL)
		closedir(files);
}

/* What has a name in the run's own part of /dev/shm. */
static void
add_named(int folder, int depth, struct objects *objects)
{
	DIR *files = folder >= 0 ? fdopendir(folder) : NULL;
	const struct dirent *item;
	if (files == NULL && folder >= 0)
		close(folder);
	while (files != NULL && (item = readdir(files)) != NULL) {
		struct stat about;
		if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0 ||
		    fstatat(dirfd(files), item->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (S_ISREG(about.st_mode))
			add_object(objects, &about);
		else if (S_ISDIR(about.st_mode) && depth < DEEPEST)
			add_named(openat(dirfd(files), item->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), depth + 1,
			          objects);
	}
	if (files != NULL)
		closedir(files);
}

/* The row of a process; NULL without memory. */
static struct tn_host_known *
known_of(struct tn_host_watch *host, pid_t pid)
{
	for (size_t i = 0; i < host->known_count; i++)
		if (host->known[i].pid == pid)
			return &host->known[i];
	if (!tn__array_room(&host->known, &host->known_capacity, host->known_count + 1, sizeof(*host->known), SIZE_MAX))
		return NULL;
	host->known[host->known_count] = (struct tn_host_known){ .pid = pid };
	return &host->known[host->known_count++];
}

/* A process that ends gives its pages back only little by little (tenths of a second on a busy machine), and is counted among those
 * that share them until it has: meanwhile the parts of all processes add up to too little. It is a zombie when they are back, and
 * all its threads have ended. */
static enum tn_host_state
look_at(struct tn_host_known *known)
{
	char text[4096];
	if (read_text(known->pid, "status", text, sizeof(text)) <= 0)
		return TN_HOST_GONE;
	known->now = kilobytes(text, "\nRssAnon:");
	if (known->now >= 0) {
		known->ending = 0;
		return TN_HOST_THERE;
	}
	const char *threads = strstr(text, "\nThreads:");
	bool zombie = strstr(text, "\nState:\tZ") != NULL && threads != NULL &&
	              strtol(threads + strlen("\nThreads:"), NULL, 10) <= 1;
	double now = tn__now();
	if (known->ending == 0)
		known->ending = now;
	return zombie || now > known->ending + ENDING_SECONDS ? TN_HOST_GONE : TN_HOST_ENDING;
}

/* Looks at each process of the run but the helper. */
static void
look_at_all(struct tn_host_watch *host, const struct tn_process_list *list, pid_t helper)
{
	for (size_t i = 0; i < host->known_count; i++)
		host->known[i].state = TN_HOST_GONE;
	for (size_t i = 0; i < list->count; i++) {
		struct tn_host_known *known = list->pids[i] != helper ? known_of(host, list->pids[i]) : NULL;
		if (known != NULL)
			known->state = look_at(known);
	}
	for (size_t i = 0; i < host->known_count; i++)
		if (host->known[i].state == TN_HOST_GONE) { /* its number may come again */
			host->known[i].walked = false;
			host->known[i].ending = 0;
		}
}

/* The kernel's own sums over all pages of a process, which cost it a walk over them. False for one that ends. */
static bool
walk(struct tn_host_known *known)
{
	char text[4096];
	if (read_text(known->pid, "smaps_rollup", text, sizeof(text)) <= 0)
		return false;
	int64_t anonymous = kilobytes(text, "Pss_Anon:"), file = kilobytes(text, "Pss_File:");
	int64_t shared = kilobytes(text, "Pss_Shmem:"), swapped = kilobytes(text, "SwapPss:");
	if (anonymous < 0 || look_at(known) != TN_HOST_THERE)
		return false;
	known->resident = known->now;
	known->anonymous = anonymous + (swapped > 0 ? swapped : 0);
	known->file = file > 0 ? file : 0;
	known->shared = shared > 0 ? shared : 0;
	return true;
}

/* True when one has come or gone since all were walked. */
static bool
has_changed(const struct tn_host_watch *host)
{
	size_t walked = 0;
	bool fresh = false;
	for (size_t i = 0; i < host->known_count; i++) {
		walked += host->known[i].walked;
		fresh |= host->known[i].state == TN_HOST_THERE && !host->known[i].walked;
	}
	return fresh || walked != host->walked_count;
}

static bool
any_ends(const struct tn_host_watch *host)
{
	bool ends = false;
	for (size_t i = 0; i < host->known_count; i++)
		ends |= host->known[i].state == TN_HOST_ENDING;
	return ends;
}

/* Walks all processes at one time, since what one shares is another's: now and then, and whenever one has come or gone. False where
 * that would be needed, and has just been done or cannot be while one ends. */
static bool
walk_all(struct tn_host_watch *host)
{
	double began = worked();
	bool changed = has_changed(host), all = true;
	if (any_ends(host) || tn__now() < (changed ? host->walk_if_changed : host->walk))
		return !changed;
	if (changed)
		host->highest_shared = 0;
	host->walked_count = 0;
	for (size_t i = 0; i < host->known_count; i++) {
		struct tn_host_known *known = &host->known[i];
		known->highest = changed ? 0 : known->highest;
		known->walked = known->state == TN_HOST_THERE && walk(known);
		host->walked_count += known->walked;
		all &= known->walked || known->state == TN_HOST_GONE;
	}
	/* One that has begun to end meanwhile was counted among the sharers by some, and by others not. */
	for (size_t i = 0; i < host->known_count && all; i++)
		all = !host->known[i].walked || look_at(&host->known[i]) == TN_HOST_THERE;
	for (size_t i = 0; i < host->known_count && !all; i++)
		host->known[i].walked = false;
	double ended = tn__now(), took = worked() - began;
	host->walk = ended + (TIMES_A_WALK * took > WALK_SECONDS ? TIMES_A_WALK * took : WALK_SECONDS);
	host->walk_if_changed = ended + TIMES_A_LOOK * took;
	return all;
}

/* Between two walks, what a process touches is its own: pages that it shares with others are those that it was forked with. One that
 * ends holds what it held. */
static void
add_process(struct tn_host_known *known, struct tn_host_moment *moment, int64_t *mapped_shared)
{
	char name[32];
	int64_t anonymous = known->anonymous + (known->state == TN_HOST_THERE ? known->now - known->resident : 0);
	if (anonymous > known->highest)
		known->highest = anonymous;
	moment->anonymous += anonymous;
	moment->file += known->file;
	*mapped_shared += known->shared;
	if (moment->process_count == TN_HOST_PROCESSES)
		return;
	struct tn_host_process *process = &moment->processes[moment->process_count++];
	*process = (struct tn_host_process){
		.pid = known->pid, .kind = TN_HOST_OTHER, .anonymous = anonymous, .file = known->file
	};
	ssize_t length = read_text(known->pid, "comm", name, sizeof(name));
	if (length > 0)
		snprintf(process->name, sizeof(process->name), "%.*s", (int)strcspn(name, "\n"), name);
}

/* Every process at its own highest, at once, as long as they are the same processes: workers need not load one after the other. */
static int64_t
highest_of(const struct tn_host_watch *host, const struct tn_host_moment *moment)
{
	int64_t sum = moment->anonymous + host->highest_shared;
	for (size_t i = 0; i < moment->process_count; i++)
		for (size_t j = 0; j < host->known_count; j++)
			if (host->known[j].pid == moment->processes[i].pid)
				sum += host->known[j].highest - moment->processes[i].anonymous;
	return sum;
}

static int64_t
pinned_of(const struct tn_ledger *ledger)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < TN_LEDGER_PROCESSES; i++)
		if (ledger->processes[i].state != TN_PROCESS_FREE)
			bytes += ledger->processes[i].pinned_bytes;
	return (int64_t)bytes;
}

void
tn__host_look(struct tn_watch *watch, const struct tn_process_list *list, pid_t helper)
{
	struct tn_host_watch *host = &watch->host;
	struct tn_host_moment moment = { 0 };
	struct objects objects = { 0 };
	int64_t mapped = 0;
	char path[PATH_MAX];
	double began = worked();
	if (!host->wanted)
		return;
	if (atomic_exchange(&watch->ledger->host_asked, 0) != 0)
		host->next = host->walk = host->walk_if_changed = 0;
	if (tn__now() < host->next)
		return;
	look_at_all(host, list, helper);
	bool whole = walk_all(host);
	for (size_t i = 0; i < host->known_count && whole; i++) {
		if (!host->known[i].walked)
			continue;
		add_process(&host->known[i], &moment, &mapped);
		add_open(host->known[i].pid, &objects);
	}
	add_named(open(tn__folder_path(watch->folder, "shm/files", path), O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, &objects);
	moment.shared = objects.bytes > mapped ? objects.bytes : mapped;
	moment.pinned = pinned_of(watch->ledger);
	if (moment.anonymous < moment.pinned) /* more was pinned than the limit, and was not touched */
		moment.anonymous = moment.pinned;
	free(objects.items);
	int64_t now = moment.anonymous + moment.shared;
	if (moment.shared > host->highest_shared)
		host->highest_shared = moment.shared;
	if (whole && moment.process_count > 0 && now > host->peak) {
		host->peak = now;
		host->at_peak = moment;
	}
	int64_t highest = highest_of(host, &moment);
	if (whole && highest > host->highest)
		host->highest = highest;
	double wait = TIMES_A_LOOK * (worked() - began);
	host->next = tn__now() + (wait > LEAST_SECONDS ? wait : LEAST_SECONDS);
	watch->ledger->host_looks += whole;
}

void
tn__host_forget(struct tn_host_watch *host)
{
	free(host->known);
	*host = (struct tn_host_watch){ 0 };
}

/* ---- who is who ---- */

static enum tn_host_kind
kind_of(const struct tn_watch *watch, const struct tn_report *report, struct tn_host_process *process)
{
	for (size_t i = 0; i < report->host.loader_count; i++)
		for (size_t j = 0; j < report->host.loaders[i].pid_count; j++)
			if (report->host.loaders[i].pids[j] == process->pid)
				return TN_HOST_WORKER;
	for (size_t i = 0; i < report->rank_count; i++)
		if (report->ranks[i].pid == process->pid) {
			snprintf(process->name, sizeof(process->name), "rank %lld", (long long)report->ranks[i].rank);
			return TN_HOST_RANK;
		}
	return process->pid == watch->program ? TN_HOST_PROGRAM : TN_HOST_OTHER;
}

void
tn__host_collect(const struct tn_watch *watch, struct tn_report *report)
{
	struct tn_host *host = &report->host;
	if (!watch->host.wanted || watch->host.peak <= 0)
		return;
	host->peak = watch->host.peak;
	host->at_peak = watch->host.at_peak;
	for (size_t i = 0; i < host->at_peak.process_count; i++)
		host->at_peak.processes[i].kind = kind_of(watch, report, &host->at_peak.processes[i]);
	host->highest = watch->host.highest;
}
