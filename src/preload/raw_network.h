/* SPDX-License-Identifier: Apache-2.0
 *
 * The reaper's answers to trapped calls that reach others by network. One thread.
 */
#ifndef TN_PRELOAD_RAW_NETWORK_H
#define TN_PRELOAD_RAW_NETWORK_H

#include "preload/raw_caller.h"
#include "tonnage/status.h"

/* Maps the run's network table. */
tn_status tn__raw_network_attach(const char *run_folder);
bool tn__raw_is_network(const struct seccomp_notif *call);
/* What the call is to return: 0 or a negative errno number; or TN__RAW_GO_ON. Refusals are counted in the table. */
long tn__raw_network_answer(const struct tn__raw_caller *caller);

#endif
