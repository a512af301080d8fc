/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue: the embedded file, looking up, the smallest card, and malformed rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/catalogue.h"
#include "tonnage/status.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static void
test_embedded_file(void **state)
{
	assert_int_equal(tn__gpu_count(), 38);
	assert_null(tn__gpu_row(-1));
	assert_null(tn__gpu_row(38));
	for (int i = 0; i < tn__gpu_count(); i++) {
		const struct tn_gpu_row *row = tn__gpu_row(i);
		assert_ptr_equal(tn__gpu_find(row->figures.name), row);
		for (int alias = 0; alias < row->alias_count; alias++)
			assert_ptr_equal(tn__gpu_find(row->aliases[alias]), row);
		assert_true(row->figures.sm_count > 0 && row->figures.max_threads_per_sm >= 1024);
		assert_true(row->figures.total_bytes > row->figures.context_bytes && row->figures.context_bytes > 0);
	}
}

static void
test_figures_of_a_row(void **state)
{
	const struct tn_gpu_row *row = tn__gpu_find("rtx3060");
	assert_non_null(row);
	assert_string_equal(row->figures.name, "NVIDIA GeForce RTX 3060");
	assert_int_equal(row->figures.compute_major, 8);
	assert_int_equal(row->figures.compute_minor, 6);
	assert_int_equal(row->figures.total_bytes, 12036 * MIB);
	assert_int_equal(row->figures.context_bytes, 130 * MIB);
	assert_int_equal(row->figures.l2_bytes, 2359296);
	assert_true(row->figures.bf16_tflops > 25.4 && row->figures.bf16_tflops < 25.6);
}

static void
test_spellings(void **state)
{
	const struct tn_gpu_row *row = tn__gpu_find("rtx3060ti");
	assert_ptr_equal(tn__gpu_find("RTX 3060 Ti"), row);
	assert_ptr_equal(tn__gpu_find("geforce rtx3060-TI"), row);
	assert_null(tn__gpu_find(""));
	assert_null(tn__gpu_find("NVIDIA"));
	assert_null(tn__gpu_find("rtx9999"));
}

static void
assert_refused(const char *name, const char *expected)
{
	const struct tn_gpu_row *row;
	assert_int_equal(tn__gpu_named(name, &row), TN_NOT_FOUND);
	assert_null(row);
	assert_string_equal(tn_error_text(), expected);
}

static void
test_suggestions(void **state)
{
	static const char long_name[] = "a name that is far longer than any card is ever called, and then some more of it";
	const struct tn_gpu_row *row;
	assert_int_equal(tn__gpu_named("RTX 4090", &row), TN_OK);
	assert_ptr_equal(row, tn__gpu_find("rtx4090"));
	assert_refused("rtx3061", "unknown GPU \"rtx3061\": did you mean rtx3060? (tonnage gpus lists them)");
	assert_refused("RTX 409", "unknown GPU \"RTX 409\": did you mean rtx4090? (tonnage gpus lists them)");
	assert_refused("a100", "unknown GPU \"a100\": did you mean a100-40 or a100-80? (tonnage gpus lists them)");
	/* More begin like that than are named. */
	assert_refused(
		"rtx30",
		"unknown GPU \"rtx30\": did you mean rtx3060, rtx3090, rtx3070 or rtx3080-10? (tonnage gpus lists them)");
	assert_refused("voodoo", "unknown GPU \"voodoo\": tonnage gpus lists the known ones");
	assert_refused("", "unknown GPU \"\": tonnage gpus lists the known ones");
	char expected[160];
	snprintf(expected, sizeof(expected), "unknown GPU \"%s\": tonnage gpus lists the known ones", long_name);
	assert_refused(long_name, expected);
}

static void
test_smallest(void **state)
{
	/* 7817 - 200 MiB is what the smallest card of the file has to offer beside its context. */
	assert_string_equal(tn__gpu_smallest(0, 0)->figures.alias, "rtx3070");
	assert_string_equal(tn__gpu_smallest(7617 * MIB, 0)->figures.alias, "rtx3070");
	assert_string_equal(tn__gpu_smallest(7617 * MIB + 1, 0)->figures.alias, "rtx4060");
	/* A peak that holds another card's context is freed from it first. */
	assert_string_equal(tn__gpu_smallest(7817 * MIB, 200 * MIB)->figures.alias, "rtx3070");
	assert_null(tn__gpu_smallest(1000 * GIB, 0));
}

static void
test_certainty(void **state)
{
	const struct tn_gpu_row *t4 = tn__gpu_find("t4"), *b300 = tn__gpu_find("b300");
	assert_int_equal(tn__gpu_figure_certainty(t4, TN_GPU_FIGURE_TOTAL), TN_CERTAINTY_EXACT);
	assert_int_equal(tn__gpu_figure_certainty(t4, TN_GPU_FIGURE_CONTEXT), TN_CERTAINTY_NEAR);
	assert_int_equal(tn__gpu_figure_certainty(t4, TN_GPU_FIGURE_MAX_BLOCKS), TN_CERTAINTY_EXACT);
	assert_int_equal(tn__gpu_figure_certainty(b300, TN_GPU_FIGURE_SM_COUNT), TN_CERTAINTY_GUESS);
	assert_int_equal(tn__gpu_figure_certainty(b300, TN_GPU_FIGURE_CONTEXT), TN_CERTAINTY_GUESS);
	for (int figure = 0; figure < TN_GPU_FIGURE_COUNT; figure++)
		assert_true(strlen(tn__gpu_figure_source(b300, (enum tn_gpu_figure)figure)) > 10);
}

#define HEADER "header\n"
#define GOOD "Card,card;other,8.6,28,12036,130,1,2,3,4,5,6,7.5,25.5,,12.7,seen,near,context_mib\n"

static void
test_parsing(void **state)
{
	struct tn_gpu_row rows[2];
	int count = -1;
	assert_int_equal(tn__gpu_parse(HEADER GOOD, rows, 2, &count), TN_OK);
	assert_int_equal(count, 1);
	assert_string_equal(rows[0].aliases[1], "other");
	assert_true(rows[0].figures.tf32_tflops == 0); /* left empty: unknown */
	assert_int_equal(rows[0].guessed, 1 << TN_GPU_FIGURE_CONTEXT);
	assert_int_equal(tn__gpu_parse("", rows, 2, &count), TN_OK);
	assert_int_equal(count, 0);
	assert_int_equal(tn__gpu_parse(HEADER GOOD GOOD GOOD, rows, 2, &count), TN_LIMIT);
}

static void
test_malformed_rows(void **state)
{
	static const char *const bad[] = {
		HEADER "Card\n",
		HEADER ",card,8.6,28,12036,130,1,2,3,4,5,6,7,8,9,10,seen,near,\n",
		HEADER "Card,,8.6,28,12036,130,1,2,3,4,5,6,7,8,9,10,seen,near,\n",
		HEADER "Card,card,86,28,12036,130,1,2,3,4,5,6,7,8,9,10,seen,near,\n",
		HEADER "Card,card,8.6,x,12036,130,1,2,3,4,5,6,7,8,9,10,seen,near,\n",
		HEADER "Card,card,8.6,28,100,130,1,2,3,4,5,6,7,8,9,10,seen,near,\n",
		HEADER "Card,card,8.6,28,12036,130,1,2,3,4,5,6,7,8,9,10,seen,maybe,\n",
		HEADER "Card,card,8.6,28,12036,130,1,2,3,4,5,6,7,8,9,10,seen,near,nothing\n",
		HEADER "Card,a;b;c;d;e,8.6,28,12036,130,1,2,3,4,5,6,7,8,9,10,seen,near,\n",
		HEADER "Card,card,8.6,28,12036,130,1,2,3,4,5,6,7,8,9,10,seen,near,,more\n",
	};
	struct tn_gpu_row rows[2];
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int count = -1;
		assert_int_equal(tn__gpu_parse(bad[i], rows, 2, &count), TN_FORMAT);
		assert_int_equal(count, -1);
		assert_non_null(strstr(tn_error_text(), "line 2"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_embedded_file), cmocka_unit_test(test_figures_of_a_row), cmocka_unit_test(test_spellings),
		cmocka_unit_test(test_suggestions),   cmocka_unit_test(test_smallest),         cmocka_unit_test(test_certainty),
		cmocka_unit_test(test_parsing),       cmocka_unit_test(test_malformed_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
