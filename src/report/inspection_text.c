/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of a snapshot for a person: what happened, what held the memory then, why, what to do. The JSON of a run
 * prints the run's own screen.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/inspection_writers.h"
#include "report/text.h"

#define LABEL_COLUMN 8
#define WIDE 100000                         /* columns: whoever shows the words wraps them */
#define MOST_CHANGES 12                     /* of a comparison */
#define LEAST_SPLINTERS (INT64_C(64) << 20) /* unused bytes that are worth a line */

static double
seconds_at(const struct tn_inspection *inspection)
{
	return (double)(inspection->moment.time_us - inspection->first_us) / 1e6;
}

/* " of step 3", "" */
static const char *
step_words(int64_t step, char buffer[48])
{
	buffer[0] = '\0';
	if (step > 0)
		snprintf(buffer, 48, " of step %" PRId64, step);
	return buffer;
}

static void
say_where(const struct tn_printer *printer, const struct tn_inspection *inspection)
{
	const struct tn_report_moment *moment = &inspection->report.at_peak;
	char place[TN_PLACE_TEXT], step[48], time[64] = "";
	tn__place_words(&inspection->report, printer->style, moment->at, place);
	if (inspection->first_us > 0)
		snprintf(time, sizeof(time), "%.3f s after the first event", seconds_at(inspection));
	if (moment->phase != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "in %s%s%s%s", moment->phase, step_words(moment->step, step),
		        time[0] != '\0' ? ", " : "", time);
	else if (time[0] != '\0')
		tn__say(printer, TN_TINT_NONE, 2, "%s", time);
	if (place[0] != '\0')
		tn__say(printer, TN_TINT_NONE, 2, "made by %s", place);
}

static void
say_oom(const struct tn_printer *printer, const struct tn_inspection *inspection)
{
	const struct tn_report_oom *oom = &inspection->report.oom;
	char asked[32], room[32], missing[32], step[48];
	char *places = tn__place_chain(&inspection->report, printer->style);
	tn__say(printer, TN_TINT_BAD, 0, "GPU %d ran out of memory%s%s%s", inspection->device,
	        oom->phase != NULL ? " in " : "", oom->phase != NULL ? oom->phase : "",
	        oom->phase != NULL ? step_words(oom->step, step) : "");
	if (places != NULL && places[0] != '\0')
		tn__say(printer, TN_TINT_NONE, 2, "%s", places);
	free(places);
	if (oom->requested_bytes == TN_NO_FIGURE)
		return;
	tn__human_bytes(oom->requested_bytes, asked);
	if (oom->short_by_bytes != TN_NO_FIGURE)
		tn__say(printer, TN_TINT_NONE, 2, "asked %s, %s free: short by %s", asked,
		        tn__human_bytes(oom->free_bytes, room), tn__human_bytes(oom->short_by_bytes, missing));
	else if (oom->free_bytes != TN_NO_FIGURE)
		tn__say(printer, TN_TINT_NONE, 2, "asked %s, %s free on the card", asked,
		        tn__human_bytes(oom->free_bytes, room));
	else
		tn__say(printer, TN_TINT_NONE, 2, "asked %s", asked);
}

static void
say_headline(const struct tn_printer *printer, const struct tn_inspection *inspection)
{
	static const char *const words[] = {
		[TN_MOMENT_PEAK] = "The peak of GPU %d: PyTorch reserved %s, %s of it in tensors",
		[TN_MOMENT_OOM] = "",
		[TN_MOMENT_END] = "GPU %d at the end of the trace: PyTorch reserved %s, %s of it in tensors",
		[TN_MOMENT_ASKED] = "GPU %d at that moment: PyTorch reserved %s, %s of it in tensors",
	};
	enum tn_moment_name name = inspection->named[0].name;
	char reserved[32], allocated[32], line[200];
	if (name == TN_MOMENT_OOM) {
		say_oom(printer, inspection);
		return;
	}
	const char *format = words[name], *number = strstr(format, "%d"), *rest = number + 2;
	tn__human_bytes((int64_t)inspection->moment.reserved, reserved);
	tn__human_bytes((int64_t)inspection->moment.allocated, allocated);
	snprintf(line, sizeof(line), "%.*s%d", (int)(number - format), format, inspection->device);
	const char *first = strstr(rest, "%s"), *second = strstr(first + 2, "%s");
	tn__say(printer, TN_TINT_STRONG, 0, "%s%.*s%s%.*s%s%s", line, (int)(first - rest), rest, reserved,
	        (int)(second - first - 2), first + 2, allocated, second + 2);
	say_where(printer, inspection);
}

/* ---- below the table ---- */

static bool
is_shown_oom(const struct tn_inspection *inspection)
{
	return inspection->named[0].name == TN_MOMENT_OOM;
}

const struct tn_finding *
tn__inspection_reason(const struct tn_inspection *inspection)
{
	const struct tn_report *report = &inspection->report;
	if (inspection->snapshot == NULL || inspection->of_run)
		return tn__reason_of(report);
	bool error = report->finding_count > 0 && report->findings[0].severity == TN_SEVERITY_ERROR;
	return error && is_shown_oom(inspection) ? &report->findings[0] : NULL;
}

static void
say_next(const struct tn_printer *printer, const struct tn_inspection *inspection)
{
	const struct tn_finding *reason = tn__inspection_reason(inspection);
	if (reason == NULL)
		return;
	fputc('\n', printer->out);
	tn__say_labelled(printer, "Why", LABEL_COLUMN, "%s", reason->what);
	if (reason->advice != NULL)
		tn__say_labelled(printer, "Next", LABEL_COLUMN, "%s", reason->advice);
}

/* What lies idle in segments, and in how many pieces. */
static tn_status
say_idle(const struct tn_printer *printer, const struct tn_inspection *inspection)
{
	struct tn_layout layout;
	char idle[32], largest[32];
	size_t pieces = 0;
	int64_t cached = (int64_t)inspection->moment.by_category[TN_CATEGORY_cached];
	if (cached < LEAST_SPLINTERS)
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn__layout_of(inspection->analysis, inspection->named[0].state, &layout));
	for (size_t i = 0; i < layout.block_count; i++)
		pieces += layout.blocks[i].interval == TN_NO_INTERVAL;
	tn__say(printer, TN_TINT_NONE, 2, "Reserved and unused: %s in %zu piece%s of %zu segment%s, the largest %s",
	        tn__human_bytes(cached, idle), pieces, pieces == 1 ? "" : "s", layout.segment_count,
	        layout.segment_count == 1 ? "" : "s",
	        tn__human_bytes((int64_t)inspection->moment.largest_free_block, largest));
	tn__layout_free(&layout);
	return TN_OK;
}

static void
say_findings(const struct tn_printer *printer, const struct tn_inspection *inspection)
{
	for (size_t i = 0; i < inspection->report.finding_count; i++)
		if (&inspection->report.findings[i] != tn__inspection_reason(inspection))
			tn__say_finding(printer, &inspection->report, &inspection->report.findings[i], true);
}

static void
say_seen(const struct tn_printer *printer, const struct tn_inspection *inspection)
{
	char steps[64] = "", seconds[64] = "";
	size_t events = inspection->analysis->events.count;
	if (inspection->report.steps_seen > 0)
		snprintf(steps, sizeof(steps), ", up to step %" PRId64, inspection->report.steps_seen);
	if (inspection->last_us > inspection->first_us)
		snprintf(seconds, sizeof(seconds), " over %.3f s", (double)(inspection->last_us - inspection->first_us) / 1e6);
	tn__say(printer, TN_TINT_NONE, 2, "Seen: %zu events of GPU %d%s%s", events, inspection->device, seconds, steps);
	if (events == 0)
		tn__say(printer, TN_TINT_NONE, 2,
		        "without a trace, only what is alive at the end is known "
		        "(torch.cuda.memory._record_memory_history records one)");
	if (inspection->device_count > 1) {
		char others[256] = "";
		for (size_t i = 0; i < inspection->device_count && strlen(others) < 200; i++)
			if (inspection->devices[i] != inspection->device)
				sprintf(others + strlen(others), " %d", inspection->devices[i]);
		tn__say(printer, TN_TINT_NONE, 2, "The snapshot has other devices, too (--device):%s", others);
	}
}

static void
say_top(const struct tn_printer *printer, const struct tn_inspection *inspection, size_t top)
{
	const struct tn_report_moment *moment = tn__inspection_moment(inspection);
	char place[TN_PLACE_TEXT], bytes[32];
	if (top == 0 || moment->holder_count == 0)
		return;
	fputc('\n', printer->out);
	tn__say(printer, TN_TINT_NONE, 2, "The largest holders");
	for (size_t i = 0; i < moment->holder_count && i < top; i++) {
		const struct tn_report_holder *holder = &moment->holders[i];
		tn__place_words(&inspection->report, printer->style, &holder->at, place);
		tn__say(printer, TN_TINT_NONE, 4, "%s  %s  %s  %" PRId64 " block%s", tn__human_bytes(holder->bytes, bytes),
		        tn__category_words(holder->category),
		        place[0] != '\0'       ? place
		        : holder->what != NULL ? holder->what
		                               : "no line of Python",
		        holder->blocks, holder->blocks == 1 ? "" : "s");
	}
}

/* ---- a comparison ---- */

static void
say_change(const struct tn_printer *printer, const struct tn_comparison *comparison, const struct tn_change *change)
{
	char before[32], after[32], grown[32], place[TN_PLACE_TEXT], line[48] = "";
	const struct tn_place *at = change->after_at != NULL ? change->after_at : change->before_at;
	int64_t more = change->after - change->before;
	tn__place_words(&comparison->after->report, printer->style, at, place);
	if (change->before_at != NULL && change->after_at != NULL && change->before_at->line != change->after_at->line)
		snprintf(line, sizeof(line), " (line %" PRId64 " before)", change->before_at->line);
	tn__say(printer, TN_TINT_NONE, 4, "%s%s  %s  %s%s: %s, was %s", more < 0 ? "-" : "+",
	        tn__human_bytes(more < 0 ? -more : more, grown), tn__category_words(change->category),
	        place[0] != '\0' ? place : "no line of Python", line, tn__human_bytes(change->after, after),
	        tn__human_bytes(change->before, before));
}

static void
say_comparison(const struct tn_printer *printer, const struct tn_comparison *comparison)
{
	int64_t more = 0;
	char bytes[32];
	for (size_t i = 0; i < comparison->count; i++)
		more += comparison->changes[i].after - comparison->changes[i].before;
	fputc('\n', printer->out);
	tn__say(printer, TN_TINT_STRONG, 2, "Against %s: tensors hold %s %s", comparison->before->path,
	        tn__human_bytes(more < 0 ? -more : more, bytes), more < 0 ? "less" : "more");
	for (size_t i = 0; i < comparison->count && i < MOST_CHANGES; i++)
		if (comparison->changes[i].after != comparison->changes[i].before)
			say_change(printer, comparison, &comparison->changes[i]);
	if (comparison->count > MOST_CHANGES)
		tn__say(printer, TN_TINT_DIM, 4, "and %zu more lines", comparison->count - MOST_CHANGES);
}

/* ---- the whole ---- */

void
tn__inspection_head(const struct tn_inspection *inspection, const struct tn_printer *printer)
{
	if (inspection->snapshot != NULL && !inspection->of_run)
		say_headline(printer, inspection);
	else
		tn__say_head(printer, &inspection->report);
}

void
tn__inspection_next(const struct tn_inspection *inspection, const struct tn_printer *printer)
{
	if (inspection->snapshot != NULL && !inspection->of_run)
		say_next(printer, inspection);
	else
		tn__say_next(printer, &inspection->report);
}

void
tn__inspection_findings(const struct tn_inspection *inspection, const struct tn_printer *printer)
{
	if (inspection->snapshot != NULL && !inspection->of_run)
		say_findings(printer, inspection);
	else
		tn__say_findings(printer, &inspection->report);
}

char *
tn__inspection_words(const struct tn_inspection *inspection, tn_inspection_speaker *say)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	struct tn_printer printer = { out, { .utf8 = true, .columns = WIDE } };
	say(inspection, &printer);
	fclose(out);
	return text;
}

void
tn__inspection_scope(const struct tn_inspection *inspection, const struct tn_printer *printer)
{
	if (inspection->snapshot != NULL && !inspection->of_run)
		say_seen(printer, inspection);
	else
		tn__say_scope(printer, &inspection->report);
}

static tn_status
say_snapshot(const struct tn_printer *printer, const struct tn_inspection *inspection)
{
	bool oom = is_shown_oom(inspection);
	say_headline(printer, inspection);
	tn__say_moment(printer, &inspection->report, &inspection->report.at_peak,
	               tn__moment_name_words(inspection->named[0].name), oom);
	say_next(printer, inspection);
	fputc('\n', printer->out);
	TN_FORWARD_IF_ERROR(say_idle(printer, inspection));
	say_seen(printer, inspection);
	say_findings(printer, inspection);
	return TN_OK;
}

tn_status
tn__inspection_text(const struct tn_shown_inspection *shown, struct tn_style style, FILE *out)
{
	const struct tn_inspection *inspection = shown->inspection;
	struct tn_printer printer = { out, style };
	if (inspection->snapshot != NULL)
		TN_FORWARD_IF_ERROR(say_snapshot(&printer, inspection));
	else
		TN_FORWARD_IF_ERROR(tn__report_text(&inspection->report, style, out));
	say_top(&printer, inspection, shown->top);
	if (shown->comparison != NULL)
		say_comparison(&printer, shown->comparison);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_STATE, "the report could not be written");
	return TN_OK;
}
