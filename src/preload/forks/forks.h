/* SPDX-License-Identifier: Apache-2.0
 *
 * libtonnage-forks.so: for processes that a fork server makes. Thread-safe.
 */
#ifndef TN_PRELOAD_FORKS_FORKS_H
#define TN_PRELOAD_FORKS_FORKS_H

/* Becomes another program, without the write overlay; returns only on failure. */
int tn_forks_execute(const char *path, char *const arguments[], char *const environment[]);
/* This process is killed when its parent ends. Not 0 when `parent` has ended already. */
int tn_forks_die_with(int parent);
/* What exit() calls from now on flushes the streams of stdio and ends the process, without what was registered before, which is what
   libraries that are loaded by now do at the end: PyTorch's take every operator out of its tables, 0.15 seconds. 0, or -1. */
int tn_forks_end_early(void);
/* The kernel's net for this process (sandbox.h). 0, also where the kernel has none. */
int tn_forks_sandbox(const char *run_folder);

#endif
