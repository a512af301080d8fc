/* SPDX-License-Identifier: Apache-2.0
 *
 * The list's order, and what is still tried: a change that fits only narrowly stands below those that fit safely, and ends nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "search/fix_search.h"

#define MIB ((int64_t)1 << 20)

/* One that fits, and leaves so much of a peak that may be 60 MiB higher. */
static struct tn_fix_change
fits(char *name, enum tn_guarantee results, int64_t margin, int pieces)
{
	return (struct tn_fix_change){ .changes = name,
		                           .results = results,
		                           .end = TN_FIX_FITS,
		                           .margin = margin,
		                           .uncertain = 60 * MIB,
		                           .saved = MIB,
		                           .pieces = pieces };
}

static void
test_narrow_is_what_was_not_seen_to_fit_with_less(void **state)
{
	struct tn_fix_change change = fits("a", TN_GUARANTEE_SAME, 59 * MIB, 0);
	(void)state;
	assert_true(tn__fix_is_narrow(&change));
	change.fits_with_less = 60 * MIB;
	assert_false(tn__fix_is_narrow(&change));
	change.fits_with_less = 0;
	change.margin = 60 * MIB;
	assert_false(tn__fix_is_narrow(&change));
	change.margin = TN_NO_FIGURE;
	assert_false(tn__fix_is_narrow(&change));
	change.margin = 0;
	change.end = TN_FIX_NOT_ENOUGH;
	assert_false(tn__fix_is_narrow(&change));
}

static void
test_narrow_stands_below_what_fits_safely(void **state)
{
	struct tn_fix_change changes[] = { fits("two", TN_GUARANTEE_ROUNDING, 10 * MIB, 2),
		                               fits("other", TN_GUARANTEE_DIFFERENT, 500 * MIB, 0),
		                               fits("four", TN_GUARANTEE_ROUNDING, 100 * MIB, 4),
		                               fits("with_less", TN_GUARANTEE_ROUNDING, 10 * MIB, 3) };
	(void)state;
	changes[0].own = true; /* it would come first, else */
	changes[3].fits_with_less = 60 * MIB;
	tn__fix_order(changes, 4);
	assert_string_equal(changes[0].changes, "with_less");
	assert_string_equal(changes[1].changes, "four");
	assert_string_equal(changes[2].changes, "two");
	assert_string_equal(changes[3].changes, "other"); /* another training is no answer to a narrow fit */
	assert_true(changes[0].enough);
	assert_false(changes[1].enough || changes[2].enough || changes[3].enough);
}

static void
test_what_is_narrow_is_enough_where_nothing_else_is(void **state)
{
	struct tn_fix_change change = fits("two", TN_GUARANTEE_ROUNDING, 10 * MIB, 2);
	(void)state;
	tn__fix_order(&change, 1);
	assert_true(change.enough);
	tn__fix_order(NULL, 0);
}

/* A search of these attempts. */
static struct tn_fix_search
search_of(struct tn_attempt *attempts, int count)
{
	static const struct tn_fix_options options;
	return (struct tn_fix_search){ .options = &options, .attempts = attempts, .count = count };
}

static void
test_the_search_goes_on_while_nothing_fits_safely(void **state)
{
	static char *one[] = { "accumulate=2" }, *two[] = { "accumulate=4" }, *three[] = { "autocast" };
	struct tn_attempt attempts[8] = { { .found = fits("accumulate=2", TN_GUARANTEE_ROUNDING, 10 * MIB, 2) } };
	struct tn_fix_search search = search_of(attempts, 1);
	struct tn_attempt more = { .found = { .parts = two, .part_count = 1, .pieces = 4, .end = TN_FIX_UNKNOWN } };
	struct tn_attempt other = {
		.found = { .parts = three, .part_count = 1, .results = TN_GUARANTEE_DIFFERENT, .end = TN_FIX_UNKNOWN }
	};
	(void)state;
	attempts[0].found.parts = one;
	attempts[0].found.part_count = 1;
	assert_int_equal(tn__fix_fitting(&search, TN_GUARANTEE_ROUNDING, false), 1);
	assert_int_equal(tn__fix_fitting(&search, TN_GUARANTEE_ROUNDING, true), 0);
	assert_true(tn__fix_is_worth_it(&search, &more)); /* more pieces may fit safely */
	attempts[0].found.fits_with_less = 60 * MIB;
	assert_int_equal(tn__fix_fitting(&search, TN_GUARANTEE_ROUNDING, true), 1);
	assert_false(tn__fix_is_worth_it(&search, &more));
	/* Three that fit narrowly do not end the search for another training; three that fit safely do. */
	for (int i = 1; i < 3; i++)
		attempts[i].found = fits("other", TN_GUARANTEE_SAME, 10 * MIB, 0);
	search.count = 3;
	assert_true(tn__fix_is_worth_it(&search, &other));
	for (int i = 1; i < 3; i++)
		attempts[i].found.margin = 100 * MIB;
	assert_false(tn__fix_is_worth_it(&search, &other));
}

static void
test_what_fits_safely_ends_what_is_tried_for_completeness(void **state)
{
	static char *one[] = { "accumulate=2" }, *two[] = { "zero_grad" };
	struct tn_attempt attempts[2] = { { .found = fits("accumulate=2", TN_GUARANTEE_ROUNDING, 10 * MIB, 2) } };
	struct tn_fix_search search = search_of(attempts, 1);
	struct tn_attempt small = { .found = { .parts = two, .part_count = 1, .end = TN_FIX_UNKNOWN }, .most = 90 * MIB };
	struct tn_attempt other = small;
	(void)state;
	attempts[0].found.parts = one;
	attempts[0].found.part_count = 1;
	search.missing = 100 * MIB;
	other.most = 200 * MIB;
	assert_true(tn__fix_is_worth_it(&search, &small)); /* a pair may be needed */
	attempts[0].found.margin = 100 * MIB;
	assert_false(tn__fix_is_worth_it(&search, &small));
	assert_true(tn__fix_is_worth_it(&search, &other)); /* it may be enough by itself */
	other.stage = TN_STAGE_TOO_SMALL;
	assert_false(tn__fix_is_worth_it(&search, &other));
	other.stage = TN_STAGE_RETRY_WITH_LESS;
	assert_true(tn__fix_is_worth_it(&search, &other));
	other.found.results = TN_GUARANTEE_DIFFERENT;
	assert_false(tn__fix_is_worth_it(&search, &other));
	small.found.remedy = true; /* a mistake is mended, whatever else fits */
	assert_true(tn__fix_is_worth_it(&search, &small));
	small.found.remedy = false;
	search.missing = TN_NO_FIGURE; /* how much is enough is not known */
	assert_true(tn__fix_is_worth_it(&search, &small));
}

/* What keeps the results is held to the updates of its trial, whatever it is made of: none seen is not the same. */
static void
test_without_an_update_nothing_is_the_same(void **state)
{
	static struct tn_fix_search search;
	struct tn_trial trial = { 0 };
	struct tn_attempt attempt = { .found = { .results = TN_GUARANTEE_ROUNDING, .part_count = 2 } };
	(void)state;
	search.unchanged_large.outcome.changes.pace = (struct tn_pace){ .updates = 4, .samples = 64, .loss_share = 1 };
	trial.outcome.changes.pace = search.unchanged_large.outcome.changes.pace;
	tn__fix_judge_updates(&search, &attempt, &trial);
	assert_int_equal(attempt.found.results, TN_GUARANTEE_ROUNDING);
	trial.outcome.changes.pace = (struct tn_pace){ 0 };
	tn__fix_judge_updates(&search, &attempt, &trial);
	assert_int_equal(attempt.found.results, TN_GUARANTEE_DIFFERENT);
	assert_non_null(strstr(attempt.found.how, "no update was seen"));
	free(attempt.found.how);
	attempt.found = (struct tn_fix_change){ .results = TN_GUARANTEE_SAME };
	search.unchanged_large.outcome.changes.pace.updates = 0; /* a program that makes none */
	tn__fix_judge_updates(&search, &attempt, &trial);
	assert_int_equal(attempt.found.results, TN_GUARANTEE_SAME);
}

/* Updates of four pieces; the last batch of the epoch has one sample. `own` of that and the passes since the update before are given. */
static const char *
words_of_a_last_batch(struct tn_attempt *attempt, int64_t own, int64_t since)
{
	static struct tn_fix_search search;
	struct tn_trial trial = { 0 };
	const struct tn_pace before = { .updates = 3,
		                            .backward = 1,
		                            .loss_share = 1,
		                            .followed = { { .own = { 1, 1, 1 }, .since = { 1, 1, 1 }, .count = 3 } },
		                            .followed_count = 1 };
	const struct tn_pace after = { .updates = 3,
		                           .backward = 4,
		                           .loss_share = 1,
		                           .followed = { { .own = { 4, 4, own }, .since = { 4, 4, since }, .count = 3 } },
		                           .followed_count = 1 };
	*attempt = (struct tn_attempt){ .found = { .results = TN_GUARANTEE_ROUNDING } };
	search.unchanged_large.outcome.changes.pace = before;
	trial.outcome.changes.pace = after;
	tn__fix_judge_updates(&search, attempt, &trial);
	return attempt->found.how;
}

static void
test_a_batch_with_too_few_samples_for_all_pieces(void **state)
{
	struct tn_attempt attempt;
	(void)state;
	assert_null(words_of_a_last_batch(&attempt, 1, 1));
	assert_int_equal(attempt.found.results, TN_GUARANTEE_ROUNDING);
	assert_null(words_of_a_last_batch(&attempt, 3, 3));
	static const int64_t wrong[][2] = {
		{ 1, 4 }, { 3, 4 }, { 8, 8 }, { 1, 3 }
	}; /* a piece is cleared, or too many come */
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_non_null(words_of_a_last_batch(&attempt, wrong[i][0], wrong[i][1]));
		assert_int_equal(attempt.found.results, TN_GUARANTEE_DIFFERENT);
		free(attempt.found.how);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_narrow_is_what_was_not_seen_to_fit_with_less),
		cmocka_unit_test(test_narrow_stands_below_what_fits_safely),
		cmocka_unit_test(test_what_is_narrow_is_enough_where_nothing_else_is),
		cmocka_unit_test(test_the_search_goes_on_while_nothing_fits_safely),
		cmocka_unit_test(test_what_fits_safely_ends_what_is_tried_for_completeness),
		cmocka_unit_test(test_without_an_update_nothing_is_the_same),
		cmocka_unit_test(test_a_batch_with_too_few_samples_for_all_pieces),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
