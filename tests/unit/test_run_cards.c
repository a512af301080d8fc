/* SPDX-License-Identifier: Apache-2.0
 *
 * What several cards would hold: the estimate of doc/design/0017-more-cards.md on peaks with known parts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "search/fix_search.h"

#define GIB (INT64_C(1) << 30)

/* A program with 4 GiB of parameters in 8 blocks, 8 of the optimizer's, 16 of activations and 1 of context, in batches of 4. */
static struct tn_fixes
estimate(int64_t card, int backward, int batch, int64_t missing)
{
	struct tn_fix_search search = { .missing = missing, .batch = batch };
	struct tn_fixes fixes = { 0 };
	search.card.total = (uint64_t)card;
	search.card.options.gpus = 1;
	struct tn_report report;
	tn__report_init(&report);
	report.device_peak = 29 * GIB;
	report.at_peak.by_category[TN_CATEGORY_parameters] = 4 * GIB;
	report.at_peak.by_category[TN_CATEGORY_gradients] = 0;
	report.at_peak.by_category[TN_CATEGORY_optimizer_state] = 8 * GIB;
	report.at_peak.by_category[TN_CATEGORY_activations] = 16 * GIB;
	search.unchanged_large.outcome.report = &report;
	search.unchanged_large.outcome.changes.survey = (struct tn_survey){ .known = true,
		                                                                .backward = backward,
		                                                                .blocks = 8 };
	tn__multi_gpu_estimate(&search, &fixes);
	tn__report_free(&report);
	return fixes;
}

static void
test_the_fewest_cards_that_do(void **state)
{
	struct tn_fixes fixes = estimate(22 * GIB, 3, 4, 7 * GIB);
	assert_int_equal(fixes.multi_gpu_count, 2);
	/* two cards, FSDP: 1 fixed, half of 12 and of 16, three units of half a GiB */
	assert_true(fixes.multi_gpu[0].method == TN_CARDS_FSDP && fixes.multi_gpu[0].cards == 2);
	assert_int_equal(fixes.multi_gpu[0].device_bytes, 1 * GIB + 6 * GIB + 8 * GIB + 3 * GIB / 2);
	/* two cards, DDP: 1 fixed, all of 12, half of 16 */
	assert_true(fixes.multi_gpu[1].method == TN_CARDS_DDP && fixes.multi_gpu[1].cards == 2);
	assert_int_equal(fixes.multi_gpu[1].device_bytes, 21 * GIB);
}

static void
test_ddp_cannot_go_below_what_every_card_holds(void **state)
{
	/* parameters, gradients and state: 16 GiB and the context, however many cards; FSDP: 1 + 3 + 4 + 1.5 on four */
	struct tn_fixes fixes = estimate(16 * GIB, 3, 8, 13 * GIB);
	assert_int_equal(fixes.multi_gpu_count, 1);
	assert_true(fixes.multi_gpu[0].method == TN_CARDS_FSDP && fixes.multi_gpu[0].cards == 4);
	assert_int_equal(fixes.multi_gpu[0].device_bytes, 9 * GIB + GIB / 2);
}

static void
test_a_batch_has_no_more_shares_than_samples(void **state)
{
	assert_int_equal(estimate(16 * GIB, 3, 2, 13 * GIB).multi_gpu_count, 0);
	assert_int_equal(estimate(16 * GIB, 3, 0, 13 * GIB).multi_gpu_count, 1); /* unknown: as many as one likes */
}

static void
test_nothing_is_said_without_training_or_a_need(void **state)
{
	assert_int_equal(estimate(22 * GIB, 0, 4, 7 * GIB).multi_gpu_count, 0);
	assert_int_equal(estimate(22 * GIB, 3, 4, TN_NO_FIGURE).multi_gpu_count, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_fewest_cards_that_do),
		cmocka_unit_test(test_ddp_cannot_go_below_what_every_card_holds),
		cmocka_unit_test(test_a_batch_has_no_more_shares_than_samples),
		cmocka_unit_test(test_nothing_is_said_without_training_or_a_need),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
