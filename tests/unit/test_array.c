/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing arrays: items stay, the room never exceeds its limit, and an array that cannot grow is as it was.
 */
#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void
test_items_stay(void **state)
{
	uint64_t *items = NULL;
	size_t capacity = 0, grown = 0;
	(void)state;
	for (size_t count = 0; count < 100000; count++) {
		size_t before = capacity;
		assert_true(tn__array_room(&items, &capacity, count + 1, sizeof(*items), SIZE_MAX));
		assert_true(capacity > count);
		grown += capacity != before;
		items[count] = count * count;
	}
	for (size_t i = 0; i < 100000; i++)
		assert_int_equal(items[i], i * i);
	assert_in_range(grown, 10, 20); /* by doubling */
	free(items);
}

static void
test_the_limit(void **state)
{
	char *items = NULL;
	size_t capacity = 0;
	(void)state;
	for (size_t most = 1; most < 300; most++) {
		assert_true(tn__array_room(&items, &capacity, most, 1, most));
		assert_in_range(capacity, most, most < 16 ? 16 : 2 * most);
		assert_true(capacity <= most);
		char *there = items;
		size_t room = capacity;
		assert_false(tn__array_room(&items, &capacity, most + 1, 1, most));
		assert_ptr_equal(items, there);
		assert_int_equal(capacity, room);
	}
	free(items);
}

static void
test_more_than_there_is(void **state)
{
	uint64_t *items = NULL;
	size_t capacity = 0;
	(void)state;
	assert_true(tn__array_room(&items, &capacity, 3, sizeof(*items), SIZE_MAX));
	items[2] = 7;
	assert_false(tn__array_room(&items, &capacity, SIZE_MAX / 4, sizeof(*items), SIZE_MAX)); /* bytes overflow */
	assert_int_equal(items[2], 7);
	assert_in_range(capacity, 3, 16);
	free(items);
}

static void
test_without_a_capacity(void **state)
{
	uint64_t *items = NULL;
	bool shrunk = false;
	(void)state;
	for (size_t count = 0; count < 5000; count++) { /* a sanitizer sees a write beyond the room */
		assert_true(tn__array_add(&items, count, sizeof(*items)));
		items[count] = count;
		if (count == 33 && !shrunk) {
			shrunk = true;
			count = 9; /* some were taken away */
		}
	}
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(items[i], i);
	assert_false(tn__array_add(&items, SIZE_MAX / 2 + 1, sizeof(*items)));
	assert_int_equal(items[1], 1);
	free(items);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_items_stay),
		cmocka_unit_test(test_the_limit),
		cmocka_unit_test(test_more_than_there_is),
		cmocka_unit_test(test_without_a_capacity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
