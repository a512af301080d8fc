/* SPDX-License-Identifier: Apache-2.0
 *
 * What `fit --vary` varies, and which combinations it tries: the answer equals that of trying each combination, for made programs whose
 * memory rises with all values; with few trials where it rises as a program's does.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/figure.h"
#include "search/grid.h"

/* ---- axes ---- */

static void
expect_values(const char *text, const char *wanted)
{
	struct tn_axis axis;
	char said[1024] = "";
	assert_int_equal(tn__axis_parse(text, &axis), TN_OK);
	for (int i = 0; i < axis.count; i++)
		snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%d", i > 0 ? " " : "", axis.values[i]);
	assert_string_equal(said, wanted);
}

static void
test_values_of_an_axis(void **state)
{
	(void)state;
	expect_values("batch=1..16", "1 2 4 8 16");
	expect_values("batch=3..20", "3 6 12 20");
	expect_values("length=512..2048:512", "512 1024 1536 2048");
	expect_values("length=512..2000:512", "512 1024 1536 2000");
	expect_values("length=128,1024,3000", "128 1024 3000");
	expect_values("n=7", "7");
	expect_values("n=7..7", "7");
}

static void
test_what_is_no_axis_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",          "batch",       "=1..4",     "batch=",       "batch=0..4",  "batch=4..1",
		"batch=1..", "batch=1..4:", "batch=1,1", "batch=2,1",    "batch=1,",    "batch=1 2",
		"batch=-1",  "batch=1..4x", "b{=1",      "batch=1..4:0", "n=1..1000:1", "n=99999999999"
	};
	struct tn_axis axis;
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(tn__axis_parse(wrong[i], &axis), TN_INVALID);
}

static void
test_places_in_the_arguments(void **state)
{
	const struct tn_axis axes[] = { { .name = "batch" }, { .name = "seq_len" } };
	const int values[] = { 8, 1024 };
	char *const given[] = { "python",
		                    "t.py",
		                    "--batch",
		                    "4",
		                    "--seq-len=512",
		                    "seq_len=2",
		                    "model.seq_len=3",
		                    "b{batch}x{seq_len}",
		                    "--batch",
		                    "--batch",
		                    "auto",
		                    "batch",
		                    NULL };
	static const char *const wanted[] = {
		"python",          "t.py",    "--batch", "8",       "--seq-len=1024", "seq_len=1024",
		"model.seq_len=3", "b8x1024", "--batch", "--batch", "auto",           "batch"
	};
	(void)state;
	char **made = tn__axes_arguments(axes, values, 2, given);
	assert_non_null(made);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		assert_string_equal(made[i], wanted[i]);
	assert_null(made[sizeof(wanted) / sizeof(wanted[0])]);
	tn__arguments_free(made);
	assert_true(tn__axis_has_place("batch", given));
	assert_true(tn__axis_has_place("seq-len", given));
	assert_false(tn__axis_has_place("layers", given));
	assert_false(tn__axis_has_place("model", given));
}

/* ---- the search ---- */

#define MOST 512

struct program {
	double base, factor, powers[TN_AXES];
	double jumps[MOST]; /* of a program whose memory rises in no way that a model has */
};

static double
need_of(const struct tn_grid *grid, const struct program *program, int point)
{
	int values[TN_AXES];
	double product = program->factor;
	tn__grid_values(grid, point, values);
	for (int i = 0; i < grid->axis_count; i++)
		product *= pow(values[i], program->powers[i]);
	return program->base + product;
}

/* Any need that rises with all values: at each point not less than at those below. */
static void
make_jumps(const struct tn_grid *grid, struct program *program)
{
	for (int point = 0; point < grid->columns * grid->rows; point++) {
		int values[TN_AXES], others[TN_AXES];
		tn__grid_values(grid, point, values);
		program->jumps[point] = rand() % 4 == 0 ? rand() % 100 : 0;
		for (int other = 0; other < point; other++) {
			bool below = true;
			tn__grid_values(grid, other, others);
			for (int i = 0; i < grid->axis_count; i++)
				below &= others[i] <= values[i];
			if (below && program->jumps[other] > program->jumps[point])
				program->jumps[point] = program->jumps[other];
		}
	}
}

/* Searches as `fit` does, `jobs` at a time; returns the number of trials. */
static int
search(struct tn_grid *grid, struct tn_grid_card *card, const double *needs, int jobs)
{
	int running[8], count = 0, trials = 0;
	for (;;) {
		int point = count < jobs ? tn__grid_next(grid, card) : -1;
		if (point >= 0) {
			assert_int_equal(card->seen[point], TN_GRID_UNKNOWN);
			card->seen[point] = TN_GRID_RUNS;
			running[count++] = point;
			trials++;
			continue;
		}
		if (count == 0)
			return trials;
		int which = rand() % count, at = running[which];
		running[which] = running[--count];
		card->seen[at] = needs[at] <= (double)card->room ? TN_GRID_FITS : TN_GRID_OUT_OF_MEMORY;
		card->need[at] = needs[at] <= (double)card->room ? (int64_t)needs[at] : TN_NO_FIGURE;
	}
}

static void
expect_the_truth(const struct tn_grid *grid, const struct tn_grid_card *card, const double *needs)
{
	for (int row = 0; row < grid->rows; row++) {
		int low, high, truth = -1;
		while (truth + 1 < grid->columns && needs[row * grid->columns + truth + 1] <= (double)card->room)
			truth++;
		tn__grid_bounds(grid, card, row, &low, &high);
		assert_int_equal(low, truth);
		assert_int_equal(high, truth + 1);
	}
}

static void
open_card(struct tn_grid_card *card, const struct tn_grid *grid, int64_t room)
{
	size_t points = (size_t)(grid->columns * grid->rows);
	*card = (struct tn_grid_card){ .seen = calloc(points, 1), .need = calloc(points, sizeof(int64_t)), .room = room };
	for (size_t i = 0; i < points; i++)
		card->need[i] = TN_NO_FIGURE;
}

static void
close_card(struct tn_grid_card *card)
{
	free(card->seen);
	free(card->need);
}

static void
test_any_rising_program(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 400; round++) {
		struct tn_axis axes[3] = { { .name = "a", .count = 1 + rand() % 9 },
			                       { .name = "b", .count = 1 + rand() % 7 },
			                       { .name = "c", .count = 1 + rand() % 4 } };
		struct program program = { 0 };
		struct tn_grid grid;
		struct tn_grid_card card;
		for (int i = 0; i < 3; i++)
			for (int j = 0; j < axes[i].count; j++)
				axes[i].values[j] = j == 0 ? 1 + rand() % 3 : axes[i].values[j - 1] + 1 + rand() % 4;
		assert_int_equal(tn__grid_open(axes, 1 + rand() % 3, &grid), TN_OK);
		make_jumps(&grid, &program);
		open_card(&card, &grid, rand() % 101 - 1);
		int trials = search(&grid, &card, program.jumps, 1 + rand() % 4);
		assert_in_range(trials, 0, grid.columns * grid.rows);
		expect_the_truth(&grid, &card, program.jumps);
		close_card(&card);
	}
}

/* Searches a grid of two axes whose needs are a product above a base, and a room within it; returns the number of trials. */
static int
search_product(const char *first, const char *second, int power)
{
	struct tn_axis axes[2];
	struct tn_grid grid;
	struct tn_grid_card card;
	struct program program = { .base = 1e9, .factor = 1e3 + rand() % 100000, .powers = { 1, power } };
	double needs[MOST];
	assert_int_equal(tn__axis_parse(first, &axes[0]), TN_OK);
	assert_int_equal(tn__axis_parse(second, &axes[1]), TN_OK);
	assert_int_equal(tn__grid_open(axes, 2, &grid), TN_OK);
	for (int i = 0; i < grid.columns * grid.rows; i++)
		needs[i] = need_of(&grid, &program, i);
	double growth = log(needs[grid.columns * grid.rows - 1] / needs[0]);
	open_card(&card, &grid, (int64_t)(needs[0] * exp(growth * (rand() % 1000) / 1000)));
	card.need[0] = (int64_t)needs[0]; /* the first trial, on a card that is never full */
	int trials = search(&grid, &card, needs, 1);
	expect_the_truth(&grid, &card, needs);
	close_card(&card);
	return trials;
}

/* Where memory rises as a product: far fewer trials than combinations, also where these are few. */
static void
test_a_product_takes_few_trials(void **state)
{
	static const struct {
		const char *first, *second;
		int most;
		double mean;
	} grids[] = { { "batch=1..256", "length=256..8192", 20, 11 },
		          { "batch=4..32", "length=128..1024", 9, 6.5 },
		          { "batch=8..64", "length=64..256", 8, 5.5 },
		          { "batch=1..64:1", "length=512..4096:512", 50, 25 } };
	(void)state;
	srand(2);
	for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
		int sum = 0;
		for (int round = 0; round < 200; round++) {
			int trials = search_product(grids[i].first, grids[i].second, 1 + round % 2);
			assert_in_range(trials, 0, grids[i].most);
			sum += trials;
		}
		assert_true(sum / 200.0 <= grids[i].mean);
	}
}

/* A program that fails by itself from some value on tells nothing of other rows; what fitted below it stands. */
static void
test_a_program_that_fails(void **state)
{
	struct tn_axis axes[2];
	struct tn_grid grid;
	struct tn_grid_card card;
	int low, high;
	(void)state;
	assert_int_equal(tn__axis_parse("batch=1..8", &axes[0]), TN_OK);
	assert_int_equal(tn__axis_parse("length=1,2,3", &axes[1]), TN_OK);
	assert_int_equal(tn__grid_open(axes, 2, &grid), TN_OK);
	open_card(&card, &grid, 1);
	for (int point; (point = tn__grid_next(&grid, &card)) >= 0;)
		card.seen[point] = point / grid.columns == 1 ? TN_GRID_FAILED : TN_GRID_FITS;
	tn__grid_bounds(&grid, &card, 2, &low, &high);
	assert_int_equal(low, 3);
	tn__grid_bounds(&grid, &card, 0, &low, &high);
	assert_int_equal(low, 3);
	close_card(&card);
}

static void
test_powers(void **state)
{
	const int values[] = { 2, 4, 8 };
	(void)state;
	assert_true(fabs(tn__grid_power(values, (int64_t[]){ 2, 4, 8 }) - 1) < 0.01);
	assert_true(fabs(tn__grid_power(values, (int64_t[]){ 104, 116, 164 }) - 2) < 0.01);
	assert_true(tn__grid_power(values, (int64_t[]){ 5, 5, 8 }) == 0);
	assert_true(tn__grid_power(values, (int64_t[]){ 5, TN_NO_FIGURE, 8 }) == 0);
}

static void
test_too_many_combinations_are_refused(void **state)
{
	struct tn_axis axes[3];
	struct tn_grid grid;
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(tn__axis_parse("a=1..32:1", &axes[i]), TN_OK);
	assert_int_equal(tn__grid_open(axes, 3, &grid), TN_INVALID);
	assert_int_equal(tn__grid_open(axes, 2, &grid), TN_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_of_an_axis),
		cmocka_unit_test(test_what_is_no_axis_is_refused),
		cmocka_unit_test(test_places_in_the_arguments),
		cmocka_unit_test(test_any_rising_program),
		cmocka_unit_test(test_a_product_takes_few_trials),
		cmocka_unit_test(test_a_program_that_fails),
		cmocka_unit_test(test_powers),
		cmocka_unit_test(test_too_many_combinations_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
