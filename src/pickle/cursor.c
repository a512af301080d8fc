/* SPDX-License-Identifier: Apache-2.0
 *
 * A window over the input. It stays small enough for the second-level cache and grows only for a long string.
 */
#include "pickle/cursor.h"

#include <string.h>

#include "base/error.h"

enum { WINDOW_BYTES = 256 << 10 };

void
tn__cursor_memory(struct tn_cursor *cursor, const void *bytes, size_t size)
{
	*cursor = (struct tn_cursor){ .at = bytes, .end = (const uint8_t *)bytes + size, .end_offset = size };
}

void
tn__cursor_source(struct tn_cursor *cursor, tn_source source, void *context, struct tn_budget *budget)
{
	*cursor = (struct tn_cursor){ .source = source, .context = context, .budget = budget };
}

void
tn__cursor_destroy(struct tn_cursor *cursor)
{
	if (cursor->buffer)
		tn__release(cursor->budget, &cursor->buffer, &cursor->capacity, 1);
	*cursor = (struct tn_cursor){ 0 };
}

/* Moves what is left to the front and makes sure that there is room behind it. */
static tn_status
make_room(struct tn_cursor *cursor)
{
	size_t left = tn__cursor_left(cursor);
	if (left && cursor->at != cursor->buffer)
		memmove(cursor->buffer, cursor->at, left);
	tn_status status = TN_OK;
	if (left == cursor->capacity)
		status = tn__grow(cursor->budget, &cursor->buffer, &cursor->capacity, left ? left * 2 : WINDOW_BYTES, 1);
	cursor->at = cursor->buffer;
	cursor->end = left ? cursor->buffer + left : cursor->buffer; // which is NULL when there was no room for the first
	return status;
}

tn_status
tn__cursor_fill(struct tn_cursor *cursor, size_t needed)
{
	while (cursor->source && tn__cursor_left(cursor) < needed) {
		size_t got = 0;
		TN_FORWARD_IF_ERROR(make_room(cursor));
		size_t left = tn__cursor_left(cursor);
		TN_FORWARD_IF_ERROR(cursor->source(cursor->context, cursor->buffer + left, cursor->capacity - left, &got));
		cursor->end += got;
		cursor->end_offset += got;
		if (got == 0)
			cursor->source = NULL;
	}
	return TN_OK;
}
