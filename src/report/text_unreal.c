/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the report that says what was not real (values that were assumed or read, calls that were refused, what was
 * held back) and what was not seen.
 */
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report/text.h"
#include "verdict/paths.h"
#include "verdict/stand_ins.h"

#define SHOWN_NAMES 4

static void
append_names(FILE *out, const struct tn_report *report, struct tn_style style, const struct tn_counted_list *list)
{
	char path[TN_PLACE_TEXT];
	for (size_t i = 0; i < list->count && i < SHOWN_NAMES; i++) {
		const struct tn_counted *item = &list->items[i];
		if (item->name != NULL)
			fprintf(out, "%s%s", i > 0 ? ", " : "", item->name);
		else
			fprintf(out, "%s%s%s%lld", i > 0 ? ", " : "", tn__shown_path(report, style, item->place.file, path),
			        tn__before_line(item->place.file), (long long)item->place.line);
	}
	if (list->count > SHOWN_NAMES)
		fprintf(out, " and %zu more", list->count - SHOWN_NAMES);
}

static char *
names(const struct tn_report *report, struct tn_style style, const struct tn_counted_list *list)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	append_names(out, report, style, list);
	fclose(out);
	return text;
}

static int64_t
total_count(const struct tn_counted_list *list)
{
	int64_t sum = 0;
	for (size_t i = 0; i < list->count; i++)
		sum += list->items[i].count;
	return sum;
}

static void
say_list(const struct tn_printer *printer, const struct tn_report *report, const struct tn_counted_list *list,
         const char *format)
{
	if (list->count == 0)
		return;
	char *text = names(report, printer->style, list);
	long long count = (long long)total_count(list);
	char words[256];
	snprintf(words, sizeof(words), format, count, count == 1 ? "" : "s");
	tn__say(printer, TN_TINT_DIM, 2, "%s: %s", words, text != NULL ? text : "");
	free(text);
}

/* Out-of-memories that were got over, by the program or by a library's own search. */
static void
say_handled(const struct tn_printer *printer, const struct tn_report *report, bool by_library, const char *format)
{
	struct tn_counted_list part = { .items = calloc(report->handled_ooms.count + 1, sizeof(*part.items)), .count = 0 };
	for (size_t i = 0; part.items != NULL && i < report->handled_ooms.count; i++)
		if (report->handled_ooms.items[i].by_library == by_library)
			part.items[part.count++] = report->handled_ooms.items[i]; /* borrowed */
	say_list(printer, report, &part, format);
	free(part.items);
}

/* "3 calls of wandb, 2 connections to api.example.org": one line, and how to have it otherwise. */
static void
say_held_back(const struct tn_printer *printer, const struct tn_report *report)
{
	char *text = NULL;
	size_t size = 0, shown = 0;
	FILE *out = report->held_back.count > 0 ? open_memstream(&text, &size) : NULL;
	if (out == NULL)
		return;
	for (size_t i = 0; i < report->held_back.count; i++) {
		const struct tn_counted *item = &report->held_back.items[i];
		bool call = tn__is_held_back(item, "call"), data = tn__is_held_back(item, "data");
		if (item->name == NULL || ++shown > SHOWN_NAMES)
			continue;
		fprintf(out, "%s%lld %s%s %s", shown > 1 ? ", " : "", (long long)item->count,
		        call   ? "call"
		        : data ? "message"
		               : "connection",
		        item->count == 1 ? "" : "s", call ? "of " : "to ");
		fputs(item->name, out);
	}
	if (shown > SHOWN_NAMES)
		fprintf(out, " and %zu more", shown - SHOWN_NAMES);
	fclose(out);
	tn__say(printer, TN_TINT_NONE, 2, "Held back from the network: %s. --network allow lets the program send.", text);
	free(text);
}

/* An assumption that sizes may hang on, or that had to be another one than usual. */
static bool
matters(const struct tn_assumption *item)
{
	return item->bytes > 0 || (tn__assumption_is_count(item) && item->bytes != 0) || item->chosen;
}

static void
say_assumption(const struct tn_printer *printer, const struct tn_report *report, const struct tn_assumption *item)
{
	char bytes[32], place[TN_PLACE_TEXT], hanging[64] = "";
	if (item->bytes > 0)
		snprintf(hanging, sizeof(hanging), " (%s of the peak)", tn__human_bytes(item->bytes, bytes));
	tn__say(printer, TN_TINT_DIM, 2, "assumed: %s: %s %s%s",
	        tn__place_words(report, printer->style, &item->place, place),
	        tn__assumption_is_count(item) ? "selected," : item->what, item->value, hanging);
}

/* What the peak hangs on, and what made a program pass that failed by itself at first. */
static void
say_assumptions(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_assumed_list *list = &report->assumptions;
	char place[TN_PLACE_TEXT], bytes[32];
	size_t shown = 0;
	if (list->runs > 0 && list->passed < list->count)
		tn__say(printer, TN_TINT_NONE, 2,
		        "the program failed by itself at first; it passed when the value read at %s was assumed to be %s",
		        tn__place_words(report, printer->style, &list->items[list->passed].place, place),
		        list->items[list->passed].value);
	for (size_t i = 0; i < list->count && shown < SHOWN_NAMES; i++) {
		if (!matters(&list->items[i]))
			continue;
		say_assumption(printer, report, &list->items[i]);
		shown++;
	}
	if (list->bytes > 0)
		tn__say(printer, TN_TINT_DIM, 2, "%s of the peak depend on the assumed counts; --assume changes them",
		        tn__human_bytes(list->bytes, bytes));
}

static void
say_images(const struct tn_printer *printer, const struct tn_stand_in_list *list)
{
	int64_t images = 0, bytes = 0;
	bool sizes = false;
	char room[32];
	for (size_t i = 0; i < list->count; i++) {
		const struct tn_stand_in *item = &list->items[i];
		if (item->kind != TN_STAND_IN_IMAGES)
			continue;
		images += item->count > 0 ? item->count : 0;
		bytes += item->bytes > 0 ? item->bytes : 0;
		sizes |= (item->assumed & TN_ASSUMED_SIZES) != 0;
	}
	if (images > 0)
		tn__say(printer, TN_TINT_NONE, 2, "%lld image%s (%s) %s not decoded (--data shape)%s", (long long)images,
		        images == 1 ? "" : "s", tn__human_bytes(bytes, room), images == 1 ? "was" : "were",
		        sizes ? "; sizes that no header tells are taken from the bytes of the files" : "");
}

static void
say_data_sets(const struct tn_printer *printer, const struct tn_stand_in_list *list)
{
	int64_t bytes = 0;
	size_t files = 0;
	unsigned assumed = 0;
	char room[32];
	for (size_t i = 0; i < list->count; i++) {
		const struct tn_stand_in *item = &list->items[i];
		if (item->kind != TN_STAND_IN_DATA_SET)
			continue;
		files++;
		bytes += item->bytes > 0 ? item->bytes : 0;
		assumed |= item->assumed;
	}
	if (files == 0)
		return;
	tn__say(printer, TN_TINT_NONE, 2, "%zu file%s of data sets (%s) %s shapes only (--data shape): values are made up",
	        files, files == 1 ? "" : "s", tn__human_bytes(bytes, room), files == 1 ? "is" : "are");
	if (assumed != 0)
		tn__say(printer, TN_TINT_NONE, 2, "not known of them, and assumed: %s%s%s",
		        assumed & TN_ASSUMED_ROWS ? "how many rows they have" : "",
		        assumed & TN_ASSUMED_ROWS && assumed & TN_ASSUMED_LENGTHS ? ", " : "",
		        assumed & TN_ASSUMED_LENGTHS ? "how long each text and list is" : "");
}

/* Files of weights, added up. */
struct weights {
	size_t files, whole;
	int64_t bytes;
	const char *first; /* its name */
};

static struct weights
add_weights(const struct tn_stand_in_list *list, bool downloads)
{
	struct weights sum = { 0 };
	for (size_t i = 0; i < list->count; i++) {
		const struct tn_stand_in *item = &list->items[i];
		if (tn__stand_in_is_data(item) || (item->kind == TN_STAND_IN_WEIGHTS_NOT_DOWNLOADED) != downloads)
			continue;
		const char *name = strrchr(item->path, '/');
		sum.files++;
		sum.first = sum.first != NULL ? sum.first : name != NULL ? name + 1 : item->path;
		sum.bytes += item->bytes > 0 ? item->bytes : 0;
		sum.whole += item->kind == TN_STAND_IN_WEIGHTS_NOT_READ;
	}
	return sum;
}

static void
say_weights(const struct tn_printer *printer, const struct weights *sum, const char *what)
{
	char room[32];
	if (sum->files > 0)
		tn__say(printer, TN_TINT_NONE, 2, "%zu file%s of weights (%s, %s%s) %s", sum->files, sum->files == 1 ? "" : "s",
		        tn__human_bytes(sum->bytes, room), sum->first, sum->files == 1 ? "" : " ...", what);
}

/* A closing line for each kind that there is. */
static void
say_stand_ins(const struct tn_printer *printer, const struct tn_stand_in_list *list)
{
	struct weights files = add_weights(list, false), downloads = add_weights(list, true);
	say_images(printer, list);
	say_data_sets(printer, list);
	say_weights(printer, &files,
	            files.whole == files.files ? "not read (--weights shape): shapes stood in for the tensors"
	            : files.files == 1         ? "is a header only: shapes stood in for the tensors"
	                                       : "are headers only: shapes stood in for the tensors");
	say_weights(printer, &downloads,
	            "could not be downloaded: the tensors that the model was built with stood in for them");
}

void
tn__say_unreal(const struct tn_printer *printer, const struct tn_report *report)
{
	char bytes[32];
	say_assumptions(printer, report);
	say_list(printer, report, &report->computed_reads,
	         "kernels do not run on a virtual GPU: %lld computed value%s read back");
	say_list(printer, report, &report->refused_calls, "the virtual GPU refused %lld call%s that it does not answer");
	const char *workspaces = tn__report_source(report, "at_peak.by_category.workspaces");
	if (workspaces != NULL && strstr(workspaces, "model: ") != NULL)
		tn__say(printer, TN_TINT_DIM, 2, "library workspaces are estimated by a %s", strstr(workspaces, "model: "));
	say_handled(printer, report, false, "%lld out-of-memory error%s that the program handled itself");
	say_handled(printer, report, true,
	            "%lld library workspace%s did not fit, and PyTorch chose a smaller one by itself");
	say_held_back(printer, report);
	say_stand_ins(printer, &report->stand_ins);
	if (report->init_skipped_bytes > 0)
		tn__say(printer, TN_TINT_DIM, 2,
		        "random initialisation of %lld tensor%s (%s) on the CPU was skipped; --init real does it",
		        (long long)report->init_skipped_tensors, report->init_skipped_tensors == 1 ? "" : "s",
		        tn__human_bytes(report->init_skipped_bytes, bytes));
}

char *
tn__not_seen_words(const struct tn_report *report)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = report->not_seen_count > 0 ? open_memstream(&text, &size) : NULL;
	if (out == NULL)
		return NULL;
	for (size_t i = 0; i < report->not_seen_count; i++)
		fprintf(out, "%s%s", i > 0 ? "; " : "", report->not_seen[i]);
	fclose(out);
	return text;
}

void
tn__say_not_seen(const struct tn_printer *printer, const struct tn_report *report)
{
	char *text = tn__not_seen_words(report);
	if (text != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "Not seen: %s", text);
	free(text);
}
