/* SPDX-License-Identifier: Apache-2.0
 *
 * From a record to an inspection: which device, which moment, and what the model of a report knows of them. What a snapshot
 * does not say stays unknown; the card's own figures come from our metadata alone.
 */
#include "verdict/inspection.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "verdict/trace_findings.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"
#include "verdict/programs.h"

#define MIB (INT64_C(1) << 20)

static const struct {
	const char *name, *words;
} moments[] = {
	[TN_MOMENT_PEAK] = { "peak", "At the peak" },
	[TN_MOMENT_OOM] = { "out_of_memory", "At the out-of-memory" },
	[TN_MOMENT_END] = { "end", "At the end" },
	[TN_MOMENT_ASKED] = { "asked", "At that moment" },
};

const char *
tn__moment_name_text(enum tn_moment_name name)
{
	return moments[name].name;
}

const char *
tn__moment_name_words(enum tn_moment_name name)
{
	return moments[name].words;
}

const struct tn_report_moment *
tn__inspection_moment(const struct tn_inspection *inspection)
{
	const struct tn_report *report = &inspection->report;
	bool run = inspection->snapshot == NULL || inspection->of_run;
	bool oom = run && report->oom.seen && tn__report_is_told(&report->at_oom);
	return oom ? &report->at_oom : &report->at_peak;
}

const char *
tn__inspection_file(const struct tn_inspection *inspection, const char *file)
{
	return tn__redacted(inspection->redactor, file);
}

int64_t
tn__inspection_beside(const struct tn_inspection *inspection, enum tn_category category)
{
	switch (category) {
	case TN_CATEGORY_context:
		return inspection->card.context;
	case TN_CATEGORY_libraries:
		return inspection->card.libraries;
	case TN_CATEGORY_communication:
		return inspection->card.communication;
	case TN_CATEGORY_other_processes:
		return inspection->card.other_processes;
	default:
		return TN_NO_FIGURE;
	}
}

/* ---- the device ---- */

/* The most that a device had reserved: backward from the end, which the snapshot knows. */
static uint64_t
most_reserved(const struct tn_snapshot *snapshot, int device)
{
	uint64_t reserved = tn_snapshot_sum(snapshot, device).reserved, most = reserved;
	for (size_t trace = 0; trace < tn_snapshot_traces(snapshot); trace++) {
		if (tn_snapshot_trace_device(snapshot, trace) != device)
			continue;
		struct tn_event_columns events = tn_snapshot_columns(snapshot, trace);
		for (size_t event = events.count; event-- > 0;) {
			uint64_t size = events.sizes[event] == TN_UNKNOWN ? 0 : events.sizes[event];
			uint8_t action = events.actions[event];
			if (action == TN_ACTION_SEGMENT_ALLOC || action == TN_ACTION_SEGMENT_MAP)
				reserved -= size;
			else if (action == TN_ACTION_SEGMENT_FREE || action == TN_ACTION_SEGMENT_UNMAP)
				reserved += size;
			most = reserved > most ? reserved : most;
		}
		break;
	}
	return most;
}

static void
add_device(struct tn_inspection *inspection, int device)
{
	for (size_t i = 0; i < inspection->device_count; i++)
		if (inspection->devices[i] == device)
			return;
	if (device >= 0 && inspection->device_count < TN_INSPECTION_DEVICES)
		inspection->devices[inspection->device_count++] = device;
}

static int
compare_numbers(const void *left, const void *right)
{
	const int *one = left, *other = right;
	return (*one > *other) - (*one < *other);
}

/* Devices of which the snapshot holds anything. */
static void
list_devices(struct tn_inspection *inspection)
{
	const struct tn_segment *segments;
	size_t count = tn_snapshot_segments(inspection->snapshot, &segments);
	for (size_t i = 0; i < count; i++)
		if (!segments[i].host)
			add_device(inspection, segments[i].device);
	for (size_t trace = 0; trace < tn_snapshot_traces(inspection->snapshot); trace++)
		if (tn_snapshot_events(inspection->snapshot, trace) > 0)
			add_device(inspection, tn_snapshot_trace_device(inspection->snapshot, trace));
	if (inspection->device_count == 0)
		add_device(inspection, 0);
	qsort(inspection->devices, inspection->device_count, sizeof(inspection->devices[0]), compare_numbers);
}

/* An allocation after an out-of-memory means that the program went on. */
static bool
ends_with_oom(const struct tn_snapshot *snapshot, size_t trace, size_t index)
{
	struct tn_event_columns events = tn_snapshot_columns(snapshot, trace);
	for (size_t event = index + 1; event < events.count; event++)
		if (events.actions[event] == TN_ACTION_ALLOC)
			return false;
	return true;
}

static tn_status
choose_device(struct tn_inspection *inspection, int wanted)
{
	uint64_t most = 0;
	size_t trace, index;
	list_devices(inspection);
	inspection->device = inspection->devices[0];
	for (size_t i = 0; i < inspection->device_count; i++) {
		uint64_t held = most_reserved(inspection->snapshot, inspection->devices[i]);
		if (wanted == inspection->devices[i] || (wanted < 0 && held > most)) {
			inspection->device = inspection->devices[i];
			most = held;
		}
	}
	TN_RETURN_IF(wanted >= 0 && inspection->device != wanted, TN_NOT_FOUND, "%s holds nothing of device %d",
	             inspection->path, wanted);
	for (size_t i = 0; i < inspection->device_count && wanted < 0; i++) {
		bool oom = tn_snapshot_out_of_memory(inspection->snapshot, inspection->devices[i], &trace, &index);
		if (oom && ends_with_oom(inspection->snapshot, trace, index))
			inspection->device = inspection->devices[i];
	}
	return TN_OK;
}

/* ---- the moments ---- */

static void
name_moment(struct tn_inspection *inspection, enum tn_moment_name name, uint32_t state)
{
	for (size_t i = 0; i < inspection->named_count; i++)
		if (inspection->named[i].state == state)
			return;
	inspection->named[inspection->named_count++] = (struct tn_named_moment){ name, state };
}

/* A number of seconds after the first event: the state behind the last event until then. */
static tn_status
parse_time(const struct tn_inspection *inspection, const char *text, uint32_t *state)
{
	char *end;
	double seconds = strtod(text, &end);
	TN_RETURN_IF(end == text || *end != '\0' || !(seconds >= 0) || seconds > 1e9, TN_INVALID,
	             "--at is peak, oom, end or seconds after the first event, not \"%s\"", text);
	const struct tn_event_columns *events = &inspection->analysis->events;
	TN_RETURN_IF(events->count == 0 || events->times[events->count - 1] == 0, TN_NOT_FOUND,
	             "%s has no times: --at peak, oom or end", inspection->path);
	int64_t until = inspection->first_us + (int64_t)(seconds * 1e6);
	*state = 0;
	while (*state < events->count && events->times[*state] <= until)
		++*state;
	return TN_OK;
}

static tn_status
name_wanted(struct tn_inspection *inspection, const char *at, uint32_t peak)
{
	uint32_t end = (uint32_t)inspection->analysis->events.count, state = end;
	if (strcmp(at, "peak") == 0) {
		name_moment(inspection, TN_MOMENT_PEAK, peak);
	} else if (strcmp(at, "end") == 0) {
		name_moment(inspection, TN_MOMENT_END, end);
	} else if (strcmp(at, "oom") == 0) {
		TN_RETURN_IF(inspection->oom_event < 0, TN_NOT_FOUND, "the trace of device %d holds no out-of-memory",
		             inspection->device);
		name_moment(inspection, TN_MOMENT_OOM, (uint32_t)inspection->oom_event + 1);
	} else {
		TN_FORWARD_IF_ERROR(parse_time(inspection, at, &state));
		name_moment(inspection, TN_MOMENT_ASKED, state);
	}
	return TN_OK;
}

static tn_status
name_moments(struct tn_inspection *inspection, const char *at)
{
	uint32_t end = (uint32_t)inspection->analysis->events.count, peak = end;
	size_t trace, index;
	bool oom = tn_snapshot_out_of_memory(inspection->snapshot, inspection->device, &trace, &index);
	inspection->oom_event = oom && index < end ? (int64_t)index : -1;
	if (at == NULL)
		at = inspection->oom_event >= 0 && ends_with_oom(inspection->snapshot, trace, index) ? "oom" : "peak";
	TN_FORWARD_IF_ERROR(tn__find_peak_state(inspection->analysis, TN_UNKNOWN, &peak));
	TN_FORWARD_IF_ERROR(name_wanted(inspection, at, peak));
	if (inspection->oom_event >= 0)
		name_moment(inspection, TN_MOMENT_OOM, (uint32_t)inspection->oom_event + 1);
	name_moment(inspection, TN_MOMENT_PEAK, peak);
	name_moment(inspection, TN_MOMENT_END, end);
	return TN_OK;
}

/* ---- the model ---- */

/* What our metadata say of the card: the ledger's last word. */
static void
take_card(struct tn_inspection *inspection)
{
	const struct tn_metadata *metadata = &inspection->analysis->metadata;
	inspection->card_total = TN_NO_FIGURE;
	inspection->card = (struct tn_report_split){ TN_NO_FIGURE, TN_NO_FIGURE, TN_NO_FIGURE, TN_NO_FIGURE, TN_NO_FIGURE };
	for (size_t i = 0; i < metadata->cards_count; i++) {
		const struct tn_metadata_card *card = &metadata->cards[i];
		if (card->device != inspection->device)
			continue;
		inspection->card_total = (int64_t)card->total;
		inspection->card = (struct tn_report_split){ (int64_t)card->context, (int64_t)card->program,
			                                         (int64_t)card->libraries, (int64_t)card->others, TN_NO_FIGURE };
	}
	if (inspection->card_total == TN_NO_FIGURE)
		return;
	inspection->report.gpu.total_bytes = (uint64_t)inspection->card_total;
	inspection->report.gpu.context_bytes = (uint64_t)inspection->card.context;
}

/* What was asked of the driver: the segment that PyTorch's allocator would make for a request. */
static uint64_t
segment_for(uint64_t request)
{
	if (request <= (uint64_t)MIB)
		return 2 * MIB;
	if (request < 10 * (uint64_t)MIB)
		return 20 * MIB;
	return request > UINT64_MAX / 2 ? request : (request + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

/* Fills a moment of the report from a state; `moment` gets what the allocator says and is to be freed. */
static tn_status
take_moment(const struct tn_inspection *inspection, uint32_t state, struct tn_report_moment *out,
            struct tn_moment *moment)
{
	struct tn_report_split split = inspection->card;
	TN_FORWARD_IF_ERROR(tn__moment_of_state(inspection->analysis, state, moment));
	split.program = (int64_t)moment->reserved;
	tn__report_set_split(out, &split);
	tn_status status = tn__report_join(out, moment);
	if (status != TN_OK)
		tn__moment_free(moment);
	return status;
}

static struct tn_place *
place_of(const struct tn_line *line)
{
	return line->file != NULL ? tn__report_new_place(line->file, line->line, line->function, line->backward) : NULL;
}

/* The frames of the request, innermost first, as the guest would have told them. */
static tn_status
take_stack(struct tn_inspection *inspection, tn_stack stack)
{
	const uint32_t *frames;
	size_t count = tn_snapshot_stack(inspection->snapshot, stack, &frames);
	for (size_t i = 0; i < count && i < 64; i++) {
		struct tn_frame frame = tn_snapshot_frame(inspection->snapshot, frames[i]);
		struct tn_place place = { (char *)(uintptr_t)frame.file, frame.line, (char *)(uintptr_t)frame.function, false };
		if (frame.user || frame.library)
			TN_FORWARD_IF_ERROR(tn__report_add_place(&inspection->report.oom.stack, &place));
	}
	return TN_OK;
}

static void
take_request(struct tn_inspection *inspection, const struct tn_event *event)
{
	struct tn_report_oom *oom = &inspection->report.oom;
	const struct tn_metadata *metadata = &inspection->analysis->metadata;
	if (event->size != TN_UNKNOWN)
		oom->requested_bytes = (int64_t)segment_for(event->size);
	for (size_t i = 0; i < metadata->ooms_count; i++)
		if (metadata->ooms[i].device == inspection->device)
			oom->requested_bytes = (int64_t)metadata->ooms[i].requested;
	if (event->address != TN_UNKNOWN)
		oom->free_bytes = (int64_t)event->address;
	if (oom->requested_bytes != TN_NO_FIGURE && oom->free_bytes != TN_NO_FIGURE &&
	    oom->requested_bytes > oom->free_bytes)
		oom->short_by_bytes = oom->requested_bytes - oom->free_bytes;
}

/* The room of a card that nobody told of: what PyTorch had of it, and what was free. */
static void
guess_room(struct tn_inspection *inspection, const struct tn_moment *moment)
{
	if (inspection->card_total == TN_NO_FIGURE && inspection->report.oom.free_bytes != TN_NO_FIGURE)
		inspection->report.gpu.total_bytes = moment->reserved + (uint64_t)inspection->report.oom.free_bytes;
}

static tn_status
take_oom(struct tn_inspection *inspection)
{
	struct tn_report_oom *oom = &inspection->report.oom;
	struct tn_moment moment;
	if (inspection->oom_event < 0)
		return TN_OK;
	for (size_t trace = 0; trace < tn_snapshot_traces(inspection->snapshot); trace++) {
		if (tn_snapshot_trace_device(inspection->snapshot, trace) != inspection->device)
			continue;
		struct tn_event event = tn_snapshot_event(inspection->snapshot, trace, (size_t)inspection->oom_event);
		take_request(inspection, &event);
		TN_FORWARD_IF_ERROR(take_stack(inspection, event.stack));
		break;
	}
	TN_FORWARD_IF_ERROR(
		take_moment(inspection, (uint32_t)inspection->oom_event + 1, &inspection->report.at_oom, &moment));
	oom->seen = true;
	oom->at = place_of(moment.at_user.file != NULL ? &moment.at_user : &moment.at);
	oom->step = moment.step;
	oom->phase = moment.phase != NULL ? strdup(moment.phase) : NULL;
	oom->largest_free_block_bytes = (int64_t)moment.largest_free_block;
	oom->allocated_bytes = (int64_t)moment.allocated;
	oom->reserved_bytes = (int64_t)moment.reserved;
	guess_room(inspection, &moment);
	tn__moment_free(&moment);
	return TN_OK;
}

/* The most of each, over the whole trace. */
static tn_status
take_peaks(struct tn_inspection *inspection)
{
	struct tn_report *report = &inspection->report;
	const struct tn_analysis *analysis = inspection->analysis;
	size_t states = analysis->events.count + 1;
	uint64_t *requested = calloc(states + 1, sizeof(*requested)), now = 0, most = 0, allocated = 0, reserved = 0;
	TN_RETURN_IF(requested == NULL, TN_NO_MEMORY, "no host memory for %zu events", states);
	for (size_t i = 0; i < analysis->blocks.count; i++) {
		const struct tn_interval *block = &analysis->blocks.intervals[i];
		if (block->until <= block->from)
			continue;
		requested[block->from] += block->requested;
		requested[block->until < states ? block->until : states] -= block->requested;
	}
	for (size_t state = 0; state < states; state++) {
		now += requested[state];
		most = now > most ? now : most;
		allocated = analysis->allocated[state] > allocated ? analysis->allocated[state] : allocated;
		reserved = analysis->reserved[state] > reserved ? analysis->reserved[state] : reserved;
	}
	free(requested);
	report->requested_peak = (int64_t)most;
	report->allocated_peak = (int64_t)allocated;
	report->reserved_peak = (int64_t)reserved;
	if (inspection->card.context != TN_NO_FIGURE)
		report->device_peak = (int64_t)reserved + inspection->card.context + inspection->card.libraries +
		                      inspection->card.other_processes;
	return TN_OK;
}

static void
take_metadata(struct tn_inspection *inspection)
{
	const struct tn_metadata *metadata = &inspection->analysis->metadata;
	struct tn_report *report = &inspection->report;
	for (size_t i = 0; i < metadata->steps_count; i++)
		if (metadata->steps[i].number > report->steps_seen)
			report->steps_seen = metadata->steps[i].number;
	if (metadata->batches_count > 0)
		report->batch_size = metadata->batches[metadata->batches_count - 1].size;
}

static tn_status
fill_report(struct tn_inspection *inspection)
{
	take_card(inspection);
	take_metadata(inspection);
	TN_FORWARD_IF_ERROR(take_peaks(inspection));
	TN_FORWARD_IF_ERROR(take_oom(inspection));
	TN_FORWARD_IF_ERROR(
		take_moment(inspection, inspection->named[0].state, &inspection->report.at_peak, &inspection->moment));
	if (inspection->report.oom.seen)
		tn__report_find_cause(&inspection->report);
	return tn__report_add_trace_findings(inspection->analysis, &inspection->parts, inspection->named[0].state,
	                                     &inspection->report);
}

/* Opens a snapshot, of which the device is chosen that is wanted (-1: any). */
static tn_status
open_snapshot(struct tn_inspection *inspection, struct tn_views *views, const char *path, int device)
{
	struct tn_view *view;
	const struct tn_part_list *parts;
	TN_FORWARD_IF_ERROR(tn__views_open(views, path, &view));
	inspection->snapshot = tn__view_snapshot(view);
	TN_FORWARD_IF_ERROR(choose_device(inspection, device));
	TN_FORWARD_IF_ERROR(tn__view_analysis(view, inspection->device, &inspection->analysis));
	const struct tn_event_columns *events = &inspection->analysis->events;
	if (events->count > 0) {
		inspection->first_us = events->times[0];
		inspection->last_us = events->times[events->count - 1];
	}
	TN_FORWARD_IF_ERROR(tn__view_parts(view, inspection->device, &parts));
	inspection->parts = *parts;
	return TN_OK;
}

void
tn__inspection_init(struct tn_inspection *inspection, const char *path)
{
	*inspection = (struct tn_inspection){ .path = path };
	tn__report_init(&inspection->report);
}

tn_status
tn__inspection_of_snapshot(const struct tn_inspection_request *wish, struct tn_inspection *inspection)
{
	TN_FORWARD_IF_ERROR(open_snapshot(inspection, &inspection->own, wish->path, wish->device));
	TN_FORWARD_IF_ERROR(name_moments(inspection, wish->at));
	return fill_report(inspection);
}

/* The run's own account stands; the record adds the course of the memory. */
static tn_status
fill_of_run(struct tn_inspection *inspection, const struct tn_record *record, const char *at)
{
	const struct tn_report *report = &inspection->report;
	if (record->path == NULL)
		return TN_OK;
	struct tn_views *views = inspection->report.views != NULL ? inspection->report.views : &inspection->own;
	TN_FORWARD_IF_ERROR(open_snapshot(inspection, views, record->path, record->device));
	inspection->card = tn__programs_split(report, record->path, at == NULL, &report->at_peak.split);
	inspection->card_total = (int64_t)inspection->report.gpu.total_bytes;
	return name_moments(inspection, at);
}

tn_status
tn__inspection_of_run(const struct tn_report *report, struct tn_inspection *inspection)
{
	bool oom = report->oom.seen && report->oom_record.path != NULL;
	struct tn_redactor *redactor;
	TN_FORWARD_IF_ERROR(tn__redactor_new(report->secrets, false, &redactor));
	*inspection = (struct tn_inspection){
		.path = "tonnage run", .of_run = true, .report = *report, .oom_event = -1, .redactor = redactor
	};
	tn_status status = fill_of_run(inspection, oom ? &report->oom_record : &report->peak_record, oom ? NULL : "peak");
	if (status != TN_OK)
		tn__inspection_free(inspection);
	return status;
}

void
tn__inspection_free(struct tn_inspection *inspection)
{
	tn__moment_free(&inspection->moment);
	if (!inspection->of_run)
		tn__report_free(&inspection->report);
	json_decref(inspection->document);
	tn__views_close(&inspection->own);
	tn__redactor_free(inspection->redactor);
	*inspection = (struct tn_inspection){ 0 };
}
