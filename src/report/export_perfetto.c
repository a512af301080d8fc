/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace as Chrome's JSON, which Perfetto's trace processor and chrome://tracing read: counters by category and of
 * what PyTorch reserved and allocated, phases as slices, out-of-memory errors as instants. Times are microseconds since
 * the first event. The counters are sampled as the timeline is: each peak stays.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/json_parts.h"
#include "report/inspection_writers.h"

#define MOST_COLUMNS 20000

enum track { COUNTERS = 1, PHASES = 2 }; /* threads of the one process */

struct writer {
	const struct tn_inspection *inspection;
	FILE *out;
	bool first;
};

/* Writes an event, and releases it. */
static tn_status
put(struct writer *writer, json_t *event)
{
	TN_RETURN_IF(event == NULL, TN_NO_MEMORY, "out of host memory");
	fputs(writer->first ? "\n" : ",\n", writer->out);
	writer->first = false;
	int failed = json_dumpf(event, writer->out, JSON_COMPACT);
	json_decref(event);
	TN_RETURN_IF(failed != 0, TN_STATE, "the Perfetto trace could not be written");
	return TN_OK;
}

static json_int_t
since_start(const struct writer *writer, int64_t time_us)
{
	return time_us > writer->inspection->first_us ? time_us - writer->inspection->first_us : 0;
}

static tn_status
put_name(struct writer *writer, const char *kind, int track, const char *name)
{
	return put(writer, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", kind, "pid", 1, "tid", track,
	                             "args", "name", name));
}

static tn_status
put_counter(struct writer *writer, int64_t time_us, const char *name, uint64_t value)
{
	return put(writer, json_pack("{s:s, s:s, s:i, s:i, s:I, s:{s:I}}", "ph", "C", "name", name, "pid", 1, "tid",
	                             COUNTERS, "ts", since_start(writer, time_us), "args", "bytes", (json_int_t)value));
}

/* A counter is written where it changes. */
static tn_status
put_counters(struct writer *writer, const struct tn_timeline *timeline)
{
	const struct tn_analysis *analysis = writer->inspection->analysis;
	for (size_t i = 0; i < timeline->count; i++) {
		const struct tn_column *column = &timeline->columns[i], *before = i ? column - 1 : NULL;
		for (size_t category = 0; category <= TN_CATEGORY_cached; category++) {
			bool changed = before != NULL ? before->bytes[category] != column->bytes[category] : true;
			if (changed)
				TN_FORWARD_IF_ERROR(put_counter(writer, column->time_us, tn__category_words((enum tn_category)category),
				                                column->bytes[category]));
		}
		TN_FORWARD_IF_ERROR(put_counter(writer, column->time_us, "allocated", analysis->allocated[column->moment]));
		TN_FORWARD_IF_ERROR(put_counter(writer, column->time_us, "reserved", analysis->reserved[column->moment]));
	}
	return TN_OK;
}

static tn_status
put_phases(struct writer *writer)
{
	const struct tn_metadata *metadata = &writer->inspection->analysis->metadata;
	for (size_t i = 0; i < metadata->phases_count; i++) {
		const struct tn_metadata_phase *phase = &metadata->phases[i];
		int64_t end = i + 1 < metadata->phases_count ? metadata->phases[i + 1].time / 1000
		                                             : writer->inspection->last_us;
		json_int_t start = since_start(writer, phase->time / 1000), until = since_start(writer, end);
		TN_FORWARD_IF_ERROR(
			put(writer, json_pack("{s:s, s:o, s:s, s:i, s:i, s:I, s:I, s:{s:I}}", "ph", "X", "name",
		                          tn__json_text(phase->name), "cat", "phase", "pid", 1, "tid", PHASES, "ts", start,
		                          "dur", until > start ? until - start : 0, "args", "step", (json_int_t)phase->step)));
	}
	return TN_OK;
}

static tn_status
put_instants(struct writer *writer)
{
	const struct tn_event_columns *events = &writer->inspection->analysis->events;
	for (size_t event = 0; event < events->count; event++) {
		if (events->actions[event] != TN_ACTION_OOM)
			continue;
		uint64_t asked = events->sizes[event] == TN_UNKNOWN ? 0 : events->sizes[event];
		TN_FORWARD_IF_ERROR(put(writer, json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:{s:I}}", "ph", "i", "name",
		                                          "out of memory", "cat", "memory", "s", "p", "pid", 1, "tid", PHASES,
		                                          "ts", since_start(writer, events->times[event]), "args",
		                                          "requested_bytes", (json_int_t)asked)));
	}
	return TN_OK;
}

static tn_status
put_all(struct writer *writer, const struct tn_timeline *timeline)
{
	char name[64];
	snprintf(name, sizeof(name), "GPU %d", writer->inspection->device);
	TN_FORWARD_IF_ERROR(put_name(writer, "process_name", 0, name));
	TN_FORWARD_IF_ERROR(put_name(writer, "thread_name", PHASES, "phases"));
	TN_FORWARD_IF_ERROR(put_phases(writer));
	TN_FORWARD_IF_ERROR(put_instants(writer));
	return put_counters(writer, timeline);
}

tn_status
tn__inspection_perfetto(const struct tn_inspection *inspection, FILE *out)
{
	struct tn_timeline timeline;
	struct writer writer = { inspection, out, true };
	TN_RETURN_IF(inspection->last_us == 0, TN_NOT_FOUND,
	             "%s has no times: there is nothing to put on Perfetto's time line", inspection->path);
	TN_FORWARD_IF_ERROR(tn__timeline_make(inspection->analysis, &inspection->parts, MOST_COLUMNS, NULL, 0, &timeline));
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out);
	tn_status status = put_all(&writer, &timeline);
	tn__timeline_free(&timeline);
	fputs("\n]}\n", out);
	if (status == TN_OK && (fflush(out) != 0 || ferror(out)))
		status = tn__fail(TN_STATE, "the Perfetto trace could not be written");
	return status;
}
