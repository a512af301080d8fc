/* SPDX-License-Identifier: Apache-2.0
 *
 * Which patch is tried as it stands, and what its trial says of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "search/fix_search.h"

static char *accumulate[] = { "accumulate=2" }, *alloc[] = { "alloc=expandable_segments:True" };

/* One that fits, with a patch, of a change in so many pieces. */
static struct tn_attempt
fitting(char **parts, char *patch, int pieces)
{
	return (struct tn_attempt){ .found = { .parts = parts,
		                                   .part_count = 1,
		                                   .changes = parts[0],
		                                   .end = TN_FIX_FITS,
		                                   .patch = patch,
		                                   .pieces = pieces } };
}

static void
test_the_first_of_the_list_is_tried(void **state)
{
	char patch[] = "--- a/train.py\n";
	struct tn_attempt attempts[2] = { fitting(accumulate, patch, 4), fitting(accumulate, patch, 2) };
	struct tn_fix_search search = { .attempts = attempts, .count = 2 };
	(void)state;
	assert_ptr_equal(tn__fix_with_untried_patch(&search), &attempts[1]); /* a batch is cut no more than it must be */
	attempts[1].patched.end = TN_TRIAL_RUNS;
	assert_null(tn__fix_with_untried_patch(&search));
	attempts[1].patched.end = TN_TRIAL_WAITS;
	attempts[1].found.patch_tried = true; /* what ran was the patch */
	assert_null(tn__fix_with_untried_patch(&search));
	attempts[1].found.end = TN_FIX_NOT_ENOUGH;
	assert_ptr_equal(tn__fix_with_untried_patch(&search), &attempts[0]);
	attempts[0].found.patch = NULL;
	assert_null(tn__fix_with_untried_patch(&search));
}

static void
test_what_no_patch_says_whole_is_not_tried(void **state)
{
	char patch[] = "--- a/train.py\n", notebook[] = "--- a/train.ipynb\n";
	struct tn_attempt attempt = fitting(alloc, patch, 0);
	struct tn_fix_search search = { .attempts = &attempt, .count = 1 };
	char *longest = calloc(1, 200 << 10);
	(void)state;
	assert_null(tn__fix_with_untried_patch(&search)); /* an environment variable */
	attempt = fitting(accumulate, notebook, 2);
	assert_null(tn__fix_with_untried_patch(&search));
	assert_non_null(longest);
	memset(longest, ' ', (200 << 10) - 1);
	attempt = fitting(accumulate, longest, 2);
	assert_null(tn__fix_with_untried_patch(&search));
	attempt.found.patch = patch;
	assert_non_null(tn__fix_with_untried_patch(&search));
	search.card.options.then_count = 1;
	assert_null(tn__fix_with_untried_patch(&search));
	free(longest);
}

/* Judges a trial of the patch that came to this verdict and made updates of so many samples, where the unchanged program makes them of 8. */
static struct tn_fix_change
judged(enum tn_verdict verdict, bool applied, char *why_not, int64_t samples)
{
	static struct tn_fix_search search;
	char id[] = "patch";
	struct tn_change_result said = { .id = id, .applied = applied, .why_not = why_not };
	struct tn_change_process process = { .rank = TN_NO_FIGURE, .items = &said, .count = 1 };
	struct tn_report report = { .verdict = verdict };
	struct tn_attempt attempt = fitting(accumulate, strdup("--- a/train.py\n"), 2);
	search.unchanged_large.outcome.changes.pace = (struct tn_pace){ .updates = 4, .samples = 8, .loss_share = 1 };
	attempt.found.results = TN_GUARANTEE_ROUNDING;
	attempt.patched.end = TN_TRIAL_DONE;
	attempt.patched.outcome.report = &report;
	attempt.patched.outcome.changes = (struct tn_change_results){
		.pace = { .updates = 4, .samples = samples, .loss_share = 1 }, .processes = &process, .count = 1
	};
	tn__fix_judge_patched(&search, &attempt);
	return attempt.found;
}

static void
check(struct tn_fix_change found, bool kept, bool tried, const char *words)
{
	assert_int_equal(found.patch != NULL, kept);
	assert_int_equal(found.patch_tried, tried);
	if (words != NULL)
		assert_non_null(strstr(found.how, words));
	free(found.patch);
	free(found.how);
}

static void
test_a_patch_that_does_something_else_is_none(void **state)
{
	char conflict[] = "line 3 is not what the patch says";
	(void)state;
	check(judged(TN_VERDICT_FITS, true, NULL, 8), true, true, NULL);
	check(judged(TN_VERDICT_OUT_OF_MEMORY, true, NULL, 8), false, false, "did not fit");
	check(judged(TN_VERDICT_FAILED, true, NULL, 8), false, false, "failed");
	check(judged(TN_VERDICT_FITS, true, NULL, 4), false, false, "4 samples, 8 when unchanged");
	check(judged(TN_VERDICT_FITS, false, conflict, 8), false, false, "line 3");
	check(judged(TN_VERDICT_UNDECIDED, true, NULL, 8), true, false, NULL); /* it proves nothing */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_of_the_list_is_tried),
		cmocka_unit_test(test_what_no_patch_says_whole_is_not_tried),
		cmocka_unit_test(test_a_patch_that_does_something_else_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
