/* SPDX-License-Identifier: Apache-2.0
 *
 * A call that waits for the reaper's answer, and the process that made it. One thread.
 */
#ifndef TN_PRELOAD_RAW_CALLER_H
#define TN_PRELOAD_RAW_CALLER_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rows of raw.def. */
enum tn__raw_call {
#define TN_RAW(name, number, number32, treatment) TN__RAW_##name,
#include "preload/raw.def"
#undef TN_RAW
	TN__RAW_UNKNOWN
};

struct tn__raw_caller {
	const struct seccomp_notif *call;
	int listener, memory; /* memory: of the caller, open for reading; -1: it cannot be read */
};

#define TN__RAW_GO_ON 1L /* an answer: the caller's own call is to be made by the kernel */

enum tn__raw_call tn__raw_which(const struct seccomp_notif *call);
const char *tn__raw_name(enum tn__raw_call which);
/* Reads the caller's memory whole: 0 or -EFAULT. */
long tn__raw_read(const struct tn__raw_caller *caller, uint64_t at, void *buffer, size_t size);
/* A text that ends within `size` bytes: 0 or a negative errno number. */
long tn__raw_read_text(const struct tn__raw_caller *caller, uint64_t at, char *buffer, size_t size);
/* The caller's name for a file (not empty), relative to its folder `dirfd`, as an absolute one of ours in PATH_MAX bytes. 0 or a
 * negative errno number. */
long tn__raw_absolute(const struct tn__raw_caller *caller, int dirfd, const char *text, char *path);
/* The same for a name in the caller's memory. */
long tn__raw_read_path(const struct tn__raw_caller *caller, int dirfd, uint64_t at, char *path);
/* Does the caller mean the same files by its names as we do? One that has changed its root does not. */
bool tn__raw_has_our_root(const struct tn__raw_caller *caller);
/* Does the caller still wait? What was found by its number may be somebody else's otherwise. */
bool tn__raw_still_waits(const struct tn__raw_caller *caller);

#endif
