/* SPDX-License-Identifier: Apache-2.0
 *
 * Executable graphs: instantiation, update, launch. Launching puts the sum of the nodes on the stream.
 */
#include "vgpu/core/graph_parts.h"

#include <stdlib.h>
#include <string.h>

struct tn_executable {
	uint64_t duration;
	struct tn_work work;
	size_t node_count, kernel_count, host_count;
	struct tn_kernel **kernels;
	struct tn_node_description *host; /* host functions, in order */
};

/* ---- executables ---- */

static bool
fill_executable(struct tn_executable *executable, const struct tn_graph *graph)
{
	for (size_t i = 0; i < graph->nodes.count; i++) {
		const struct tn_node_description *about = &tn__node_of(graph->nodes.nodes[i])->about;
		const struct tn_graph *child = about->kind == TN_NODE_GRAPH ? tn__graph_of(about->child) : NULL;
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
		const struct tn_node_description *about = &tn__node_of(graph->nodes.nodes[i])->about;
		const struct tn_graph *child = about->kind == TN_NODE_GRAPH ? tn__graph_of(about->child) : NULL;
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
	*executable = (struct tn_executable){ 0 };
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
	const struct tn_graph *graph = tn__graph_of(handle);
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
	const struct tn_graph *graph = tn__graph_of(graph_handle);
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
			stream, &(struct tn_node_description){ .kind = TN_NODE_GRAPH, .duration = executable->duration });
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
