/* SPDX-License-Identifier: Apache-2.0
 *
 * Out-of-memory errors found in a text (a log, a traceback), as data.
 */
#ifndef TONNAGE_OOM_H
#define TONNAGE_OOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A figure that the text does not hold. */
#define TN_OOM_UNKNOWN UINT64_MAX

struct tn_oom_figure {
	const char *name; /* "tried_bytes", "total_bytes", ...: as in doc/format/explain.schema.json */
	uint64_t bytes;
};

struct tn_oom_error {
	const char *family;                  /* who reported it and in which wording, such as "torch_2_1" */
	bool certain;                        /* false: it may be an out-of-memory error, or one that was survived */
	int64_t device, rank;                /* -1: not in the text */
	uint64_t line;                       /* of the text, from 1 */
	const struct tn_oom_figure *figures; /* those that the text holds */
	size_t figure_count;
	const char *at;            /* "file:line" of the user's own code; NULL: not in the text */
	const char *cause;         /* "fragmentation", "model_or_batch_too_big", ... */
	const char *reason;        /* one sentence */
	const char *const *advice; /* most useful first */
	size_t advice_count;
};

/* Called for each error, in the order of the text; the error is valid during the call only. A status other than TN_OK
 * ends the reading and is passed on. */
typedef tn_status tn_oom_found(void *context, const struct tn_oom_error *error);

/* Finds all out-of-memory errors in `size` bytes, which may be anything. TN_NO_MEMORY, and what `found` returns.
 * Thread-safe. */
tn_status tn_oom_scan(const char *text, size_t size, tn_oom_found *found, void *context);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
