/* SPDX-License-Identifier: Apache-2.0 */
#include "vgpu/nccl/nccl_operation.h"

bool
tn__nccl_scatters(enum nccl_kind kind)
{
	return kind == NCCL_REDUCE_SCATTER || kind == NCCL_ALL_TO_ALL || kind == NCCL_SCATTER;
}

bool
tn__nccl_gathers(enum nccl_kind kind)
{
	return kind == NCCL_ALL_GATHER || kind == NCCL_ALL_TO_ALL || kind == NCCL_GATHER;
}

bool
tn__nccl_reduces(enum nccl_kind kind)
{
	return kind == NCCL_ALL_REDUCE || kind == NCCL_REDUCE || kind == NCCL_REDUCE_SCATTER;
}

size_t
tn__nccl_send_bytes(const struct nccl_operation *operation)
{
	return operation->bytes * (tn__nccl_scatters(operation->kind) ? (size_t)operation->comm->ranks : 1);
}

size_t
tn__nccl_receive_bytes(const struct nccl_operation *operation)
{
	return operation->bytes * (tn__nccl_gathers(operation->kind) ? (size_t)operation->comm->ranks : 1);
}

bool
tn__nccl_from_root(enum nccl_kind kind)
{
	return kind == NCCL_BROADCAST || kind == NCCL_SCATTER;
}

bool
tn__nccl_to_root(enum nccl_kind kind)
{
	return kind == NCCL_REDUCE || kind == NCCL_GATHER;
}

bool
tn__nccl_contributes(const struct nccl_operation *operation)
{
	return !tn__nccl_from_root(operation->kind) || operation->peer == operation->comm->rank;
}

bool
tn__nccl_receives(const struct nccl_operation *operation)
{
	return !tn__nccl_to_root(operation->kind) || operation->peer == operation->comm->rank;
}

bool
tn__nccl_needs(const struct nccl_comm *comm, int kind, int root, int from)
{
	if (tn__nccl_from_root((enum nccl_kind)kind))
		return from == root;
	return !tn__nccl_to_root((enum nccl_kind)kind) || root == comm->rank;
}
