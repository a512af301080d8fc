/* SPDX-License-Identifier: Apache-2.0
 *
 * How changes are spelled, by the cases that the Python side is held to as well (tests/changes/test_frame.py), and what the build
 * made of the table of changes: right answers read off python/tonnage/changes/table.py by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "change/facts.h"

static char *
spelled(const json_t *pair)
{
	char *part = tn__change_part(json_string_value(json_array_get(pair, 0)),
	                             json_string_value(json_array_get(pair, 1)));
	assert_non_null(part);
	return part;
}

static void
test_lists_are_split_as_the_program_splits_them(void **state)
{
	json_error_t error;
	json_t *cases = json_load_file(TN_GOLDEN "/spelling.json", 0, &error);
	const json_t *one;
	size_t i;
	assert_true(json_array_size(cases) > 10);
	json_array_foreach(cases, i, one) {
		const char *text = json_string_value(json_array_get(one, 0));
		const json_t *wanted = json_array_get(one, 1);
		struct tn_change_list list;
		assert_int_equal(tn__change_split(text, &list), TN_OK);
		if (list.count != json_array_size(wanted))
			fail_msg("\"%s\" has %zu parts, not %zu", text, json_array_size(wanted), list.count);
		for (size_t j = 0; j < list.count; j++) {
			char *part = spelled(json_array_get(wanted, j));
			assert_string_equal(list.parts[j], part);
			free(part);
		}
		tn__change_list_free(&list);
	}
	json_decref(cases);
}

static void
test_what_is_joined_is_split_again(void **state)
{
	static const char *const parts[] = { "alloc=a:1,b:2", "zero_grad", "option_batch=--batch 4" };
	char *changes = NULL;
	struct tn_change_list list;
	for (size_t i = 0; i < 3; i++)
		tn__change_join(&changes, parts[i]);
	assert_int_equal(tn__change_split(changes, &list), TN_OK);
	assert_int_equal(list.count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(list.parts[i], parts[i]);
	tn__change_list_free(&list);
	free(changes);
	assert_int_equal(tn__change_split(NULL, &list), TN_OK);
	assert_int_equal(list.count, 0);
}

static void
test_facts_are_those_of_the_table(void **state)
{
	const struct tn_change_facts *facts = tn__change_facts("accumulate=4");
	assert_string_equal(facts->id, "accumulate");
	assert_string_equal(facts->title, "gradient accumulation over smaller batches");
	assert_int_equal(facts->results, TN_GUARANTEE_ROUNDING);
	assert_int_equal(facts->cost, 2);
	assert_int_equal(facts->choice, TN_CHOICE_PIECES);
	assert_true(facts->activations == 1 && facts->rounding == 1 && facts->gradients == 0);
	facts = tn__change_facts("adam8bit");
	assert_int_equal(facts->results, TN_GUARANTEE_DIFFERENT);
	assert_true(facts->state == 0.75 && facts->temporaries == 0.5);
	assert_string_equal(tn__change_facts("alloc=x:1,y:2")->id, "alloc");
	assert_string_equal(tn__change_facts("of_another_version")->id, "");
	assert_string_equal(tn__change_facts("")->id, "");
}

static void
test_rows_are_whole(void **state)
{
	size_t count = 0;
	for (const struct tn_change_facts *row; (row = tn__change_facts_at(count)) != NULL; count++) {
		assert_ptr_equal(tn__change_facts(row->id), row); /* no name stands twice */
		assert_int_equal(tn__change_is_option(row->id), row->choice == TN_CHOICE_OPTION_VALUES);
		assert_true(row->title[0] != '\0');
		assert_true(row->cost >= 0);
	}
	assert_true(count > 40);
}

static void
test_conflicts_hold_both_ways(void **state)
{
	assert_true(tn__change_conflicts("accumulate=2", "batch=4"));
	assert_true(tn__change_conflicts("fused", "adafactor"));
	assert_true(tn__change_conflicts("offload_optimizer", "fused"));
	assert_true(tn__change_conflicts("fused", "offload_optimizer")); /* said by the other one alone */
	assert_false(tn__change_conflicts("accumulate=2", "option_checkpoint=--ckpt"));
	assert_false(tn__change_conflicts("nonsense", "fused"));
}

static void
test_some_help_in_one_phase_only(void **state)
{
	assert_true(tn__change_helps_in(tn__change_facts("fused"), "optimizer"));
	assert_false(tn__change_helps_in(tn__change_facts("fused"), "forward"));
	assert_true(tn__change_helps_in(tn__change_facts("fused"), NULL));
	assert_true(tn__change_helps_in(tn__change_facts("chunked_loss"), "backward"));
	assert_false(tn__change_helps_in(tn__change_facts("chunked_loss"), "ward"));
	assert_true(tn__change_helps_in(tn__change_facts("batch=2"), "saving"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_are_split_as_the_program_splits_them),
		cmocka_unit_test(test_what_is_joined_is_split_again),
		cmocka_unit_test(test_facts_are_those_of_the_table),
		cmocka_unit_test(test_rows_are_whole),
		cmocka_unit_test(test_conflicts_hold_both_ways),
		cmocka_unit_test(test_some_help_in_one_phase_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
