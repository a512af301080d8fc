/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing snapshots, and looking at them.
 */
#include "tonnage/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "trace/builder.h"
#include "trace/decompress.h"

#define MEMORY_BYTES ((uint64_t)8 << 30)

struct tn_snapshot_options
tn_snapshot_defaults(void)
{
	return (struct tn_snapshot_options){
		.depth = TN_PICKLE_DEPTH,
		.memo = TN_PICKLE_MEMO,
		.string_bytes = TN_PICKLE_STRING_BYTES,
		.memory_bytes = MEMORY_BYTES,
		.unpack_ratio = TN_UNPACK_RATIO,
	};
}

/* ---- reading ---- */

/* What files that are no pickle begin with. */
static const struct {
	const char *start;
	size_t length;
	const char *text;
} not_pickles[] = {
	{ "\x1f\x8b", 2, "compressed twice; decompress it once" },
	{ "\x28\xb5\x2f\xfd", 4, "compressed twice; decompress it once" },
	{ "PK\x03\x04", 4, "a zip file, as torch.save writes; a memory snapshot is a plain pickle" },
	{ "BZh", 3, "compressed by bzip2; gzip and zstd are read, decompress it first" },
	{ "\xfd"
	  "7zXZ",
	  5, "compressed by xz; gzip and zstd are read, decompress it first" },
};

/* Says what the input is when its first bytes are not those of a pickle. */
static tn_status
check_start(struct tn_cursor *cursor)
{
	TN_FORWARD_IF_ERROR(tn__cursor_fill(cursor, 5));
	size_t left = tn__cursor_left(cursor);
	TN_RETURN_IF(left == 0, TN_FORMAT, "byte 0: the file is empty");
	for (size_t index = 0; index < sizeof(not_pickles) / sizeof(not_pickles[0]); index++) {
		size_t length = not_pickles[index].length;
		if (left >= length && memcmp(cursor->at, not_pickles[index].start, length) == 0)
			return tn__fail(TN_UNSUPPORTED, "byte 0: %s", not_pickles[index].text);
	}
	TN_RETURN_IF(cursor->at[0] != 0x80, TN_FORMAT,
	             "byte 0: not a pickle, as torch.cuda.memory._dump_snapshot() writes them, nor JSON of `tonnage run`; "
	             "a text is for `tonnage explain`");
	return TN_OK;
}

static tn_status
fill_plain(struct tn_snapshot *snapshot, struct tn_cursor *cursor, const struct tn_snapshot_options *options)
{
	struct tn_pickle_limits limits = tn__pickle_defaults();
	limits.depth = options->depth;
	limits.memo = options->memo;
	limits.string_bytes = options->string_bytes;
	TN_FORWARD_IF_ERROR(check_start(cursor));
	TN_FORWARD_IF_ERROR(tn__snapshot_build(snapshot, cursor, &limits));
	TN_FORWARD_IF_ERROR(tn__snapshot_find_user_frames(snapshot));
	tn__intern_freeze(&snapshot->strings);
	tn__intern_freeze(&snapshot->frames);
	tn__intern_freeze(&snapshot->stacks);
	tn__intern_freeze(&snapshot->contexts);
	return TN_OK;
}

/* The same from compressed bytes. Offsets in the words of a failure are those of the plain bytes, and say so; where
 * the compressed bytes are at fault, their own. */
static tn_status
fill_packed(struct tn_snapshot *snapshot, struct tn_cursor *packed, const struct tn_snapshot_options *options)
{
	char text[450];
	const char *name = tn__packed_with(packed);
	struct tn_unpacker *unpacker = NULL;
	struct tn_cursor plain;
	TN_FORWARD_IF_ERROR(tn__unpacker_new(packed, &snapshot->budget, options->unpack_ratio, &unpacker));
	tn__cursor_source(&plain, tn__unpack, unpacker, &snapshot->budget);
	tn_status status = fill_plain(snapshot, &plain, options);
	if (status == TN_OK)
		status = tn__unpack_rest(unpacker);
	if (status != TN_OK) {
		const char *why = tn__unpack_failure(unpacker);
		snprintf(text, sizeof(text), "%s", why ? why : tn_error_text());
		tn__fail(status, "%s%s%s%s", why ? "" : "decompressed from ", why ? "" : name, why ? "" : ": ", text);
	}
	tn__cursor_destroy(&plain);
	tn__unpacker_free(unpacker);
	return status;
}

static tn_status
fill(struct tn_snapshot *snapshot, struct tn_cursor *cursor, const struct tn_snapshot_options *options)
{
	TN_FORWARD_IF_ERROR(tn__cursor_fill(cursor, 4));
	return tn__packed_with(cursor) ? fill_packed(snapshot, cursor, options) : fill_plain(snapshot, cursor, options);
}

static tn_status
new_snapshot(const struct tn_snapshot_options *options, struct tn_snapshot **snapshot)
{
	struct tn_snapshot *fresh = calloc(1, sizeof(*fresh));
	TN_RETURN_IF(!fresh, TN_NO_MEMORY, "no host memory for a snapshot");
	fresh->budget.limit = options->memory_bytes;
	tn__intern_init(&fresh->strings, &fresh->budget);
	tn__intern_init(&fresh->frames, &fresh->budget);
	tn__intern_init(&fresh->stacks, &fresh->budget);
	tn__intern_init(&fresh->contexts, &fresh->budget);
	*snapshot = fresh;
	return TN_OK;
}

/* Reads what the cursor gives; a NULL source means that it has all its bytes. */
static tn_status
read_all(const void *bytes, size_t size, tn_snapshot_source source, void *context,
         const struct tn_snapshot_options *options, struct tn_snapshot **snapshot)
{
	struct tn_snapshot_options defaults = tn_snapshot_defaults();
	struct tn_snapshot *fresh = NULL;
	struct tn_cursor cursor;
	if (!options)
		options = &defaults;
	TN_FORWARD_IF_ERROR(new_snapshot(options, &fresh));
	if (source)
		tn__cursor_source(&cursor, source, context, &fresh->budget);
	else
		tn__cursor_memory(&cursor, bytes, size);
	tn_status status = fill(fresh, &cursor, options);
	tn__cursor_destroy(&cursor);
	if (status == TN_OK)
		*snapshot = fresh;
	else
		tn_snapshot_close(fresh);
	return status;
}

tn_status
tn_snapshot_parse(const void *bytes, size_t size, const struct tn_snapshot_options *options,
                  struct tn_snapshot **snapshot)
{
	return read_all(bytes, size, NULL, NULL, options, snapshot);
}

tn_status
tn_snapshot_read(tn_snapshot_source source, void *context, const struct tn_snapshot_options *options,
                 struct tn_snapshot **snapshot)
{
	return read_all(NULL, 0, source, context, options, snapshot);
}

/* A file as a source. It is read and not mapped: a mapped file that shrinks would end the process, and its pages would
 * count as our memory. */
static tn_status
read_file(void *context, void *buffer, size_t size, size_t *got)
{
	ssize_t count;
	do
		count = read(*(const int *)context, buffer, size);
	while (count < 0 && errno == EINTR);
	TN_RETURN_IF(count < 0, TN_IO, "reading failed: %s", strerror(errno));
	*got = (size_t)count;
	return TN_OK;
}

tn_status
tn_snapshot_open(const char *path, const struct tn_snapshot_options *options, struct tn_snapshot **snapshot)
{
	char text[400];
	int file = open(path, O_RDONLY | O_CLOEXEC);
	TN_RETURN_IF(file < 0, TN_IO, "cannot open %s: %s", path, strerror(errno));
	(void)posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
	tn_status status = tn_snapshot_read(read_file, &file, options, snapshot);
	close(file);
	if (status == TN_OK)
		return TN_OK;
	snprintf(text, sizeof(text), "%s", tn_error_text());
	return tn__fail(status, "%s: %s", path, text);
}

static void
destroy_events(struct tn_budget *budget, struct tn_events *events)
{
	tn__release(budget, &events->addresses, &events->capacities[0], sizeof(uint64_t));
	tn__release(budget, &events->sizes, &events->capacities[1], sizeof(uint64_t));
	tn__release(budget, &events->times, &events->capacities[2], sizeof(int64_t));
	tn__release(budget, &events->stacks, &events->capacities[3], sizeof(uint32_t));
	tn__release(budget, &events->contexts, &events->capacities[4], sizeof(uint32_t));
	tn__release(budget, &events->actions, &events->capacities[5], sizeof(uint8_t));
}

void
tn_snapshot_close(struct tn_snapshot *snapshot)
{
	if (!snapshot)
		return;
	tn__intern_destroy(&snapshot->strings);
	tn__intern_destroy(&snapshot->frames);
	tn__intern_destroy(&snapshot->stacks);
	tn__intern_destroy(&snapshot->contexts);
	destroy_events(&snapshot->budget, &snapshot->events);
	free(snapshot->frame_whose);
	free(snapshot->stack_user);
	free(snapshot->stack_outside);
	free(snapshot->traces);
	free(snapshot->segments);
	free(snapshot->blocks);
	free(snapshot->annotations);
	free(snapshot->settings);
	free(snapshot);
}

/* ---- looking ---- */

static const char *
text_or(const struct tn_snapshot *snapshot, uint32_t number, const char *missing)
{
	return number == TN_NO_NUMBER ? missing : tn__interned(&snapshot->strings, number);
}

size_t
tn_snapshot_stacks(const struct tn_snapshot *snapshot)
{
	return snapshot->stacks.count;
}

size_t
tn_snapshot_frames(const struct tn_snapshot *snapshot)
{
	return snapshot->frames.count;
}

size_t
tn_snapshot_stack(const struct tn_snapshot *snapshot, tn_stack stack, const uint32_t **frames)
{
	*frames = tn__interned(&snapshot->stacks, stack);
	return tn__interned_length(&snapshot->stacks, stack) / sizeof(**frames);
}

struct tn_frame
tn_snapshot_frame(const struct tn_snapshot *snapshot, uint32_t frame)
{
	const struct tn_frame_row *row = tn__interned(&snapshot->frames, frame);
	return (struct tn_frame){
		.function = text_or(snapshot, row->name, ""),
		.file = text_or(snapshot, row->file, ""),
		.line = row->line,
		.fx_node_op = text_or(snapshot, row->fx_node_op, NULL),
		.fx_node_name = text_or(snapshot, row->fx_node_name, NULL),
		.fx_original_trace = text_or(snapshot, row->fx_original_trace, NULL),
		.user = snapshot->frame_whose[frame] == TN_WHOSE_USER,
		.library = snapshot->frame_whose[frame] == TN_WHOSE_LIBRARY,
	};
}

bool
tn_snapshot_user_frame(const struct tn_snapshot *snapshot, tn_stack stack, uint32_t *frame)
{
	if (snapshot->stack_user[stack] == TN_NO_NUMBER)
		return false;
	*frame = snapshot->stack_user[stack];
	return true;
}

bool
tn_snapshot_outside_frame(const struct tn_snapshot *snapshot, tn_stack stack, uint32_t *frame)
{
	if (snapshot->stack_outside[stack] == TN_NO_NUMBER)
		return false;
	*frame = snapshot->stack_outside[stack];
	return true;
}

size_t
tn_snapshot_segments(const struct tn_snapshot *snapshot, const struct tn_segment **segments)
{
	*segments = snapshot->segments;
	return snapshot->segment_count;
}

size_t
tn_snapshot_blocks(const struct tn_snapshot *snapshot, const struct tn_block **blocks)
{
	*blocks = snapshot->blocks;
	return snapshot->block_count;
}

size_t
tn_snapshot_traces(const struct tn_snapshot *snapshot)
{
	return snapshot->trace_count;
}

int
tn_snapshot_trace_device(const struct tn_snapshot *snapshot, size_t trace)
{
	return snapshot->traces[trace].device;
}

size_t
tn_snapshot_events(const struct tn_snapshot *snapshot, size_t trace)
{
	return snapshot->traces[trace].count;
}

struct tn_event_columns
tn_snapshot_columns(const struct tn_snapshot *snapshot, size_t trace)
{
	const struct tn_events *events = &snapshot->events;
	size_t first = snapshot->traces[trace].first;
	if (snapshot->traces[trace].count == 0)
		return (struct tn_event_columns){ 0 };
	return (struct tn_event_columns){
		.count = snapshot->traces[trace].count,
		.addresses = events->addresses + first,
		.sizes = events->sizes + first,
		.times = events->times + first,
		.stacks = events->stacks + first,
		.actions = events->actions + first,
		.contexts = events->contexts + first,
	};
}

struct tn_event
tn_snapshot_context(const struct tn_snapshot *snapshot, uint32_t context)
{
	const struct tn_context_row *row = tn__interned(&snapshot->contexts, context);
	return (struct tn_event){
		.stream = row->stream,
		.pool = { row->pool[0], row->pool[1] },
		.compile_context = text_or(snapshot, row->compile_context, NULL),
		.user_metadata = text_or(snapshot, row->user_metadata, NULL),
	};
}

struct tn_event
tn_snapshot_event(const struct tn_snapshot *snapshot, size_t trace, size_t index)
{
	const struct tn_events *events = &snapshot->events;
	size_t row = snapshot->traces[trace].first + index;
	struct tn_event event = tn_snapshot_context(snapshot, events->contexts[row]);
	event.action = events->actions[row];
	event.address = events->addresses[row];
	event.size = events->sizes[row];
	event.time_us = events->times[row];
	event.stack = events->stacks[row];
	return event;
}

size_t
tn_snapshot_annotations(const struct tn_snapshot *snapshot, const struct tn_annotation **annotations)
{
	*annotations = snapshot->annotations;
	return snapshot->annotation_count;
}

size_t
tn_snapshot_settings(const struct tn_snapshot *snapshot, const struct tn_setting **settings)
{
	*settings = snapshot->settings;
	return snapshot->setting_count;
}

const char *
tn_snapshot_metadata(const struct tn_snapshot *snapshot, size_t *length)
{
	*length = snapshot->metadata == TN_NO_NUMBER ? 0 : tn__interned_length(&snapshot->strings, snapshot->metadata);
	return text_or(snapshot, snapshot->metadata, NULL);
}
