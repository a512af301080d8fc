/* SPDX-License-Identifier: Apache-2.0
 *
 * Gates: numbers that name the collectives of a communicator, its receives from one rank, or its sends to one. The core keeps them with
 * streams, events and pending values, and asks by them to wait (core.h). A communicator may be gone by then: its gates
 * are open.
 *
 * A gate is made of generation, row and peer. The table of rows has its own lock, which is not held while somebody waits.
 */
#ifndef TN_NCCL_GATE_H
#define TN_NCCL_GATE_H

#include "vgpu/nccl/nccl_ranks.h"

/* `peer` of the sends to rank 0, and so on; no communicator has as many ranks. */
#define NCCL_SENDS_TO 32768

/* Waits for a communicator's operations up to a number: receives from `peer`, or, where it is -1, collectives, or, from NCCL_SENDS_TO
 * on, sends. */
typedef int (*nccl_gate_wait)(struct nccl_comm *comm, int peer, uint64_t number);

/* The gate of those operations. */
uint64_t tn__nccl_gate(const struct nccl_comm *comm, int peer);

/* Takes what the other ranks have put there for collectives and receives that this one has posted, without waiting for anything. */
typedef void (*nccl_gate_take)(struct nccl_comm *comm);

/* Gives a communicator its row. False: all are taken. */
bool tn__nccl_gate_add(struct nccl_comm *comm, nccl_gate_wait wait, nccl_gate_take take);
/* Has all communicators of this process take what is there: a rank that sleeps would else keep payloads for which another one wants
 * the room, in this communicator or another. */
void tn__nccl_gates_take(void);
/* Takes it back, once those that wait have gone: the communicator was marked as aborted before. */
void tn__nccl_gate_remove(const struct nccl_ranks *state);

#endif
