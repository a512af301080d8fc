/* SPDX-License-Identifier: Apache-2.0
 *
 * What a communicator takes from its device: a model (doc/design/0022-many-cards.md, "Memory of a communicator").
 */
#ifndef TN_NCCL_MEMORY_H
#define TN_NCCL_MEMORY_H

#include "vgpu/nccl/nccl_comm.h"

/* Takes what an operation needs and the communicator does not have yet: NCCL connects as an algorithm is first used. */
int tn__nccl_take_memory(const struct nccl_operation *operation);
/* How many bytes may lie between this rank and a peer, at most. */
uint64_t tn__nccl_peer_buffers(const struct nccl_comm *comm);
/* Gives back all that was taken. */
void tn__nccl_give_memory_back(const struct nccl_comm *comm);

#endif
