/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that the kernel decides (Landlock), and of which the reaper only counts those that are refused. One thread.
 */
#ifndef TN_PRELOAD_RAW_COUNTED_H
#define TN_PRELOAD_RAW_COUNTED_H

#include "preload/raw_caller.h"

bool tn__raw_is_counted(const struct seccomp_notif *call);
/* Would the call change a real file if there were no walls? Then `path` (PATH_MAX bytes) is that file. Nothing is changed. */
bool tn__raw_would_change(const struct tn__raw_caller *caller, char *path);

#endif
