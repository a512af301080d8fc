/* SPDX-License-Identifier: Apache-2.0
 *
 * What grew and what shrank between two inputs. A line is found again by its file's name, its function and its place
 * among the lines of that function that hold memory, so that a program whose lines have moved is still the same one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "verdict/paths.h"
#include "verdict/inspection.h"

/* What one line holds. */
struct row {
	enum tn_category category;
	const struct tn_place *at;
	int64_t bytes, blocks;
	size_t line; /* its number among the lines of its function, from 0 */
};

struct rows {
	struct row *items;
	size_t count;
};

/* A line of a function, whatever it holds. */
struct line {
	int64_t number;
	uint32_t categories; /* bits */
};

struct lines {
	struct line *items;
	size_t count;
};

enum { MOST_ALIGNED = 512 }; /* lines of one function; more are matched by their shift alone */

static const char *
text_or_empty(const char *text)
{
	return text != NULL ? text : "";
}

/* By file name and function. */
static int
compare_homes(const struct row *one, const struct row *other)
{
	int order = strcmp(tn__file_name(text_or_empty(one->at->file)), tn__file_name(text_or_empty(other->at->file)));
	return order ? order : strcmp(text_or_empty(one->at->function), text_or_empty(other->at->function));
}

/* By what a line holds. */
static int
compare_kinds(const struct row *one, const struct row *other)
{
	if (one->category != other->category)
		return one->category < other->category ? -1 : 1;
	return (int)one->at->backward - (int)other->at->backward;
}

static int
compare_rows(const void *left, const void *right)
{
	const struct row *one = left, *other = right;
	int order = compare_homes(one, other);
	if (order == 0)
		order = (one->at->line > other->at->line) - (one->at->line < other->at->line);
	return order ? order : compare_kinds(one, other);
}

/* The holders of a moment, one row a line. */
static tn_status
list_rows(const struct tn_inspection *inspection, struct rows *rows)
{
	const struct tn_report_moment *moment = tn__inspection_moment(inspection);
	rows->items = calloc(moment->holder_count + 1, sizeof(*rows->items));
	TN_RETURN_IF(rows->items == NULL, TN_NO_MEMORY, "out of host memory");
	for (size_t i = 0; i < moment->holder_count; i++) {
		const struct tn_report_holder *holder = &moment->holders[i];
		rows->items[i] = (struct row){ holder->category, &holder->at, holder->bytes, holder->blocks, 0 };
	}
	size_t kept = 0;
	qsort(rows->items, moment->holder_count, sizeof(*rows->items), compare_rows);
	for (size_t i = 0; i < moment->holder_count; i++) {
		if (kept > 0 && compare_rows(&rows->items[kept - 1], &rows->items[i]) == 0) {
			rows->items[kept - 1].bytes += rows->items[i].bytes;
			rows->items[kept - 1].blocks += rows->items[i].blocks;
		} else {
			rows->items[kept++] = rows->items[i];
		}
	}
	rows->count = kept;
	return TN_OK;
}

static void
add_change(struct tn_comparison *comparison, const struct row *before, const struct row *after)
{
	comparison->changes[comparison->count++] = (struct tn_change){
		.category = after != NULL ? after->category : before->category,
		.before_at = before != NULL ? before->at : NULL,
		.after_at = after != NULL ? after->at : NULL,
		.before = before != NULL ? before->bytes : 0,
		.after = after != NULL ? after->bytes : 0,
		.before_blocks = before != NULL ? before->blocks : 0,
		.after_blocks = after != NULL ? after->blocks : 0,
	};
}

/* ---- the lines of one function ---- */

/* Numbers the lines of rows of one function; `items` has room for as many. */
static void
list_lines(struct rows *rows, struct lines *lines)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct row *row = &rows->items[i];
		if (lines->count == 0 || lines->items[lines->count - 1].number != row->at->line)
			lines->items[lines->count++] = (struct line){ row->at->line, 0 };
		row->line = lines->count - 1;
		lines->items[row->line].categories |= 1u << row->category;
	}
}

/* How many lines find another, `shift` further down. */
static size_t
count_matches(const struct lines *before, const struct lines *after, int64_t shift)
{
	size_t matches = 0;
	for (size_t i = 0, j = 0; i < before->count && j < after->count;) {
		int64_t distance = after->items[j].number - before->items[i].number;
		matches += distance == shift && (before->items[i].categories & after->items[j].categories) != 0;
		i += distance >= shift;
		j += distance <= shift;
	}
	return matches;
}

/* The shift that most lines agree on; none, when that does as well. */
static int64_t
shift_of(const struct lines *before, const struct lines *after)
{
	int64_t best = 0;
	size_t most = count_matches(before, after, 0);
	for (size_t i = 0; i < before->count && i < 32; i++) {
		for (size_t j = 0; j < after->count && j < 32; j++) {
			int64_t shift = after->items[j].number - before->items[i].number;
			size_t matches = count_matches(before, after, shift);
			if (matches > most) {
				most = matches;
				best = shift;
			}
		}
	}
	return best;
}

/* What it speaks for two lines being the same: they hold the same kinds of memory, and moved as most did. */
static uint32_t
likeness(const struct line *before, const struct line *after, int64_t shift)
{
	uint32_t common = (uint32_t)__builtin_popcount(before->categories & after->categories);
	return common == 0 ? 0 : 2 * common + (after->number - before->number == shift);
}

/* pairs[i] is the line of `after` that line i of `before` has become, or SIZE_MAX: the alignment with the most likeness
 * that keeps the order. */
static tn_status
align(const struct lines *before, const struct lines *after, int64_t shift, size_t *pairs)
{
	size_t width = after->count + 1;
	uint32_t *best = calloc((before->count + 1) * width, sizeof(*best));
	TN_RETURN_IF(best == NULL, TN_NO_MEMORY, "out of host memory");
	for (size_t i = before->count; i-- > 0;) {
		for (size_t j = after->count; j-- > 0;) {
			uint32_t same = likeness(&before->items[i], &after->items[j], shift);
			uint32_t most = best[(i + 1) * width + j] > best[i * width + j + 1] ? best[(i + 1) * width + j]
			                                                                    : best[i * width + j + 1];
			uint32_t both = same > 0 ? same + best[(i + 1) * width + j + 1] : 0;
			best[i * width + j] = both > most ? both : most;
		}
	}
	for (size_t i = 0, j = 0; i < before->count;) {
		uint32_t here = best[i * width + j], same = 0;
		if (j < after->count)
			same = likeness(&before->items[i], &after->items[j], shift);
		bool paired = same > 0 && here == same + best[(i + 1) * width + j + 1];
		if (!paired && j < after->count && here == best[i * width + j + 1]) {
			j++;
			continue;
		}
		pairs[i++] = paired ? j++ : SIZE_MAX;
	}
	free(best);
	return TN_OK;
}

static void
pair_by_shift(const struct lines *before, const struct lines *after, int64_t shift, size_t *pairs)
{
	for (size_t i = 0, j = 0; i < before->count; i++) {
		while (j < after->count && after->items[j].number < before->items[i].number + shift)
			j++;
		pairs[i] = j < after->count && after->items[j].number == before->items[i].number + shift ? j : SIZE_MAX;
	}
}

static const struct row *
find_row(const struct rows *rows, size_t line, const struct row *like)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->items[i].line == line && compare_kinds(&rows->items[i], like) == 0)
			return &rows->items[i];
	return NULL;
}

static void
add_function(struct tn_comparison *comparison, const struct rows *before, const struct rows *after, const size_t *pairs,
             size_t pair_count)
{
	for (size_t i = 0; i < before->count; i++) {
		size_t line = pairs[before->items[i].line];
		const struct row *now = line != SIZE_MAX ? find_row(after, line, &before->items[i]) : NULL;
		add_change(comparison, &before->items[i], now);
	}
	for (size_t j = 0; j < after->count; j++) {
		const struct row *was = NULL;
		for (size_t line = 0; line < pair_count && was == NULL; line++)
			if (pairs[line] == after->items[j].line)
				was = find_row(before, line, &after->items[j]);
		if (was == NULL)
			add_change(comparison, NULL, &after->items[j]);
	}
}

static tn_status
match(struct tn_comparison *comparison, struct rows before, struct rows after)
{
	struct line *room = calloc(before.count + after.count + 1, sizeof(*room));
	size_t *pairs = calloc(before.count + 1, sizeof(*pairs));
	struct lines old = { room, 0 }, new = { room != NULL ? room + before.count : NULL, 0 };
	tn_status status = room != NULL && pairs != NULL ? TN_OK : tn__fail(TN_NO_MEMORY, "out of host memory");
	if (status == TN_OK) {
		list_lines(&before, &old);
		list_lines(&after, &new);
		int64_t shift = shift_of(&old, &new);
		if (old.count <= MOST_ALIGNED && new.count <= MOST_ALIGNED)
			status = align(&old, &new, shift, pairs);
		else
			pair_by_shift(&old, &new, shift, pairs);
	}
	if (status == TN_OK)
		add_function(comparison, &before, &after, pairs, old.count);
	free(room);
	free(pairs);
	return status;
}

static size_t
same_home(const struct rows *rows, size_t first)
{
	size_t end = first;
	while (end < rows->count && compare_homes(&rows->items[first], &rows->items[end]) == 0)
		end++;
	return end;
}

static tn_status
match_all(struct tn_comparison *comparison, const struct rows *before, const struct rows *after)
{
	for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
		int order = i == before->count  ? 1
		            : j == after->count ? -1
		                                : compare_homes(&before->items[i], &after->items[j]);
		size_t before_end = order <= 0 ? same_home(before, i) : i, after_end = order >= 0 ? same_home(after, j) : j;
		TN_FORWARD_IF_ERROR(match(comparison, (struct rows){ before->items + i, before_end - i },
		                          (struct rows){ after->items + j, after_end - j }));
		i = before_end;
		j = after_end;
	}
	return TN_OK;
}

static int
compare_changes(const void *left, const void *right)
{
	const struct tn_change *one = left, *other = right;
	int64_t first = llabs(one->after - one->before), second = llabs(other->after - other->before);
	if (first != second)
		return first > second ? -1 : 1;
	if (one->category != other->category)
		return one->category < other->category ? -1 : 1;
	const struct tn_place *a = one->after_at != NULL ? one->after_at : one->before_at;
	const struct tn_place *b = other->after_at != NULL ? other->after_at : other->before_at;
	int order = strcmp(text_or_empty(a->file), text_or_empty(b->file));
	return order ? order : (a->line > b->line) - (a->line < b->line);
}

tn_status
tn__compare(const struct tn_inspection *before, const struct tn_inspection *after, struct tn_comparison *out)
{
	struct rows old = { 0 }, new = { 0 };
	struct tn_comparison comparison = { .before = before, .after = after };
	tn_status status = list_rows(before, &old);
	if (status == TN_OK)
		status = list_rows(after, &new);
	if (status == TN_OK) {
		comparison.changes = calloc(old.count + new.count + 1, sizeof(*comparison.changes));
		status = comparison.changes != NULL ? TN_OK : tn__fail(TN_NO_MEMORY, "out of host memory");
	}
	if (status == TN_OK)
		status = match_all(&comparison, &old, &new);
	if (status == TN_OK) {
		qsort(comparison.changes, comparison.count, sizeof(*comparison.changes), compare_changes);
		*out = comparison;
	} else {
		free(comparison.changes);
	}
	free(old.items);
	free(new.items);
	return status;
}

void
tn__comparison_free(struct tn_comparison *comparison)
{
	free(comparison->changes);
	*comparison = (struct tn_comparison){ 0 };
}
