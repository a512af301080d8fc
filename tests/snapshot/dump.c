/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints what the reader made of a snapshot as JSON, for tests and the benchmark that compare it with Python's pickle.
 *
 *     dump FILE             everything
 *     dump --summary FILE   counts, sums and holders only
 *
 * Ends with 1 and one line on stderr when the file cannot be read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print_text.h"
#include "tonnage/snapshot.h"

static void
print_number(uint64_t number)
{
	if (number == TN_UNKNOWN)
		printf("null");
	else
		printf("%" PRIu64, number);
}

static void
print_stacks(const struct tn_snapshot *snapshot)
{
	printf(",\n\"frames\": [");
	for (uint32_t index = 0; index < tn_snapshot_frames(snapshot); index++) {
		struct tn_frame frame = tn_snapshot_frame(snapshot, index);
		printf("%s\n[", index ? "," : "");
		print_text(frame.function);
		printf(", ");
		print_text(frame.file);
		printf(", %" PRId64 ", %s]", frame.line, frame.user ? "true" : "false");
	}
	printf("],\n\"stacks\": [");
	for (uint32_t stack = 0; stack < tn_snapshot_stacks(snapshot); stack++) {
		const uint32_t *frames;
		size_t count = tn_snapshot_stack(snapshot, stack, &frames);
		printf("%s\n[", stack ? "," : "");
		for (size_t index = 0; index < count; index++)
			printf("%s%" PRIu32, index ? ", " : "", frames[index]);
		printf("]");
	}
	printf("]");
}

static void
print_block(const struct tn_block *block)
{
	printf("[");
	print_number(block->address);
	printf(", %" PRIu64 ", ", block->size);
	print_number(block->requested);
	printf(", %d, %" PRIu32 "]", block->state, block->stack);
}

static void
print_segment(const struct tn_segment *segment, const struct tn_block *blocks)
{
	const uint64_t numbers[] = { segment->address,   segment->total,  segment->allocated, segment->active,
		                         segment->requested, segment->stream, segment->pool[0],   segment->pool[1] };
	printf("{\"device\": %d, \"host\": %d, \"small\": %d, \"expandable\": %d, \"stack\": %" PRIu32 ", \"numbers\": [",
	       segment->device, segment->host, segment->small, segment->expandable, segment->stack);
	for (size_t index = 0; index < sizeof(numbers) / sizeof(numbers[0]); index++) {
		printf("%s", index ? ", " : "");
		print_number(numbers[index]);
	}
	printf("], \"blocks\": [");
	for (size_t index = 0; index < segment->blocks; index++) {
		printf("%s\n  ", index ? "," : "");
		print_block(&blocks[segment->first_block + index]);
	}
	printf("]}");
}

static void
print_segments(const struct tn_snapshot *snapshot)
{
	const struct tn_segment *segments;
	const struct tn_block *blocks;
	size_t count = tn_snapshot_segments(snapshot, &segments);
	tn_snapshot_blocks(snapshot, &blocks);
	printf(",\n\"segments\": [");
	for (size_t index = 0; index < count; index++) {
		printf("%s\n", index ? "," : "");
		print_segment(&segments[index], blocks);
	}
	printf("]");
}

static void
print_event(const struct tn_event *event)
{
	printf("[%d, ", event->action);
	print_number(event->address);
	printf(", ");
	print_number(event->size);
	printf(", %" PRId64 ", %" PRIu32 ", ", event->time_us, event->stack);
	print_number(event->stream);
	printf(", ");
	print_number(event->pool[0]);
	printf(", ");
	print_number(event->pool[1]);
	printf(", ");
	print_text(event->compile_context);
	printf(", ");
	print_text(event->user_metadata);
	printf("]");
}

static void
print_traces(const struct tn_snapshot *snapshot)
{
	printf(",\n\"traces\": [");
	for (size_t trace = 0; trace < tn_snapshot_traces(snapshot); trace++) {
		printf("%s{\"device\": %d, \"events\": [", trace ? ",\n" : "", tn_snapshot_trace_device(snapshot, trace));
		for (size_t index = 0; index < tn_snapshot_events(snapshot, trace); index++) {
			struct tn_event event = tn_snapshot_event(snapshot, trace, index);
			printf("%s\n", index ? "," : "");
			print_event(&event);
		}
		printf("]}");
	}
	printf("]");
}

static void
print_annotations(const struct tn_snapshot *snapshot)
{
	const struct tn_annotation *annotations;
	size_t count = tn_snapshot_annotations(snapshot, &annotations);
	printf(",\n\"annotations\": [");
	for (size_t index = 0; index < count; index++) {
		printf("%s\n[", index ? "," : "");
		print_text(annotations[index].name);
		printf(", %s, %d, %" PRId64 "]", annotations[index].start ? "true" : "false", annotations[index].device,
		       annotations[index].time_us);
	}
	printf("]");
}

static void
print_settings(const struct tn_snapshot *snapshot)
{
	const struct tn_setting *settings;
	size_t count = tn_snapshot_settings(snapshot, &settings);
	printf(",\n\"settings\": {");
	for (size_t index = 0; index < count; index++) {
		const struct tn_setting *setting = &settings[index];
		printf("%s\n", index ? "," : "");
		print_text(setting->name);
		printf(": ");
		if (setting->kind == TN_SETTING_BOOL)
			printf("%s", setting->integer ? "true" : "false");
		else if (setting->kind == TN_SETTING_INTEGER)
			printf("%" PRId64, setting->integer);
		else if (setting->kind == TN_SETTING_REAL)
			printf("%.17g", setting->real);
		else
			print_text(setting->text);
	}
	printf("}");
}

static void
print_totals(const struct tn_snapshot *snapshot)
{
	struct tn_snapshot_totals totals = tn_snapshot_sum(snapshot, TN_ALL_DEVICES);
	printf("\"totals\": {\"reserved\": %" PRIu64 ", \"allocated\": %" PRIu64 ", \"active\": %" PRIu64
	       ", \"requested\": %" PRIu64 ", \"largest_free_block\": %" PRIu64
	       ", \"segments\": %zu, \"blocks\": %zu, \"live_blocks\": %zu}",
	       totals.reserved, totals.allocated, totals.active, totals.requested, totals.largest_free_block,
	       totals.segments, totals.blocks, totals.live_blocks);
}

static void
print_holders(const struct tn_snapshot *snapshot)
{
	struct tn_holder *holders = NULL;
	size_t count = 0;
	if (tn_snapshot_holders(snapshot, TN_ALL_DEVICES, &holders, &count) != TN_OK)
		return;
	printf(",\n\"holders\": [");
	for (size_t index = 0; index < count; index++) {
		printf("%s\n[%" PRIu64 ", %" PRIu64 ", %zu, ", index ? "," : "", holders[index].bytes, holders[index].requested,
		       holders[index].blocks);
		print_text(holders[index].file);
		printf(", %" PRId64 ", ", holders[index].line);
		print_text(holders[index].function);
		printf("]");
	}
	printf("]");
	free(holders);
}

static void
print_out_of_memory(const struct tn_snapshot *snapshot)
{
	size_t trace, index;
	printf(",\n\"out_of_memory\": ");
	if (!tn_snapshot_out_of_memory(snapshot, TN_ALL_DEVICES, &trace, &index)) {
		printf("null");
		return;
	}
	struct tn_event event = tn_snapshot_event(snapshot, trace, index);
	printf("[%zu, %zu, ", trace, index);
	print_number(event.size);
	printf(", ");
	print_number(event.address);
	printf("]");
}

/* Sums over all events, wrapping at 2^64, and how many of each action. */
static void
print_sums(const struct tn_snapshot *snapshot)
{
	uint64_t addresses = 0, sizes = 0, times = 0, frames = 0, actions[TN_ACTION_OTHER + 1] = { 0 };
	const uint32_t *numbers;
	for (size_t trace = 0; trace < tn_snapshot_traces(snapshot); trace++) {
		struct tn_event_columns columns = tn_snapshot_columns(snapshot, trace);
		for (size_t index = 0; index < columns.count; index++) {
			addresses += columns.addresses[index];
			sizes += columns.sizes[index];
			times += (uint64_t)columns.times[index];
			frames += tn_snapshot_stack(snapshot, columns.stacks[index], &numbers);
			actions[columns.actions[index]]++;
		}
	}
	printf(",\n\"sums\": {\"addresses\": %" PRIu64 ", \"sizes\": %" PRIu64 ", \"times\": %" PRIu64
	       ", \"frames\": %" PRIu64 ", \"actions\": [",
	       addresses, sizes, times, frames);
	for (size_t action = 0; action <= TN_ACTION_OTHER; action++)
		printf("%s%" PRIu64, action ? ", " : "", actions[action]);
	printf("]}");
}

int
main(int count, char **arguments)
{
	struct tn_snapshot *snapshot;
	bool summary = count == 3 && strcmp(arguments[1], "--summary") == 0;
	if (count != 2 && !summary) {
		fprintf(stderr, "usage: dump [--summary] FILE\n");
		return 2;
	}
	tn_status status = tn_snapshot_open(arguments[count - 1], NULL, &snapshot);
	if (status != TN_OK) {
		fprintf(stderr, "%s: %s\n", tn_status_text(status), tn_error_text());
		return 1;
	}
	printf("{");
	print_totals(snapshot);
	print_holders(snapshot);
	print_out_of_memory(snapshot);
	print_sums(snapshot);
	print_annotations(snapshot);
	print_settings(snapshot);
	if (!summary) {
		print_stacks(snapshot);
		print_segments(snapshot);
		print_traces(snapshot);
	}
	printf("}\n");
	tn_snapshot_close(snapshot);
	return 0;
}
