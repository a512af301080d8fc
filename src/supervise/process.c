/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks /proc. A walk is not a snapshot: processes come and go in between, so killing repeats until a walk finds
 * none.
 */
#include "supervise/process.h"
#include "base/array.h"
#include "base/seconds.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KILL_SECONDS 10
#define ROUND_NANOSECONDS 2000000
#define FULL_WALK_EVERY 32
#define OUTSIDE_FOR_GOOD 2 /* walks that found a process outside of the tree, after which it is not read again */

struct entry {
	pid_t pid, parent, group;
	bool zombie, below;
	unsigned outside; /* how many walks before this one found it outside of the tree */
};

struct table {
	struct entry *entries;
	size_t count, capacity;
};

static ssize_t
read_file(const char *path, char *buffer, size_t capacity)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t length = read(fd, buffer, capacity - 1);
	close(fd);
	if (length >= 0)
		buffer[length] = '\0';
	return length;
}

/* Fields 3 to 5 of /proc/<pid>/stat: state, parent and group. The name before them may hold anything, ')' included. */
static bool
read_entry(pid_t pid, struct entry *out)
{
	char path[64], text[512], state;
	int parent, group;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return false;
	const char *after = strrchr(text, ')');
	if (after == NULL || sscanf(after + 1, " %c %d %d", &state, &parent, &group) != 3)
		return false;
	*out = (struct entry){ .pid = pid, .parent = parent, .group = group, .zombie = state == 'Z' || state == 'X' };
	return true;
}

static bool
table_add(struct table *table, const struct entry *entry)
{
	if (!tn__array_room(&table->entries, &table->capacity, table->count + 1, sizeof(*table->entries), SIZE_MAX))
		return false;
	table->entries[table->count++] = *entry;
	return true;
}

/* /proc lists processes by their numbers, and so does `others`. One that is another's is not looked at. */
static void
read_table(struct table *table, const struct tn_process_others *others)
{
	DIR *proc = opendir("/proc");
	const struct dirent *item;
	size_t at = 0;
	if (proc == NULL)
		return;
	while ((item = readdir(proc)) != NULL) {
		struct entry entry = { .pid = isdigit((unsigned char)item->d_name[0]) ? (pid_t)atoi(item->d_name) : 0 };
		unsigned outside = 0;
		if (entry.pid <= 0)
			continue;
		while (at < others->count && others->items[at].pid < entry.pid)
			at++;
		if (at < others->count && others->items[at].pid == entry.pid)
			outside = others->items[at].walks;
		if (outside < OUTSIDE_FOR_GOOD && !read_entry(entry.pid, &entry))
			continue;
		entry.outside = outside;
		if (!table_add(table, &entry))
			break;
	}
	closedir(proc);
}

/* Short of memory they are few, and more is looked at. */
static void
remember_others(struct tn_process_others *others, const struct table *table)
{
	others->count = 0;
	others->walks = (others->walks + 1) % FULL_WALK_EVERY;
	for (size_t i = 0; i < table->count && others->walks != 0; i++) {
		const struct entry *entry = &table->entries[i];
		if (entry->below)
			continue;
		if (!tn__array_room(&others->items, &others->capacity, others->count + 1, sizeof(*others->items), SIZE_MAX))
			return;
		others->items[others->count++] = (struct tn_process_other){ entry->pid, entry->outside + 1 };
	}
}

void
tn__process_others_free(struct tn_process_others *others)
{
	free(others->items);
	*others = (struct tn_process_others){ 0 };
}

static bool
parent_is_below(const struct table *table, pid_t root, pid_t parent)
{
	if (parent == root)
		return true;
	for (size_t i = 0; i < table->count; i++)
		if (table->entries[i].pid == parent)
			return table->entries[i].below;
	return false;
}

void
tn__process_list_add(struct tn_process_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->pids[i] == pid)
			return;
	if (!tn__array_room(&list->pids, &list->capacity, list->count + 1, sizeof(*list->pids), SIZE_MAX))
		return;
	list->pids[list->count++] = pid;
}

void
tn__process_list_free(struct tn_process_list *list)
{
	free(list->pids);
	*list = (struct tn_process_list){ 0 };
}

void
tn__process_descendants_again(const struct tn_process_tree *tree, struct tn_process_others *others,
                              struct tn_process_list *out)
{
	struct table table = { 0 };
	bool changed = true;
	read_table(&table, others);
	for (size_t i = 0; i < table.count && tree->group > 0; i++)
		table.entries[i].below = table.entries[i].group == tree->group && table.entries[i].pid != tree->root;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < table.count; i++) {
			struct entry *entry = &table.entries[i];
			if (!entry->below && entry->outside < OUTSIDE_FOR_GOOD &&
			    parent_is_below(&table, tree->root, entry->parent))
				entry->below = changed = true;
		}
	}
	for (size_t i = 0; i < table.count; i++)
		if (table.entries[i].below && !table.entries[i].zombie && table.entries[i].pid != tree->except)
			tn__process_list_add(out, table.entries[i].pid);
	remember_others(others, &table);
	free(table.entries);
}

void
tn__process_descendants(const struct tn_process_tree *tree, struct tn_process_list *out)
{
	struct tn_process_others others = { 0 };
	tn__process_descendants_again(tree, &others, out);
	tn__process_others_free(&others);
}

static bool
listed(const struct tn_process_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->pids[i] == pid)
			return true;
	return false;
}

/* One round; returns how many were there to be killed. New ones are stopped first: none sees another one go, and says so. */
static size_t
kill_round(const struct tn_process_tree *tree, struct tn_process_list *known, void (*before)(void *, pid_t),
           void *context)
{
	struct tn_process_list found = { 0 };
	tn__process_descendants(tree, &found);
	for (size_t i = 0; i < found.count; i++)
		if (!listed(known, found.pids[i]))
			kill(found.pids[i], SIGSTOP);
	for (size_t i = 0; i < found.count; i++) {
		if (!listed(known, found.pids[i])) {
			tn__process_list_add(known, found.pids[i]);
			if (before != NULL)
				before(context, found.pids[i]);
		}
		kill(found.pids[i], SIGKILL);
	}
	size_t count = found.count;
	tn__process_list_free(&found);
	return count;
}

bool
tn__process_kill_all(const struct tn_process_tree *tree, void (*before)(void *context, pid_t pid),
                     void (*reap)(void *context), void *context)
{
	struct tn_process_list known = { 0 };
	struct timespec pause = { 0, ROUND_NANOSECONDS };
	bool none = false;
	double until = tn__now() + KILL_SECONDS;
	do {
		none = kill_round(tree, &known, before, context) == 0;
		if (reap != NULL)
			reap(context);
		if (!none)
			nanosleep(&pause, NULL);
	} while (!none && tn__now() < until);
	tn__process_list_free(&known);
	return none;
}

uint64_t
tn__process_peak_rss(pid_t pid)
{
	char path[64], text[4096];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return 0;
	const char *line = strstr(text, "\nVmHWM:");
	return line != NULL ? strtoull(line + 7, NULL, 10) * 1024 : 0;
}
