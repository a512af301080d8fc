/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan that is made again while changes are tried: what was begun stays where it is, what is new is added, and the turns are the new plan's.
 * And what such trials are told of how far they have to go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/ledger.h"
#include "test_fix_search.h"

#define MIB ((int64_t)1 << 20)

static char *two[] = { "2" }, *one[] = { "1" }, *none[] = { NULL };

static struct tn_possible_change possible[] = {
	{ .id = "checkpoint", .at_most = TN_NO_FIGURE, .results = TN_GUARANTEE_ROUNDING, .values = { one, 1 } },
	{ .id = "accumulate", .at_most = TN_NO_FIGURE, .results = TN_GUARANTEE_ROUNDING, .values = { two, 1 } },
	{ .id = "zero_grad", .at_most = TN_NO_FIGURE, .results = TN_GUARANTEE_SAME, .values = { none, 1 } },
	{ .id = "no_grad", .at_most = TN_NO_FIGURE, .results = TN_GUARANTEE_SAME, .values = { none, 1 } },
};

static char *arguments[] = { "python", "train.py", NULL };

/* A search of a program whose peak lies in a backward pass, of which so many changes are possible. */
static struct tn_fix_search
search_of(struct tn_report *report, size_t count)
{
	tn__report_init(report);
	report->at_peak.by_category[TN_CATEGORY_parameters] = report->at_peak.by_category[TN_CATEGORY_gradients] = 100 *
	                                                                                                           MIB;
	report->at_peak.by_category[TN_CATEGORY_activations] = 1000 * MIB;
	report->at_peak.phase = "backward";
	return (struct tn_fix_search){
		.missing = 400 * MIB,
		.card.options.arguments = arguments,
		.words = arguments,
		.unchanged_large.outcome = { .report = report,
		                             .changes.survey = { .known = true,
		                                                 .possible = possible,
		                                                 .possible_count = count } },
		.attempts = calloc(TN_FIX_ATTEMPTS, sizeof(struct tn_attempt)),
	};
}

static void
check_turns(const struct tn_fix_search *search, const char *const *order, int count)
{
	assert_int_equal(search->count, count);
	for (int turn = 0; turn < count; turn++) {
		const struct tn_attempt *found = NULL;
		for (int i = 0; i < search->count; i++)
			if (search->attempts[i].turn == turn)
				found = &search->attempts[i];
		assert_non_null(found);
		assert_string_equal(found->found.changes, order[turn]);
	}
}

static void
test_the_same_plan_changes_nothing(void **state)
{
	static const char *const order[] = { "accumulate=2", "checkpoint=1" };
	struct tn_report report;
	struct tn_fix_search search = search_of(&report, 2);
	(void)state;
	tn__fix_plan(&search);
	check_turns(&search, order, 2);
	search.attempts[0].stage = TN_STAGE_ON_CARD;
	search.attempts[0].found.trial = 1;
	tn__fix_plan_again(&search);
	check_turns(&search, order, 2);
	assert_int_equal(search.attempts[0].stage, TN_STAGE_ON_CARD);
	assert_int_equal(search.attempts[1].stage, TN_STAGE_WAITS);
	release(&search);
}

static void
test_what_is_new_is_added_and_what_runs_stays(void **state)
{
	struct tn_report report;
	struct tn_fix_search search = search_of(&report, 2);
	(void)state;
	tn__fix_plan(&search);
	search.attempts[0].stage = TN_STAGE_ON_CARD;
	search.attempts[0].found.trial = 1;
	const struct tn_trial *runs = &search.attempts[0].card;
	/* The end shows a higher peak, in an evaluation, that no smaller batch makes smaller; and two more things to do about it. */
	search.unchanged_large.outcome.changes.survey.possible_count = 4;
	report.at_peak.by_category[TN_CATEGORY_gradients] = 2000 * MIB;
	tn__fix_plan_again(&search);
	assert_string_equal(search.attempts[0].found.changes, "accumulate=2");
	assert_ptr_equal(runs, &search.attempts[0].card);
	assert_int_equal(search.attempts[0].stage, TN_STAGE_ON_CARD);
	assert_int_equal(search.count, 4);
	/* Turns are those that a first plan would have given. */
	struct tn_fix_search anew = search;
	anew.count = 0;
	anew.attempts = calloc(TN_FIX_ATTEMPTS, sizeof(struct tn_attempt));
	assert_non_null(anew.attempts);
	tn__fix_plan(&anew);
	for (int i = 0; i < anew.count; i++) {
		int found = 0;
		while (found < search.count &&
		       strcmp(search.attempts[found].found.changes, anew.attempts[i].found.changes) != 0)
			found++;
		assert_int_not_equal(found, search.count);
		assert_int_equal(search.attempts[found].turn, i);
		assert_int_equal(search.attempts[found].most, anew.attempts[i].most);
	}
	release(&anew);
	release(&search);
}

/* What was begun goes on; what waits does not come by itself any more. */
static void
test_what_the_new_plan_leaves_out_stays(void **state)
{
	struct tn_report report;
	struct tn_fix_search search = search_of(&report, 3);
	(void)state;
	tn__fix_plan(&search);
	assert_int_equal(search.count, 3);
	search.unchanged_large.outcome.changes.survey.possible_count = 1; /* checkpoint */
	for (int i = 0; i < search.count; i++)
		if (strcmp(search.attempts[i].found.changes, "accumulate=2") == 0) {
			search.attempts[i].found.trial = 1;
			search.attempts[i].stage = TN_STAGE_ON_CARD;
		}
	tn__fix_plan_again(&search);
	assert_int_equal(search.count, 3);
	for (int i = 0; i < search.count; i++) {
		const struct tn_attempt *attempt = &search.attempts[i];
		bool planned = strcmp(attempt->found.changes, "checkpoint=1") == 0;
		assert_int_equal(attempt->unplanned, !planned);
		assert_int_equal(attempt->stage, planned                     ? TN_STAGE_WAITS
		                                 : attempt->found.trial == 1 ? TN_STAGE_ON_CARD
		                                                             : TN_STAGE_LOW_PRIORITY);
	}
	release(&search);
}

/* The step is told when memory has settled, and goes with the epoch once the unchanged program has ended. Where it is another one by then, or where
 * inputs vary, what trials went by does not hold. */
static void
test_what_trials_are_told(void **state)
{
	static const struct {
		uint64_t settled_after;
		int64_t step, epoch;
		bool holds;
	} cases[] = { { 5, 5, 2, true },
		          { 0, 5, 2, true },
		          { 5, 7, 2, false },
		          { 5, TN_NO_FIGURE, 2, false },
		          { 0, TN_NO_FIGURE, TN_NO_FIGURE, false } };
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tn_report report;
		struct tn_fix_search search = search_of(&report, 2);
		struct tn_late_news *news = search.late_news = tn__late_news_make();
		struct tn_ledger_guest unchanged = { .settled_after = cases[i].settled_after }, trial = { 0 };
		assert_non_null(news);
		tn__late_news_pass_on(news, &trial);
		assert_int_equal(trial.news, TN_NEWS_NONE);
		tn__late_news_take_step(news, &unchanged);
		tn__late_news_pass_on(news, &trial);
		assert_int_equal(trial.news, cases[i].settled_after > 0 ? TN_NEWS_STEP : TN_NEWS_NONE);
		assert_int_equal(trial.news_step, cases[i].settled_after);
		search.unchanged_large.outcome.changes.survey.news_step = cases[i].step;
		search.unchanged_large.outcome.changes.survey.news_epoch = cases[i].epoch;
		assert_int_equal(tn__fix_tell_news(&search), cases[i].holds);
		unchanged.settled_after = 99; /* what comes behind the end is too late */
		tn__late_news_take_step(news, &unchanged);
		tn__late_news_pass_on(news, &trial);
		assert_int_equal(trial.news, TN_NEWS_ALL);
		if (cases[i].holds) {
			assert_int_equal(trial.news_step, cases[i].step);
			assert_int_equal(trial.news_epoch, cases[i].epoch);
		}
		tn__late_news_free(news);
		free(search.attempts);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_same_plan_changes_nothing),
		                                cmocka_unit_test(test_what_is_new_is_added_and_what_runs_stays),
		                                cmocka_unit_test(test_what_the_new_plan_leaves_out_stays),
		                                cmocka_unit_test(test_what_trials_are_told) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
