/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: nodes added by hand or by capture (capture.c), to be instantiated and launched (graph_exec.c). Nodes remember
 * what they are and how long they take.
 */
#include "vgpu/core/graph_parts.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

bool
tn__edge_append(struct tn_edge_list *list, uintptr_t node)
{
	if (!tn__array_room(&list->nodes, &list->capacity, list->count + 1, sizeof(*list->nodes), SIZE_MAX))
		return false;
	list->nodes[list->count++] = node;
	return true;
}

static void
drop(struct tn_edge_list *list, uintptr_t node)
{
	size_t kept = 0;
	for (size_t i = 0; i < list->count; i++)
		if (list->nodes[i] != node)
			list->nodes[kept++] = list->nodes[i];
	list->count = kept;
}

struct tn_node *
tn__node_of(uintptr_t handle)
{
	return tn__table_get(&tn__core.nodes, handle);
}

struct tn_graph *
tn__graph_of(uintptr_t handle)
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

int
tn__graph_add_locked(struct tn_graph *graph, const uintptr_t *after, size_t after_count,
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
		complete = tn__edge_append(&node->after, after[i]);
	node->handle = complete ? tn__table_add(&tn__core.nodes, node) : 0;
	if (!node->handle || !tn__edge_append(&graph->nodes, node->handle)) {
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
	struct tn_graph *graph = tn__graph_of(graph_handle);
	int result = graph ? tn__graph_add_locked(graph, after, after_count, about, node) : TN_CUDA_INVALID_VALUE;
	tn__unlock();
	return result;
}

int
tn__node_kind(uintptr_t handle, int *kind)
{
	tn__lock();
	const struct tn_node *node = tn__node_of(handle);
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
	const struct tn_node *node = tn__node_of(handle);
	size_t seen = 0;
	for (size_t i = 0; node && !dependents && i < node->after.count; i++)
		put(node->after.nodes[i], out, *count, &seen);
	for (size_t i = 0; node && dependents && i < node->graph->nodes.count; i++) {
		const struct tn_node *other = tn__node_of(node->graph->nodes.nodes[i]);
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
	const struct tn_node *node = tn__node_of(handle);
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
	struct tn_node *node = tn__node_of(handle);
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
	struct tn_node *node = tn__node_of(handle);
	if (node) {
		struct tn_graph *graph = node->graph;
		drop(&graph->nodes, handle);
		for (size_t i = 0; i < graph->nodes.count; i++)
			drop(&tn__node_of(graph->nodes.nodes[i])->after, handle);
		free_node(node);
	}
	tn__unlock();
	return node ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

/* ---- graphs ---- */

struct tn_graph *
tn__graph_new_locked(void)
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
	struct tn_graph *graph = tn__graph_new_locked();
	if (graph)
		*out = graph->handle;
	tn__unlock();
	return graph ? TN_CUDA_OK : TN_CUDA_OUT_OF_MEMORY;
}

void
tn__graph_free_locked(struct tn_graph *graph)
{
	tn__table_remove(&tn__core.graphs, graph->handle);
	for (size_t i = 0; i < graph->nodes.count; i++)
		free_node(tn__node_of(graph->nodes.nodes[i]));
	free(graph->nodes.nodes);
	free(graph);
}

int
tn__graph_destroy(uintptr_t handle)
{
	tn__lock();
	struct tn_graph *graph = tn__graph_of(handle);
	if (graph)
		tn__graph_free_locked(graph);
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
		result = tn__graph_add_locked(to, NULL, 0, &tn__node_of(from->nodes.nodes[i])->about, &copy);
	}
	for (size_t i = 0; i < from->nodes.count && result == TN_CUDA_OK; i++) {
		const struct tn_edge_list *after = &tn__node_of(from->nodes.nodes[i])->after;
		for (size_t k = 0; k < after->count; k++) {
			size_t index = position(from, after->nodes[k]);
			if (index < to->nodes.count &&
			    !tn__edge_append(&tn__node_of(to->nodes.nodes[i])->after, to->nodes.nodes[index]))
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
	const struct tn_graph *graph = tn__graph_of(handle);
	struct tn_graph *clone = graph ? tn__graph_new_locked() : NULL;
	if (clone) {
		result = clone_nodes(graph, clone);
		if (result == TN_CUDA_OK)
			*out = clone->handle;
		else
			tn__graph_free_locked(clone);
	}
	tn__unlock();
	return result;
}

int
tn__graph_nodes(uintptr_t handle, uintptr_t *out, size_t *count)
{
	tn__lock();
	const struct tn_graph *graph = tn__graph_of(handle);
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
	const struct tn_graph *graph = tn__graph_of(handle);
	size_t seen = 0;
	for (size_t i = 0; graph && i < graph->nodes.count; i++) {
		const struct tn_node *node = tn__node_of(graph->nodes.nodes[i]);
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
	if (!tn__graph_of(handle))
		result = TN_CUDA_INVALID_VALUE;
	for (size_t i = 0; i < count && result == TN_CUDA_OK; i++) {
		struct tn_node *node = tn__node_of(to[i]);
		if (!node || !tn__node_of(from[i]))
			result = TN_CUDA_INVALID_VALUE;
		else if (remove)
			drop(&node->after, from[i]);
		else if (!tn__edge_append(&node->after, from[i]))
			result = TN_CUDA_OUT_OF_MEMORY;
	}
	tn__unlock();
	return result;
}
