/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: nodes added by hand or by capture, instantiation, launch. Nodes remember what they are and how long they take;
 * launching puts the sum on the stream.
 *
 * A capture begins on one stream, spreads to others that wait for an event recorded inside it, and ends on the first.
 * Rules as in the CUDA runtime documentation ("Stream Management", cudaStreamBeginCapture and following).
 */
#include "vgpu/core/state.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

struct edge_list {
	uintptr_t *nodes;
	size_t count, capacity;
};

struct tn_node {
	uintptr_t handle;
	struct tn_graph *graph;
	struct tn_node_description about;
	struct edge_list after; /* dependencies */
};

struct tn_graph {
	uintptr_t handle;
	struct edge_list nodes;
};

struct tn_capture {
	uint64_t id;
	uintptr_t origin; /* stream handle */
	int device;       /* of the origin */
	enum tn_capture_mode mode;
	struct tn_graph *graph;
	bool invalidated;
};


struct tn_executable {
	uint64_t duration;
	struct tn_work work;
	size_t node_count, kernel_count, host_count;
	struct tn_kernel **kernels;
	struct tn_node_description *host; /* host functions, in order */
};

static _Thread_local enum tn_capture_mode thread_mode = TN_CAPTURE_GLOBAL;

static bool
append(struct edge_list *list, uintptr_t node)
{
	if (!tn__array_room(&list->nodes, &list->capacity, list->count + 1, sizeof(*list->nodes), SIZE_MAX))
		return false;
	list->nodes[list->count++] = node;
	return true;
}

static void
drop(struct edge_list *list, uintptr_t node)
{
	size_t kept = 0;
	for (size_t i = 0; i < list->count; i++)
		if (list->nodes[i] != node)
			list->nodes[kept++] = list->nodes[i];
	list->count = kept;
}

static struct tn_node *
node_of(uintptr_t handle)
{
	return tn__table_get(&tn__core.nodes, handle);
}

static struct tn_graph *
graph_of(uintptr_t handle)
{
	return tn__table_get(&tn__core.graphs, handle);
}

/* ---- nodes ---- */

static void
free_node(struct tn_node *node)
{
	tn__table_remove(&tn__core.nodes, node->handle);
	free((void *)(uintptr_t)node->about.parameters);
	free(node->after.nodes);
	free(node);
}

static int
add_locked(struct tn_graph *graph, const uintptr_t *after, size_t after_count,
           const struct tn_node_description *about, uintptr_t *out)
{
	struct tn_node *node = calloc(1, sizeof(*node));
	if (!node)
		return TN_CUDA_OUT_OF_MEMORY;
	node->graph = graph;
	node->about = *about;
	bool complete = true;
	if (about->parameters) {
		void *copy = malloc(about->parameter_bytes);
		complete = copy != NULL;
		if (copy)
			memcpy(copy, about->parameters, about->parameter_bytes);
		node->about.parameters = copy;
	}
	for (size_t i = 0; i < after_count && complete; i++)
		complete = append(&node->after, after[i]);
	node->handle = complete ? tn__table_add(&tn__core.nodes, node) : 0;
	if (!node->handle || !append(&graph->nodes, node->handle)) {
		free_node(node);
		return TN_CUDA_OUT_OF_MEMORY;
	}
	*out = node->handle;
	return TN_CUDA_OK;
}

int
tn__graph_add(uintptr_t graph_handle, const uintptr_t *after, size_t after_count,
              const struct tn_node_description *about, uintptr_t *node)
{
	tn__lock();
	struct tn_graph *graph = graph_of(graph_handle);
	int result = graph ? add_locked(graph, after, after_count, about, node) : TN_CUDA_INVALID_VALUE;
	tn__unlock();
	return result;
}

int
tn__node_kind(uintptr_t handle, int *kind)
{
	tn__lock();
	const struct tn_node *node = node_of(handle);
	if (node)
		*kind = (int)node->about.kind;
	tn__unlock();
	return node ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

/* Copies handles out as CUDA's list queries do: with a null array only the count is answered. */
static void
put(uintptr_t handle, uintptr_t *out, size_t room, size_t *seen)
{
	if (out && *seen < room)
		out[*seen] = handle;
	(*seen)++;
}

int
tn__node_dependencies(uintptr_t handle, uintptr_t *out, size_t *count, bool dependents)
{
	tn__lock();
	const struct tn_node *node = node_of(handle);
	size_t seen = 0;
	for (size_t i = 0; node && !dependents && i < node->after.count; i++)
		put(node->after.nodes[i], out, *count, &seen);
	for (size_t i = 0; node && dependents && i < node->graph->nodes.count; i++) {
		const struct tn_node *other = node_of(node->graph->nodes.nodes[i]);
		for (size_t k = 0; k < other->after.count; k++)
			if (other->after.nodes[k] == handle)
				put(other->handle, out, *count, &seen);
	}
	*count = seen;
	tn__unlock();
	return node ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

int
tn__node_parameters(uintptr_t handle, void *parameters, size_t bytes)
{
	tn__lock();
	const struct tn_node *node = node_of(handle);
	bool known = node && node->about.parameters && node->about.parameter_bytes <= bytes;
	if (known)
		memcpy(parameters, node->about.parameters, node->about.parameter_bytes);
	tn__unlock();
	return known ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

int
tn__node_set_parameters(uintptr_t handle, const void *parameters, size_t bytes)
{
	tn__lock();
	struct tn_node *node = node_of(handle);
	bool known = node && node->about.parameters && node->about.parameter_bytes == bytes;
	if (known)
		memcpy((void *)(uintptr_t)node->about.parameters, parameters, bytes);
	tn__unlock();
	return known ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

int
tn__node_destroy(uintptr_t handle)
{
	tn__lock();
	struct tn_node *node = node_of(handle);
	if (node) {
		struct tn_graph *graph = node->graph;
		drop(&graph->nodes, handle);
		for (size_t i = 0; i < graph->nodes.count; i++)
			drop(&node_of(graph->nodes.nodes[i])->after, handle);
		free_node(node);
	}
	tn__unlock();
	return node ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

/* ---- graphs ---- */

static struct tn_graph *
new_graph(void)
{
	struct tn_graph *graph = calloc(1, sizeof(*graph));
	if (graph)
		graph->handle = tn__table_add(&tn__core.graphs, graph);
	if (graph && !graph->handle) {
		free(graph);
		return NULL;
	}
	return graph;
}

int
tn__graph_create(uintptr_t *out)
{
	tn__lock();
	struct tn_graph *graph = new_graph();
	if (graph)
		*out = graph->handle;
	tn__unlock();
	return graph ? TN_CUDA_OK : TN_CUDA_OUT_OF_MEMORY;
}

static void
destroy_graph(struct tn_graph *graph)
{
	tn__table_remove(&tn__core.graphs, graph->handle);
	for (size_t i = 0; i < graph->nodes.count; i++)
		free_node(node_of(graph->nodes.nodes[i]));
	free(graph->nodes.nodes);
	free(graph);
}

int
tn__graph_destroy(uintptr_t handle)
{
	tn__lock();
	struct tn_graph *graph = graph_of(handle);
	if (graph)
		destroy_graph(graph);
	tn__unlock();
	return graph ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

static size_t
position(const struct tn_graph *graph, uintptr_t node)
{
	size_t i = 0;
	while (i < graph->nodes.count && graph->nodes.nodes[i] != node)
		i++;
	return i;
}

static int
clone_nodes(const struct tn_graph *from, struct tn_graph *to)
{
	int result = TN_CUDA_OK;
	for (size_t i = 0; i < from->nodes.count && result == TN_CUDA_OK; i++) {
		uintptr_t copy;
		result = add_locked(to, NULL, 0, &node_of(from->nodes.nodes[i])->about, &copy);
	}
	for (size_t i = 0; i < from->nodes.count && result == TN_CUDA_OK; i++) {
		const struct edge_list *after = &node_of(from->nodes.nodes[i])->after;
		for (size_t k = 0; k < after->count; k++) {
			size_t index = position(from, after->nodes[k]);
			if (index < to->nodes.count && !append(&node_of(to->nodes.nodes[i])->after, to->nodes.nodes[index]))
				result = TN_CUDA_OUT_OF_MEMORY;
		}
	}
	return result;
}

int
tn__graph_clone(uintptr_t handle, uintptr_t *out)
{
	int result = TN_CUDA_INVALID_VALUE;
	tn__lock();
	const struct tn_graph *graph = graph_of(handle);
	struct tn_graph *clone = graph ? new_graph() : NULL;
	if (clone) {
		result = clone_nodes(graph, clone);
		if (result == TN_CUDA_OK)
			*out = clone->handle;
		else
			destroy_graph(clone);
	}
	tn__unlock();
	return result;
}

int
tn__graph_nodes(uintptr_t handle, uintptr_t *out, size_t *count)
{
	tn__lock();
	const struct tn_graph *graph = graph_of(handle);
	size_t seen = 0;
	for (size_t i = 0; graph && i < graph->nodes.count; i++)
		put(graph->nodes.nodes[i], out, *count, &seen);
	*count = seen;
	tn__unlock();
	return graph ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

int
tn__graph_edges(uintptr_t handle, uintptr_t *from, uintptr_t *to, size_t *count)
{
	tn__lock();
	const struct tn_graph *graph = graph_of(handle);
	size_t seen = 0;
	for (size_t i = 0; graph && i < graph->nodes.count; i++) {
		const struct tn_node *node = node_of(graph->nodes.nodes[i]);
		for (size_t k = 0; k < node->after.count; k++) {
			size_t same = seen;
			put(node->after.nodes[k], from, *count, &same);
			put(node->handle, to, *count, &seen);
		}
	}
	*count = seen;
	tn__unlock();
	return graph ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

int
tn__graph_add_edges(uintptr_t handle, const uintptr_t *from, const uintptr_t *to, size_t count, bool remove)
{
	int result = TN_CUDA_OK;
	tn__lock();
	if (!graph_of(handle))
		result = TN_CUDA_INVALID_VALUE;
	for (size_t i = 0; i < count && result == TN_CUDA_OK; i++) {
		struct tn_node *node = node_of(to[i]);
		if (!node || !node_of(from[i]))
			result = TN_CUDA_INVALID_VALUE;
		else if (remove)
			drop(&node->after, from[i]);
		else if (!append(&node->after, from[i]))
			result = TN_CUDA_OUT_OF_MEMORY;
	}
	tn__unlock();
	return result;
}

/* ---- executables ---- */

static bool
fill_executable(struct tn_executable *executable, const struct tn_graph *graph)
{
	for (size_t i = 0; i < graph->nodes.count; i++) {
		const struct tn_node_description *about = &node_of(graph->nodes.nodes[i])->about;
		const struct tn_graph *child = about->kind == TN_NODE_GRAPH ? graph_of(about->child) : NULL;
		executable->duration += about->duration;
		tn__work_add(&executable->work, &about->effort);
		executable->node_count++;
		if (about->kernel)
			executable->kernels[executable->kernel_count++] = about->kernel;
		if (about->host_function)
			executable->host[executable->host_count++] = *about;
		if (child && !fill_executable(executable, child))
			return false;
	}
	return true;
}

static size_t
total_nodes(const struct tn_graph *graph, int depth)
{
	size_t total = graph->nodes.count;
	for (size_t i = 0; i < graph->nodes.count && depth < 16; i++) {
		const struct tn_node_description *about = &node_of(graph->nodes.nodes[i])->about;
		const struct tn_graph *child = about->kind == TN_NODE_GRAPH ? graph_of(about->child) : NULL;
		if (child)
			total += total_nodes(child, depth + 1);
	}
	return total;
}

static void
empty_executable(struct tn_executable *executable)
{
	free(executable->kernels);
	free(executable->host);
	*executable = (struct tn_executable){0};
}

static int
build_executable(struct tn_executable *executable, const struct tn_graph *graph)
{
	size_t total = total_nodes(graph, 0) + 1;
	executable->kernels = calloc(total, sizeof(*executable->kernels));
	executable->host = calloc(total, sizeof(*executable->host));
	if (!executable->kernels || !executable->host) {
		empty_executable(executable);
		return TN_CUDA_OUT_OF_MEMORY;
	}
	fill_executable(executable, graph);
	return TN_CUDA_OK;
}

int
tn__graph_instantiate(uintptr_t handle, uintptr_t *out)
{
	int result = TN_CUDA_INVALID_VALUE;
	tn__lock();
	const struct tn_graph *graph = graph_of(handle);
	struct tn_executable *executable = graph ? calloc(1, sizeof(*executable)) : NULL;
	if (executable)
		result = build_executable(executable, graph);
	uintptr_t made = result == TN_CUDA_OK ? tn__table_add(&tn__core.executables, executable) : 0;
	if (made) {
		*out = made;
	} else if (executable) {
		empty_executable(executable);
		free(executable);
		result = TN_CUDA_OUT_OF_MEMORY;
	}
	tn__unlock();
	return result;
}

int
tn__graph_update(uintptr_t handle, uintptr_t graph_handle, bool *same)
{
	int result = TN_CUDA_INVALID_VALUE;
	tn__lock();
	struct tn_executable *executable = tn__table_get(&tn__core.executables, handle);
	const struct tn_graph *graph = graph_of(graph_handle);
	if (executable && graph) {
		*same = executable->node_count == total_nodes(graph, 0);
		result = TN_CUDA_OK;
		if (*same) {
			empty_executable(executable);
			result = build_executable(executable, graph);
		}
	}
	tn__unlock();
	return result;
}

int
tn__graph_exec_destroy(uintptr_t handle)
{
	tn__lock();
	struct tn_executable *executable = tn__table_remove(&tn__core.executables, handle);
	tn__unlock();
	if (!executable)
		return TN_CUDA_INVALID_VALUE;
	empty_executable(executable);
	free(executable);
	return TN_CUDA_OK;
}

int
tn__graph_launch(uintptr_t handle, uintptr_t stream_handle)
{
	int result = TN_CUDA_INVALID_VALUE;
	tn__lock();
	const struct tn_executable *executable = tn__table_get(&tn__core.executables, handle);
	struct tn_stream *stream = tn__stream_locked(stream_handle);
	size_t host_count = 0;
	struct tn_node_description *host = NULL;
	if (executable && stream) {
		for (size_t i = 0; i < executable->kernel_count; i++)
			executable->kernels[i]->launches++;
		atomic_fetch_add(&tn__core.ledger->launches, executable->kernel_count);
		tn__values_forget();
		result = tn__enqueue_locked(
			stream, &(struct tn_node_description){.kind = TN_NODE_GRAPH, .duration = executable->duration});
		tn__work_count_graph_locked(&executable->work);
		host_count = executable->host_count;
		host = host_count ? malloc(host_count * sizeof(*host)) : NULL;
		if (host)
			memcpy(host, executable->host, host_count * sizeof(*host));
	}
	tn__unlock();
	for (size_t i = 0; host && i < host_count; i++)
		host[i].host_function(host[i].host_argument);
	free(host);
	return result;
}

/* ---- capture ---- */

int
tn__capture_begin_to(uintptr_t stream_handle, uintptr_t graph_handle, enum tn_capture_mode mode)
{
	int result = TN_CUDA_OK;
	tn__lock();
	struct tn_stream *stream = tn__stream_locked(stream_handle);
	struct tn_graph *graph = graph_handle ? graph_of(graph_handle) : NULL;
	struct tn_capture *capture = NULL;
	if (!stream || (graph_handle && !graph))
		result = TN_CUDA_INVALID_HANDLE;
	else if (stream->handle == 0)
		result = TN_CUDA_CAPTURE_UNSUPPORTED; /* the legacy default stream cannot be captured */
	else if (stream->capture)
		result = TN_CUDA_ILLEGAL_STATE;
	else if (!(capture = calloc(1, sizeof(*capture))) || !(graph = graph ? graph : new_graph()))
		result = TN_CUDA_OUT_OF_MEMORY;
	if (result == TN_CUDA_OK) {
		*capture = (struct tn_capture){.id = ++tn__core.next_capture_id,
		                               .origin = stream_handle,
		                               .device = stream->device,
		                               .mode = mode,
		                               .graph = graph};
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
	int result = add_locked(stream->capture->graph, &stream->last_node, stream->last_node != 0, work, &node);
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
	uintptr_t after[2] = {event->node, stream->last_node}, node;
	if (add_locked(stream->capture->graph, after, stream->last_node ? 2 : 1,
	               &(struct tn_node_description){.kind = TN_NODE_EMPTY}, &node) == TN_CUDA_OK)
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
	destroy_graph(capture->graph);
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
			destroy_graph(capture->graph);
		free(capture);
	}
	tn__unlock();
	return result;
}

int
tn__capture_info(uintptr_t stream_handle, struct tn_capture_info *info)
{
	*info = (struct tn_capture_info){0};
	tn__lock();
	const struct tn_stream *stream = tn__stream_locked(stream_handle);
	if (stream && stream->capture)
		*info = (struct tn_capture_info){.status = stream->capture->invalidated ? 2 : 1,
		                                 .id = stream->capture->id,
		                                 .graph = stream->capture->graph->handle,
		                                 .last = stream->last_node};
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
		struct edge_list after = {0};
		bool complete = true;
		for (size_t i = 0; i < count && complete; i++)
			complete = append(&after, nodes[i]);
		if (complete && add && stream->last_node)
			complete = append(&after, stream->last_node);
		result = complete ? TN_CUDA_OK : TN_CUDA_OUT_OF_MEMORY;
		if (complete && after.count == 1)
			stream->last_node = after.nodes[0];
		else if (complete && after.count > 1)
			result = add_locked(stream->capture->graph, after.nodes, after.count,
			                    &(struct tn_node_description){.kind = TN_NODE_EMPTY}, &stream->last_node);
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
