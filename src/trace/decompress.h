/* SPDX-License-Identifier: Apache-2.0
 *
 * A compressed input as a source of its plain bytes: gzip and zstd, recognised by their first bytes.
 *
 * What is kept is one window, whatever the input says: 32 KiB for gzip, for zstd at most 1 / TN_UNPACK_WINDOW of the
 * budget, from which it is taken. Plain bytes are handed on and not kept, so that all limits of the reader hold for
 * them as for a plain file. Not thread-safe; one per input. Must not know what the bytes mean.
 */
#ifndef TN_TRACE_DECOMPRESS_H
#define TN_TRACE_DECOMPRESS_H

#include "pickle/cursor.h" /* struct tn_cursor */

#define TN_UNPACK_WINDOW ((uint64_t)64)     /* part of the budget: 128 MiB of 8 GiB, as zstd itself allows */
#define TN_UNPACK_RATIO ((uint32_t)1000)    /* plain bytes to one packed byte; gzip cannot do more … */
#define TN_UNPACK_FREE ((uint64_t)64 << 20) /* … beyond so many, which any input may have */
#define TN_UNPACK_REST ((uint64_t)1 << 20)  /* plain bytes that are read to reach the checksum */

struct tn_unpacker;

/* The name of what the bytes at the cursor are packed with, "gzip" or "zstd"; NULL: with nothing we know. Wants four
 * bytes at the cursor, as far as the input has them. */
const char *tn__packed_with(const struct tn_cursor *cursor);

/* `packed` and `budget` are borrowed until tn__unpacker_free; a ratio of 0 is TN_UNPACK_RATIO. TN_LIMIT,
 * TN_NO_MEMORY. */
tn_status tn__unpacker_new(struct tn_cursor *packed, struct tn_budget *budget, uint32_t ratio,
                           struct tn_unpacker **unpacker);
void tn__unpacker_free(struct tn_unpacker *unpacker); /* NULL is allowed */

/* A tn_source, `context` being the unpacker. Frames and members that follow one another are one input. TN_FORMAT for
 * corrupt or cut input, with its place in the file; TN_LIMIT for a window or a ratio beyond the limits. */
tn_status tn__unpack(void *context, void *buffer, size_t size, size_t *got);

/* The words of the last failure of tn__unpack itself, before a reader put an offset in front; NULL: none. */
const char *tn__unpack_failure(const struct tn_unpacker *unpacker);

/* Reads on to the end, so that the last checksum is compared; gives up quietly after TN_UNPACK_REST. */
tn_status tn__unpack_rest(struct tn_unpacker *unpacker);

#endif
