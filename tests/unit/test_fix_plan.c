/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which single changes are tried: what should do and keeps the results, then the program's own smaller batch, then what saves
 * a part, then other trainings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_fix_search.h"

#define MIB ((int64_t)1 << 20)

static void
test_a_smaller_batch_is_tried_before_what_saves_a_part(void **state)
{
	static const char *const order[] = { "accumulate=2", "checkpoint=1", "option_batch=--batch 4", "zero_grad",
		                                 "sgd_no_momentum" };
	char *two[] = { "2" }, *one[] = { "1" }, *none[] = { NULL }, *line[] = { "--batch", "8" },
		 *batch[] = { "--batch 4" };
	char *arguments[] = { "python", "train.py", "--batch", "8", NULL };
	int64_t halves[] = { 2 };
	struct tn_possible_change possible[] = {
		{ .id = "sgd_no_momentum", .at_most = TN_NO_FIGURE, .results = TN_GUARANTEE_DIFFERENT, .values = { none, 1 } },
		{ .id = "zero_grad", .at_most = TN_NO_FIGURE, .results = TN_GUARANTEE_SAME, .values = { none, 1 } },
		{ .id = "option_batch",
		  .at_most = TN_NO_FIGURE,
		  .results = TN_GUARANTEE_DIFFERENT,
		  .values = { batch, 1 },
		  .pieces = { halves, 1 } },
		{ .id = "checkpoint", .at_most = TN_NO_FIGURE, .results = TN_GUARANTEE_ROUNDING, .values = { one, 1 } },
		{ .id = "accumulate", .at_most = TN_NO_FIGURE, .results = TN_GUARANTEE_ROUNDING, .values = { two, 1 } },
	};
	struct tn_report report;
	(void)state;
	tn__report_init(&report);
	report.at_peak.by_category[TN_CATEGORY_parameters] = report.at_peak.by_category[TN_CATEGORY_gradients] = 100 * MIB;
	report.at_peak.by_category[TN_CATEGORY_activations] = 1000 * MIB;
	report.at_peak.phase = "backward";
	struct tn_fix_search search = {
		.missing = 400 * MIB,
		.card.options.arguments = arguments,
		.words = arguments,
		.unchanged_large.outcome = { .report = &report,
		                             .changes.survey = { .known = true,
		                                                 .command_line = { line, 2 },
		                                                 .possible = possible,
		                                                 .possible_count = 5 } },
		.attempts = calloc(TN_FIX_ATTEMPTS, sizeof(struct tn_attempt)),
	};
	assert_non_null(search.attempts);
	tn__fix_plan(&search);
	assert_int_equal(search.count, 5);
	for (int i = 0; i < search.count; i++)
		assert_string_equal(search.attempts[i].found.changes, order[i]);
	release(&search);
}

/* What was found wrong on the card is tried first of all, but for what was seen to have too little to act on. */
static void
test_a_remedy_that_cannot_be_enough_is_not_tried_first(void **state)
{
	static const struct {
		int64_t at_most;
		const char *first;
		enum tn_stage stage;
	} cases[] = { { TN_NO_FIGURE, "chunked_loss=8", TN_STAGE_WAITS },
		          { 400 * MIB, "chunked_loss=8", TN_STAGE_WAITS },
		          { 300 * MIB, "checkpoint=1", TN_STAGE_WAITS },
		          { MIB, "checkpoint=1", TN_STAGE_LOW_PRIORITY } };
	char *eight[] = { "8" }, *one[] = { "1" }, *arguments[] = { "python", "train.py", NULL };
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tn_possible_change possible[] = {
			{ .id = "checkpoint", .at_most = TN_NO_FIGURE, .results = TN_GUARANTEE_ROUNDING, .values = { one, 1 } },
			{ .id = "chunked_loss",
			  .at_most = cases[i].at_most,
			  .results = TN_GUARANTEE_ROUNDING,
			  .values = { eight, 1 } },
		};
		struct tn_report report, card;
		tn__report_init(&report);
		tn__report_init(&card);
		report.at_peak.by_category[TN_CATEGORY_parameters] = 100 * MIB;
		report.at_peak.by_category[TN_CATEGORY_temporaries] = 1000 * MIB;
		report.at_peak.by_category[TN_CATEGORY_activations] = 1000 * MIB;
		report.at_peak.phase = "backward";
		card.oom.cause = "large_tensor";
		struct tn_fix_search search = {
			.missing = 400 * MIB,
			.card.options.arguments = arguments,
			.words = arguments,
			.unchanged_card.outcome.report = &card,
			.unchanged_large.outcome = { .report = &report,
			                             .changes.survey = { .known = true,
			                                                 .possible = possible,
			                                                 .possible_count = 2 } },
			.attempts = calloc(TN_FIX_ATTEMPTS, sizeof(struct tn_attempt)),
		};
		assert_non_null(search.attempts);
		tn__fix_plan(&search);
		assert_int_equal(search.count, 2);
		assert_string_equal(search.attempts[0].found.changes, cases[i].first);
		bool chunked_first = strcmp(cases[i].first, "chunked_loss=8") == 0;
		assert_int_equal(search.attempts[chunked_first ? 0 : 1].stage, cases[i].stage);
		release(&search);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_smaller_batch_is_tried_before_what_saves_a_part),
		                                cmocka_unit_test(test_a_remedy_that_cannot_be_enough_is_not_tried_first) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
