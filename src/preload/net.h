/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's net below the write shield, for what never passes through libc.
 */
#ifndef TN_PRELOAD_NET_H
#define TN_PRELOAD_NET_H

#include "tonnage/status.h"

/* Forbids the calling process and all that it starts to change files outside `run_folder`, /dev, /proc and /sys, for
   good; * reading and executing stay as they were. Descriptors that are already open are not affected. To be called
   in the child * just before exec: async-signal-safe but for the text of an error. * TN_UNSUPPORTED where the kernel
   has no Landlock that can do it (Linux 5.19 is the first); TN_IO when it refused. */
tn_status tn__net_apply(const char *run_folder);

#endif
