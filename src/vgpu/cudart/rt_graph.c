/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime: graphs built by hand, queried, instantiated and launched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cudart/rt.h"
#include "vgpu/cudart/rt_user_objects.h"

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
	uintptr_t handle;
	RT_ENTER();
	if (!graph)
		return rt(cudaErrorInvalidValue);
	int result = tn__graph_create(&handle);
	if (result == TN_CUDA_OK)
		*graph = (cudaGraph_t)handle;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphClone(cudaGraph_t *clone, cudaGraph_t original)
{
	uintptr_t handle;
	if (!clone)
		return rt(cudaErrorInvalidValue);
	int result = tn__graph_clone(rt_handle(original), &handle);
	if (result == TN_CUDA_OK)
		*clone = (cudaGraph_t)handle;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphDestroy(cudaGraph_t graph)
{
	int result = tn__graph_destroy(rt_handle(graph));
	tn__rt_release_objects(graph);
	return rt(result);
}

/* ---- executables ---- */

static cudaError_t
instantiate(cudaGraphExec_t *out, cudaGraph_t graph)
{
	uintptr_t handle;
	RT_ENTER();
	if (!out)
		return rt(cudaErrorInvalidValue);
	int result = tn__graph_instantiate(rt_handle(graph), &handle);
	if (result == TN_CUDA_OK) {
		*out = (cudaGraphExec_t)handle;
		tn__rt_share_objects(*out, graph);
	}
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags)
{
	return instantiate(executable, graph);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags)
{
	return instantiate(executable, graph);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphInstantiateWithParams(cudaGraphExec_t *executable, cudaGraph_t graph, cudaGraphInstantiateParams *parameters)
{
	cudaError_t result = instantiate(executable, graph);
	if (parameters) {
		parameters->result_out = result == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
		parameters->errNode_out = NULL;
	}
	return result;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphExecDestroy(cudaGraphExec_t executable)
{
	int result = tn__graph_exec_destroy(rt_handle(executable));
	tn__rt_release_objects(executable);
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *about)
{
	bool same = false;
	int result = tn__graph_update(rt_handle(executable), rt_handle(graph), &same);
	if (about) {
		memset(about, 0, sizeof(*about));
		about->result = same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
	}
	if (result == TN_CUDA_OK && !same)
		return rt(cudaErrorGraphExecUpdateFailure);
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
	RT_ENTER();
	return rt(tn__graph_launch(rt_handle(executable), rt_handle(stream)));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream)
{
	return cudaSuccess;
}

/* ---- nodes ---- */

static cudaError_t
add_node(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
         const struct tn_node_description *about)
{
	uintptr_t node;
	RT_ENTER();
	if (!out)
		return rt(cudaErrorInvalidValue);
	int result = tn__graph_add(rt_handle(graph), (const uintptr_t *)after, count, about, &node);
	if (result == TN_CUDA_OK)
		*out = (cudaGraphNode_t)node;
	return rt(result);
}

static uint64_t
kernel_time(dim3 grid, dim3 block)
{
	return tn__time_of_bytes((uint64_t)grid.x * grid.y * grid.z * block.x * block.y * block.z * 16);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                       const struct cudaKernelNodeParams *p)
{
	struct tn_kernel *kernel = p ? tn__kernel_find(p->func) : NULL;
	if (!kernel)
		return rt(cudaErrorInvalidDeviceFunction);
	return add_node(node, graph, after, count,
	                &(struct tn_node_description){ .kind = TN_NODE_KERNEL,
	                                               .kernel = kernel,
	                                               .duration = kernel_time(p->gridDim, p->blockDim),
	                                               .parameters = p,
	                                               .parameter_bytes = sizeof(*p) });
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                       const struct cudaMemcpy3DParms *p)
{
	if (!p)
		return rt(cudaErrorInvalidValue);
	uint64_t bytes = (uint64_t)p->extent.width * p->extent.height * p->extent.depth;
	return add_node(node, graph, after, count,
	                &(struct tn_node_description){ .kind = TN_NODE_MEMCPY,
	                                               .duration = tn__time_of_bytes(2 * bytes),
	                                               .parameters = p,
	                                               .parameter_bytes = sizeof(*p) });
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                       const struct cudaMemsetParams *p)
{
	if (!p)
		return rt(cudaErrorInvalidValue);
	return add_node(
		node, graph, after, count,
		&(struct tn_node_description){ .kind = TN_NODE_MEMSET,
	                                   .duration = tn__time_of_bytes((uint64_t)p->width * p->height * p->elementSize),
	                                   .parameters = p,
	                                   .parameter_bytes = sizeof(*p) });
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                     const struct cudaHostNodeParams *p)
{
	if (!p || !p->fn)
		return rt(cudaErrorInvalidValue);
	return add_node(node, graph, after, count,
	                &(struct tn_node_description){ .kind = TN_NODE_HOST,
	                                               .host_function = p->fn,
	                                               .host_argument = p->userData,
	                                               .parameters = p,
	                                               .parameter_bytes = sizeof(*p) });
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count)
{
	return add_node(node, graph, after, count, &(struct tn_node_description){ .kind = TN_NODE_EMPTY });
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                           cudaGraph_t child)
{
	uintptr_t clone;
	int result = tn__graph_clone(rt_handle(child), &clone);
	if (result != TN_CUDA_OK)
		return rt(result);
	return add_node(node, graph, after, count, &(struct tn_node_description){ .kind = TN_NODE_GRAPH, .child = clone });
}

#define NODE_PARAMETERS(structure, get, set)                                        \
	TN_EXPORT cudaError_t CUDARTAPI get(cudaGraphNode_t node, structure *p)         \
	{                                                                               \
		return rt(p ? tn__node_parameters(rt_handle(node), p, sizeof(*p)) : 1);     \
	}                                                                               \
	TN_EXPORT cudaError_t CUDARTAPI set(cudaGraphNode_t node, const structure *p)   \
	{                                                                               \
		return rt(p ? tn__node_set_parameters(rt_handle(node), p, sizeof(*p)) : 1); \
	}

NODE_PARAMETERS(struct cudaKernelNodeParams, cudaGraphKernelNodeGetParams, cudaGraphKernelNodeSetParams)
NODE_PARAMETERS(struct cudaMemcpy3DParms, cudaGraphMemcpyNodeGetParams, cudaGraphMemcpyNodeSetParams)
NODE_PARAMETERS(struct cudaMemsetParams, cudaGraphMemsetNodeGetParams, cudaGraphMemsetNodeSetParams)
NODE_PARAMETERS(struct cudaHostNodeParams, cudaGraphHostNodeGetParams, cudaGraphHostNodeSetParams)

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, const struct cudaKernelNodeParams *p)
{
	return executable && node && p ? cudaSuccess : rt(cudaErrorInvalidValue);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphDestroyNode(cudaGraphNode_t node)
{
	return rt(tn__node_destroy(rt_handle(node)));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
	int kind;
	if (!type)
		return rt(cudaErrorInvalidValue);
	int result = tn__node_kind(rt_handle(node), &kind);
	if (result == TN_CUDA_OK)
		*type = (enum cudaGraphNodeType)kind;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	return rt(count ? tn__graph_nodes(rt_handle(graph), (uintptr_t *)nodes, count) : cudaErrorInvalidValue);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	size_t total = 0, roots = 0;
	if (!count)
		return rt(cudaErrorInvalidValue);
	int result = tn__graph_nodes(rt_handle(graph), NULL, &total);
	uintptr_t *all = result == TN_CUDA_OK ? calloc(total + 1, sizeof(*all)) : NULL;
	if (!all)
		return rt(result == TN_CUDA_OK ? cudaErrorMemoryAllocation : result);
	tn__graph_nodes(rt_handle(graph), all, &total);
	for (size_t i = 0; i < total; i++) {
		size_t before = 0;
		tn__node_dependencies(all[i], NULL, &before, false);
		if (before)
			continue;
		if (nodes && roots < *count)
			nodes[roots] = (cudaGraphNode_t)all[i];
		roots++;
	}
	free(all);
	*count = roots;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
	size_t count = 0;
	FILE *file = path ? fopen(path, "we") : NULL;
	if (!file)
		return rt(cudaErrorOperatingSystem);
	tn__graph_nodes(rt_handle(graph), NULL, &count);
	fprintf(file, "digraph virtual { label=\"%zu nodes\" }\n", count);
	fclose(file);
	return cudaSuccess;
}

/* ---- edges: CUDA 13 has a parameter for edge data, 12 has separate functions ---- */

static cudaError_t
edges_of(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data, size_t *count)
{
	size_t room = count ? *count : 0;
	if (!count)
		return rt(cudaErrorInvalidValue);
	int result = tn__graph_edges(rt_handle(graph), (uintptr_t *)from, (uintptr_t *)to, count);
	if (data)
		memset(data, 0, (room < *count ? room : *count) * sizeof(*data));
	return rt(result);
}

static cudaError_t
neighbours(cudaGraphNode_t node, cudaGraphNode_t *out, cudaGraphEdgeData *data, size_t *count, bool dependents)
{
	size_t room = count ? *count : 0;
	if (!count)
		return rt(cudaErrorInvalidValue);
	int result = tn__node_dependencies(rt_handle(node), (uintptr_t *)out, count, dependents);
	if (data)
		memset(data, 0, (room < *count ? room : *count) * sizeof(*data));
	return rt(result);
}

static cudaError_t
change_edges(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count, bool remove)
{
	return rt(tn__graph_add_edges(rt_handle(graph), (const uintptr_t *)from, (const uintptr_t *)to, count, remove));
}

static cudaError_t
add_any_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
             struct cudaGraphNodeParams *p)
{
	if (!p)
		return rt(cudaErrorInvalidValue);
	struct tn_node_description about = { .kind = (enum tn_node_kind)p->type };
	if (p->type == cudaGraphNodeTypeKernel) {
		about.kernel = tn__kernel_find(p->kernel.func);
		about.duration = kernel_time(p->kernel.gridDim, p->kernel.blockDim);
	}
	return add_node(node, graph, after, count, &about);
}

#if TN_CUDA_MAJOR >= 13
#define EDGE_DATA , cudaGraphEdgeData *data
#define CONST_EDGE_DATA , const cudaGraphEdgeData *data
#define DATA data
#else
#define EDGE_DATA
#define CONST_EDGE_DATA
#define DATA NULL
#endif

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to EDGE_DATA, size_t *count)
{
	return edges_of(graph, from, to, DATA, count);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *out EDGE_DATA, size_t *count)
{
	return neighbours(node, out, DATA, count, false);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *out EDGE_DATA, size_t *count)
{
	return neighbours(node, out, DATA, count, true);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to CONST_EDGE_DATA,
                         size_t count)
{
	return change_edges(graph, from, to, count, false);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to CONST_EDGE_DATA,
                            size_t count)
{
	return change_edges(graph, from, to, count, true);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after CONST_EDGE_DATA, size_t count,
                 struct cudaGraphNodeParams *p)
{
	return add_any_node(node, graph, after, count, p);
}

#if TN_CUDA_MAJOR < 13
TN_EXPORT cudaError_t CUDARTAPI
cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data,
                     size_t *count)
{
	return edges_of(graph, from, to, data, count);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *out, cudaGraphEdgeData *data, size_t *count)
{
	return neighbours(node, out, data, count, false);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t *out, cudaGraphEdgeData *data, size_t *count)
{
	return neighbours(node, out, data, count, true);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                            const cudaGraphEdgeData *data, size_t count)
{
	return change_edges(graph, from, to, count, false);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                               const cudaGraphEdgeData *data, size_t count)
{
	return change_edges(graph, from, to, count, true);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                    const cudaGraphEdgeData *data, size_t count, struct cudaGraphNodeParams *p)
{
	return add_any_node(node, graph, after, count, p);
}
#endif
