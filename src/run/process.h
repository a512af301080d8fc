/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of a run, found through /proc, and ended.
 *
 * A process belongs to the run when its chain of parents leads to the supervisor or to its keeper; both are
 * subreapers, so a process that called setsid or whose parent died is still below them. Nothing here knows what
 * the processes do.
 */
#ifndef TN_RUN_PROCESS_H
#define TN_RUN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tn_process_list {
	pid_t *pids;
	size_t count, capacity;
};

/* Lists the live descendants of `root` but for `except` itself (its children count; 0: nobody is left out);
 * zombies are not listed. An empty list when /proc cannot be read or memory is short. */
void tn__process_descendants(pid_t root, pid_t except, struct tn_process_list *out);
void tn__process_list_free(struct tn_process_list *list);
/* Adds a pid that is not there yet. */
void tn__process_list_add(struct tn_process_list *list, pid_t pid);

/* Kills all descendants of `root` but `except`, again and again until none is left, at most ten seconds. `before`,
 * when not NULL, is called once for each process before its first signal. Reaps children of the caller when `reap`
 * is not NULL by calling it between rounds. Returns true when none is left. */
bool tn__process_kill_all(pid_t root, pid_t except, void (*before)(void *context, pid_t pid),
                          void (*reap)(void *context), void *context);

/* Largest resident set so far of a live process (VmHWM), 0 when unknown. */
uint64_t tn__process_peak_rss(pid_t pid);

#endif
