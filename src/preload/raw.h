/* SPDX-License-Identifier: Apache-2.0
 *
 * The filter below the write shield (doc/design/0019-raw-calls.md): calls that change metadata or names and were not made by
 * the shield itself are answered by the keeper of the run, or refused.
 */
#ifndef TN_PRELOAD_RAW_H
#define TN_PRELOAD_RAW_H

#include <stdbool.h>

#include "tonnage/status.h"

enum tn__raw_wall {
	TN__RAW_NONE,    /* the kernel, or the container around us, has no seccomp for us */
	TN__RAW_REFUSES, /* what is trapped fails with EACCES */
	TN__RAW_ASKS     /* what is trapped is asked of the listener */
};

/* Puts the filter on the calling process and all that it starts, for good. The pass word is read from the run's index.
 * `landlock`: the kernel's net stands, so that names may be left to it where nobody listens. *listener, when not NULL,
 * gets the descriptor of whoever is to answer (close-on-exec), or -1; NULL: nobody will. To be called in the child just
 * before exec, by its one thread. */
enum tn__raw_wall tn__raw_install(const char *run_folder, bool landlock, int *listener);

/* As in the shield (overlay.h), for the program that is started first. */
void tn__note_program(const char *run, const char *path);

/* ---- in the keeper, one thread ---- */

/* From now on this process answers for the run. TN_IO when its index cannot be mapped. */
tn_status tn__raw_attach(const char *run_folder);
/* Takes one call that waits at the listener, and answers it. False when nobody will ever call again. */
bool tn__raw_answer(int listener);

#endif
