/* SPDX-License-Identifier: Apache-2.0
 *
 * What the run knows of the program's files: from the index's head, from the notes in <run>/state, and from the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "preload/index.h"
#include "preload/raw.h"
#include "report/printer.h"
#include "supervise/internal.h"
#include "verdict/model_fill.h"

#define LITTLE (256u << 10) /* a disk with less left is full to everybody */

static bool
read_head(const struct tn_folder *folder, struct tn__index_head *head)
{
	char path[PATH_MAX];
	int file = open(tn__folder_path(folder, "state/index", path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool whole = file >= 0 && read(file, head, sizeof(*head)) == (ssize_t)sizeof(*head);
	if (file >= 0)
		close(file);
	return whole;
}

/* One more of the list's row of these names. */
static void
count_name(struct tn_counted_list *list, char *call, char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].name, name) == 0 &&
		    (call == NULL || (list->items[i].library != NULL && strcmp(list->items[i].library, call) == 0))) {
			list->items[i].count++;
			return;
		}
	struct tn_counted item = {
		.place = { NULL, TN_NO_FIGURE, NULL, false }, .library = call, .name = name, .count = 1, .bytes = TN_NO_FIGURE
	};
	(void)tn__report_add_counted(list, &item);
}

/* The lines of a note; with `calls` each begins with a call and a tab, and what comes after a second tab is dropped. */
static void
read_notes(const struct tn_folder *folder, const char *name, bool calls, struct tn_counted_list *list)
{
	char path[PATH_MAX], *line = NULL;
	size_t capacity = 0;
	FILE *notes = fopen(tn__folder_path(folder, name, path), "re");
	while (notes != NULL && getline(&line, &capacity, notes) > 0) {
		line[strcspn(line, "\n")] = '\0';
		char *tab = calls ? strchr(line, '\t') : NULL;
		if (calls && tab == NULL)
			continue;
		if (tab != NULL) {
			*tab++ = '\0';
			tab[strcspn(tab, "\t")] = '\0';
			tn__make_plain(tab, '?'); /* the program chose it */
		}
		tn__make_plain(line, '?');
		count_name(list, tab != NULL ? line : NULL, tab != NULL ? tab : line);
	}
	free(line);
	if (notes != NULL)
		fclose(notes);
}

static bool
is_disk_full(const struct tn_folder *folder)
{
	char path[PATH_MAX];
	struct statvfs about;
	return statvfs(tn__folder_path(folder, "scratch", path), &about) == 0 &&
	       (uint64_t)about.f_bavail * about.f_frsize < LITTLE;
}

void
tn__files_collect(const struct tn_run_options *options, const struct tn_watch *watch, struct tn_report_files *files)
{
	struct tn__index_head head = { .magic = 0 };
	char path[PATH_MAX];
	if (read_head(watch->folder, &head)) {
		files->full = head.full > 0;
		files->refused = (int64_t)(head.refused + head.raw_refused);
	}
	files->full |= is_disk_full(watch->folder);
	files->limit_bytes = options->scratch_bytes > 0 ? (int64_t)options->scratch_bytes : TN_NO_FIGURE;
	files->bytes = files->disk_bytes = 0;
	tn__folder_size(tn__folder_path(watch->folder, "scratch/files", path), &files->bytes, &files->disk_bytes);
	files->no_landlock = watch->no_sandbox;
	files->no_filter = watch->raw_wall == TN__RAW_NONE;
	read_notes(watch->folder, "state/refused", true, &files->refusals);
	read_notes(watch->folder, "state/unseen", false, &files->unseen);
}

void
tn__files_findings(const struct tn_watch *watch, struct tn_report *report)
{
	const struct tn_report_files *files = &report->files;
	char room[32];
	if (files->full && files->limit_bytes != TN_NO_FIGURE)
		tn__report_add_finding(
			report, TN_FINDING_scratch_full, files->disk_bytes, NULL, "a larger --scratch",
			"the scratch folder was full (--scratch %s): what the program wrote after that failed with "
			"\"No space left on device\"",
			tn__human_bytes(files->limit_bytes, room));
	else if (files->full)
		tn__report_add_finding(
			report, TN_FINDING_scratch_full, files->disk_bytes, NULL,
			"set TMPDIR to a folder on a larger disk, or free some: tonnage clean",
			"the disk of the scratch folder was full (%s): what the program wrote after that failed with "
			"\"No space left on device\"",
			watch->folder->path);
	if (files->no_landlock)
		tn__report_add_finding(report, TN_FINDING_no_kernel_net, TN_NO_FIGURE, NULL, NULL,
		                       "this kernel has no Landlock to back the write overlay: a program that writes without "
		                       "the C library is not kept from it");
	if (files->no_filter)
		tn__report_add_finding(report, TN_FINDING_no_raw_wall, TN_NO_FIGURE, NULL, NULL,
		                       "seccomp is not allowed here: a program that changes modes, owners, times or attributes "
		                       "without the C library is not kept from it");
}
