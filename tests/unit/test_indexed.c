/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements gathered at indices (indexed.c), against a plain model: random shapes, orders of dimensions, strides, indices out of range
 * and memory of which some is known. Few elements move one by one, many together: both are compared with the same model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_no_run.h"
#include "vgpu/core/indexed.h"

#define OK(call) assert_int_equal((call), TN_CUDA_OK)

#define ROUNDS 4000
#define INPUT_BYTES 4096
#define RESULT_BYTES 32768
#define INDEX_BYTES 65536

static uint32_t seed = 1;

static uint32_t
draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

struct model {
	unsigned char input[INPUT_BYTES], known[INPUT_BYTES];
	unsigned char result[RESULT_BYTES], result_known[RESULT_BYTES];
	int64_t indices[2][INDEX_BYTES / 8];
};

static int
begin(void **state)
{
	OK(tn__enter());
	return 0;
}

/* All of the input, none of it, or pieces of it. */
static void
know_some(struct model *model, uint64_t input)
{
	uint32_t pieces = draw(4);
	tn__values_forget_range(input, INPUT_BYTES);
	memset(model->known, 0, INPUT_BYTES);
	for (uint32_t i = 0; i < INPUT_BYTES; i++)
		model->input[i] = (unsigned char)draw(256);
	tn__values_write(input - INPUT_BYTES, model->input, INPUT_BYTES); /* somebody else's */
	for (uint32_t piece = 0; piece < pieces; piece++) {
		uint32_t from = pieces == 1 ? 0 : draw(INPUT_BYTES / 8) * 8, bytes = pieces == 1 ? INPUT_BYTES : draw(2048) + 1;
		bytes = from + bytes > INPUT_BYTES ? INPUT_BYTES - from : bytes;
		tn__values_write(input + from, model->input + from, bytes);
		memset(model->known + from, 1, bytes);
	}
}

/* A result, mostly dense, of up to three dimensions in any order, with two indices, each of which may be the same along some of them. */
static uint64_t
make_closure(struct tn_indexed *c, const uint64_t addresses[4], uint64_t width)
{
	uint64_t count = 1, stride = width << (draw(4) == 0); /* now and then with room between two elements */
	*c = (struct tn_indexed){ .dims = (int32_t)draw(4), .result = addresses[0], .input = addresses[1], .indices = 2 };
	uint32_t order[3] = { draw(3), 0, 0 };
	order[1] = (order[0] + 1 + draw(2)) % 3;
	order[2] = 3 - order[0] - order[1];
	for (int32_t d = 0; d < c->dims; d++) {
		c->sizes[d][0] = 1 + draw(10); /* more than 1,024 pieces would be forgotten */
		count *= c->sizes[d][0];
		c->strides[d][1] = draw(2) * (uint32_t)width;
		c->strides[d][2] = draw(3) * 8;
	}
	for (int32_t i = 0; i < 3; i++) {
		int32_t d = (int32_t)order[i];
		if (d >= c->dims)
			continue;
		c->strides[d][0] = (uint32_t)stride;
		stride *= c->sizes[d][0];
	}
	for (int32_t i = 0; i < 2; i++) {
		c->index[i] = addresses[2 + i];
		c->index_sizes[i] = 1 + draw(20);
		c->index_strides[i] = (int64_t)(draw(4) * width);
	}
	return count;
}

static void
make_indices(struct model *model, const struct tn_indexed *c, bool all_in_range)
{
	for (int i = 0; i < 2; i++) {
		for (size_t n = 0; n < 128; n++)
			model->indices[i][n] = (int64_t)draw((uint32_t)(2 * c->index_sizes[i])) - c->index_sizes[i];
		if (!all_in_range)
			for (size_t n = draw(128), wrong = draw(2); n < 128; n++)
				model->indices[i][n] = wrong ? c->index_sizes[i] : -c->index_sizes[i] - 1;
		tn__values_write(c->index[i], model->indices[i], 128 * 8);
	}
}

/* False where an index that is used is out of range. */
static bool
move_in_model(struct model *model, const struct tn_indexed *c, uint64_t count, uint64_t width)
{
	for (int pass = 0; pass < 2; pass++)
		for (uint64_t n = 0; n < count; n++) {
			uint64_t offsets[3], from;
			tn__indexed_offsets(c, n, offsets);
			from = offsets[1];
			for (int i = 0; i < 2; i++) {
				int64_t index = model->indices[i][offsets[2] / 8], size = c->index_sizes[i];
				if (index >= size || index < -size)
					return false;
				from += (uint64_t)((index < 0 ? index + size : index) * c->index_strides[i]);
			}
			for (uint64_t b = 0; pass == 1 && b < width; b++) {
				model->result[offsets[0] + b] = model->input[from + b];
				model->result_known[offsets[0] + b] = model->known[from + b];
			}
		}
	return true;
}

static void
check(const struct model *model, uint64_t result, uint64_t bytes)
{
	unsigned char *values = malloc(bytes), *known = malloc(bytes);
	tn__values_peek(result, bytes, values, known);
	for (uint64_t i = 0; i < bytes; i++) {
		assert_int_equal(known[i], model->result_known[i]);
		if (known[i])
			assert_int_equal(values[i], model->result[i]);
	}
	free(values);
	free(known);
}

static void
test_random_gathers_are_those_of_a_model(void **state)
{
	static struct model model;
	uint64_t device, addresses[4];
	int moved = 0, refused = 0;
	OK(tn__malloc(1 << 21, &device));
	for (int i = 0; i < 4; i++)
		addresses[i] = device + (uint64_t)i * (1 << 18) + INPUT_BYTES;
	for (int round = 0; round < ROUNDS; round++) {
		struct tn_indexed c;
		uint64_t width = UINT64_C(1) << draw(4), count = make_closure(&c, addresses, width);
		know_some(&model, c.input);
		make_indices(&model, &c, draw(8) > 0);
		assert_true(tn__indexed_is_plausible(&c, count));
		tn__values_write(c.result, model.result, RESULT_BYTES); /* what was there before */
		memset(model.result_known, 1, RESULT_BYTES);
		bool good = move_in_model(&model, &c, count, width);
		assert_int_equal(tn__indexed_move(&c, count, false, width), good);
		if (good)
			check(&model, c.result, RESULT_BYTES);
		moved += good;
		refused += !good;
	}
	assert_true(moved > ROUNDS / 2 && refused > 0);
	OK(tn__free(device));
}

int
main(void)
{
	leave_run();
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_gathers_are_those_of_a_model) };
	return cmocka_run_group_tests(tests, begin, NULL);
}
