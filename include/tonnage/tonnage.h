/* SPDX-License-Identifier: Apache-2.0
 *
 * libtonnage: read a memory snapshot of PyTorch, ask what was alive when and for what, explain an out-of-memory error
 * in a text, look up a GPU. Link with `pkg-config --libs tonnage`.
 *
 * Nothing here prints, exits, starts a thread or installs a signal handler. Functions that can fail return tn_status and
 * leave their out-pointers untouched when they do.
 */
#ifndef TONNAGE_TONNAGE_H
#define TONNAGE_TONNAGE_H

#include "tonnage/card.h"
#include "tonnage/memory.h"
#include "tonnage/oom.h"
#include "tonnage/snapshot.h"
#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The number in the library's SONAME. It changes when a program that was built before would no longer run. */
#define TN_ABI_VERSION 0

/* "0.1.0": of the library that was loaded, which may be newer than the headers. */
const char *tn_version(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
