/* SPDX-License-Identifier: Apache-2.0
 *
 * Which combination of values to try next.
 */
#include "search/grid.h"

#include <math.h>

#include "base/figure.h"

#define GUESSES 3 /* of a row, before halving */

tn_status
tn__grid_open(const struct tn_axis *axes, int axis_count, struct tn_grid *out)
{
	int64_t points = 1;
	for (int i = 0; i < axis_count; i++)
		points *= axes[i].count;
	TN_RETURN_IF(points > TN_GRID_POINTS, TN_INVALID, "--vary: %lld combinations are more than %d: give fewer values",
	             (long long)points, TN_GRID_POINTS);
	*out = (struct tn_grid){
		.axes = axes, .axis_count = axis_count, .columns = axes[0].count, .rows = (int)points / axes[0].count
	};
	return TN_OK;
}

/* Which value of an axis a row has; of the first axis there is none. */
static int
index_of(const struct tn_grid *grid, int row, int axis)
{
	for (int i = 1; i < axis; i++)
		row /= grid->axes[i].count;
	return row % grid->axes[axis].count;
}

void
tn__grid_values(const struct tn_grid *grid, int point, int *values)
{
	values[0] = grid->axes[0].values[point % grid->columns];
	for (int i = 1; i < grid->axis_count; i++)
		values[i] = grid->axes[i].values[index_of(grid, point / grid->columns, i)];
}

/* True when no value of row `a` is above that of row `b`. */
static bool
is_below(const struct tn_grid *grid, int a, int b)
{
	for (int i = 1; i < grid->axis_count; i++)
		if (index_of(grid, a, i) > index_of(grid, b, i))
			return false;
	return true;
}

void
tn__grid_bounds(const struct tn_grid *grid, const struct tn_grid_card *card, int row, int *low, int *high)
{
	*low = -1;
	*high = grid->columns;
	for (int other = 0; other < grid->rows; other++) {
		bool below = is_below(grid, other, row), above = is_below(grid, row, other);
		for (int column = 0; column < grid->columns && (below || above); column++) {
			unsigned char seen = card->seen[other * grid->columns + column];
			if (seen == TN_GRID_FITS && above && column > *low)
				*low = column;
			if (((seen == TN_GRID_OUT_OF_MEMORY && below) || (seen == TN_GRID_FAILED && other == row)) &&
			    column < *high)
				*high = column;
		}
	}
	if (*low >= *high) /* memory does not rise steadily: what was seen to fit counts */
		*high = *low + 1;
}

/* ---- guesses: a column that may be the largest that fits ---- */

static int
largest_up_to(const struct tn_grid *grid, double value)
{
	int column = -1;
	while (column + 1 < grid->columns && grid->axes[0].values[column + 1] <= value)
		column++;
	return column;
}

/* By the line through the two points of the row whose need is nearest to the room. */
static bool
guess_by_line(const struct tn_grid *grid, const struct tn_grid_card *card, int row, int *out)
{
	int near[2] = { -1, -1 };
	const int64_t *need = card->need + (size_t)row * (size_t)grid->columns;
	for (int column = 0; column < grid->columns; column++) {
		if (need[column] == TN_NO_FIGURE)
			continue;
		double away = fabs((double)(need[column] - card->room));
		if (near[0] < 0 || away < fabs((double)(need[near[0]] - card->room))) {
			near[1] = near[0];
			near[0] = column;
		} else if (near[1] < 0 || away < fabs((double)(need[near[1]] - card->room))) {
			near[1] = column;
		}
	}
	if (near[1] < 0)
		return false;
	const int *values = grid->axes[0].values;
	double slope = (double)(need[near[1]] - need[near[0]]) / (values[near[1]] - values[near[0]]);
	if (slope <= 0)
		return false;
	*out = largest_up_to(grid, values[near[0]] + (double)(card->room - need[near[0]]) / slope);
	return true;
}

/* What memory is taken to be: base + factor * product of each axis's value to its power. factor 0: unknown. */
struct model {
	double base, factor;
	int powers[TN_AXES];
};

static double
product_of(const struct tn_grid *grid, const struct model *model, int point)
{
	int values[TN_AXES];
	double product = 1;
	tn__grid_values(grid, point, values);
	for (int i = 0; i < grid->axis_count; i++)
		for (int j = 0; j < model->powers[i]; j++)
			product *= values[i];
	return product;
}

/* Sets base and factor for the model's powers, through what the least values of all need, with the steepest growth that was seen
 * from there. Returns how far it is from all that was seen, as a sum of squared shares; negative: it has no growth. */
static double
fit(const struct tn_grid *grid, const struct tn_grid_card *card, struct model *model)
{
	double least = (double)card->need[0], first = product_of(grid, model, 0), error = 0;
	model->factor = 0;
	for (int point = 1; point < grid->columns * grid->rows; point++) {
		double wider = card->need[point] != TN_NO_FIGURE ? product_of(grid, model, point) - first : 0;
		if (wider > 0 && ((double)card->need[point] - least) / wider > model->factor)
			model->factor = ((double)card->need[point] - least) / wider;
	}
	model->base = least - model->factor * first;
	for (int point = 1; point < grid->columns * grid->rows && model->factor > 0; point++) {
		double need = (double)card->need[point];
		bool full = card->need[point] == TN_NO_FIGURE && card->seen[point] == TN_GRID_OUT_OF_MEMORY;
		if (!full && card->need[point] == TN_NO_FIGURE)
			continue;
		double said = model->base + model->factor * product_of(grid, model, point);
		if (full && said < (double)card->room) /* it takes more than there is, nobody knows how much */
			need = (double)card->room;
		if (!full || said < need)
			error += (said / need - 1) * (said / need - 1);
	}
	return model->factor > 0 ? error : -1;
}

/* The powers that come nearest to what was seen; of those that come as near, the ones that are tried first. */
static struct model
learn(const struct tn_grid *grid, const struct tn_grid_card *card)
{
	static const int order[] = { 1, 2, 0 }; /* what does not grow with a value at all is rare */
	struct model best = { .factor = 0 };
	double least_error = 0;
	int ways = 1;
	for (int i = 0; i < grid->axis_count; i++)
		ways *= 3;
	for (int way = 0; way < ways && card->need[0] != TN_NO_FIGURE; way++) {
		struct model model = { .factor = 0 };
		for (int i = 0, rest = way; i < grid->axis_count; i++, rest /= 3)
			model.powers[i] = order[rest % 3];
		double error = fit(grid, card, &model);
		if (error >= 0 && (best.factor <= 0 || error < least_error - 1e-9)) {
			best = model;
			least_error = error;
		}
	}
	return best;
}

static bool
guess_by_model(const struct tn_grid *grid, const struct tn_grid_card *card, const struct model *model, int row,
               int *out)
{
	*out = -1;
	if (model->factor <= 0) /* then at least whether the least values are too much already is known */
		return card->need[0] != TN_NO_FIGURE && card->need[0] > card->room;
	while (*out + 1 < grid->columns &&
	       model->base + model->factor * product_of(grid, model, row * grid->columns + *out + 1) <= (double)card->room)
		++*out;
	return true;
}

/* ---- what to try ---- */

/* A row of which more is to be known. */
struct open_row {
	int column;  /* to try, -1: none */
	bool to_fit; /* it is expected to fit */
};

static struct open_row
choose(const struct tn_grid *grid, const struct tn_grid_card *card, const struct model *model, int row)
{
	int low, high, guess = 0, tried = 0;
	tn__grid_bounds(grid, card, row, &low, &high);
	for (int column = 0; column < grid->columns; column++) {
		if (card->seen[row * grid->columns + column] == TN_GRID_RUNS)
			return (struct open_row){ -1, false };
		tried += card->seen[row * grid->columns + column] != TN_GRID_UNKNOWN;
	}
	if (high - low <= 1)
		return (struct open_row){ -1, false };
	bool known = tried < GUESSES &&
	             (guess_by_line(grid, card, row, &guess) || guess_by_model(grid, card, model, row, &guess));
	if (!known)
		return (struct open_row){ low + (high - low) / 2, true };
	if (guess <= low)
		return (struct open_row){ low + 1, false };
	return (struct open_row){ guess >= high ? high - 1 : guess, true };
}

/* Whether another row that is to try the same value would tell this row, too, if it went as expected. */
static bool
is_told_by(const struct tn_grid *grid, const struct open_row *rows, int row, int other)
{
	return other != row && rows[other].column == rows[row].column && rows[other].to_fit == rows[row].to_fit &&
	       (rows[row].to_fit ? is_below(grid, row, other) : is_below(grid, other, row));
}

int
tn__grid_next(const struct tn_grid *grid, const struct tn_grid_card *card)
{
	struct open_row rows[TN_GRID_POINTS];
	struct model model = learn(grid, card);
	for (int row = 0; row < grid->rows; row++)
		rows[row] = choose(grid, card, &model, row);
	for (int row = 0; row < grid->rows; row++) {
		bool told = rows[row].column < 0;
		for (int other = 0; other < grid->rows && !told; other++)
			told = is_told_by(grid, rows, row, other);
		if (!told)
			return row * grid->columns + rows[row].column;
	}
	return -1;
}

double
tn__grid_power(const int values[3], const int64_t needs[3])
{
	for (int i = 0; i < 3; i++)
		if (needs[i] == TN_NO_FIGURE)
			return 0;
	double least = 0.05, most = 4, first = (double)(needs[1] - needs[0]), second = (double)(needs[2] - needs[1]);
	if (first <= 0 || second <= 0)
		return 0;
	for (int i = 0; i < 50; i++) { /* the share of the two rises with the power */
		double power = (least + most) / 2;
		double a = pow(values[0], power), b = pow(values[1], power), c = pow(values[2], power);
		if ((c - b) / (b - a) < second / first)
			least = power;
		else
			most = power;
	}
	return (least + most) / 2;
}
