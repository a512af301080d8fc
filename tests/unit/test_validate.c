/* SPDX-License-Identifier: Apache-2.0
 *
 * A job on the measured card beside its copy: what counts as agreement, what is told of a difference, and the counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/validation_text.h"

#define MIB (INT64_C(1) << 20)

/* What a job writes; the caller releases. */
static json_t *
counted(const char *end, json_int_t allocated, json_int_t reserved, json_int_t process, json_int_t last_segment)
{
	return json_pack("{s:s, s:{s:I, s:I}, s:I, s:[I, I], s:n}", "end", end, "stats", "allocated_bytes.all.peak",
	                 allocated, "reserved_bytes.all.peak", reserved, "device_bytes", process, "segments", 2 * MIB,
	                 last_segment, "rows");
}

/* The entry of a job that counted these two; releases them. */
static json_t *
entry_of(json_t *measured, const char *measured_why, json_t *copy, const char *copy_why)
{
	json_t *entry = tn__validate_compare("a job", measured, measured_why, copy, copy_why);
	assert_non_null(entry);
	json_decref(measured);
	json_decref(copy);
	return entry;
}

static json_t *
entry_beside_the_usual(json_t *copy)
{
	return entry_of(counted("done", 5 * MIB, 22 * MIB, 300 * MIB, 20 * MIB), NULL, copy, NULL);
}

static bool
agrees(const json_t *entry)
{
	return json_is_true(json_object_get(entry, "agrees"));
}

/* The entry's line for a person must hold each of the words; releases the entry. */
static void
assert_line(json_t *entry, const char *first, const char *second)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	assert_int_equal(tn__validation_line(entry, (struct tn_style){ .columns = 100 }, out), TN_OK);
	fclose(out);
	if (strstr(text, first) == NULL || strstr(text, second) == NULL)
		fail_msg("neither \"%s\" nor \"%s\" may miss in: %s", first, second, text);
	free(text);
	json_decref(entry);
}

static void
the_same_agrees(void **state)
{
	json_t *entry = entry_beside_the_usual(counted("done", 5 * MIB, 22 * MIB, 300 * MIB, 20 * MIB));
	assert_true(agrees(entry));
	assert_true(json_is_null(json_object_get(json_object_get(entry, "segments"), "copy")));
	assert_line(entry, "agrees: a job", "5.0 MiB allocated");
}

static void
the_process_may_be_a_little_off(void **state)
{
	json_t *near = entry_beside_the_usual(counted("done", 5 * MIB, 22 * MIB, 400 * MIB, 20 * MIB));
	json_t *far = entry_beside_the_usual(counted("done", 5 * MIB, 22 * MIB, 400 * MIB + 1, 20 * MIB));
	assert_true(agrees(near));
	assert_false(agrees(far));
	assert_line(near, "agrees", "process +100.0 MiB");
	assert_line(far, "DIFFERS", "(+104857601 bytes)");
}

static void
one_byte_of_a_counter_is_a_difference(void **state)
{
	json_t *entry = entry_beside_the_usual(counted("done", 5 * MIB + 1, 22 * MIB, 300 * MIB, 20 * MIB));
	assert_false(agrees(entry));
	assert_int_equal(json_array_size(json_object_get(entry, "counters")), 1);
	assert_line(entry, "(+1 bytes)", "1 counter");
}

static void
a_counter_that_one_side_lacks_is_a_difference(void **state)
{
	json_t *measured = counted("done", 1, 2, 3, 4), *copy = counted("done", 1, 2, 3, 4);
	json_object_set_new(json_object_get(copy, "stats"), "num_new_things", json_integer(0));
	json_object_set_new(json_object_get(measured, "stats"), "num_old_things", json_integer(0));
	json_t *entry = entry_of(measured, NULL, copy, NULL), *counters = json_object_get(entry, "counters");
	assert_false(agrees(entry));
	assert_int_equal(json_array_size(counters), 2);
	assert_true(json_is_null(json_object_get(json_array_get(counters, 0), "copy")));
	assert_true(json_is_null(json_object_get(json_array_get(counters, 1), "measured")));
	json_decref(entry);
}

static void
a_counter_that_does_not_repeat_is_listed_and_no_disagreement(void **state)
{
	json_t *measured = counted("done", 1, 2, 3, 4), *copy = counted("done", 1, 2, 3, 4);
	json_object_set_new(json_object_get(measured, "stats"), "inactive_split.all.freed", json_integer(7));
	json_object_set_new(json_object_get(copy, "stats"), "inactive_split.all.freed", json_integer(8));
	json_object_set_new(measured, "unrepeated", json_pack("[s]", "inactive_split."));
	json_t *both = json_deep_copy(measured), *other = json_deep_copy(copy);
	json_object_set_new(json_object_get(other, "stats"), "num_alloc_retries", json_integer(1));
	json_t *entry = entry_of(measured, NULL, copy, NULL), *counters = json_object_get(entry, "counters");
	assert_true(agrees(entry));
	assert_true(json_is_false(json_object_get(json_array_get(counters, 0), "repeats")));
	assert_line(entry, "agrees", "a job");
	entry = entry_of(both, NULL, other, NULL);
	assert_false(agrees(entry));
	assert_line(entry, "DIFFERS", "1 counter, the first num_alloc_retries");
}

static void
another_segment_or_end_is_a_difference(void **state)
{
	json_t *segment = entry_beside_the_usual(counted("done", 5 * MIB, 22 * MIB, 300 * MIB, 18 * MIB));
	json_t *end = entry_beside_the_usual(counted("out_of_memory", 5 * MIB, 22 * MIB, 300 * MIB, 20 * MIB));
	assert_false(agrees(segment));
	assert_false(agrees(end));
	assert_int_equal(json_array_size(json_object_get(json_object_get(segment, "segments"), "copy")), 2);
	assert_line(segment, "DIFFERS", "other segments");
	assert_line(end, "ends with done", "copy out_of_memory");
}

static void
a_side_that_failed_is_told(void **state)
{
	json_t *entry = entry_of(counted("done", 1, 2, 3, 4), NULL, NULL, "CUDA error: unknown");
	assert_false(agrees(entry));
	assert_true(json_is_null(json_object_get(json_object_get(entry, "allocated_peak_bytes"), "copy")));
	assert_line(entry, "DIFFERS", "the copy failed: CUDA error: unknown");
	json_t *neither = entry_of(NULL, "no card", NULL, "no card");
	assert_false(agrees(neither));
	json_decref(neither);
}

static int
count_of(const json_t *summary, const char *name)
{
	return (int)json_integer_value(json_object_get(summary, name));
}

static void
the_counts_are_of_jobs_that_ran(void **state)
{
	json_t *jobs = json_array();
	json_array_append_new(jobs, entry_beside_the_usual(counted("done", 5 * MIB, 22 * MIB, 300 * MIB, 20 * MIB)));
	json_array_append_new(jobs,
	                      entry_of(counted("done", 1000, 1000, 3, 4), NULL, counted("done", 1000, 1005, 3, 4), NULL));
	json_array_append_new(jobs,
	                      entry_of(counted("done", 1000, 1000, 3, 4), NULL, counted("done", 1001, 1006, 3, 5), NULL));
	json_array_append_new(jobs, entry_of(NULL, "no card", NULL, "no card"));
	json_t *summary = tn__validate_summary(jobs);
	assert_int_equal(count_of(summary, "jobs"), 4);
	assert_int_equal(count_of(summary, "agree"), 1);
	assert_int_equal(count_of(summary, "allocated_peak_equal"), 2);
	assert_int_equal(count_of(summary, "reserved_peak_within_half_percent"), 2);
	assert_int_equal(count_of(summary, "same_segments"), 2);
	assert_int_equal(count_of(summary, "process_within_100_mib"), 3);
	json_decref(summary);
	json_decref(jobs);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_agrees),
		cmocka_unit_test(the_process_may_be_a_little_off),
		cmocka_unit_test(one_byte_of_a_counter_is_a_difference),
		cmocka_unit_test(a_counter_that_one_side_lacks_is_a_difference),
		cmocka_unit_test(a_counter_that_does_not_repeat_is_listed_and_no_disagreement),
		cmocka_unit_test(another_segment_or_end_is_a_difference),
		cmocka_unit_test(a_side_that_failed_is_told),
		cmocka_unit_test(the_counts_are_of_jobs_that_ran),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
