/* SPDX-License-Identifier: Apache-2.0
 *
 * How processes of the run ended. Three know: the parent that waited for one (preload/entries_wait.c writes it to <run>/ended), the
 * reaper for orphans, and /proc for a process that nobody has waited for yet.
 *
 * Invariant: in the order in which it was learned, each process once. Pids are of this run; one that came twice keeps its first end.
 */
#include "base/array.h"
#include "supervise/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_CODE_FIELD 52 /* of /proc/<pid>/stat, proc(5) */

void
tn__endings_add(struct tn_endings *endings, pid_t pid, int status)
{
	int known;
	if (tn__endings_find(endings, pid, &known) ||
	    !tn__array_room(&endings->items, &endings->capacity, endings->count + 1, sizeof(*endings->items), SIZE_MAX))
		return;
	endings->items[endings->count++] = (struct tn_process_end){ pid, status };
}

void
tn__endings_read(struct tn_endings *endings, const struct tn_folder *folder)
{
	char path[PATH_MAX];
	int32_t record[2];
	int file = open(tn__folder_path(folder, "ended", path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	while (file >= 0 && pread(file, record, sizeof(record), endings->read) == (ssize_t)sizeof(record)) {
		endings->read += (off_t)sizeof(record);
		tn__endings_add(endings, record[0], record[1]);
	}
	if (file >= 0)
		close(file);
}

bool
tn__endings_find(const struct tn_endings *endings, pid_t pid, int *status)
{
	for (size_t i = 0; i < endings->count; i++) {
		if (endings->items[i].pid != pid)
			continue;
		*status = endings->items[i].status;
		return true;
	}
	return false;
}

/* Of a process that has ended and that its parent has not waited for. */
static bool
unreaped(pid_t pid, int *status)
{
	char path[64], text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	size_t length = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
	if (file != NULL)
		fclose(file);
	text[length] = '\0';
	const char *at = strrchr(text, ')');
	if (at == NULL || (at[1] != '\0' && at[2] != 'Z'))
		return false;
	for (int field = 2; field < EXIT_CODE_FIELD && at != NULL; field++)
		at = strchr(at + 1, ' ');
	if (at == NULL)
		return false;
	*status = atoi(at + 1);
	return true;
}

void
tn__endings_look(struct tn_endings *endings, pid_t pid)
{
	int status;
	if (!tn__endings_find(endings, pid, &status) && unreaped(pid, &status))
		tn__endings_add(endings, pid, status);
}

void
tn__endings_free(struct tn_endings *endings)
{
	free(endings->items);
	*endings = (struct tn_endings){ 0 };
}
