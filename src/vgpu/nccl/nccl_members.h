/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks of a communicator are run (doc/design/0031-absent-ranks.md). NCCL itself does not learn which processes a
 * communicator is of; the guest writes that, as ranks of the job, where a configuration names the network: "tonnage:0,8-11".
 */
#ifndef TN_NCCL_MEMBERS_H
#define TN_NCCL_MEMBERS_H

#include "vgpu/nccl/nccl_comm.h"

#define NCCL_MOST_MEMBERS 65536

/* Sets `slots`, `run`, `run_count` and `group` of a communicator whose rank and number of ranks are known. An nccl_result. */
int tn__nccl_read_members(struct nccl_comm *comm, const char *network);
void tn__nccl_free_members(struct nccl_comm *comm);

/* The number of ranks that a network's name lists, and the place of this process among them; -1: it lists none. */
int tn__nccl_listed(const char *network, int *own);

static inline bool
tn__nccl_is_absent(const struct nccl_comm *comm, int rank)
{
	return comm->slots && comm->slots[rank] < 0;
}

/* The place of a rank that is run. */
static inline int
tn__nccl_slot(const struct nccl_comm *comm, int rank)
{
	return comm->slots ? comm->slots[rank] : rank;
}

static inline int
tn__nccl_rank_at(const struct nccl_comm *comm, int slot)
{
	return comm->run ? comm->run[slot] : slot;
}

/* Who is taken to have sent what a rank sends: itself, or the next one below it that is run, or the lowest that is. */
int tn__nccl_stand_in(const struct nccl_comm *comm, int rank);

#endif
