/* SPDX-License-Identifier: Apache-2.0
 *
 * The filter below the write overlay and the network wall (doc/design/0019-raw-calls.md): calls that change metadata or names,
 * or reach others by network, and were not made by the overlay itself are answered by the reaper of the run, or refused; those that
 * Landlock decides are told to it, to be counted.
 */
#ifndef TN_PRELOAD_RAW_H
#define TN_PRELOAD_RAW_H

#include <stdbool.h>
#include <stdint.h>

#include "tonnage/status.h"

enum tn__raw_wall {
	TN__RAW_NONE,         /* the kernel, or the container around us, has no seccomp for us */
	TN__RAW_REFUSES,      /* what changes files fails with EACCES; what reaches others is not trapped */
	TN__RAW_ASKS,         /* what is trapped is asked of the listener */
	TN__RAW_ASKS_OF_FILES /* the same, but the kernel is too old for the network's calls */
};

/* Which walls the filter is for. */
struct tn__raw_walls {
	bool files;
	bool network;  /* the run has a network wall. It needs a listener: without one such calls are allowed */
	bool landlock; /* Landlock is in force: where nobody listens, names may be left to it */
};

/* The pass word of a run, read from its index; 0: it has none. */
uint64_t tn__raw_pass(const char *run_folder);

/* Puts the filter on the calling process and all that it starts, for good. *listener, when not NULL, gets the descriptor of
 * whoever is to answer (close-on-exec), or -1; NULL: nobody will. To be called in the child just before exec, by its one
 * thread. */
enum tn__raw_wall tn__raw_install(const char *run_folder, struct tn__raw_walls walls, int *listener);

/* As in the overlay (overlay.h), for the program that is started first. */
void tn__note_program(const char *run, const char *path);

/* ---- in the reaper, one thread ---- */

/* From now on this process answers for the run. TN_IO when its tables cannot be mapped. */
tn_status tn__raw_attach(const char *run_folder, struct tn__raw_walls walls);
/* Takes one call that waits at the listener, and answers it. False when nobody will ever call again. */
bool tn__raw_answer(int listener);
/* Looks at the connections that were allowed, and ends those on which too much was sent. Returns after how many milliseconds
 * it wants to be called again; -1: there is nothing to look at. */
int tn__raw_watch(void);

#endif
