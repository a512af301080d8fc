/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page_tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define LONGEST_STRING 2000 /* bytes: names are for reading */
#define NONE UINT32_MAX

enum { WIDTH = 4 };

/* Rows of numbers, each once. */
struct rows {
	uint32_t (*items)[WIDTH];
	size_t count, capacity;
	uint32_t *slots; /* a power of two of them; NONE is free */
	size_t slot_count;
};

struct tn_page_tables {
	const struct tn_inspection *inspection;
	struct rows strings; /* rows: hash, hash, number of those with the same hash before it */
	char **texts;        /* by string */
	size_t text_capacity;
	struct rows frames; /* function, file, line (as bits), kind */
	struct rows stacks; /* parent, frame */
	struct rows sites;  /* at + 1, user + 1, backward, stack */
	uint32_t *of_stack; /* by stack of the snapshot and direction: the site; NONE: not asked for yet */
	bool failed;
};

static uint64_t
mix(uint64_t hash)
{
	hash ^= hash >> 33;
	hash *= UINT64_C(0xff51afd7ed558ccd);
	hash ^= hash >> 29;
	hash *= UINT64_C(0xc4ceb9fe1a85ec53);
	return hash ^ hash >> 32;
}

static size_t
slot_of(const struct rows *rows, const uint32_t row[WIDTH])
{
	uint64_t hash = mix((uint64_t)row[0] << 32 | row[1]) ^ mix(((uint64_t)row[2] << 32 | row[3]) + 0x9e3779b9);
	size_t slot = mix(hash) & (rows->slot_count - 1);
	while (rows->slots[slot] != NONE && memcmp(rows->items[rows->slots[slot]], row, sizeof(rows->items[0])) != 0)
		slot = (slot + 1) & (rows->slot_count - 1);
	return slot;
}

static bool
make_room(struct rows *rows)
{
	if (rows->count < rows->capacity)
		return true;
	size_t capacity = rows->capacity > 0 ? 2 * rows->capacity : 64;
	void *items = reallocarray(rows->items, capacity, sizeof(rows->items[0]));
	if (items != NULL)
		rows->items = items;
	uint32_t *slots = items != NULL ? malloc(2 * capacity * sizeof(*slots)) : NULL;
	if (slots == NULL)
		return false;
	memset(slots, 0xff, 2 * capacity * sizeof(*slots));
	free(rows->slots);
	rows->slots = slots;
	rows->slot_count = 2 * capacity;
	rows->capacity = capacity;
	for (size_t i = 0; i < rows->count; i++)
		rows->slots[slot_of(rows, rows->items[i])] = (uint32_t)i;
	return true;
}

static uint32_t
add_row(struct tn_page_tables *tables, struct rows *rows, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	const uint32_t row[WIDTH] = { a, b, c, d };
	if (tables->failed || !make_room(rows)) {
		tables->failed = true;
		return 0;
	}
	size_t slot = slot_of(rows, row);
	if (rows->slots[slot] == NONE) {
		memcpy(rows->items[rows->count], row, sizeof(row));
		rows->slots[slot] = (uint32_t)rows->count++;
	}
	return rows->slots[slot];
}

static void
free_rows(struct rows *rows)
{
	free(rows->items);
	free(rows->slots);
}

/* ---- strings ---- */

/* As UTF-8, and not longer than a person reads. */
static char *
clean(const char *text)
{
	char *copy = strndup(text, LONGEST_STRING);
	json_t *valid = copy != NULL ? json_string(copy) : NULL;
	if (copy != NULL && valid == NULL)
		for (char *at = copy; *at != '\0'; at++)
			*at = (unsigned char)*at < 0x80 ? *at : '?';
	json_decref(valid);
	return copy;
}

static uint64_t
hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return mix(hash);
}

static uint32_t
add_text(struct tn_page_tables *tables, char *copy)
{
	uint64_t hash = hash_of(copy);
	for (uint32_t twin = 0;; twin++) {
		size_t before = tables->strings.count;
		uint32_t number = add_row(tables, &tables->strings, (uint32_t)(hash >> 32), (uint32_t)hash, twin, 0);
		if (tables->failed) {
			free(copy);
			return 0;
		}
		if (tables->strings.count > before) {
			if (!tn__array_room(&tables->texts, &tables->text_capacity, (size_t)number + 1, sizeof(*tables->texts),
			                    SIZE_MAX)) {
				tables->strings.count--;
				tables->failed = true;
				free(copy);
				return 0;
			}
			tables->texts[number] = copy;
			return number;
		}
		if (strcmp(tables->texts[number], copy) == 0) {
			free(copy);
			return number;
		}
	}
}

uint32_t
tn__page_string(struct tn_page_tables *tables, const char *text)
{
	char *copy = tables->failed ? NULL : clean(text != NULL ? text : "");
	if (copy == NULL) {
		tables->failed = true;
		return 0;
	}
	return add_text(tables, copy);
}

/* ---- frames and stacks ---- */

static uint32_t
add_frame(struct tn_page_tables *tables, const char *function, const char *file, int64_t line, uint32_t kind)
{
	int32_t number = line > INT32_MAX || line < INT32_MIN ? 0 : (int32_t)line;
	uint32_t name = tn__page_string(tables, function);
	return add_row(tables, &tables->frames, name,
	               tn__page_string(tables, tn__inspection_file(tables->inspection, file)), (uint32_t)number, kind);
}

static uint32_t
frame_of_snapshot(struct tn_page_tables *tables, uint32_t number)
{
	struct tn_frame frame = tn_snapshot_frame(tables->inspection->snapshot, number);
	return add_frame(tables, frame.function, frame.file, frame.line, frame.user ? 0 : frame.library ? 1 : 2);
}

int64_t
tn__page_frame(struct tn_page_tables *tables, const struct tn_place *place)
{
	if (place == NULL || place->file == NULL)
		return -1;
	bool torch = strstr(place->file, "-packages/torch/") != NULL;
	uint32_t kind = torch ? 2 : strstr(place->file, "-packages/") != NULL ? 1 : 0;
	int32_t line = place->line > INT32_MAX || place->line < INT32_MIN ? 0 : (int32_t)place->line;
	uint32_t function = tn__page_string(tables, place->function); /* files of a report are as they may be shown */
	return add_row(tables, &tables->frames, function, tn__page_string(tables, place->file), (uint32_t)line, kind);
}

static uint32_t
stack_of_snapshot(struct tn_page_tables *tables, tn_stack stack)
{
	const uint32_t *frames;
	size_t count = tn_snapshot_stack(tables->inspection->snapshot, stack, &frames);
	uint32_t row = 0;
	for (size_t i = count; i-- > 0;)
		row = add_row(tables, &tables->stacks, row, frame_of_snapshot(tables, frames[i]) + 1, 0, 0);
	return row;
}

/* ---- sites ---- */

uint32_t
tn__page_site_of_place(struct tn_page_tables *tables, const struct tn_place *place)
{
	int64_t at = tn__page_frame(tables, place);
	uint32_t stack = at < 0 ? 0 : add_row(tables, &tables->stacks, 0, (uint32_t)at + 1, 0, 0);
	return add_row(tables, &tables->sites, (uint32_t)(at + 1), 0, at >= 0 && place->backward, stack);
}

static uint32_t
make_site(struct tn_page_tables *tables, tn_stack stack, bool backward)
{
	const struct tn_snapshot *snapshot = tables->inspection->snapshot;
	uint32_t number, at = 0, user = 0;
	if (tn_snapshot_outside_frame(snapshot, stack, &number))
		at = frame_of_snapshot(tables, number) + 1;
	if (tn_snapshot_user_frame(snapshot, stack, &number))
		user = frame_of_snapshot(tables, number) + 1;
	return add_row(tables, &tables->sites, at, user != at ? user : 0, backward, stack_of_snapshot(tables, stack));
}

uint32_t
tn__page_site_of_block(struct tn_page_tables *tables, uint32_t interval)
{
	const struct tn_analysis *analysis = tables->inspection->analysis;
	struct tn_origin origin = tn__origin_of_interval(analysis, &analysis->blocks.intervals[interval]);
	uint32_t *known = &tables->of_stack[2 * (size_t)origin.stack + origin.at.backward];
	if (*known == NONE)
		*known = make_site(tables, origin.stack, origin.at.backward);
	return *known;
}

/* ---- the whole ---- */

struct tn_page_tables *
tn__page_tables_new(const struct tn_inspection *inspection)
{
	struct tn_page_tables *tables = calloc(1, sizeof(*tables));
	size_t stacks = inspection->snapshot != NULL ? tn_snapshot_stacks(inspection->snapshot) : 0;
	if (tables == NULL)
		return NULL;
	tables->inspection = inspection;
	tables->of_stack = malloc((2 * stacks + 2) * sizeof(*tables->of_stack));
	if (tables->of_stack != NULL) {
		memset(tables->of_stack, 0xff, (2 * stacks + 2) * sizeof(*tables->of_stack));
		tn__page_string(tables, "");
		add_row(tables, &tables->stacks, 0, 0, 0, 0); /* the empty stack: no frame */
	}
	if (tables->of_stack == NULL || tables->failed) {
		tn__page_tables_free(tables);
		return NULL;
	}
	return tables;
}

void
tn__page_tables_free(struct tn_page_tables *tables)
{
	if (tables == NULL)
		return;
	for (size_t i = 0; i < tables->strings.count; i++)
		free(tables->texts[i]);
	free(tables->texts);
	free_rows(&tables->strings);
	free_rows(&tables->frames);
	free_rows(&tables->stacks);
	free_rows(&tables->sites);
	free(tables->of_stack);
	free(tables);
}

bool
tn__page_tables_failed(const struct tn_page_tables *tables)
{
	return tables->failed;
}

/* One column of rows, less `less` for those that are stored one higher; lines are signed. */
static json_t *
column(const struct rows *rows, int number, int64_t less, bool differences)
{
	json_t *array = json_array();
	int64_t before = 0;
	for (size_t i = 0; i < rows->count; i++) {
		int64_t value = (int64_t)rows->items[i][number] - less;
		json_array_append_new(array, json_integer(differences ? value - before : value));
		before = value;
	}
	return array;
}

static json_t *
lines_of(const struct rows *frames)
{
	json_t *array = json_array();
	for (size_t i = 0; i < frames->count; i++)
		json_array_append_new(array, json_integer((int32_t)frames->items[i][2]));
	return array;
}

bool
tn__page_tables_write(const struct tn_page_tables *tables, json_t *object)
{
	json_t *strings = json_array();
	for (size_t i = 0; i < tables->strings.count; i++)
		json_array_append_new(strings, json_string(tables->texts[i]));
	const struct rows *frames = &tables->frames, *stacks = &tables->stacks, *sites = &tables->sites;
	json_t *frame = json_pack("{s:o, s:o, s:o, s:o}", "function", column(frames, 0, 0, false), "file",
	                          column(frames, 1, 0, false), "line", lines_of(frames), "kind",
	                          column(frames, 3, 0, false));
	json_t *stack = json_pack("{s:o, s:o}", "parent", column(stacks, 0, 0, true), "frame", column(stacks, 1, 1, false));
	json_t *site = json_pack("{s:o, s:o, s:o, s:o}", "at", column(sites, 0, 1, false), "user",
	                         column(sites, 1, 1, false), "backward", column(sites, 2, 0, false), "stack",
	                         column(sites, 3, 0, false));
	bool complete = json_object_set_new(object, "strings", strings) == 0;
	complete &= json_object_set_new(object, "frames", frame) == 0;
	complete &= json_object_set_new(object, "stacks", stack) == 0;
	return (json_object_set_new(object, "sites", site) == 0) & complete;
}
