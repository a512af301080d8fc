/* SPDX-License-Identifier: Apache-2.0
 *
 * A call that waits for the keeper's answer: what raw_answer.c and raw_network.c share. One thread.
 */
#ifndef TN_PRELOAD_RAW_CALLER_H
#define TN_PRELOAD_RAW_CALLER_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h"

struct tn__raw_caller {
	const struct seccomp_notif *call;
	int listener, memory; /* memory: of the caller, open for reading; -1: it cannot be read */
};

/* Reads the caller's memory whole: 0 or -EFAULT. */
long tn__raw_read(const struct tn__raw_caller *caller, uint64_t at, void *buffer, size_t size);
/* The caller's name for a file (not empty), relative to its folder `dirfd`, as an absolute one of ours in PATH_MAX bytes. 0 or a
 * negative errno number. */
long tn__raw_absolute(const struct tn__raw_caller *caller, int dirfd, const char *text, char *path);
/* Means the caller the same files by its names as we do? */
bool tn__raw_has_our_root(const struct tn__raw_caller *caller);
/* Does the caller still wait? What was found by its number may be somebody else's otherwise. */
bool tn__raw_still_waits(const struct tn__raw_caller *caller);

/* ---- raw_network.c ---- */

#define TN__RAW_GO_ON 1L /* the caller's own call is to be made by the kernel */

/* Maps the run's network table. */
tn_status tn__raw_network_attach(const char *run_folder);
bool tn__raw_is_network(const struct seccomp_notif *call);
/* What the call is to return: 0 or a negative errno number; or TN__RAW_GO_ON. Refusals are counted in the table. */
long tn__raw_network_answer(const struct tn__raw_caller *caller);

#endif
