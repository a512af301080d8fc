/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the bytes come from: a piece of memory, or a function that is asked for more (a file, a decompressor).
 *
 * Invariant: at <= end; what was consumed from a function is gone. A cursor belongs to one reader.
 */
#ifndef TN_PICKLE_CURSOR_H
#define TN_PICKLE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pickle/budget.h" /* struct tn_budget */

/* Fills up to `size` bytes and says how many; 0 is the end of the input. */
typedef tn_status (*tn_source)(void *context, void *buffer, size_t size, size_t *got);

struct tn_cursor {
	const uint8_t *at, *end;
	uint64_t end_offset; /* of `end` in the input */
	struct tn_budget *budget;
	tn_source source; /* NULL: all bytes are there */
	void *context;
	uint8_t *buffer;
	size_t capacity;
};

void tn__cursor_memory(struct tn_cursor *cursor, const void *bytes, size_t size);
void tn__cursor_source(struct tn_cursor *cursor, tn_source source, void *context, struct tn_budget *budget);
void tn__cursor_destroy(struct tn_cursor *cursor);

/* Tries to have `needed` contiguous bytes at `at`, which moves. What is left may be fewer at the end of the input. The
 * buffer grows only by bytes that have arrived. */
tn_status tn__cursor_fill(struct tn_cursor *cursor, size_t needed);

static inline uint64_t
tn__cursor_offset(const struct tn_cursor *cursor)
{
	return cursor->end_offset - (uint64_t)(cursor->end - cursor->at);
}

static inline size_t
tn__cursor_left(const struct tn_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

#endif
