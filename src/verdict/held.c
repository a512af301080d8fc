/* SPDX-License-Identifier: Apache-2.0
 *
 * What held memory at the peak, by category and function: what a baseline keeps and a gate compares.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/secrets.h"
#include "verdict/gate.h"
#include "verdict/paths.h"

int
tn__compare_texts(const char *one, const char *other)
{
	if (one == NULL || other == NULL)
		return (one != NULL) - (other != NULL);
	return strcmp(one, other);
}

int
tn__compare_held(const void *left, const void *right)
{
	const struct tn_held *one = left, *other = right;
	if (one->category != other->category)
		return one->category < other->category ? -1 : 1;
	int order = tn__compare_texts(one->file, other->file);
	if (order == 0)
		order = tn__compare_texts(one->function, other->function);
	return order != 0 ? order : (int)one->backward - (int)other->backward;
}

static int
compare_with_lines(const void *left, const void *right)
{
	const struct tn_held *one = left, *other = right;
	int order = tn__compare_held(left, right);
	int64_t first = one->lines[0].place->line, second = other->lines[0].place->line;
	return order != 0 ? order : (first > second) - (first < second);
}

void
tn__held_free(struct tn_held_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].lines);
	for (size_t i = 0; i < list->masked_count; i++)
		free(list->masked[i]);
	free(list->masked);
	free(list->items);
	*list = (struct tn_held_list){ 0 };
}

/* The holder's file as on any machine, without secrets; NULL without memory. */
static const char *
file_of(const struct tn_report *report, const struct tn_report_holder *holder, struct tn_held_list *list)
{
	const char *file = tn__portable_path(report, holder->at.file);
	char *masked = tn__mask_known(report->secrets, file);
	if (masked == NULL || strcmp(masked, file) == 0) {
		free(masked);
		return masked != NULL ? file : NULL;
	}
	return list->masked[list->masked_count++] = masked;
}

static tn_status
one_line(const struct tn_report *report, const struct tn_report_holder *holder, struct tn_held_list *list)
{
	struct tn_held *out = &list->items[list->count++];
	*out = (struct tn_held){ .category = holder->category,
		                     .file = file_of(report, holder, list),
		                     .function = holder->at.function,
		                     .backward = holder->at.backward,
		                     .bytes = holder->bytes,
		                     .lines = malloc(sizeof(*out->lines)),
		                     .line_count = 1 };
	TN_RETURN_IF(out->lines == NULL || out->file == NULL, TN_NO_MEMORY, "out of host memory");
	out->lines[0] = (struct tn_held_line){ holder->bytes, tn__line_code(holder->at.file, holder->at.line),
		                                   &holder->at };
	return TN_OK;
}

/* Adds a line to those of its function, or to the same line. */
static tn_status
merge(struct tn_held *into, const struct tn_held_line *line)
{
	struct tn_held_line *last = &into->lines[into->line_count - 1];
	into->bytes += line->bytes;
	if (last->place->line == line->place->line) {
		last->bytes += line->bytes;
		return TN_OK;
	}
	struct tn_held_line *lines = reallocarray(into->lines, into->line_count + 1, sizeof(*lines));
	TN_RETURN_IF(lines == NULL, TN_NO_MEMORY, "out of host memory");
	into->lines = lines;
	lines[into->line_count++] = *line;
	return TN_OK;
}

static tn_status
merge_all(struct tn_held_list *list)
{
	size_t kept = 0;
	tn_status status = TN_OK;
	for (size_t i = 0; i < list->count; i++) {
		struct tn_held *item = &list->items[i];
		if (kept == 0 || tn__compare_held(&list->items[kept - 1], item) != 0) {
			list->items[kept++] = *item;
			continue;
		}
		if (status == TN_OK)
			status = merge(&list->items[kept - 1], &item->lines[0]);
		free(item->lines);
	}
	list->count = kept;
	return status;
}

tn_status
tn__held_complete(struct tn_held_list *list, const int64_t by_category[TN_CATEGORIES])
{
	int64_t rest[TN_CATEGORIES];
	memcpy(rest, by_category, sizeof(rest));
	for (size_t i = 0; i < list->count; i++)
		if (rest[list->items[i].category] != TN_NO_FIGURE)
			rest[list->items[i].category] -= list->items[i].bytes;
	struct tn_held *items = reallocarray(list->items, list->count + TN_CATEGORIES, sizeof(*items));
	TN_RETURN_IF(items == NULL, TN_NO_MEMORY, "out of host memory");
	list->items = items;
	for (int i = 0; i < TN_CATEGORIES; i++)
		if (by_category[i] != TN_NO_FIGURE && rest[i] != 0)
			items[list->count++] = (struct tn_held){ .category = (enum tn_category)i, .bytes = rest[i] };
	qsort(items, list->count, sizeof(*items), tn__compare_held);
	return TN_OK;
}

tn_status
tn__held_of_report(const struct tn_report *report, struct tn_held_list *out)
{
	const struct tn_report_moment *moment = &report->at_peak;
	struct tn_held_list list = { .items = calloc(moment->holder_count + 1, sizeof(*list.items)),
		                         .masked = calloc(moment->holder_count + 1, sizeof(*list.masked)) };
	tn_status status = list.items != NULL && list.masked != NULL ? TN_OK : tn__fail(TN_NO_MEMORY, "out of host memory");
	for (size_t i = 0; i < moment->holder_count && status == TN_OK; i++)
		if (moment->holders[i].at.file != NULL)
			status = one_line(report, &moment->holders[i], &list);
	if (status == TN_OK) {
		qsort(list.items, list.count, sizeof(*list.items), compare_with_lines);
		status = merge_all(&list);
	}
	if (status == TN_OK)
		status = tn__held_complete(&list, moment->by_category);
	if (status == TN_OK)
		*out = list;
	else
		tn__held_free(&list);
	return status;
}
