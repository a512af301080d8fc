/* SPDX-License-Identifier: Apache-2.0 */
#include "vgpu/core/indexed.h"

#include <stdlib.h>
#include <string.h>

#define TOGETHER_FROM 16 /* elements from which on they are moved together */

bool
tn__indexed_is_plausible(const struct tn_indexed *c, uint64_t count)
{
	uint64_t product = 1;
	bool good = count > 0 && c->dims >= 0 && c->dims <= TN_INDEXED_DIMS && c->indices > 0 &&
	            c->indices <= TN_INDEXED_DIMS && tn__on_device(c->result) && tn__on_device(c->input);
	for (int32_t d = 0; good && d < c->dims; d++) {
		product *= c->sizes[d][0];
		good = c->sizes[d][0] > 0 && product <= count;
	}
	for (int32_t i = 0; good && i < c->indices; i++)
		good = tn__on_device(c->index[i]) && c->index_sizes[i] > 0;
	return good && product == count;
}

uint64_t
tn__indexed_elements(const struct tn_indexed *c)
{
	uint64_t count = 1;
	for (int32_t d = 0; d < c->dims; d++)
		count *= c->sizes[d][0];
	return count;
}

void
tn__indexed_offsets(const struct tn_indexed *c, uint64_t n, uint64_t offsets[3])
{
	memset(offsets, 0, 3 * sizeof(*offsets));
	for (int32_t d = 0; d < c->dims; d++) {
		uint64_t at = n % c->sizes[d][0];
		n /= c->sizes[d][0];
		for (int i = 0; i < 3; i++)
			offsets[i] += at * c->strides[d][i];
	}
}

bool
tn__indexed_place(const struct tn_indexed *c, uint64_t index_offset, uint64_t *place)
{
	*place = 0;
	for (int32_t i = 0; i < c->indices; i++) {
		int64_t index;
		if (!tn__values_known(c->index[i] + index_offset, &index, sizeof(index)) || index >= c->index_sizes[i] ||
		    index < -c->index_sizes[i])
			return false;
		*place += (uint64_t)((index < 0 ? index + c->index_sizes[i] : index) * c->index_strides[i]);
	}
	return true;
}

/* Whether the elements of the result lie side by side, in whatever order. */
static bool
is_dense(const struct tn_indexed *c, uint64_t width)
{
	uint64_t end = width;
	for (int32_t found = 0, d = 0; found < c->dims; found++) {
		for (d = 0; d < c->dims && (c->sizes[d][0] == 1 || c->strides[d][0] != end); d++)
			;
		if (d < c->dims)
			end *= c->sizes[d][0];
	}
	return end == tn__indexed_elements(c) * width;
}

/* The values of an index as far as the result reaches; NULL: not all are known. The caller frees. */
static unsigned char *
read_index(const struct tn_indexed *c, int32_t number)
{
	uint64_t bytes = sizeof(int64_t);
	for (int32_t d = 0; d < c->dims; d++)
		bytes += (uint64_t)(c->sizes[d][0] - 1) * c->strides[d][2];
	unsigned char *values = bytes <= TN_INDEXED_MAX * sizeof(int64_t) ? malloc(bytes) : NULL;
	if (values && tn__values_known(c->index[number], values, bytes))
		return values;
	free(values);
	return NULL;
}

/* Adds to each source what an index says; false: one is out of range. */
static bool
add_index(const struct tn_indexed *c, int32_t number, uint64_t count, uint64_t width, uint64_t *from)
{
	uint64_t offsets[3];
	int64_t index, size = c->index_sizes[number];
	unsigned char *values = read_index(c, number);
	bool good = values != NULL;
	for (uint64_t n = 0; good && n < count; n++) {
		tn__indexed_offsets(c, n, offsets);
		memcpy(&index, values + offsets[2], sizeof(index));
		good = index < size && index >= -size;
		from[offsets[0] / width] += (uint64_t)((index < 0 ? index + size : index) * c->index_strides[number]);
	}
	free(values);
	return good;
}

/* A dense result whose elements are all known, or none is, at once: a table of neighbours has ten thousands. */
static bool
move_together(const struct tn_indexed *c, uint64_t count, uint64_t width)
{
	uint64_t offsets[3], *from = count > TOGETHER_FROM && is_dense(c, width) ? malloc(count * sizeof(*from)) : NULL;
	bool good = from != NULL;
	for (uint64_t n = 0; good && n < count; n++) {
		tn__indexed_offsets(c, n, offsets);
		from[offsets[0] / width] = c->input + offsets[1];
	}
	for (int32_t i = 0; good && i < c->indices; i++)
		good = add_index(c, i, count, width, from);
	good = good && tn__values_move_pieces(c->result, from, count, width);
	free(from);
	return good;
}

bool
tn__indexed_move(const struct tn_indexed *c, uint64_t count, bool put, uint64_t width)
{
	uint64_t offsets[3], place, end = c->result;
	if (count > TN_INDEXED_MAX)
		return false;
	if (!put && move_together(c, count, width))
		return true;
	for (uint64_t n = 0; n < count; n++) {
		tn__indexed_offsets(c, n, offsets);
		if (!tn__indexed_place(c, offsets[2], &place))
			return false;
	}
	for (uint64_t n = 0; n < count; n++) {
		tn__indexed_offsets(c, n, offsets);
		(void)tn__indexed_place(c, offsets[2], &place);
		uint64_t to = c->result + offsets[0] + (put ? place : 0);
		tn__values_move_known(to, c->input + offsets[1] + (put ? 0 : place), width);
		end = to + width > end ? to + width : end;
	}
	tn__values_join(c->result, end - c->result);
	return true;
}
