/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of a run, found through /proc, and ended.
 *
 * A process belongs to the run when its chain of parents leads to the supervisor or to its reaper; both are
 * subreapers, so a process that called setsid or whose parent died is still below them. A trial whose program was
 * forked by a fork server is no ancestor of it: there the process group tells. Nothing here knows what the processes
 * do.
 */
#ifndef TN_SUPERVISE_PROCESS_H
#define TN_SUPERVISE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tn_process_list {
	pid_t *pids;
	size_t count, capacity;
};

/* Processes that earlier walks found outside of the tree, by their numbers. All zero at first. */
struct tn_process_other {
	pid_t pid;
	unsigned walks;
};

struct tn_process_others {
	struct tn_process_other *items;
	size_t count, capacity;
	unsigned walks;
};

/* Whose processes are meant. */
struct tn_process_tree {
	pid_t root;   /* its descendants; not itself */
	pid_t group;  /* the members of this process group, too, and their descendants; 0: none */
	pid_t except; /* is left out, its children are not; 0: nobody */
};

/* Lists the live processes of a tree; zombies are not listed. An empty list when /proc cannot be read or memory is
 * short. */
void tn__process_descendants(const struct tn_process_tree *tree, struct tn_process_list *out);
void tn__process_list_free(struct tn_process_list *list);
/* The same for who asks often: what two walks found outside of the tree is not read again, since nothing comes into a tree but
 * by a fork. Every 32nd walk reads all. A process that took the number of one that ended since the walk before is missed until then,
 * so this is for samples, not for the end. */
void tn__process_descendants_again(const struct tn_process_tree *tree, struct tn_process_others *others,
                                   struct tn_process_list *out);
void tn__process_others_free(struct tn_process_others *others);
/* Adds a pid that is not there yet. */
void tn__process_list_add(struct tn_process_list *list, pid_t pid);

/* Kills all processes of a tree, again and again until none is left, at most ten seconds. `before`, when not NULL, is
 * called once for each process before its first signal. Reaps children of the caller when `reap` is not NULL by calling
 * it between rounds. Returns true when none is left. */
bool tn__process_kill_all(const struct tn_process_tree *tree, void (*before)(void *context, pid_t pid),
                          void (*reap)(void *context), void *context);

/* Largest resident set so far of a live process (VmHWM), 0 when unknown. */
uint64_t tn__process_peak_rss(pid_t pid);

#endif
