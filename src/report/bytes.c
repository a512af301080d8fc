/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of bytes: one row a category, largest first, with the lines that hold most of it; and the peaks by phase.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/labels.h"
#include "report/text.h"
#include "verdict/paths.h"

#define WORTH_A_LINE 0.04 /* share of the device that a further line must hold */
#define MOST_REGIONS 12
#define MOST_CELLS 16
#define LEAST_NAME 10 /* columns of a file's name that still tell it */
#define GIB (INT64_C(1) << 30)

/* ---- figures ---- */

/* Three digits are enough beside a bar: "288 MiB", "1.50 GiB". */
static const char *
short_bytes(int64_t bytes, char buffer[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double figure = (double)bytes;
	int unit = 0;
	for (; unit < 4 && figure >= 1000; unit++)
		figure /= 1024;
	if (unit == 0 || figure >= 99.95)
		snprintf(buffer, 32, "%.0f %s", figure, units[unit]);
	else
		snprintf(buffer, 32, "%.*f %s", figure < 9.995 ? 2 : 1, figure, units[unit]);
	return buffer;
}

static const char *
separator(struct tn_style style)
{
	return style.utf8 ? " \u00b7 " : ", ";
}

/* ---- remarks ---- */

/* "24 layers x 288 MiB", "37 tensors", or the bytes where the line does not hold the whole category. */
static void
say_parts(const struct tn_report_holder *holder, bool whole, bool brief, struct tn_style style, char out[64])
{
	char bytes[32];
	const char *times = style.utf8 ? "\u00d7" : "x";
	if (holder->alike > 1)
		snprintf(out, 64, "%lld%s %s %s", (long long)holder->alike, holder->layers && !brief ? " layers" : "", times,
		         short_bytes(holder->bytes / holder->alike, bytes));
	else if (!whole)
		snprintf(out, 64, "%s", short_bytes(holder->bytes, bytes));
	else if (holder->blocks > 1)
		snprintf(out, 64, "%lld tensors", (long long)holder->blocks);
	else
		out[0] = '\0';
}

static void
join(char out[TN_REMARK_TEXT], const char *first, const char *second, struct tn_style style)
{
	snprintf(out, TN_REMARK_TEXT, "%.500s%s%.100s", first,
	         first[0] != '\0' && second[0] != '\0' ? separator(style) : "", second);
}

/* Cuts to `columns`, between characters of UTF-8. */
static void
cut(char *text, int columns, struct tn_style style)
{
	const char *dots = style.utf8 ? "\u2026" : "...";
	int room = columns - tn__columns_of(dots);
	if (tn__columns_of(text) <= columns)
		return;
	char *at = text;
	for (int column = 0; *at != '\0'; at++) {
		bool begins = ((unsigned char)*at & 0xc0) != 0x80;
		if (begins && column++ == room)
			break;
	}
	strcpy(at, dots);
}

/* The end of a name that is too long: "...ransformer.py". */
static const char *
end_of(const char *name, int columns, struct tn_style style, char buffer[TN_PLACE_TEXT])
{
	const char *dots = style.utf8 ? "\u2026" : "...", *at = name;
	int left = tn__columns_of(name);
	if (left <= columns)
		return name;
	for (left += tn__columns_of(dots); *at != '\0' && left > columns; left--)
		for (at++; ((unsigned char)*at & 0xc0) == 0x80; at++)
			;
	snprintf(buffer, TN_PLACE_TEXT, "%s%.480s", dots, at);
	return buffer;
}

/* What is on the card a second time is told as that, and the parameters of one module of several, or buffers, by its class; not by
 * their parts. */
static bool
says_what(const struct tn_report_holder *holder)
{
	return holder->what != NULL &&
	       (tn__module_of_label(holder->what) != NULL || tn__label_is_of_buffers(holder->what) ||
	        strcmp(holder->what, "copy of the model") == 0 || strcmp(holder->what, "DDP's buckets") == 0);
}

/* The fullest form that fits: place, function and parts; without the function; the file's name alone; parts in brief; the
 * end of the name; without parts. */
static void
say_holder(const struct tn_printer *printer, const struct tn_report *report, const struct tn_report_holder *holder,
           bool whole, char out[TN_REMARK_TEXT])
{
	enum { FULL, NO_FUNCTION, NAME, BRIEF, END_OF_NAME, NO_PARTS, FORMS };
	int room = tn__remark_columns(printer), over = 0;
	char parts[64], bytes[32], words[TN_PLACE_TEXT], end[TN_PLACE_TEXT];
	struct tn_place place = holder->at;
	const char *name = tn__file_name(place.file);
	for (int form = FULL; form < FORMS; form++) {
		say_parts(holder, whole, form >= BRIEF, printer->style, parts);
		place.function = form == FULL ? place.function : NULL;
		if (form == END_OF_NAME)
			name = end_of(name, tn__columns_of(name) - over, printer->style, end);
		if (form == NO_PARTS)
			parts[0] = '\0';
		if (form < NO_PARTS && says_what(holder))
			snprintf(parts, sizeof(parts), "%.30s%s%s", holder->what, form < BRIEF ? ", " : "",
			         form < BRIEF ? short_bytes(holder->bytes, bytes) : "");
		tn__place_words(report, printer->style, &place, words);
		if (form >= NAME)
			snprintf(words, sizeof(words), "%s%.300s:%lld", place.backward ? "backward of " : "", name,
			         (long long)place.line);
		join(out, words, parts, printer->style);
		tn__make_plain(out, '?');
		over = tn__columns_of(out) - room;
		if (over <= 0 && (form != END_OF_NAME || tn__columns_of(name) >= LEAST_NAME))
			return;
	}
	cut(out, room, printer->style);
}

/* State is known by its name, everything else by the line that made it. */
static void
say_what(const struct tn_printer *printer, const struct tn_report *report, const struct tn_report_holder *holder,
         bool whole, char out[TN_REMARK_TEXT])
{
	char parts[64];
	bool by_name = holder->category == TN_CATEGORY_optimizer_state || holder->category == TN_CATEGORY_workspaces;
	if (holder->what != NULL && (by_name || holder->at.file == NULL)) {
		say_parts(holder, whole, false, printer->style, parts);
		join(out, holder->what, by_name && holder->alike > 1 ? "" : parts, printer->style);
		tn__make_plain(out, '?');
		cut(out, tn__remark_columns(printer), printer->style);
	} else if (holder->at.file != NULL) {
		say_holder(printer, report, holder, whole, out);
	} else {
		out[0] = '\0';
	}
}

/* "catalogue (guess), +-0.04": how well the contexts of a moment are known. */
static void
say_context(const struct tn_report *report, const struct tn_report_moment *moment, struct tn_style style,
            char out[TN_REMARK_TEXT])
{
	int64_t one = (int64_t)report->gpu.context_bytes, all = moment->by_category[TN_CATEGORY_context];
	int64_t contexts = one > 0 && all > one ? all / one : 1;
	const char *source = tn__report_source(report, "gpu.context_bytes");
	char bound[48] = "", bytes[32];
	if (report->context_highest != TN_NO_FIGURE && report->context_highest > (int64_t)report->gpu.context_bytes)
		snprintf(bound, sizeof(bound), "%s%s", style.utf8 ? "\u00b1" : "+-",
		         short_bytes(contexts * (report->context_highest - one), bytes));
	snprintf(out, TN_REMARK_TEXT, "%s%s%s", source != NULL ? source : "",
	         source != NULL && bound[0] != '\0' ? ", " : "", bound);
}

/* ---- rows ---- */

struct table {
	const struct tn_printer *printer;
	const struct tn_report *report;
	const struct tn_report_moment *moment;
	int64_t largest;
	bool small, oom;
};

static enum tn_tint
tint_of(enum tn_category category)
{
	switch (category) {
	case TN_CATEGORY_parameters:
	case TN_CATEGORY_gradients:
	case TN_CATEGORY_optimizer_state:
		return TN_TINT_MODEL;
	case TN_CATEGORY_activations:
	case TN_CATEGORY_inputs:
	case TN_CATEGORY_temporaries:
	case TN_CATEGORY_workspaces:
	case TN_CATEGORY_gathered:
	case TN_CATEGORY_communication:
		return TN_TINT_BATCH;
	default:
		return TN_TINT_DIM;
	}
}

static const char *
name_of(const struct table *table, enum tn_category category)
{
	if (category == TN_CATEGORY_other && !table->moment->detailed)
		return "the program";
	if (category == TN_CATEGORY_cached && table->oom)
		return "cached, unusable";
	return tn__category_words(category);
}

/* What stands beside a category that no line of the program holds. */
static void
say_note(const struct table *table, enum tn_category category, char out[TN_REMARK_TEXT])
{
	char bytes[32];
	const char *others = tn__report_source(table->report, "at_peak.by_category.other_processes");
	out[0] = '\0';
	if (category == TN_CATEGORY_context)
		say_context(table->report, table->moment, table->printer->style, out);
	else if (category == TN_CATEGORY_other_processes && others != NULL)
		snprintf(out, TN_REMARK_TEXT, "%s", others);
	else if (category == TN_CATEGORY_cached && table->oom && table->moment->largest_free_block_bytes > 0)
		snprintf(out, TN_REMARK_TEXT, "largest free piece %s",
		         short_bytes(table->moment->largest_free_block_bytes, bytes));
	cut(out, tn__remark_columns(table->printer), table->printer->style);
}

static const struct tn_report_holder *
next_holder(const struct tn_report_moment *moment, enum tn_category category, size_t *from)
{
	while (*from < moment->holder_count) {
		const struct tn_report_holder *holder = &moment->holders[(*from)++];
		if (holder->category == category && (holder->at.file != NULL || holder->what != NULL))
			return holder;
	}
	return NULL;
}

/* The words beside a category: of the lines that hold most of it, or a note where no line does. */
static void
fill_remarks(const struct table *table, struct tn_moment_row *row)
{
	const struct tn_report_moment *moment = table->moment;
	size_t from = 0;
	const struct tn_report_holder *holder = next_holder(moment, row->category, &from);
	if (holder == NULL) {
		say_note(table, row->category, row->remarks[0]);
		row->remark_count = row->remarks[0][0] != '\0';
		return;
	}
	bool whole = (double)holder->bytes > 0.95 * (double)row->bytes;
	for (int lines = 0; lines < TN_MOMENT_LINES; lines++) {
		char *remark = row->remarks[row->remark_count];
		say_what(table->printer, table->report, holder, whole, remark);
		bool again = row->remark_count > 0 && strcmp(remark, row->remarks[row->remark_count - 1]) == 0;
		row->remark_count += (lines == 0 || remark[0] != '\0') && !again;
		whole = false;
		holder = next_holder(moment, row->category, &from);
		if (holder == NULL || (double)holder->bytes < WORTH_A_LINE * (double)moment->device_bytes)
			break;
	}
}

static void
say_category(const struct table *table, const struct tn_moment_row *row)
{
	const char *first = row->remark_count > 0 && row->remarks[0][0] != '\0' ? row->remarks[0] : NULL;
	tn__say_table_row(table->printer, &(struct tn_row){ .name = row->name,
	                                                    .bytes = row->bytes,
	                                                    .total = table->largest,
	                                                    .tint = tint_of(row->category),
	                                                    .small = table->small,
	                                                    .remark = first });
	for (size_t i = 1; i < row->remark_count; i++)
		tn__say_remark(table->printer, row->remarks[i]);
}

static bool
is_small(const struct tn_report_moment *moment)
{
	for (int i = 0; i < TN_CATEGORIES; i++)
		if (moment->by_category[i] >= GIB)
			return false;
	return true;
}

/* The categories that hold anything that the figures would show, largest first. */
static size_t
order(const struct tn_report_moment *moment, bool small, enum tn_category out[TN_CATEGORIES])
{
	int64_t least = small ? (1 << 20) / 20 : GIB / 200;
	size_t count = 0;
	for (int i = 0; i < TN_CATEGORIES; i++) {
		size_t at = count;
		if (moment->by_category[i] < least)
			continue;
		for (; at > 0 && moment->by_category[out[at - 1]] < moment->by_category[i]; at--)
			out[at] = out[at - 1];
		out[at] = (enum tn_category)i;
		count++;
	}
	return count;
}

static const char *
title_of(const struct tn_report *report, bool oom)
{
	return oom ? "At that moment" : report->verdict == TN_VERDICT_GROWS ? "At the peak so far" : "At the peak";
}

bool
tn__moment_rows(const struct tn_printer *printer, const struct tn_report *report, const struct tn_report_moment *moment,
                bool oom, struct tn_moment_rows *out)
{
	enum tn_category categories[TN_CATEGORIES];
	out->small = is_small(moment);
	out->count = tn__report_is_told(moment) ? order(moment, out->small, categories) : 0;
	struct table table = { printer, report, moment, 0, out->small, oom };
	for (size_t i = 0; i < out->count; i++) {
		struct tn_moment_row *row = &out->rows[i];
		*row = (struct tn_moment_row){ .category = categories[i],
			                           .name = name_of(&table, categories[i]),
			                           .bytes = moment->by_category[categories[i]] };
		fill_remarks(&table, row);
	}
	return out->count > 0;
}

void
tn__say_moment(const struct tn_printer *printer, const struct tn_report *report, const struct tn_report_moment *moment,
               const char *title, bool oom)
{
	struct tn_moment_rows *rows = malloc(sizeof(*rows));
	if (rows == NULL || !tn__moment_rows(printer, report, moment, oom, rows)) {
		free(rows);
		return;
	}
	struct table table = { printer, report, moment, rows->rows[0].bytes, rows->small, oom };
	fputc('\n', printer->out);
	tn__say_table_head(printer, title, rows->small ? "MiB" : "GiB");
	for (size_t i = 0; i < rows->count; i++)
		say_category(&table, &rows->rows[i]);
	if (moment->inferred)
		tn__say(printer, TN_TINT_DIM, 4, TN_INFERRED_WORDS);
	free(rows);
}

static void
say_pytorch(const struct tn_printer *printer, const char *what, int64_t reserved, int64_t allocated, int64_t requested)
{
	char a[32], b[32], c[32];
	if (reserved == TN_NO_FIGURE)
		return;
	tn__human_bytes(reserved, a);
	if (requested != TN_NO_FIGURE)
		tn__say(printer, TN_TINT_DIM, 2, "PyTorch %s: reserved %s, allocated %s, requested by tensors %s", what, a,
		        tn__human_bytes(allocated, b), tn__human_bytes(requested, c));
	else
		tn__say(printer, TN_TINT_DIM, 2, "PyTorch %s: reserved %s, allocated %s", what, a,
		        tn__human_bytes(allocated, b));
}

const struct tn_report_moment *
tn__told_moment(const struct tn_report *report, const char **title, bool *oom)
{
	*oom = report->oom.seen && report->at_oom.device_bytes != TN_NO_FIGURE;
	*title = title_of(report, *oom);
	if (report->device_peak <= 0 && !*oom && !report->at_peak.detailed)
		return NULL;
	return *oom ? &report->at_oom : &report->at_peak;
}

void
tn__say_bytes(const struct tn_printer *printer, const struct tn_report *report)
{
	const char *title;
	bool oom;
	const struct tn_report_moment *moment = tn__told_moment(report, &title, &oom);
	if (moment != NULL)
		tn__say_moment(printer, report, moment, title, oom);
}

void
tn__say_allocator(const struct tn_printer *printer, const struct tn_report *report)
{
	if (report->oom.seen && report->at_oom.detailed)
		return; /* the table says it, and more */
	if (report->oom.seen)
		say_pytorch(printer, "at that moment", report->oom.reserved_bytes, report->oom.allocated_bytes, TN_NO_FIGURE);
	if (!report->oom.seen || report->oom.reserved_bytes != report->reserved_peak)
		say_pytorch(printer, "at most", report->reserved_peak, report->allocated_peak, report->requested_peak);
}

/* ---- cells of a notebook ---- */

/* The one that holds most of those that are not shown yet; NULL: none is left. */
static const struct tn_region *
next_cell(const struct tn_report *report, const bool *shown)
{
	const struct tn_region *most = NULL;
	for (size_t i = 0; i < report->region_count; i++) {
		const struct tn_region *item = &report->regions[i];
		if (item->cell && !shown[i] && (item->taken_peak > 0 || item->left > 0) &&
		    (most == NULL || item->device_peak > most->device_peak))
			most = item;
	}
	return most;
}

/* Those that took memory, in the order in which they were run; of many the fullest. */
static bool
say_cells(const struct tn_printer *printer, const struct tn_report *report)
{
	bool shown[sizeof(report->regions) / sizeof(report->regions[0])] = { false };
	size_t count = 0, more = 0;
	for (const struct tn_region *item; (item = next_cell(report, shown)) != NULL && count < MOST_CELLS; count++)
		shown[item - report->regions] = true;
	if (count == 0)
		return false;
	fprintf(printer->out, "  %-24s %10s %14s\n", "Cells", "peak", "left behind");
	for (size_t i = 0; i < report->region_count; i++) {
		const struct tn_region *item = &report->regions[i];
		char peak[32], left[32] = "unknown";
		more += item->cell && !shown[i] && item->taken_peak > 0;
		if (!shown[i])
			continue;
		if (item->left != TN_NO_FIGURE)
			tn__human_bytes(item->left, left);
		fprintf(printer->out, "    %-22s %10s %14s\n", item->name, tn__human_bytes(item->device_peak, peak), left);
	}
	if (more > 0)
		tn__say(printer, TN_TINT_NONE, 4, "and %zu more, with lower peaks", more);
	return true;
}

/* ---- peaks by phase ---- */

/* Only of those that took memory themselves: what PyTorch keeps from one phase counts for all later ones. */
void
tn__say_regions_in_line(const struct tn_printer *printer, const struct tn_report *report)
{
	char *text = NULL;
	size_t size = 0, shown = 0;
	int64_t largest = 0;
	for (size_t i = 0; i < report->region_count; i++)
		if (report->regions[i].taken_peak > largest)
			largest = report->regions[i].taken_peak;
	FILE *out = report->region_count > 1 && largest > 0 ? open_memstream(&text, &size) : NULL;
	if (out == NULL)
		return;
	bool small = largest < GIB;
	for (size_t i = 0; i < report->region_count && shown < MOST_REGIONS; i++) {
		const struct tn_region *region = &report->regions[i];
		if (region->taken_peak > 0 && strcmp(region->name, "other") != 0)
			fprintf(out, "%s%s %.*f", shown++ > 0 ? separator(printer->style) : "", region->name, small ? 0 : 1,
			        (double)region->taken_peak / (double)(small ? GIB >> 10 : GIB));
	}
	fclose(out);
	if (shown > 1)
		tn__say(printer, TN_TINT_NONE, 2, "Peaks: %s %s", text, small ? "MiB" : "GiB");
	free(text);
}

void
tn__say_regions(const struct tn_printer *printer, const struct tn_report *report)
{
	if (!say_cells(printer, report))
		tn__say_regions_in_line(printer, report);
}
