/* SPDX-License-Identifier: Apache-2.0
 *
 * Out-of-memory errors in a text, explained.
 */
#ifndef TONNAGE_MESSAGE_H
#define TONNAGE_MESSAGE_H

#include <stdio.h>

#include "tonnage/snapshot.h"
#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads `in` to its end and explains every out-of-memory error in it, in order: for a person into `text`, as the
 * object of doc/format/explain.schema.json into `json`; either may be NULL. The text may be of any length and hold
 * any bytes; memory does not grow with it. With a snapshot (else NULL) it also says what held the memory when the
 * request failed, and whether the cache was in pieces; `in` may then be NULL. TN_IO when reading or writing fails,
 * TN_NO_MEMORY. Thread-safe for distinct streams. */
tn_status tn_explain(FILE *in, const struct tn_snapshot *snapshot, FILE *text, FILE *json);

#ifdef __cplusplus
}
#endif
#endif
