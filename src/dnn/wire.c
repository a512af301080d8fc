/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing and reading the bytes of wire.h.
 */
#include "dnn/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#include "dnn/abi.h"

static const uint8_t element_bytes[] = {
#define SIZE(name, number, bytes) [number] = bytes,
	DNN_TYPE_LIST(SIZE) DNN_LATER_TYPE_LIST(SIZE)
#undef SIZE
};

size_t
tn__dnn_element_bytes(int type)
{
	return type < 0 || type >= (int)sizeof(element_bytes) ? 0 : element_bytes[type];
}

/* ---- writing ---- */

void
tn__dnn_add(struct tn_dnn_bytes *bytes, const void *from, size_t length)
{
	if (bytes->failed || length > TN_DNN_MOST_BYTES - bytes->length) {
		bytes->failed = true;
		return;
	}
	if (!tn__array_room(&bytes->at, &bytes->room, bytes->length + length, 1, TN_DNN_MOST_BYTES)) {
		bytes->failed = true;
		return;
	}
	if (length > 0)
		memcpy(bytes->at + bytes->length, from, length);
	bytes->length += length;
}

void
tn__dnn_add_u32(struct tn_dnn_bytes *bytes, uint32_t number)
{
	tn__dnn_add(bytes, &number, sizeof(number));
}

void
tn__dnn_add_i64(struct tn_dnn_bytes *bytes, int64_t number)
{
	tn__dnn_add(bytes, &number, sizeof(number));
}

void
tn__dnn_bytes_free(struct tn_dnn_bytes *bytes)
{
	free(bytes->at);
	*bytes = (struct tn_dnn_bytes){ .at = NULL };
}

/* ---- reading ---- */

const void *
tn__dnn_take(struct tn_dnn_cursor *cursor, size_t length)
{
	const void *here = cursor->at;
	if (cursor->failed || length > (size_t)(cursor->end - cursor->at)) {
		cursor->failed = true;
		return NULL;
	}
	cursor->at += length;
	return here;
}

uint32_t
tn__dnn_take_u32(struct tn_dnn_cursor *cursor)
{
	uint32_t number = 0;
	const void *here = tn__dnn_take(cursor, sizeof(number));
	if (here != NULL)
		memcpy(&number, here, sizeof(number));
	return number;
}

int64_t
tn__dnn_take_i64(struct tn_dnn_cursor *cursor)
{
	int64_t number = 0;
	const void *here = tn__dnn_take(cursor, sizeof(number));
	if (here != NULL)
		memcpy(&number, here, sizeof(number));
	return number;
}

/* ---- questions ---- */

bool
tn__dnn_question_read(const void *bytes, size_t length, struct tn_dnn_question *out)
{
	struct tn_dnn_cursor cursor = { .at = bytes, .end = (const unsigned char *)bytes + length };
	const void *head = tn__dnn_take(&cursor, sizeof(out->head));
	if (head == NULL)
		return false;
	memcpy(&out->head, head, sizeof(out->head));
	if (out->head.version != TN_DNN_WIRE_VERSION ||
	    (out->head.kind != TN_DNN_HEURISTICS && out->head.kind != TN_DNN_PLAN))
		return false;
	out->library = tn__dnn_take(&cursor, out->head.library);
	out->card = tn__dnn_take(&cursor, out->head.card);
	const unsigned char *graph = tn__dnn_take(&cursor, out->head.graph);
	if (cursor.failed || cursor.at != cursor.end)
		return false;
	out->graph = (struct tn_dnn_cursor){ .at = graph, .end = graph + out->head.graph };
	return true;
}

/* FNV-1a of 64 bits, with a start of its own. */
static uint64_t
hash(uint64_t start, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	for (size_t i = 0; i < length; i++)
		start = (start ^ at[i]) * 0x100000001b3u;
	return start;
}

static uint64_t
hash_question(const struct tn_dnn_question *question, uint64_t start)
{
	struct tn_dnn_head head = question->head;
	head.library = 0;
	start = hash(start, &head, sizeof(head));
	start = hash(start, question->card, question->head.card);
	return hash(start, question->graph.at, question->head.graph);
}

struct tn_dnn_key
tn__dnn_key_of(const struct tn_dnn_question *question)
{
	return (struct tn_dnn_key){ hash_question(question, 0xcbf29ce484222325u),
		                        hash_question(question, 0x9e3779b97f4a7c15u) };
}
