/* SPDX-License-Identifier: Apache-2.0
 *
 * A capture begins on one stream, spreads to others that wait for an event recorded inside it, and ends on the first.
 * Rules as in the CUDA runtime documentation ("Stream Management", cudaStreamBeginCapture and following).
 */
#include "vgpu/core/graph_parts.h"

#include <stdlib.h>

struct tn_capture {
	uint64_t id;
	uintptr_t origin; /* stream handle */
	int device;       /* of the origin */
	enum tn_capture_mode mode;
	struct tn_graph *graph;
	bool invalidated;
};

static _Thread_local enum tn_capture_mode thread_mode = TN_CAPTURE_GLOBAL;

/* ---- capture ---- */

int
tn__capture_begin_to(uintptr_t stream_handle, uintptr_t graph_handle, enum tn_capture_mode mode)
{
	int result = TN_CUDA_OK;
	tn__lock();
	struct tn_stream *stream = tn__stream_locked(stream_handle);
	struct tn_graph *graph = graph_handle ? tn__graph_of(graph_handle) : NULL;
	struct tn_capture *capture = NULL;
	if (!stream || (graph_handle && !graph))
		result = TN_CUDA_INVALID_HANDLE;
	else if (stream->handle == 0)
		result = TN_CUDA_CAPTURE_UNSUPPORTED; /* the legacy default stream cannot be captured */
	else if (stream->capture)
		result = TN_CUDA_ILLEGAL_STATE;
	else if (!(capture = calloc(1, sizeof(*capture))) || !(graph = graph ? graph : tn__graph_new_locked()))
		result = TN_CUDA_OUT_OF_MEMORY;
	if (result == TN_CUDA_OK) {
		*capture = (struct tn_capture){ .id = ++tn__core.next_capture_id,
			                            .origin = stream_handle,
			                            .device = stream->device,
			                            .mode = mode,
			                            .graph = graph };
		stream->capture = capture;
		stream->last_node = 0;
	} else {
		free(capture);
	}
	tn__unlock();
	return result;
}

int
tn__capture_begin(uintptr_t stream, enum tn_capture_mode mode)
{
	return tn__capture_begin_to(stream, 0, mode);
}

int
tn__capture_add_locked(struct tn_stream *stream, const struct tn_node_description *work)
{
	uintptr_t node;
	int result = tn__graph_add_locked(stream->capture->graph, &stream->last_node, stream->last_node != 0, work, &node);
	if (result == TN_CUDA_OK)
		stream->last_node = node;
	return result;
}

/* A stream that waits for an event of a capture becomes part of it; one that is in it already gets a joining node. */
void
tn__capture_join_locked(struct tn_stream *stream, const struct tn_event *event)
{
	if (!stream->capture) {
		stream->capture = event->capture;
		stream->last_node = event->node;
		return;
	}
	if (!event->node || event->node == stream->last_node)
		return;
	uintptr_t after[2] = { event->node, stream->last_node }, node;
	if (tn__graph_add_locked(stream->capture->graph, after, stream->last_node ? 2 : 1,
	                         &(struct tn_node_description){ .kind = TN_NODE_EMPTY }, &node) == TN_CUDA_OK)
		stream->last_node = node;
}

static void
leave_capture(struct tn_capture *capture)
{
	for (size_t i = 0; i < tn__core.streams.count; i++) {
		struct tn_stream *stream = tn__core.streams.items[i];
		if (stream && stream->capture == capture) {
			stream->capture = NULL;
			stream->last_node = 0;
		}
	}
	for (size_t i = 0; i < tn__core.events.count; i++) {
		struct tn_event *event = tn__core.events.items[i];
		if (event && event->capture == capture) {
			event->capture = NULL;
			event->recorded = false;
		}
	}
}

void
tn__capture_forget_stream(struct tn_stream *stream)
{
	struct tn_capture *capture = stream->capture;
	if (!capture || capture->origin != stream->handle)
		return;
	leave_capture(capture);
	tn__graph_free_locked(capture->graph);
	free(capture);
}

int
tn__capture_end(uintptr_t stream_handle, uintptr_t *graph)
{
	int result = TN_CUDA_ILLEGAL_STATE;
	tn__lock();
	struct tn_stream *stream = tn__stream_locked(stream_handle);
	struct tn_capture *capture = stream ? stream->capture : NULL;
	if (capture && capture->origin != stream_handle) {
		result = TN_CUDA_CAPTURE_UNMATCHED;
	} else if (capture) {
		leave_capture(capture);
		result = capture->invalidated ? TN_CUDA_CAPTURE_INVALIDATED : TN_CUDA_OK;
		if (result == TN_CUDA_OK)
			*graph = capture->graph->handle;
		else
			tn__graph_free_locked(capture->graph);
		free(capture);
	}
	tn__unlock();
	return result;
}

int
tn__capture_info(uintptr_t stream_handle, struct tn_capture_info *info)
{
	*info = (struct tn_capture_info){ 0 };
	tn__lock();
	const struct tn_stream *stream = tn__stream_locked(stream_handle);
	if (stream && stream->capture)
		*info = (struct tn_capture_info){ .status = stream->capture->invalidated ? 2 : 1,
			                              .id = stream->capture->id,
			                              .graph = stream->capture->graph->handle,
			                              .last = stream->last_node };
	tn__unlock();
	return stream ? TN_CUDA_OK : TN_CUDA_INVALID_HANDLE;
}

enum tn_capture_mode
tn__capture_exchange_mode(enum tn_capture_mode mode)
{
	enum tn_capture_mode before = thread_mode;
	thread_mode = mode;
	return before;
}

int
tn__capture_set_dependencies(uintptr_t stream_handle, const uintptr_t *nodes, size_t count, bool add)
{
	int result = TN_CUDA_ILLEGAL_STATE;
	tn__lock();
	struct tn_stream *stream = tn__stream_locked(stream_handle);
	if (stream && stream->capture) {
		struct tn_edge_list after = { 0 };
		bool complete = true;
		for (size_t i = 0; i < count && complete; i++)
			complete = tn__edge_append(&after, nodes[i]);
		if (complete && add && stream->last_node)
			complete = tn__edge_append(&after, stream->last_node);
		result = complete ? TN_CUDA_OK : TN_CUDA_OUT_OF_MEMORY;
		if (complete && after.count == 1)
			stream->last_node = after.nodes[0];
		else if (complete && after.count > 1)
			result = tn__graph_add_locked(stream->capture->graph, after.nodes, after.count,
			                              &(struct tn_node_description){ .kind = TN_NODE_EMPTY }, &stream->last_node);
		free(after.nodes);
	}
	tn__unlock();
	return result;
}

bool
tn__stream_is_capturing(uintptr_t stream_handle)
{
	tn__lock();
	const struct tn_stream *stream = tn__stream_locked(stream_handle);
	bool capturing = stream && stream->capture;
	tn__unlock();
	return capturing;
}
