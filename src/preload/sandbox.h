/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's net below the write overlay, for what never passes through libc.
 */
#ifndef TN_PRELOAD_SANDBOX_H
#define TN_PRELOAD_SANDBOX_H

#include "tonnage/status.h"

/* Forbids the calling process and all that it starts to change files outside `run_folder`, the folder that the link
 * `run_folder`/shm leads to, the devices in /dev (disks are none), /proc and /sys, for good; reading and executing stay as
 * they were. Descriptors that are already open are not affected, and regular files that are open for writing without
 * FD_CLOEXEC may be opened again. To be called in the child just before exec; it has one thread. TN_UNSUPPORTED where the
 * kernel has no Landlock that can do it (Linux 5.19 is the first); TN_IO when it refused. */
tn_status tn__sandbox_apply(const char *run_folder);

#endif
