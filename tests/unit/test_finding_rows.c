/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of findings (src/verdict/findings.def) and those it points to: each piece of advice and each change that a row names exists,
 * names lead back to their rows, and what is added to a report is as the row says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "change/facts.h"
#include "search/remedies.h"
#include "verdict/advice.h"
#include "verdict/finding_rows.h"
#include "verdict/model_fill.h"

/* Calls `known` for each word; fails where it says no. */
static void
check_words(const char *finding, const char *words, bool (*known)(const char *))
{
	char copy[512], *rest = copy;
	assert_true(strlen(words) < sizeof(copy));
	strcpy(copy, words);
	for (char *word; (word = strsep(&rest, " ")) != NULL;)
		if (*words != '\0' && !known(word))
			fail_msg("%s names \"%s\", which does not exist", finding, word);
}

static bool
is_advice(const char *id)
{
	for (size_t i = 0; tn__advice_at(i) != NULL; i++)
		if (strcmp(tn__advice_at(i)->id, id) == 0)
			return true;
	return false;
}

static bool
is_change(const char *id)
{
	return strcmp(tn__change_facts(id)->id, id) == 0;
}

static void
test_rows_name_what_exists(void **state)
{
	for (int i = 0; i < TN_FINDINGS; i++) {
		enum tn_finding_id id = (enum tn_finding_id)i;
		const struct tn_finding_row *row = tn__finding_row(id);
		if (row->advice != NULL)
			check_words(tn__finding_name(id), row->advice, is_advice);
		check_words(tn__finding_name(id), row->remedies, is_change);
		if (row->kind == TN_KIND_NOTE) {
			assert_null(row->advice);
			assert_string_equal(row->remedies, "");
		}
	}
}

static void
test_names_lead_back(void **state)
{
	for (int i = 0; i < TN_FINDINGS; i++)
		assert_int_equal(tn__finding_of(tn__finding_name((enum tn_finding_id)i)), i);
	assert_int_equal(tn__finding_of("of_another_version"), TN_FINDINGS);
	assert_int_equal(tn__finding_of(NULL), TN_FINDINGS);
	assert_string_equal(tn__finding_name(TN_FINDINGS), "unknown");
	assert_false(tn__finding_is_room("of_another_version"));
	assert_true(tn__finding_is_room("batch_too_big"));
	assert_false(tn__finding_is_room("growth"));
}

static void
test_remedies_are_whole_words(void **state)
{
	assert_true(tn__finding_has_remedy(TN_FINDING_batch_too_big, "accumulate"));
	assert_true(tn__finding_has_remedy(TN_FINDING_batch_too_big, "batch"));
	assert_false(tn__finding_has_remedy(TN_FINDING_growth, "accumulation")); /* of eval_accumulation */
	assert_false(tn__finding_has_remedy(TN_FINDING_kv_cache, "kv"));
	assert_false(tn__finding_has_remedy(TN_FINDING_batch_too_big, ""));
	assert_false(tn__finding_has_remedy(TN_FINDINGS, "batch"));
}

static void
test_finding_is_added_as_its_row_says(void **state)
{
	struct tn_report report;
	tn__report_init(&report);
	struct tn_finding *finding = tn__report_add_finding(&report, TN_FINDING_zero_grad_every_micro_step, 1, NULL, NULL,
	                                                    "%d passes", 3);
	assert_non_null(finding);
	assert_int_equal(finding->severity, TN_SEVERITY_WARNING);
	assert_string_equal(finding->advice_ids, "zero_grad_after_step");
	assert_string_equal(finding->what, "3 passes");
	finding = tn__report_add_finding(&report, TN_FINDING_host_ram, 1, NULL, "words of its own", "x");
	assert_int_equal(finding->severity, TN_SEVERITY_ERROR);
	assert_string_equal(finding->advice, "words of its own");
	assert_null(finding->advice_ids);
	finding = tn__report_add_finding_as(&report, TN_FINDING_growth, TN_SEVERITY_HINT, 1, NULL, NULL, "x");
	assert_int_equal(finding->severity, TN_SEVERITY_HINT);
	assert_null(finding->advice); /* only the advice that is given */
	finding = tn__report_add_finding(&report, TN_FINDING_fragmentation, 1, NULL, NULL, "x");
	assert_string_equal(finding->advice_ids, "expandable");
	tn__report_advise(&report, finding, ""); /* a rule that knows better */
	assert_null(finding->advice);
	assert_null(finding->advice_ids);
	tn__report_drop_findings(&report, TN_FINDING_fragmentation);
	assert_int_equal(report.finding_count, 3);
	tn__report_free(&report);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_name_what_exists),
		cmocka_unit_test(test_names_lead_back),
		cmocka_unit_test(test_remedies_are_whole_words),
		cmocka_unit_test(test_finding_is_added_as_its_row_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
