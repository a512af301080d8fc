/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/ranges.h"

static void
test_numbers_and_ranges_are_read(void **state)
{
	int out[8];
	assert_int_equal(tn__ranges_read("0,1,7-9", out, 8), 5);
	const int wanted[] = { 0, 1, 7, 8, 9 };
	assert_memory_equal(out, wanted, sizeof(wanted));
	assert_int_equal(tn__ranges_read("1023", out, 8), 1);
	assert_int_equal(out[0], 1023);
	assert_int_equal(tn__ranges_read("3-3", out, 8), 1);
	assert_int_equal(tn__ranges_read("0-7", out, 8), 8);
}

static void
test_what_is_no_list_is_refused(void **state)
{
	static const char *const wrong[] = { "",   ",",   "1,",  ",1",  "a",     "1a",  "1-",
		                                 "-1", "3-1", "1,1", "2,1", "0-3,3", "0 1", "99999999999" };
	int out[8];
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(tn__ranges_read(wrong[i], out, 8), -1);
	assert_int_equal(tn__ranges_read("0-8", out, 8), -1); /* more than there is room for */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_and_ranges_are_read),
		cmocka_unit_test(test_what_is_no_list_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
