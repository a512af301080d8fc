/* SPDX-License-Identifier: Apache-2.0
 *
 * One line of marks at a time: fields are cut and unescaped in the copy, in place.
 */
#include "analyze/marks.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define VERSION "1"

struct line {
	struct tn_marks *marks;
	char *at;  /* the next field; NULL when there is none */
	char *end; /* of the line; a zero byte stands there */
	size_t number;
};

static tn_status
wrong(const struct line *line, const char *what)
{
	return tn__fail(TN_FORMAT, "line %zu of the marks: %s", line->number, what);
}

/* ---- fields ---- */

/* The next field as it stands, ended by a zero byte. */
static tn_status
take_raw(struct line *line, char **field, char **end)
{
	if (!line->at)
		return wrong(line, "a field is missing");
	*field = line->at;
	*end = memchr(line->at, '\t', (size_t)(line->end - line->at));
	line->at = *end ? *end + 1 : NULL;
	if (!*end)
		*end = line->end;
	**end = '\0';
	return TN_OK;
}

/* A number without sign, of digits only. */
static bool
digits(const char *at, const char *end, uint64_t *number)
{
	uint64_t value = 0;
	if (at == end)
		return false;
	for (; at < end; at++) {
		if (*at < '0' || *at > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			return false;
	}
	*number = value;
	return true;
}

static tn_status
take_bytes(struct line *line, uint64_t *number)
{
	char *field, *end;
	TN_FORWARD_IF_ERROR(take_raw(line, &field, &end));
	return digits(field, end, number) ? TN_OK : wrong(line, "an address or a number of bytes is malformed");
}

static tn_status
take_number(struct line *line, int64_t *number)
{
	char *field, *end;
	uint64_t value;
	TN_FORWARD_IF_ERROR(take_raw(line, &field, &end));
	bool negative = *field == '-';
	if (!digits(field + negative, end, &value) || value > INT64_MAX)
		return wrong(line, "a number is malformed");
	*number = negative ? -(int64_t)value : (int64_t)value;
	return TN_OK;
}

/* A time, which is not before the one of the line before it. */
static tn_status
take_time(struct line *line, int64_t before, int64_t *time)
{
	TN_FORWARD_IF_ERROR(take_number(line, time));
	if (*time < 0)
		return wrong(line, "a time is negative");
	if (*time < before)
		*time = before;
	return TN_OK;
}

static char
unescaped(char code)
{
	switch (code) {
	case 't':
		return '\t';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case '\\':
		return '\\';
	default:
		return '\0';
	}
}

static tn_status
take_text(struct line *line, const char **text)
{
	char *field, *end;
	TN_FORWARD_IF_ERROR(take_raw(line, &field, &end));
	char *to = field;
	*text = field;
	for (const char *from = field; from < end; from++) {
		char byte = *from;
		if (byte == '\\' && !(byte = unescaped(*++from)))
			return wrong(line, "an unknown escape");
		*to++ = byte;
	}
	*to = '\0';
	return TN_OK;
}

/* ---- kinds ---- */

/* Room for one more row of a kind, zeroed; `rows` names it in struct tn_marks. */
#define NEW_ROW(line, rows, row)                                                                                    \
	TN_FORWARD_IF_ERROR(tn__grow(&(line)->marks->budget, &(line)->marks->rows, &(line)->marks->rows##_capacity,     \
	                             (line)->marks->rows##_count + 1, sizeof(*(line)->marks->rows)));                   \
	row = &(line)->marks->rows[(line)->marks->rows##_count];                                                       \
	memset(row, 0, sizeof(*row))

/* The time of the last row of a kind, or 0. */
#define LAST_TIME(line, rows) \
	((line)->marks->rows##_count ? (line)->marks->rows[(line)->marks->rows##_count - 1].time : 0)

static tn_status
read_phase(struct line *line)
{
	struct tn_mark_phase *row;
	NEW_ROW(line, phases, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, phases), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->step));
	TN_FORWARD_IF_ERROR(take_text(line, &row->name));
	line->marks->phases_count++;
	return TN_OK;
}

static tn_status
read_look(struct line *line)
{
	struct tn_mark_look *row;
	if (line->marks->looks_count == UINT32_MAX)
		return wrong(line, "too many looks");
	NEW_ROW(line, looks, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, looks), &row->time));
	line->marks->looks_count++;
	return TN_OK;
}

static tn_status
take_category(struct line *line, uint8_t *category)
{
	const char *name;
	TN_FORWARD_IF_ERROR(take_text(line, &name));
	for (*category = 0; *category <= TN_CATEGORY_communication; ++*category) {
		if (*category != TN_CATEGORY_workspaces && strcmp(name, tn__category_name((enum tn_category)*category)) == 0)
			return TN_OK;
	}
	return wrong(line, "no category that a tensor can be held as");
}

static tn_status
read_hold(struct line *line)
{
	struct tn_mark_hold *row;
	if (line->marks->looks_count == 0)
		return wrong(line, "a hold before any look");
	if (line->marks->holds_count == UINT32_MAX)
		return wrong(line, "too many holds");
	NEW_ROW(line, holds, row);
	TN_FORWARD_IF_ERROR(take_category(line, &row->category));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->address));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->bytes));
	TN_FORWARD_IF_ERROR(take_text(line, &row->label));
	row->look = (uint32_t)(line->marks->looks_count - 1);
	line->marks->holds_count++;
	return TN_OK;
}

static tn_status
read_backward(struct line *line)
{
	struct tn_mark_backward *row;
	NEW_ROW(line, passes, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, passes), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->pass));
	row->first_node = line->marks->nodes_count;
	line->marks->passes_count++;
	return TN_OK;
}

static tn_status
read_node(struct line *line)
{
	struct tn_mark_node *row;
	uint64_t view;
	if (line->marks->passes_count == 0)
		return wrong(line, "a node before any backward");
	if (line->marks->nodes_count == UINT32_MAX)
		return wrong(line, "too many nodes");
	NEW_ROW(line, nodes, row);
	TN_FORWARD_IF_ERROR(take_number(line, &row->id));
	TN_FORWARD_IF_ERROR(take_number(line, &row->sequence));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->bytes));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->evidence));
	TN_FORWARD_IF_ERROR(take_bytes(line, &view));
	TN_FORWARD_IF_ERROR(take_text(line, &row->name));
	row->view = view != 0;
	line->marks->nodes_count++;
	line->marks->passes[line->marks->passes_count - 1].nodes++;
	return TN_OK;
}

static tn_status
read_run(struct line *line)
{
	struct tn_mark_run *row;
	NEW_ROW(line, runs, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, runs), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->id));
	line->marks->runs_count++;
	return TN_OK;
}

static tn_status
read_library(struct line *line)
{
	struct tn_mark_library *row;
	if (line->marks->libraries_count == UINT32_MAX)
		return wrong(line, "too many workspaces");
	NEW_ROW(line, libraries, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, libraries), &row->time));
	TN_FORWARD_IF_ERROR(take_text(line, &row->library));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->address));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->bytes));
	line->marks->libraries_count++;
	return TN_OK;
}

static tn_status
read_copied(struct line *line)
{
	struct tn_mark_copied *row;
	NEW_ROW(line, copies, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, copies), &row->time));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->address));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->bytes));
	line->marks->copies_count++;
	return TN_OK;
}

static tn_status
read_card(struct line *line)
{
	struct tn_mark_card *row;
	NEW_ROW(line, cards, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, cards), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->device));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->total));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->context));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->program));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->libraries));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->others));
	line->marks->cards_count++;
	return TN_OK;
}

static tn_status
read_step(struct line *line)
{
	struct tn_mark_step *row;
	NEW_ROW(line, steps, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, steps), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->number));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->allocated));
	line->marks->steps_count++;
	return TN_OK;
}

static tn_status
read_oom(struct line *line)
{
	struct tn_mark_oom *row;
	NEW_ROW(line, ooms, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, ooms), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->device));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->requested));
	line->marks->ooms_count++;
	return TN_OK;
}

static tn_status
read_call(struct line *line)
{
	struct tn_mark_call *row;
	NEW_ROW(line, calls, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, calls), &row->time));
	TN_FORWARD_IF_ERROR(take_text(line, &row->name));
	TN_FORWARD_IF_ERROR(take_text(line, &row->file));
	TN_FORWARD_IF_ERROR(take_number(line, &row->line));
	TN_FORWARD_IF_ERROR(take_text(line, &row->function));
	line->marks->calls_count++;
	return TN_OK;
}

static tn_status
read_batch(struct line *line)
{
	struct tn_mark_batch *row;
	NEW_ROW(line, batches, row);
	TN_FORWARD_IF_ERROR(take_number(line, &row->size));
	line->marks->batches_count++;
	return TN_OK;
}

/* ---- lines ---- */

static tn_status
read_first(struct line *line)
{
	const char *name, *version;
	TN_FORWARD_IF_ERROR(take_text(line, &name));
	if (strcmp(name, "tonnage-marks") != 0)
		return wrong(line, "it does not begin with tonnage-marks");
	TN_FORWARD_IF_ERROR(take_text(line, &version));
	if (strcmp(version, VERSION) != 0)
		return tn__fail(TN_UNSUPPORTED, "line 1 of the marks: their version is not " VERSION);
	return TN_OK;
}

static tn_status
read_line(struct line *line)
{
	static const struct {
		const char *name;
		tn_status (*read)(struct line *line);
	} kinds[] = {
#define KIND(kind, rows) {#kind, read_##kind},
		TN_MARK_KINDS(KIND)
#undef KIND
	};
	char *name, *end;
	TN_FORWARD_IF_ERROR(take_raw(line, &name, &end));
	for (size_t index = 0; index < sizeof(kinds) / sizeof(kinds[0]); index++) {
		if (strcmp(name, kinds[index].name) == 0)
			return kinds[index].read(line);
	}
	return TN_OK;
}

static tn_status
read_lines(struct tn_marks *marks, size_t length)
{
	char *at = marks->text, *end = marks->text + length;
	struct line line = {.marks = marks};
	while (at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		line.at = at;
		line.end = newline ? newline : end;
		*line.end = '\0';
		at = line.end + 1;
		line.number++;
		TN_FORWARD_IF_ERROR(line.number == 1 ? read_first(&line) : read_line(&line));
	}
	return line.number ? TN_OK : tn__fail(TN_FORMAT, "line 1 of the marks: there is none");
}

tn_status
tn__marks_parse(const char *text, size_t length, struct tn_marks *marks)
{
	struct tn_marks fresh = {.budget = {.limit = UINT64_MAX}};
	fresh.text = malloc(length + 1);
	TN_RETURN_IF(!fresh.text, TN_NO_MEMORY, "no host memory for %zu bytes of marks", length);
	memcpy(fresh.text, text, length);
	fresh.text[length] = '\0';
	tn_status status = read_lines(&fresh, length);
	if (status == TN_OK)
		*marks = fresh;
	else
		tn__marks_free(&fresh);
	return status;
}

size_t
tn__rows_until(const void *rows, size_t count, size_t size, int64_t microsecond)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const int64_t *time = (const void *)((const char *)rows + middle * size);
		if (*time / 1000 <= microsecond)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct tn_mark_phase *
tn__phase_at(const struct tn_marks *marks, int64_t microsecond)
{
	size_t phases = tn__rows_until(marks->phases, marks->phases_count, sizeof(*marks->phases), microsecond);
	return phases ? &marks->phases[phases - 1] : NULL;
}

const struct tn_mark_call *
tn__call_between(const struct tn_marks *marks, const char *name, int64_t from, int64_t until)
{
	for (size_t index = marks->calls_count; index-- > 0;) {
		const struct tn_mark_call *call = &marks->calls[index];
		if (call->time >= from && call->time < until && strcmp(call->name, name) == 0)
			return call;
	}
	return NULL;
}

void
tn__marks_free(struct tn_marks *marks)
{
	free(marks->text);
#define FREE(kind, rows) free(marks->rows);
	TN_MARK_KINDS(FREE)
#undef FREE
	*marks = (struct tn_marks){0};
}
