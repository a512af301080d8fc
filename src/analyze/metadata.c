/* SPDX-License-Identifier: Apache-2.0
 *
 * One line of metadata at a time: fields are cut and unescaped in the copy, in place.
 */
#include "analyze/metadata.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define VERSION "1"

struct line {
	struct tn_metadata *metadata;
	char *at;  /* the next field; NULL when there is none */
	char *end; /* of the line; a zero byte stands there */
	size_t number;
};

static tn_status
wrong(const struct line *line, const char *what)
{
	return tn__fail(TN_FORMAT, "line %zu of the metadata: %s", line->number, what);
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

/* Room for one more row of a kind, zeroed; `rows` names it in struct tn_metadata. */
#define NEW_ROW(line, rows, row)                                                                         \
	TN_FORWARD_IF_ERROR(tn__grow(&(line)->metadata->budget, &(line)->metadata->rows,                     \
	                             &(line)->metadata->rows##_capacity, (line)->metadata->rows##_count + 1, \
	                             sizeof(*(line)->metadata->rows)));                                      \
	row = &(line)->metadata->rows[(line)->metadata->rows##_count];                                       \
	memset(row, 0, sizeof(*row))

/* The time of the last row of a kind, or 0. */
#define LAST_TIME(line, rows) \
	((line)->metadata->rows##_count ? (line)->metadata->rows[(line)->metadata->rows##_count - 1].time : 0)

static tn_status
read_phase(struct line *line)
{
	struct tn_metadata_phase *row;
	NEW_ROW(line, phases, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, phases), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->step));
	TN_FORWARD_IF_ERROR(take_text(line, &row->name));
	line->metadata->phases_count++;
	return TN_OK;
}

static tn_status
read_look(struct line *line)
{
	struct tn_metadata_look *row;
	if (line->metadata->looks_count == UINT32_MAX)
		return wrong(line, "too many looks");
	NEW_ROW(line, looks, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, looks), &row->time));
	line->metadata->looks_count++;
	return TN_OK;
}

static tn_status
take_category(struct line *line, uint8_t *category)
{
	const char *name;
	TN_FORWARD_IF_ERROR(take_text(line, &name));
	for (*category = 0; *category <= TN_CATEGORY_communication; ++*category) {
		if (*category != TN_CATEGORY_workspaces && strcmp(name, tn__category_name((enum tn_category) * category)) == 0)
			return TN_OK;
	}
	return wrong(line, "no category that a tensor can be held as");
}

static tn_status
read_hold(struct line *line)
{
	struct tn_metadata_hold *row;
	if (line->metadata->looks_count == 0)
		return wrong(line, "a hold before any look");
	if (line->metadata->holds_count == UINT32_MAX)
		return wrong(line, "too many holds");
	NEW_ROW(line, holds, row);
	TN_FORWARD_IF_ERROR(take_category(line, &row->category));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->address));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->bytes));
	TN_FORWARD_IF_ERROR(take_text(line, &row->label));
	row->look = (uint32_t)(line->metadata->looks_count - 1);
	line->metadata->holds_count++;
	return TN_OK;
}

static tn_status
read_backward(struct line *line)
{
	struct tn_metadata_backward *row;
	uint64_t creates = 0;
	NEW_ROW(line, passes, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, passes), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->pass));
	if (line->at) /* older files end here */
		TN_FORWARD_IF_ERROR(take_bytes(line, &creates));
	row->creates = creates != 0;
	row->first_node = line->metadata->nodes_count;
	line->metadata->passes_count++;
	return TN_OK;
}

static tn_status
read_node(struct line *line)
{
	struct tn_metadata_node *row;
	uint64_t view;
	if (line->metadata->passes_count == 0)
		return wrong(line, "a node before any backward");
	if (line->metadata->nodes_count == UINT32_MAX)
		return wrong(line, "too many nodes");
	NEW_ROW(line, nodes, row);
	TN_FORWARD_IF_ERROR(take_number(line, &row->id));
	TN_FORWARD_IF_ERROR(take_number(line, &row->sequence));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->bytes));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->evidence));
	TN_FORWARD_IF_ERROR(take_bytes(line, &view));
	TN_FORWARD_IF_ERROR(take_text(line, &row->name));
	row->view = view != 0;
	line->metadata->nodes_count++;
	line->metadata->passes[line->metadata->passes_count - 1].nodes++;
	return TN_OK;
}

static tn_status
read_run(struct line *line)
{
	struct tn_metadata_run *row;
	NEW_ROW(line, runs, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, runs), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->id));
	line->metadata->runs_count++;
	return TN_OK;
}

static tn_status
read_graph(struct line *line)
{
	struct tn_metadata_graph *row;
	NEW_ROW(line, graphs, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, graphs), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->ended));
	TN_FORWARD_IF_ERROR(take_number(line, &row->freed));
	TN_FORWARD_IF_ERROR(take_text(line, &row->file));
	TN_FORWARD_IF_ERROR(take_number(line, &row->line));
	TN_FORWARD_IF_ERROR(take_text(line, &row->function));
	if (row->ended < 0 || row->freed < 0)
		return wrong(line, "a time is negative");
	line->metadata->graphs_count++;
	return TN_OK;
}

static tn_status
read_library(struct line *line)
{
	struct tn_metadata_library *row;
	if (line->metadata->libraries_count == UINT32_MAX)
		return wrong(line, "too many workspaces");
	NEW_ROW(line, libraries, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, libraries), &row->time));
	TN_FORWARD_IF_ERROR(take_text(line, &row->library));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->address));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->bytes));
	line->metadata->libraries_count++;
	return TN_OK;
}

static tn_status
read_copied(struct line *line)
{
	struct tn_metadata_copied *row;
	NEW_ROW(line, copies, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, copies), &row->time));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->address));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->bytes));
	line->metadata->copies_count++;
	return TN_OK;
}

static tn_status
read_card(struct line *line)
{
	struct tn_metadata_card *row;
	NEW_ROW(line, cards, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, cards), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->device));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->total));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->context));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->program));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->libraries));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->others));
	line->metadata->cards_count++;
	return TN_OK;
}

static tn_status
read_step(struct line *line)
{
	struct tn_metadata_step *row;
	NEW_ROW(line, steps, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, steps), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->number));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->allocated));
	line->metadata->steps_count++;
	return TN_OK;
}

static tn_status
read_oom(struct line *line)
{
	struct tn_metadata_oom *row;
	NEW_ROW(line, ooms, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, ooms), &row->time));
	TN_FORWARD_IF_ERROR(take_number(line, &row->device));
	TN_FORWARD_IF_ERROR(take_bytes(line, &row->requested));
	line->metadata->ooms_count++;
	return TN_OK;
}

static tn_status
read_call(struct line *line)
{
	struct tn_metadata_call *row;
	NEW_ROW(line, calls, row);
	TN_FORWARD_IF_ERROR(take_time(line, LAST_TIME(line, calls), &row->time));
	TN_FORWARD_IF_ERROR(take_text(line, &row->name));
	TN_FORWARD_IF_ERROR(take_text(line, &row->file));
	TN_FORWARD_IF_ERROR(take_number(line, &row->line));
	TN_FORWARD_IF_ERROR(take_text(line, &row->function));
	line->metadata->calls_count++;
	return TN_OK;
}

static tn_status
read_batch(struct line *line)
{
	struct tn_metadata_batch *row;
	NEW_ROW(line, batches, row);
	TN_FORWARD_IF_ERROR(take_number(line, &row->size));
	line->metadata->batches_count++;
	return TN_OK;
}

/* ---- lines ---- */

static tn_status
read_first(struct line *line)
{
	const char *name, *version;
	TN_FORWARD_IF_ERROR(take_text(line, &name));
	if (strcmp(name, "tonnage-metadata") != 0)
		return wrong(line, "it does not begin with tonnage-metadata");
	TN_FORWARD_IF_ERROR(take_text(line, &version));
	if (strcmp(version, VERSION) != 0)
		return tn__fail(TN_UNSUPPORTED, "line 1 of the metadata: the version is not " VERSION);
	return TN_OK;
}

static tn_status
read_line(struct line *line)
{
	static const struct {
		const char *name;
		tn_status (*read)(struct line *line);
	} kinds[] = {
#define KIND(kind, rows) { #kind, read_##kind },
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
read_lines(struct tn_metadata *metadata, size_t length)
{
	char *at = metadata->text, *end = metadata->text + length;
	struct line line = { .metadata = metadata };
	while (at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		line.at = at;
		line.end = newline ? newline : end;
		*line.end = '\0';
		at = line.end + 1;
		line.number++;
		TN_FORWARD_IF_ERROR(line.number == 1 ? read_first(&line) : read_line(&line));
	}
	return line.number ? TN_OK : tn__fail(TN_FORMAT, "line 1 of the metadata: there is no version");
}

tn_status
tn__metadata_parse(const char *text, size_t length, struct tn_metadata *metadata)
{
	struct tn_metadata fresh = { .budget = { .limit = UINT64_MAX } };
	fresh.text = malloc(length + 1);
	TN_RETURN_IF(!fresh.text, TN_NO_MEMORY, "no host memory for %zu bytes of metadata", length);
	memcpy(fresh.text, text, length);
	fresh.text[length] = '\0';
	tn_status status = read_lines(&fresh, length);
	if (status == TN_OK)
		*metadata = fresh;
	else
		tn__metadata_free(&fresh);
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

const struct tn_metadata_phase *
tn__phase_at(const struct tn_metadata *metadata, int64_t microsecond)
{
	size_t phases = tn__rows_until(metadata->phases, metadata->phases_count, sizeof(*metadata->phases), microsecond);
	return phases ? &metadata->phases[phases - 1] : NULL;
}

const struct tn_metadata_call *
tn__call_between(const struct tn_metadata *metadata, const char *name, int64_t from, int64_t until)
{
	for (size_t index = metadata->calls_count; index-- > 0;) {
		const struct tn_metadata_call *call = &metadata->calls[index];
		if (call->time >= from && call->time < until && strcmp(call->name, name) == 0)
			return call;
	}
	return NULL;
}

void
tn__metadata_free(struct tn_metadata *metadata)
{
	free(metadata->text);
#define FREE(kind, rows) free(metadata->rows);
	TN_MARK_KINDS(FREE)
#undef FREE
	*metadata = (struct tn_metadata){ 0 };
}
