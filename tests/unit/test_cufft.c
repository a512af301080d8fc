/* SPDX-License-Identifier: Apache-2.0
 *
 * How large cuFFT's work areas are taken to be: within the bounds that NVIDIA's guide gives, and never a number that wrapped
 * around.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vgpu/cufft/plan.h"

static size_t
work(int rank, const int64_t *sizes, int64_t batch, size_t element)
{
	size_t bytes = 12345;
	assert_int_equal(tn__cufft_work_size(rank, sizes, batch, element, &bytes), CUFFT_SUCCESS);
	return bytes;
}

static void
refuses(int rank, const int64_t *sizes, int64_t batch)
{
	size_t bytes = 12345;
	assert_int_equal(tn__cufft_work_size(rank, sizes, batch, 8, &bytes), CUFFT_INVALID_SIZE);
	assert_int_equal(bytes, 12345);
}

static void
small_factors_take_the_data_once(void **state)
{
	assert_int_equal(work(1, (int64_t[]){ 1024 }, 64, 8), 1024 * 64 * 8);
	assert_int_equal(work(1, (int64_t[]){ 400 }, 10, 8), 400 * 10 * 8); /* 2^4 5^2 */
	assert_int_equal(work(2, (int64_t[]){ 210, 360 }, 3, 16), 210 * 360 * 3 * 16);
	assert_int_equal(work(3, (int64_t[]){ 8, 9, 7 }, 1, 4), 8 * 9 * 7 * 4);
	assert_int_equal(work(1, (int64_t[]){ 1 }, 1, 8), 8);
}

static void
larger_factors_take_eight_times(void **state)
{
	assert_int_equal(work(1, (int64_t[]){ 11 }, 1, 8), 8 * 11 * 8);
	assert_int_equal(work(2, (int64_t[]){ 1024, 1009 }, 2, 8), (size_t)8 * 1024 * 1009 * 2 * 8);
}

static void
sizes_that_cannot_be_are_refused(void **state)
{
	refuses(1, (int64_t[]){ 0 }, 1);
	refuses(1, (int64_t[]){ -4 }, 1);
	refuses(1, (int64_t[]){ 4 }, 0);
	refuses(0, (int64_t[]){ 4 }, 1);
	refuses(4, (int64_t[]){ 4, 4, 4, 4 }, 1);
	refuses(3, (int64_t[]){ INT64_MAX, INT64_MAX, 2 }, 1);
	refuses(1, (int64_t[]){ INT64_C(1) << 59 }, 2);
	refuses(1, (int64_t[]){ (INT64_C(1) << 58) + 1 }, 1);
}

static void
types_have_their_sizes(void **state)
{
	assert_int_equal(tn__cufft_element(0x29), 8);
	assert_int_equal(tn__cufft_element(0x6a), 16);
	assert_int_equal(tn__cufft_element(0), 0);
	assert_int_equal(tn__cufft_xt_element(4), 8);
	assert_int_equal(tn__cufft_xt_element(6), 4);
	assert_int_equal(tn__cufft_xt_element(0), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_factors_take_the_data_once),
		cmocka_unit_test(larger_factors_take_eight_times),
		cmocka_unit_test(sizes_that_cannot_be_are_refused),
		cmocka_unit_test(types_have_their_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
