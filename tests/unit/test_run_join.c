/* SPDX-License-Identifier: Apache-2.0
 *
 * Two accounts of one moment become one that adds up, or are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/report.h"
#include "verdict/model_fill.h"

#define MIB (INT64_C(1) << 20)

static const struct tn_report_split split = { 130 * MIB, 1000 * MIB, 77 * MIB, 5 * MIB, 0 };

static int64_t
sum_of(const struct tn_report_moment *moment)
{
	int64_t sum = 0;
	for (int i = 0; i < TN_CATEGORIES; i++)
		sum += moment->by_category[i] != TN_NO_FIGURE ? moment->by_category[i] : 0;
	return sum;
}

/* A moment of the allocator: 900 MiB reserved, 100 of them cached, 3 of rounding. */
static struct tn_moment
pytorch(void)
{
	struct tn_moment moment = { .reserved = 900 * MIB, .allocated = 800 * MIB, .requested = 797 * MIB, .step = 3 };
	moment.by_category[TN_CATEGORY_parameters] = 300 * MIB;
	moment.by_category[TN_CATEGORY_activations] = 490 * MIB;
	moment.by_category[TN_CATEGORY_other] = 7 * MIB;
	moment.by_category[TN_CATEGORY_rounding] = 3 * MIB;
	moment.by_category[TN_CATEGORY_cached] = 100 * MIB;
	moment.at = (struct tn_line){ "model.py", "forward", 88, true };
	moment.phase = "backward";
	return moment;
}

static void
test_the_rest_is_other(void **state)
{
	struct tn_moment record = pytorch();
	struct tn_report report;
	tn__report_init(&report);
	tn__report_set_split(&report.at_peak, &split);
	assert_int_equal(report.at_peak.device_bytes, 1212 * MIB);
	assert_int_equal(sum_of(&report.at_peak), 1212 * MIB);
	assert_int_equal(report.at_peak.by_category[TN_CATEGORY_parameters], TN_NO_FIGURE);
	assert_int_equal(tn__report_join(&report.at_peak, &record), TN_OK);
	assert_true(report.at_peak.detailed);
	assert_int_equal(sum_of(&report.at_peak), 1212 * MIB);
	assert_int_equal(report.at_peak.by_category[TN_CATEGORY_other], 107 * MIB);
	assert_int_equal(report.at_peak.by_category[TN_CATEGORY_gradients], 0);
	assert_int_equal(report.at_peak.by_category[TN_CATEGORY_context], 130 * MIB);
	assert_int_equal(report.at_peak.step, 3);
	assert_string_equal(report.at_peak.phase, "backward");
	assert_true(report.at_peak.at->backward);
	tn__report_free(&report);
}

/* What cannot be is refused, and leaves the ledger's account, which adds up. */
static void
test_contradictions(void **state)
{
	struct tn_moment more = pytorch(), crooked = pytorch();
	struct tn_report report;
	more.reserved = 1001 * MIB;
	more.by_category[TN_CATEGORY_cached] += 101 * MIB;
	crooked.by_category[TN_CATEGORY_cached] += 1;
	tn__report_init(&report);
	tn__report_set_split(&report.at_peak, &split);
	assert_int_equal(tn__report_join(&report.at_peak, &more), TN_STATE);
	assert_int_equal(tn__report_join(&report.at_peak, &crooked), TN_STATE);
	assert_false(report.at_peak.detailed);
	assert_int_equal(report.at_peak.by_category[TN_CATEGORY_parameters], TN_NO_FIGURE);
	assert_int_equal(sum_of(&report.at_peak), 1212 * MIB);
	tn__report_free(&report);
}

/* On a real GPU only the sum is known: what is not PyTorch's cannot be told apart. */
static void
test_a_real_card(void **state)
{
	struct tn_moment record = pytorch();
	struct tn_report report;
	tn__report_init(&report);
	tn__report_set_split(&report.at_peak,
	                     &(struct tn_report_split){ TN_NO_FIGURE, 1200 * MIB, TN_NO_FIGURE, TN_NO_FIGURE, 0 });
	assert_int_equal(tn__report_join(&report.at_peak, &record), TN_OK);
	assert_int_equal(sum_of(&report.at_peak), 1200 * MIB);
	assert_int_equal(report.at_peak.by_category[TN_CATEGORY_context], TN_NO_FIGURE);
	tn__report_free(&report);

	tn__report_init(&report); /* not even the sum */
	assert_int_equal(tn__report_join(&report.at_peak, &record), TN_OK);
	assert_int_equal(sum_of(&report.at_peak), 893 * MIB);
	assert_int_equal(report.at_peak.by_category[TN_CATEGORY_other], TN_NO_FIGURE);
	assert_int_equal(report.at_peak.device_bytes, TN_NO_FIGURE);
	tn__report_free(&report);
}

static void
test_holders_are_copied(void **state)
{
	struct tn_holding holdings[] = {
		{ .category = TN_CATEGORY_activations,
		  .bytes = 480 * MIB,
		  .blocks = 24,
		  .at = { "model.py", "forward", 88, false },
		  .alike = 24,
		  .layers = true },
		{ .category = TN_CATEGORY_parameters, .bytes = 300 * MIB, .blocks = 3, .label = "weight" },
	};
	struct tn_moment record = pytorch();
	struct tn_report report;
	record.holders = holdings;
	record.holder_count = 2;
	tn__report_init(&report);
	tn__report_set_split(&report.at_oom, &split);
	assert_int_equal(tn__report_join(&report.at_oom, &record), TN_OK);
	assert_int_equal(report.at_oom.holder_count, 2);
	assert_ptr_not_equal(report.at_oom.holders[0].at.file, holdings[0].at.file);
	assert_string_equal(report.at_oom.holders[0].at.file, "model.py");
	assert_int_equal(report.at_oom.holders[0].alike, 24);
	assert_true(report.at_oom.holders[0].layers);
	assert_null(report.at_oom.holders[1].at.file);
	assert_int_equal(report.at_oom.holders[1].alike, 1);
	assert_string_equal(report.at_oom.holders[1].what, "weight");
	tn__report_free(&report);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_rest_is_other), cmocka_unit_test(test_contradictions),
		                                cmocka_unit_test(test_a_real_card), cmocka_unit_test(test_holders_are_copied) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
