/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's memory: making, adding, releasing. Judging stands in judge.c.
 */
#include "report/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const struct tn_report_split unknown_split = { TN_UNKNOWN, TN_UNKNOWN, TN_UNKNOWN, TN_UNKNOWN };

void
tn__report_init(struct tn_report *report)
{
	memset(report, 0, sizeof(*report));
	report->cudnn = report->steps_seen = report->input_shapes = TN_UNKNOWN;
	report->allocated_peak = report->reserved_peak = report->requested_peak = report->device_peak = TN_UNKNOWN;
	report->at_peak = report->at_oom = unknown_split;
	report->context_lowest = report->context_highest = TN_UNKNOWN;
	report->uncertainty_lowest = report->uncertainty_highest = TN_UNKNOWN;
	report->oom.requested_bytes = report->oom.free_bytes = report->oom.largest_free_block_bytes = TN_UNKNOWN;
	report->oom.short_by_bytes = report->oom.allocated_bytes = report->oom.reserved_bytes = TN_UNKNOWN;
	report->oom.step = report->peak_rss_bytes = TN_UNKNOWN;
	report->launches = report->computed_read_count = TN_UNKNOWN;
}

static void
free_place(struct tn_place *place)
{
	free(place->file);
	free(place->function);
}

static void
free_counted(struct tn_counted_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free_place(&list->items[i].place);
		free(list->items[i].library);
		free(list->items[i].name);
	}
	free(list->items);
}

static void
free_new_place(struct tn_place *place)
{
	if (place != NULL)
		free_place(place);
	free(place);
}

void
tn__report_free(struct tn_report *report)
{
	char *const texts[] = { report->torch, report->cuda, report->steps_unit, report->oom.phase, report->oom.cause,
		                    report->oom.message, report->exception, report->scratch, report->snapshot,
		                    report->hook_error, report->snapshot_made, report->working_folder, report->command };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	for (size_t i = 0; i < report->oom.stack.count; i++)
		free_place(&report->oom.stack.items[i]);
	free(report->oom.stack.items);
	free_new_place(report->oom.at);
	free_new_place(report->exception_at);
	free_counted(&report->handled_ooms);
	free_counted(&report->refused_calls);
	free_counted(&report->computed_reads);
	free_counted(&report->uploads_suppressed);
	for (size_t i = 0; i < report->finding_count; i++) {
		free(report->findings[i].what);
		free(report->findings[i].advice);
	}
	for (size_t i = 0; i < report->source_count; i++)
		free(report->sources[i].text);
	tn__report_init(report);
}

static char *
copy_or_null(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

/* Makes room for one more item; NULL without memory, and then the list is as before. */
static void *
grow(void *items, size_t count, size_t size)
{
	if (count % 16 != 0)
		return items;
	return reallocarray(items, count + 16, size);
}

tn_status
tn__report_add_counted(struct tn_counted_list *list, const struct tn_counted *item)
{
	struct tn_counted *items = grow(list->items, list->count, sizeof(*items));
	TN_RETURN_IF(items == NULL, TN_NO_MEMORY, "out of host memory");
	list->items = items;
	items[list->count] = *item;
	items[list->count].place.file = copy_or_null(item->place.file);
	items[list->count].place.function = copy_or_null(item->place.function);
	items[list->count].library = copy_or_null(item->library);
	items[list->count].name = copy_or_null(item->name);
	list->count++;
	return TN_OK;
}

tn_status
tn__report_add_place(struct tn_places *list, const struct tn_place *place)
{
	struct tn_place *items = grow(list->items, list->count, sizeof(*items));
	TN_RETURN_IF(items == NULL, TN_NO_MEMORY, "out of host memory");
	list->items = items;
	items[list->count] = *place;
	items[list->count].file = copy_or_null(place->file);
	items[list->count].function = copy_or_null(place->function);
	list->count++;
	return TN_OK;
}

void
tn__report_add_finding(struct tn_report *report, const char *id, enum tn_severity severity, int64_t bytes,
                       const char *advice, const char *what_format, ...)
{
	if (report->finding_count == sizeof(report->findings) / sizeof(report->findings[0]))
		return;
	va_list arguments;
	char *what = NULL;
	va_start(arguments, what_format);
	if (vasprintf(&what, what_format, arguments) < 0)
		what = NULL;
	va_end(arguments);
	report->findings[report->finding_count++] = (struct tn_finding){
		.id = id, .severity = severity, .bytes = bytes, .what = what, .advice = copy_or_null(advice)
	};
}

void
tn__report_add_source(struct tn_report *report, const char *field, const char *format, ...)
{
	if (report->source_count == sizeof(report->sources) / sizeof(report->sources[0]))
		return;
	va_list arguments;
	char *text = NULL;
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	report->sources[report->source_count++] = (struct tn_source){ field, text };
}

struct tn_place *
tn__report_new_place(const char *file, int64_t line, const char *function, bool backward)
{
	struct tn_place *place = calloc(1, sizeof(*place));
	if (place == NULL)
		return NULL;
	*place = (struct tn_place){ strdup(file), line, copy_or_null(function), backward };
	if (place->file == NULL) {
		free_new_place(place);
		return NULL;
	}
	return place;
}

const char *
tn__verdict_text(enum tn_verdict verdict)
{
	static const char *const texts[] = { "fits", "out_of_memory", "grows", "failed" };
	return texts[verdict];
}

const char *
tn__stopped_text(enum tn_stopped stopped)
{
	static const char *const texts[] = { "settled", "limit", "end", "out_of_memory", "failed", "interrupted" };
	return texts[stopped];
}

const char *
tn__severity_text(enum tn_severity severity)
{
	static const char *const texts[] = { "error", "warning", "hint" };
	return texts[severity];
}
