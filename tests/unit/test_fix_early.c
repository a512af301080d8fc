/* SPDX-License-Identifier: Apache-2.0
 *
 * What the unchanged program says early holds only where its end says all of it again, in whatever plans are made by.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "search/fix_search.h"

struct said {
	struct tn_report report;
	struct tn_possible_change possible[2];
	char *value;
	struct tn_trial trial;
};

static void
say(struct said *said)
{
	*said = (struct said){ 0 };
	tn__report_init(&said->report);
	said->value = "2";
	said->possible[0] = (struct tn_possible_change){
		.id = "accumulate", .results = TN_GUARANTEE_ROUNDING, .values = { &said->value, 1 }, .at_most = 7
	};
	said->possible[1] = (struct tn_possible_change){ .id = "no_grad", .at_most = TN_NO_FIGURE };
	said->report.verdict = TN_VERDICT_FITS;
	said->report.device_peak = 1000;
	said->report.allocated_peak = 800;
	said->report.at_peak.step = 3;
	said->report.at_peak.phase = "backward";
	said->report.at_peak.by_category[0] = 500;
	said->trial.end = TN_TRIAL_DONE;
	said->trial.outcome.report = &said->report;
	said->trial.outcome.changes.survey = (struct tn_survey){
		.known = true, .news_step = 3, .news_epoch = 2, .possible = said->possible, .possible_count = 2
	};
}

static void
test_the_same_is_the_same(void **state)
{
	struct said early, end;
	(void)state;
	say(&early);
	say(&end);
	end.report.seconds = 9; /* what grows as it waits says nothing */
	end.trial.outcome.changes.survey.backward = 400;
	assert_true(tn__fix_says_the_same(&early.trial, &end.trial));
	early.report.at_peak.phase = end.report.at_peak.phase = NULL;
	assert_true(tn__fix_says_the_same(&early.trial, &end.trial));
}

#define DIFFERS(change)                                               \
	do {                                                              \
		struct said early, end;                                       \
		say(&early);                                                  \
		say(&end);                                                    \
		change;                                                       \
		assert_false(tn__fix_says_the_same(&early.trial, &end.trial)); \
	} while (0)

static void
test_anything_else_is_not(void **state)
{
	(void)state;
	DIFFERS(end.trial.end = TN_TRIAL_SLOW);
	DIFFERS(end.trial.end = TN_TRIAL_HOST_MEMORY);
	DIFFERS(end.report.verdict = TN_VERDICT_FAILED);
	DIFFERS(end.report.device_peak++);
	DIFFERS(end.report.allocated_peak++);
	DIFFERS(end.report.at_peak.step++);
	DIFFERS(end.report.at_peak.phase = "evaluation");
	DIFFERS(end.report.at_peak.phase = NULL);
	DIFFERS(end.report.at_peak.by_category[TN_CATEGORIES - 1]++);
	DIFFERS(end.trial.outcome.changes.survey.news_step++);
	DIFFERS(end.trial.outcome.changes.survey.news_epoch = TN_NO_FIGURE);
	DIFFERS(end.trial.outcome.changes.survey.possible_count--);
	DIFFERS(end.possible[1].id = "detach");
	DIFFERS(end.possible[0].results = TN_GUARANTEE_DIFFERENT);
	DIFFERS(end.possible[0].at_most++);
	DIFFERS(end.possible[0].values.count = 0);
	DIFFERS(end.value = "4");
	DIFFERS(end.value = NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_same_is_the_same),
		                                cmocka_unit_test(test_anything_else_is_not) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
