/* SPDX-License-Identifier: Apache-2.0
 *
 * What killed processes leave in /dev/shm: PyTorch's file-backed storages and multiprocessing's semaphores. Only
 * files of processes of this run are removed: those that a process of it had mapped when it was about to be killed
 * and that carry one of the known names, and those whose name holds its pid.
 */
#ifndef TN_SUPERVISE_LEFTOVERS_H
#define TN_SUPERVISE_LEFTOVERS_H

#include <stddef.h>
#include <sys/types.h>

struct tn_leftovers {
	char (*names)[64]; /* file names in /dev/shm */
	size_t count, capacity;
};

/* Notes which shared memory a live process of the run has mapped. */
void tn__leftovers_note(struct tn_leftovers *leftovers, pid_t pid);
/* Removes what was noted and what the names of these pids say; call when all processes are gone. */
void tn__leftovers_remove(struct tn_leftovers *leftovers, const pid_t *pids, size_t count);
void tn__leftovers_free(struct tn_leftovers *leftovers);

#endif
