/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process keeps of a communicator of several ranks: `state` of struct nccl_comm, where its transport is
 * tn__nccl_ranks. nccl_ranks.c makes and frees it; the files that carry operations out share it:
 *
 *     nccl_post.c       puts operations on streams and on the board
 *     nccl_results.c    what comes of them, once the other ranks have put theirs there
 *     nccl_agree.c      whether the ranks did the same
 *     nccl_wait.c       waits for another rank
 *     nccl_gate.c       names for what a stream or a value waits for
 *
 * The n-th collective of a rank belongs to the n-th of all others, the n-th receive from a rank to that one's n-th send.
 *
 * One thread at a time puts operations on a communicator (NCCL's own rule); any thread may wait for them. `lock` guards
 * what is queued; it is not held while a rank waits.
 */
#ifndef TN_NCCL_RANKS_H
#define TN_NCCL_RANKS_H

#include <pthread.h>

#include "vgpu/nccl/nccl_board.h"
#include "vgpu/nccl/nccl_members.h"

/* An operation whose result is not there yet. `number` counts from 1. */
struct nccl_queued {
	struct nccl_operation operation;
	uint64_t number;
};

struct nccl_queue {
	struct nccl_queued *items;
	size_t count, capacity;
};

struct nccl_ranks {
	struct nccl_board board;
	pthread_mutex_t lock;
	struct nccl_queue collectives, *receives; /* the second by peer */
	uint64_t *received;                       /* by peer: how many receives were put on streams */
	uint64_t posted, waited, splits;          /* collectives; up to which all were waited for */
	uint32_t gate, generation;                /* of nccl_gate.c */
	_Atomic bool aborted;
	bool suspended;
	uint64_t ring_memory, *peer_memory; /* addresses; 0: none */
};

/* What the board has of a rank that is run. */
static inline struct nccl_member *
tn__nccl_member(const struct nccl_comm *comm, int rank)
{
	const struct nccl_ranks *state = comm->state;
	return &state->board.members[tn__nccl_slot(comm, rank)];
}

#endif
