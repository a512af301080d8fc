/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading what steps did, from files that a program's process may have written; and the rank of a change by its time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "search/fix_search.h"

static void
test_lines_are_read_into_their_steps(void **state)
{
	struct tn_steps steps;
	tn__steps_parse("step\twhat\tbin\tcount\tflops\tbytes\n"
	                "1\thalf\t3\t2\t1000\t300\n"
	                "2\tfp32\t0\t4\t0\t512\n"
	                "2\tguessed\t0\t1\t0\t16\n"
	                "2\tto_host\t0\t1\t0\t8\n"
	                "2\tto_device\t0\t1\t0\t9\n"
	                "2\thost\t0\t1\t0\t7\n"
	                "2\tlaunches\t0\t11\t0\t0\n",
	                &steps);
	assert_int_equal(steps.count, 2);
	assert_true(steps.items[0].kernels[TN_MATH_HALF][3].flops == 1000);
	assert_true(steps.items[1].kernels[TN_MATH_FP32][0].bytes == 512 && steps.items[1].guessed.bytes == 16);
	assert_true(steps.items[1].to_host.bytes == 8 && steps.items[1].to_device.bytes == 9);
	assert_true(steps.items[1].host_bytes == 7 && steps.items[1].launches == 11);
	tn__steps_free(&steps);
	tn__steps_parse(NULL, &steps);
	assert_int_equal(steps.count, 0);
}

static void
test_what_is_no_line_is_passed_over(void **state)
{
	struct tn_steps steps;
	tn__steps_parse("0\thalf\t3\t2\t1\t1\n"
	                "257\thalf\t3\t2\t1\t1\n"
	                "1\thalf\t20\t2\t1\t1\n"
	                "1\thalf\t-1\t2\t1\t1\n"
	                "1\thalf\t3\t-2\t1\t1\n"
	                "1\thalf\t3\tnan\t1\t1\n"
	                "1\tanother\t3\t2\t1\t1\n"
	                "1\tlonger_than_any_name\t3\t2\t1\t1\n"
	                "1\thalf\t3",
	                &steps);
	for (int math = 0; math < TN_MATHS; math++)
		for (int bin = 0; bin < TN_WORK_BINS; bin++)
			assert_true(steps.items[0].kernels[math][bin].count == 0);
	tn__steps_free(&steps);
}

static double
rank_of(double ratio, int cost)
{
	return tn__fix_time(&(struct tn_fix_change){ .cost = cost, .time = { ratio > 0, ratio, ratio, ratio } });
}

static void
test_only_real_differences_of_time_order_changes(void **state)
{
	assert_true(rank_of(0.5, 0) == 0 && rank_of(1.1, 0) == 0);
	assert_true(rank_of(1.3, 0) > rank_of(1.1, 0) && rank_of(2, 0) > rank_of(1.3, 0));
	assert_true(rank_of(0, 0) == 0 && rank_of(0, 4) == rank_of(1.3, 0)); /* unknown: as it usually is */
	assert_true(rank_of(0, 100) > rank_of(2, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_are_read_into_their_steps),
		cmocka_unit_test(test_what_is_no_line_is_passed_over),
		cmocka_unit_test(test_only_real_differences_of_time_order_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
