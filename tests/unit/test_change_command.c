/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of a program's own, written onto its command line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "change/change.h"

/* The command line after the changes, with single spaces. */
static void
check(const char *changes, const char *wanted, char *const *arguments)
{
	char text[512] = "";
	char **made = tn__change_command(arguments, changes);
	assert_non_null(made);
	for (size_t i = 0; made[i] != NULL; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i > 0 ? " " : "", made[i]);
	assert_string_equal(text, wanted);
	tn__change_command_free(made);
}

#define LINE(...) ((char *[]){ __VA_ARGS__, NULL })

static void
test_options_replace_those_that_stand_there(void **state)
{
	(void)state;
	check("option_accumulate=-b 64 --accum 2", "python train.py -b 64 --amp --accum 2",
	      LINE("python", "train.py", "-b", "128", "--amp"));
	check("option_batch=--batch 4", "python train.py --batch=4", LINE("python", "train.py", "--batch=8"));
	check("option_accumulate=--batch_size=8 --steps=4", "python train.py --batch_size=8 --steps=4",
	      LINE("python", "train.py", "--batch_size=16"));
	check("option_checkpoint=--ckpt", "python -m train --ckpt", LINE("python", "-m", "train", "--ckpt"));
}

static void
test_the_last_of_several_counts_and_launchers_keep_theirs(void **state)
{
	(void)state;
	check("option_batch=--batch 4", "python train.py --batch 9 --batch 4",
	      LINE("python", "train.py", "--batch", "9", "--batch", "8"));
	check("option_precision=--precision bf16", "launch --precision fp16 train.py --precision bf16",
	      LINE("launch", "--precision", "fp16", "train.py"));
}

static void
check_title(const char *value, const char *wanted)
{
	char *title = tn__change_title("a smaller batch", value);
	assert_string_equal(title, wanted);
	free(title);
}

static void
test_titles_name_a_file_once(void **state)
{
	(void)state;
	check_title(NULL, "a smaller batch");
	check_title("4", "a smaller batch (4)");
	check_title("--batch 4 env:A=1", "a smaller batch (--batch 4 A=1)");
	check_title("file:a.yaml:b=1 file:a.yaml:c=2 file:d.py:T.b=3", "a smaller batch (a.yaml: b=1 c=2 d.py: T.b=3)");
	check_title("file:odd", "a smaller batch (file:odd)");
}

static void
test_keys_variables_and_files(void **state)
{
	(void)state;
	const char *mixed = "option_accumulate=loader.batch=4 env:STEPS=2 file:a.yaml:b=1";
	check(mixed, "python train.py loader.batch=4 +x=1", LINE("python", "train.py", "loader.batch=8", "+x=1"));
	check("option_precision=--amp env:A=1", "python train.py --amp", LINE("python", "train.py"));
	char **copied = tn__change_command_to_copy(LINE("python", "train.py"), "option_batch=env:A=1 env:B=2 --batch 4");
	static const char *const wanted[] = { "env", "A=1", "B=2", "python", "train.py", "--batch", "4" };
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		assert_string_equal(copied[i], wanted[i]);
	tn__change_command_free(copied);
	assert_true(tn__change_is_on_line(mixed) && tn__change_is_command(mixed));
	assert_true(tn__change_is_command("option_batch=env:A=1") && !tn__change_is_on_line("option_batch=env:A=1"));
	assert_false(tn__change_is_command("option_batch=file:a.yaml:b=1"));
	assert_false(tn__change_is_command("option_batch=--batch 4,zero_grad"));
}

static void
test_other_changes_leave_the_line_alone(void **state)
{
	(void)state;
	check("accumulate=2,option_batch=--batch 4,alloc=a:1,b:2", "python train.py --batch 4", LINE("python", "train.py"));
	check("zero_grad", "python train.py", LINE("python", "train.py"));
	assert_true(tn__change_is_own("option_batch=--batch 4,option_checkpoint=--ckpt"));
	assert_false(tn__change_is_own("option_batch=--batch 4,zero_grad"));
	assert_false(tn__change_is_own(""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_replace_those_that_stand_there),
		cmocka_unit_test(test_the_last_of_several_counts_and_launchers_keep_theirs),
		cmocka_unit_test(test_titles_name_a_file_once),
		cmocka_unit_test(test_keys_variables_and_files),
		cmocka_unit_test(test_other_changes_leave_the_line_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
