/* SPDX-License-Identifier: Apache-2.0
 *
 * What is made of the trial of a change that acted on nothing.
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

static struct tn_report
peaks(int64_t requested, int64_t allocated)
{
	struct tn_report report;
	tn__report_init(&report);
	report.requested_peak = requested;
	report.allocated_peak = allocated;
	report.reserved_peak = allocated + 100 * MIB;
	report.device_peak = report.reserved_peak + 130 * MIB;
	report.verdict = TN_VERDICT_FITS;
	return report;
}

static void
test_what_acted_on_nothing_saves_nothing(void **state)
{
	static const struct {
		int64_t requested, allocated, saved;
		enum tn_fix_end end;
	} cases[] = {
		{ 900 * MIB, 1000 * MIB, 0, TN_FIX_NO_HELP },
		{ 900 * MIB, 999 * MIB, 0, TN_FIX_NO_HELP }, /* another cached block was free */
		{ 900 * MIB, 1001 * MIB, 0, TN_FIX_NO_HELP },
		{ 899 * MIB, 999 * MIB, MIB, TN_FIX_UNKNOWN }, /* it asked for something else */
		{ TN_NO_FIGURE, 999 * MIB, MIB, TN_FIX_UNKNOWN },
	};
	char id[] = "nothing", *parts[] = { id };
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tn_change_result result = { .id = id, .applied = true };
		struct tn_change_process process = { .rank = TN_NO_FIGURE, .items = &result, .count = 1 };
		struct tn_report unchanged = peaks(cases[i].requested != TN_NO_FIGURE ? 900 * MIB : TN_NO_FIGURE, 1000 * MIB),
						 trial = peaks(cases[i].requested, cases[i].allocated);
		struct tn_fix_search search = { .missing = 400 * MIB,
			                            .need = tn__fix_need(&unchanged),
			                            .card.total = (uint64_t)(730 * MIB),
			                            .unchanged_large = { .end = TN_TRIAL_DONE, .outcome.report = &unchanged } };
		struct tn_attempt attempt = { .found = { .parts = parts, .part_count = 1 },
			                          .large = { .end = TN_TRIAL_DONE,
			                                     .server = -1,
			                                     .outcome = { .report = &trial,
			                                                  .changes = { .processes = &process, .count = 1 } } } };
		tn__fix_judge_large(&search, &attempt);
		assert_int_equal(attempt.found.saved, cases[i].saved);
		assert_int_equal(attempt.found.end, cases[i].end);
		assert_int_equal(attempt.found.need, search.need - cases[i].saved);
		assert_int_equal(attempt.stage, TN_STAGE_OVER);
		free(attempt.found.why_not);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_acted_on_nothing_saves_nothing) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
