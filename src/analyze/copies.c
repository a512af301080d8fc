/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies on the card a second time, told by sizes: tensors of one line that are as many and as large as all parameters of
 * the model, or as most of them (an average of its weights in a list), in the same type or one of another width. Copies that are modules are
 * told by the metadata (guest/copies.py).
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/error.h"

enum {
	FEWEST = 4, /* tensors: fewer of the same sizes are by chance */
	MANY = 16,  /* of a part of the model */
};

const char *const tn__label_of_copy = "copy of the model";
static const char buckets[] = "DDP's buckets";

static int
compare_sizes(const void *left, const void *right)
{
	uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
	return (one > other) - (one < other);
}

static bool
is_copy_already(const struct tn_piece *piece)
{
	return piece->label && strcmp(piece->label, tn__label_of_copy) == 0;
}

/* Sizes of parameters that are no copy, in order; returns how many. */
static size_t
sizes_of_model(const struct tn_piece *pieces, size_t count, uint64_t *sizes)
{
	size_t known = 0;
	for (size_t index = 0; index < count; index++)
		if (pieces[index].category == TN_CATEGORY_parameters && !is_copy_already(&pieces[index]))
			sizes[known++] = pieces[index].bytes;
	if (known)
		qsort(sizes, known, sizeof(*sizes), compare_sizes);
	return known;
}

/* True when each size is the other one's by the same factor: 1 to 4, or the other way round. */
static bool
are_alike(const uint64_t *sizes, const uint64_t *others, size_t count)
{
	uint64_t up = sizes[0], down = others[0];
	bool plausible = up == down || up == 2 * down || down == 2 * up || up == 4 * down || down == 4 * up;
	for (size_t index = 0; index < count && plausible; index++)
		plausible = up <= down ? sizes[index] * (down / up) == others[index]
		                       : sizes[index] == others[index] * (up / down);
	return plausible;
}

static uint64_t
sum_of(const uint64_t *sizes, size_t count)
{
	uint64_t sum = 0;
	for (size_t index = 0; index < count; index++)
		sum += sizes[index];
	return sum;
}

/* True when each of the sizes, by a factor of up over down, is one of the model's, each used once. Both are in order. */
static bool
are_among(const uint64_t *model, size_t size, const uint64_t *own, size_t known, uint64_t up, uint64_t down)
{
	size_t at = 0;
	for (size_t index = 0; index < known; index++, at++) {
		while (at < size && model[at] * up < own[index] * down)
			at++;
		if (at == size || model[at] * up != own[index] * down)
			return false;
	}
	return true;
}

/* The copy of one model of several (what is trained, beside encoders that are not): many sizes, at least half of all bytes. */
static bool
is_most(const uint64_t *model, size_t size, const uint64_t *own, size_t known)
{
	static const uint64_t factors[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 } };
	uint64_t whole = sum_of(model, size), part = sum_of(own, known);
	if (known < MANY || known > size || own[0] == own[known - 1])
		return false;
	for (size_t index = 0; index < sizeof(factors) / sizeof(factors[0]); index++) {
		uint64_t up = factors[index][0], down = factors[index][1];
		if (2 * part * down >= whole * up && are_among(model, size, own, known, up, down))
			return true;
	}
	return false;
}

/* The line of the program where there is one: a helper of a library may make tensors of many kinds. */
static struct tn_line
line_of(const struct tn_piece *piece)
{
	return piece->origin.user.file ? piece->origin.user : piece->origin.at;
}

static bool
is_candidate(const struct tn_analysis *analysis, const struct tn_piece *piece)
{
	if (piece->category != TN_CATEGORY_temporaries || piece->label || !piece->origin.at.file ||
	    piece->origin.at.backward)
		return false;
	return !(analysis->traits[piece->origin.stack] & TN_STACK_OPTIMIZER); /* an update's own work is as large as all */
}

static bool
is_of_line(const struct tn_analysis *analysis, const struct tn_piece *piece, const struct tn_line *line)
{
	struct tn_line its = line_of(piece);
	return is_candidate(analysis, piece) && its.line == line->line && strcmp(its.file, line->file) == 0;
}

static void
look_at_line(const struct tn_analysis *analysis, struct tn_piece *pieces, size_t count, size_t first,
             const uint64_t *model, size_t size, uint64_t *own)
{
	struct tn_line line = line_of(&pieces[first]);
	size_t known = 0;
	for (size_t index = first; index < count; index++)
		if (is_of_line(analysis, &pieces[index], &line)) {
			if (known == size)
				return;
			own[known++] = pieces[index].bytes;
		}
	qsort(own, known, sizeof(*own), compare_sizes);
	if (known == size ? !are_alike(model, own, size) : !is_most(model, size, own, known))
		return;
	for (size_t index = first; index < count; index++)
		if (is_of_line(analysis, &pieces[index], &line))
			pieces[index].label = tn__label_of_copy;
}

static bool
is_first_of_line(const struct tn_analysis *analysis, const struct tn_piece *pieces, size_t index)
{
	struct tn_line line = line_of(&pieces[index]);
	for (size_t before = index; before-- > 0;)
		if (is_of_line(analysis, &pieces[before], &line))
			return false;
	return true;
}

tn_status
tn__label_pieces(const struct tn_analysis *analysis, struct tn_piece *pieces, size_t count)
{
	enum { MOST_LINES = 64 };
	uint64_t *model = malloc(2 * (count + 1) * sizeof(*model));
	TN_RETURN_IF(!model, TN_NO_MEMORY, "no host memory for the sizes of %zu blocks", count);
	size_t size = sizes_of_model(pieces, count, model), lines = 0;
	for (size_t index = 0; index < count; index++) {
		if (pieces[index].category != TN_CATEGORY_communication || pieces[index].label)
			continue;
		if (tn__made_by_ddp(analysis, pieces[index].origin.stack))
			pieces[index].label = buckets;
	}
	for (size_t index = 0; index < count && size >= FEWEST && lines < MOST_LINES; index++) {
		if (!is_candidate(analysis, &pieces[index]) || !is_first_of_line(analysis, pieces, index))
			continue;
		lines++;
		look_at_line(analysis, pieces, count, index, model, size, model + count + 1);
	}
	free(model);
	return TN_OK;
}
