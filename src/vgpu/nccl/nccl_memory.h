/* SPDX-License-Identifier: Apache-2.0
 *
 * What a communicator takes from its device: a model (doc/design/0022-many-cards.md, "Memory of a communicator").
 */
#ifndef TN_NCCL_MEMORY_H
#define TN_NCCL_MEMORY_H

#include "vgpu/nccl/nccl_comm.h"

/* Bytes that the rings of a communicator take, and those for sending to and receiving from one peer. */
uint64_t tn__nccl_ring_bytes(const struct nccl_comm *comm);
uint64_t tn__nccl_peer_bytes(const struct nccl_comm *comm);

#endif
