/* SPDX-License-Identifier: Apache-2.0
 *
 * Address space: lowest fit, and random programs against a plain model (a byte map of pages).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/space.h"

#define BASE UINT64_C(0x100000)
#define UNIT UINT64_C(0x1000)

static uint64_t
take(struct tn_space *space, uint64_t units)
{
	struct tn_range range;
	return tn__space_take(space, units * UNIT, UNIT, 0, 0, NULL, &range) == TN_OK ? range.address : 0;
}

static void
test_lowest_fit(void **state)
{
	struct tn_space space;
	tn__space_init(&space, BASE, 16 * UNIT);
	uint64_t a = take(&space, 4), b = take(&space, 2), c = take(&space, 4);
	assert_int_equal(a, BASE);
	assert_int_equal(b, BASE + 4 * UNIT);
	assert_int_equal(c, BASE + 6 * UNIT);
	assert_int_equal(tn__space_give(&space, a, NULL), TN_OK);
	assert_int_equal(take(&space, 5), BASE + 10 * UNIT); /* does not fit into the hole */
	assert_int_equal(take(&space, 3), BASE);             /* does */
	assert_int_equal(take(&space, 2), 0);                /* full but for single units */
	assert_int_equal(tn__space_check(&space), TN_OK);
	tn__space_destroy(&space);
}

static void
test_bad_calls(void **state)
{
	struct tn_space space;
	struct tn_range range = { .address = 7 };
	tn__space_init(&space, BASE, 16 * UNIT);
	assert_int_equal(tn__space_take(&space, 0, UNIT, 0, 0, NULL, &range), TN_INVALID);
	assert_int_equal(tn__space_take(&space, UNIT, 3, 0, 0, NULL, &range), TN_INVALID);
	assert_int_equal(tn__space_take(&space, 17 * UNIT, UNIT, 0, 0, NULL, &range), TN_LIMIT);
	assert_int_equal(tn__space_give(&space, BASE, NULL), TN_NOT_FOUND);
	assert_int_equal(range.address, 7); /* untouched on failure */
	assert_null(tn__space_find(&space, BASE));
	tn__space_destroy(&space);
}

static void
test_wanted_address(void **state)
{
	struct tn_space space;
	struct tn_range range;
	tn__space_init(&space, BASE, 16 * UNIT);
	assert_int_equal(tn__space_take(&space, UNIT, UNIT, BASE + 3 * UNIT, 0, NULL, &range), TN_OK);
	assert_int_equal(range.address, BASE + 3 * UNIT);
	assert_int_equal(tn__space_take(&space, UNIT, UNIT, BASE + 3 * UNIT, 0, NULL, &range), TN_OK);
	assert_int_equal(range.address, BASE); /* taken: the lowest instead */
	tn__space_destroy(&space);
}

/* The model: which range owns each unit of a small space. */
#define UNITS 256
static int owner[UNITS];

static uint64_t
model_take(int id, uint64_t units, uint64_t alignment)
{
	for (uint64_t start = 0; start + units <= UNITS; start += alignment) {
		bool free_run = true;
		for (uint64_t i = start; i < start + units && free_run; i++)
			free_run = owner[i] == 0;
		if (!free_run)
			continue;
		for (uint64_t i = start; i < start + units; i++)
			owner[i] = id;
		return BASE + start * UNIT;
	}
	return 0;
}

static void
test_random_programs(void **state)
{
	for (unsigned seed = 1; seed <= 50; seed++) {
		struct tn_space space;
		uint64_t addresses[UNITS * 8] = { 0 };
		int ids = 0;
		memset(owner, 0, sizeof(owner));
		tn__space_init(&space, BASE, UNITS * UNIT);
		srand(seed);
		for (int step = 0; step < 1000 && ids < UNITS * 8 - 1; step++) {
			if (rand() % 2) {
				uint64_t units = 1 + (uint64_t)(rand() % 12), alignment = UINT64_C(1) << rand() % 4;
				struct tn_range range = { 0 };
				uint64_t expected = model_take(++ids, units, alignment);
				tn_status status = tn__space_take(&space, units * UNIT, alignment * UNIT, 0, (uint64_t)ids, NULL,
				                                  &range);
				assert_int_equal(status, expected ? TN_OK : TN_LIMIT);
				assert_int_equal(range.address, expected);
				addresses[ids] = range.address;
			} else if (ids) {
				int id = 1 + rand() % ids;
				if (!addresses[id])
					continue;
				struct tn_range gone;
				assert_int_equal(tn__space_give(&space, addresses[id], &gone), TN_OK);
				assert_int_equal(gone.tag, id);
				addresses[id] = 0;
				for (int i = 0; i < UNITS; i++)
					if (owner[i] == id)
						owner[i] = 0;
			}
			assert_int_equal(tn__space_check(&space), TN_OK);
		}
		for (uint64_t i = 0; i < UNITS; i++) {
			struct tn_range *found = tn__space_find(&space, BASE + i * UNIT + UNIT / 2);
			assert_int_equal(found ? (int)found->tag : 0, owner[i]);
		}
		tn__space_destroy(&space);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lowest_fit),
		cmocka_unit_test(test_bad_calls),
		cmocka_unit_test(test_wanted_address),
		cmocka_unit_test(test_random_programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
