/* SPDX-License-Identifier: Apache-2.0
 *
 * What graphs, captures and executables share of each other's parts. All of it is called with the core locked.
 */
#ifndef TN_VGPU_GRAPH_PARTS_H
#define TN_VGPU_GRAPH_PARTS_H

#include "vgpu/core/state.h"

struct tn_edge_list {
	uintptr_t *nodes;
	size_t count, capacity;
};

struct tn_node {
	uintptr_t handle;
	struct tn_graph *graph;
	struct tn_node_description about;
	struct tn_edge_list after; /* dependencies */
};

struct tn_graph {
	uintptr_t handle;
	struct tn_edge_list nodes;
};

/* The node or graph of a handle; NULL when there is none. */
struct tn_node *tn__node_of(uintptr_t handle);
struct tn_graph *tn__graph_of(uintptr_t handle);

bool tn__edge_append(struct tn_edge_list *list, uintptr_t node);

/* NULL when memory is short. */
struct tn_graph *tn__graph_new_locked(void);
void tn__graph_free_locked(struct tn_graph *graph);
int tn__graph_add_locked(struct tn_graph *graph, const uintptr_t *after, size_t after_count,
                         const struct tn_node_description *about, uintptr_t *out);

#endif
