/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a command as it is, and explaining what its output ends with.
 */
#ifndef TONNAGE_LISTEN_H
#define TONNAGE_LISTEN_H

#include <stdio.h>

#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs `command` (ends with NULL; found on the PATH) with this process's input, environment and folder, and passes its output on
 * as it comes. Where an output is a terminal, the command has one, too. When it has failed, the out-of-memory errors in the last
 * 8 MiB of its output are explained to stderr; with `json` (else NULL) they are written there in any case
 * (doc/format/explain.schema.json). *exit_status is the command's own, 128 + n for a signal; 127 and 126, with TN_NOT_FOUND and
 * TN_INVALID, where it cannot be started. Installs signal handlers while it runs: not thread-safe. */
tn_status tn_listen(char *const *command, FILE *json, int *exit_status);

#ifdef __cplusplus
}
#endif
#endif
