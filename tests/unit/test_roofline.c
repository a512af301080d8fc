/* SPDX-License-Identifier: Apache-2.0
 *
 * The roofline: what bounds a kernel, what bounds a step, and ratios with their range. Figures by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/catalogue.h"
#include "gpu/roofline.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) <= 1e-6 * fabs((double)(b)))

static const struct tn_gpu_figures card = {
	.compute_major = 8, .memory_gbps = 1000, .fp32_tflops = 10, .tf32_tflops = 20, .bf16_tflops = 40
};
/* Everything reaches its peak, and nothing costs but what is asked for. */
static const struct tn_assumptions ideal = { 1, 1, 1, 1, 0, 0, 1, 1 };

static void
add(struct tn_work *work, enum tn_effort_kind kind, enum tn_math math, double flops, double bytes)
{
	tn__work_add(work, &(struct tn_effort){ kind, math, flops, bytes });
	work->launches++;
}

static double
total(const struct tn_work *work, const struct tn_assumptions *assumptions)
{
	return tn__step_seconds(work, &card, assumptions).total;
}

static void
test_bins_are_powers_of_two_of_operations_a_byte(void **state)
{
	assert_int_equal(tn__work_bin(0, 100), 0);
	assert_int_equal(tn__work_bin(99, 100), 0);
	assert_int_equal(tn__work_bin(100, 100), 1);
	assert_int_equal(tn__work_bin(200, 100), 2);
	assert_int_equal(tn__work_bin(399, 100), 2);
	assert_int_equal(tn__work_bin(400, 100), 3);
	assert_int_equal(tn__work_bin(1e30, 1), TN_WORK_BINS - 1);
	assert_int_equal(tn__work_bin(1, 0), TN_WORK_BINS - 1);
	assert_int_equal(tn__work_bin(0, 0), 0);
}

static void
test_each_kernel_takes_the_longer_of_arithmetic_and_traffic(void **state)
{
	struct tn_work work = { 0 };
	add(&work, TN_EFFORT_KERNEL, TN_MATH_FP32, 1e12, 1e9); /* 100 ms against 1 ms */
	add(&work, TN_EFFORT_KERNEL, TN_MATH_FP32, 1e9, 1e10); /* 0.1 ms against 10 ms */
	struct tn_step_seconds seconds = tn__step_seconds(&work, &card, &ideal);
	NEAR(seconds.arithmetic, 0.1);
	NEAR(seconds.traffic, 0.01);
	NEAR(seconds.total, 0.11);
}

static void
test_types_have_their_own_rate(void **state)
{
	static const double seconds[TN_MATHS] = { 3.2, 0.1, 0.05, 0.025 };
	for (int math = 0; math < TN_MATHS; math++) {
		struct tn_work work = { 0 };
		add(&work, TN_EFFORT_KERNEL, (enum tn_math)math, 1e12, 1);
		NEAR(total(&work, &ideal), seconds[math]);
	}
}

static void
test_tensor_cores_reach_another_share_where_there_are_any(void **state)
{
	struct tn_gpu_figures volta = card;
	struct tn_assumptions assumptions = ideal;
	struct tn_work half = { 0 }, tf32 = { 0 };
	add(&half, TN_EFFORT_KERNEL, TN_MATH_HALF, 1e12, 1);
	add(&tf32, TN_EFFORT_KERNEL, TN_MATH_TF32, 1e12, 1);
	assumptions.tensor_cores = 0.5;
	volta.compute_major = 7;
	NEAR(tn__step_seconds(&half, &volta, &assumptions).total, 0.05);
	NEAR(tn__step_seconds(&tf32, &volta, &assumptions).total, 0.05); /* its catalogue rate, in full */
	NEAR(tn__step_seconds(&tf32, &card, &assumptions).total, 0.1);
}

static void
test_copies_go_over_the_link(void **state)
{
	struct tn_work work = { 0 };
	add(&work, TN_EFFORT_TO_HOST, 0, 0, 31.5e9);
	add(&work, TN_EFFORT_TO_DEVICE, 0, 0, 63e9);
	NEAR(tn__step_seconds(&work, &card, &ideal).link, 3);
	work.host_bytes = 2e9;
	NEAR(total(&work, &ideal), 5);
}

static void
test_many_small_launches_are_bound_by_the_host(void **state)
{
	struct tn_assumptions assumptions = ideal;
	struct tn_work work = { 0 };
	assumptions.launch_seconds = 5e-6;
	assumptions.kernel_seconds = 2e-6;
	for (int i = 0; i < 1000; i++)
		add(&work, TN_EFFORT_GUESSED, 0, 0, 1000);
	struct tn_step_seconds seconds = tn__step_seconds(&work, &card, &assumptions);
	NEAR(seconds.kernels, 2e-3);
	NEAR(seconds.total, 5e-3);
	work.launches = 1; /* one graph */
	NEAR(total(&work, &assumptions), 2e-3 + 1e6 / 1e12);
}

static void
test_a_card_without_rates_has_no_time(void **state)
{
	const struct tn_gpu_figures unknown = { .compute_major = 8 };
	struct tn_work work[2];
	memset(work, 0, sizeof(work));
	add(&work[1], TN_EFFORT_KERNEL, TN_MATH_HALF, 1e12, 1);
	const struct tn_steps steps = { work, 2 };
	assert_true(tn__step_seconds(&work[1], &unknown, &ideal).total == 0);
	assert_false(tn__time_ratio(&steps, &steps, 1, &unknown).known);
}

/* ---- ratios ---- */

/* A step of a transformer: its products, twice as much backward, its elementwise kernels. */
static void
transformer_step(struct tn_work *work, double forwards, enum tn_math math, double width)
{
	*work = (struct tn_work){ 0 };
	add(work, TN_EFFORT_KERNEL, math, 1e12 * (forwards + 2), 1e9 * width);
	add(work, TN_EFFORT_KERNEL, TN_MATH_FP32, 0, 1e9 * width * (forwards + 2));
}

static void
test_forward_again_is_a_third_more(void **state)
{
	struct tn_work before[4], after[3];
	for (int i = 0; i < 4; i++)
		transformer_step(&before[i], 1, TN_MATH_HALF, 2);
	for (int i = 0; i < 3; i++)
		transformer_step(&after[i], 2, TN_MATH_HALF, 2);
	const struct tn_steps a = { before, 4 }, b = { after, 3 };
	struct tn_time_ratio time = tn__time_ratio(&a, &b, 1, &card);
	assert_true(time.known);
	assert_true(time.ratio > 1.3 && time.ratio < 1.35);
	assert_true(time.low <= time.ratio && time.ratio <= time.high && time.high < 1.45 && time.low > 1.15);
}

static void
test_half_precision_is_faster_on_tensor_cores_within_a_wide_range(void **state)
{
	struct tn_work before[2], after[2];
	for (int i = 0; i < 2; i++) {
		transformer_step(&before[i], 1, TN_MATH_FP32, 4);
		transformer_step(&after[i], 1, TN_MATH_HALF, 2);
	}
	const struct tn_steps a = { before, 2 }, b = { after, 2 };
	struct tn_time_ratio time = tn__time_ratio(&a, &b, 1, &card);
	assert_true(time.ratio > 0.25 && time.ratio < 0.6);
	assert_true(time.high - time.low > 0.1); /* what the units reach is not known */
}

static void
test_steps_are_compared_pair_by_pair_without_the_first(void **state)
{
	struct tn_work before[4], after[4];
	for (int i = 0; i < 4; i++) { /* lengths differ from step to step; the first builds, the last evaluates, too */
		before[i] = after[i] = (struct tn_work){ 0 };
		add(&before[i], TN_EFFORT_KERNEL, TN_MATH_HALF, 1e12 * (i + 1), 1);
		add(&after[i], TN_EFFORT_KERNEL, TN_MATH_HALF, 2e12 * (i + 1), 1);
	}
	add(&after[0], TN_EFFORT_KERNEL, TN_MATH_HALF, 1e14, 1);
	add(&after[3], TN_EFFORT_KERNEL, TN_MATH_HALF, 1e14, 1);
	const struct tn_steps a = { before, 4 }, b = { after, 4 }, one = { after, 1 };
	assert_true(fabs(tn__time_ratio(&a, &b, 1, &card).ratio - 2) < 0.01);
	assert_true(fabs(tn__time_ratio(&a, &b, 0.5, &card).ratio - 4) < 0.02); /* half the samples a step */
	struct tn_time_ratio same = tn__time_ratio(&a, &a, 1, &card);
	assert_true(same.ratio == 1 && same.low == 1 && same.high == 1); /* whatever the card reaches */
	assert_false(tn__time_ratio(&a, &one, 1, &card).known);
	assert_false(tn__time_ratio(&a, &b, 0, &card).known);
}

/* Two optimizers take turns, and a change moves work between their steps. */
static void
test_steps_of_two_kinds_are_compared_together(void **state)
{
	struct tn_work before[9], after[9];
	for (int i = 0; i < 9; i++) {
		before[i] = after[i] = (struct tn_work){ 0 };
		add(&before[i], TN_EFFORT_KERNEL, TN_MATH_HALF, 1e12, 1);
		add(&after[i], TN_EFFORT_KERNEL, TN_MATH_HALF, i % 2 ? 0.25e12 : 2.25e12, 1);
	}
	const struct tn_steps a = { before, 9 }, b = { after, 9 };
	assert_true(fabs(tn__time_ratio(&a, &b, 1, &card).ratio - 1.25) < 0.01);
}

static void
test_every_card_of_the_catalogue_has_a_time(void **state)
{
	struct tn_work work = { 0 };
	add(&work, TN_EFFORT_KERNEL, TN_MATH_HALF, 1e12, 1e9);
	struct tn_assumptions middle = tn__assumptions(TN_BOUND_MIDDLE);
	for (int i = 0; i < tn__gpu_count(); i++)
		assert_true(tn__step_seconds(&work, &tn__gpu_row(i)->figures, &middle).total > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bins_are_powers_of_two_of_operations_a_byte),
		cmocka_unit_test(test_each_kernel_takes_the_longer_of_arithmetic_and_traffic),
		cmocka_unit_test(test_types_have_their_own_rate),
		cmocka_unit_test(test_tensor_cores_reach_another_share_where_there_are_any),
		cmocka_unit_test(test_copies_go_over_the_link),
		cmocka_unit_test(test_many_small_launches_are_bound_by_the_host),
		cmocka_unit_test(test_a_card_without_rates_has_no_time),
		cmocka_unit_test(test_forward_again_is_a_third_more),
		cmocka_unit_test(test_half_precision_is_faster_on_tensor_cores_within_a_wide_range),
		cmocka_unit_test(test_steps_are_compared_pair_by_pair_without_the_first),
		cmocka_unit_test(test_steps_of_two_kinds_are_compared_together),
		cmocka_unit_test(test_every_card_of_the_catalogue_has_a_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
