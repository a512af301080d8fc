/* SPDX-License-Identifier: Apache-2.0
 *
 * The run folder (doc/design/0002-run-protocol.md): made, locked, emptied. All paths of a run are built here.
 */
#ifndef TN_SUPERVISE_FOLDER_H
#define TN_SUPERVISE_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "tonnage/status.h"

struct tn_folder {
	char path[PATH_MAX];
	int lock; /* held by flock as long as the supervisor or its reaper lives */
};

/* Makes the folder with its parts and takes the lock. TN_IO with words when it cannot. */
tn_status tn__folder_create(struct tn_folder *out);
/* The scratch of a folder that was just made becomes a copy of what a run's folder has, which nobody changes meanwhile. TN_IO
 * with words. */
tn_status tn__folder_inherit(const struct tn_folder *folder, const char *from);
/* Sets what the scratch folder may take of the disk; 0: no limit. Before the program starts. */
tn_status tn__folder_limit(const struct tn_folder *folder, uint64_t bytes);
/* What lies in scratch/files: the lengths of its files, and what they take on the disk. */
void tn__folder_size(const char *path, int64_t *bytes, int64_t *disk_bytes);
/* A socket by this name in the folder, at which others may speak (SOCK_SEQPACKET, does not block); -1: there can be none. */
int tn__folder_listen(const struct tn_folder *folder, const char *name);
/* <folder>/<name>, in a buffer of PATH_MAX that is returned. */
const char *tn__folder_path(const struct tn_folder *folder, const char *name, char buffer[PATH_MAX]);
/* What the program is to take as its temporary folder: scratch/tmp, or a shorter name of it where that is long. */
const char *tn__folder_temporary(const struct tn_folder *folder, char buffer[PATH_MAX]);
/* True when the program may have made this file inside the folder, and it can be read. */
bool tn__folder_owns(const struct tn_folder *folder, const char *path);
/* True when the program wrote something that is kept in scratch/files. */
bool tn__folder_has_files(const struct tn_folder *folder);
/* Removes the folder, or all of it but scratch/files. */
void tn__folder_remove(struct tn_folder *folder, bool keep_files);
/* Removes folders of this user whose lock nobody holds: what killed supervisors left. Returns how many. */
int tn__folder_remove_orphans(void);

/* What a folder left in the temporary folder is. */
enum tn_left {
	TN_LEFT_NONE,    /* nothing of ours, or a run that is just being made */
	TN_LEFT_RUNNING, /* of a run that goes on */
	TN_LEFT_ORPHAN,  /* of a run that was killed */
	TN_LEFT_SCRATCH  /* what a program wrote, kept after its run */
};
/* Calls `each` for every folder of this user's runs in the temporary folder, and for what ended runs left in /dev/shm (an
 * orphan). The context is handed on. TN_IO when the temporary folder cannot be read. */
tn_status tn__folder_each(void (*each)(void *context, const char *path, enum tn_left kind), void *context);
/* Removes a tree without following links; entries that cannot be removed stay. */
void tn__folder_remove_tree(const char *path);

#endif
