/* SPDX-License-Identifier: Apache-2.0 */
#include "vgpu/nccl/nccl_agree.h"

/* Whether two ranks did the same. */
static bool
same(const struct nccl_record *one, const struct nccl_record *other)
{
	return one->kind == other->kind && one->bytes == other->bytes && one->root == other->root;
}

bool
tn__nccl_agrees(struct nccl_comm *comm, const struct nccl_record *own, uint64_t number, struct nccl_awaited *bad,
       struct nccl_record *other)
{
	const struct nccl_ranks *state = comm->state;
	int neighbours[] = {(comm->rank + 1) % comm->ranks, (comm->rank + comm->ranks - 1) % comm->ranks};
	for (int i = 0; i < 2; i++) {
		uint64_t there = atomic_load(&state->board.members[neighbours[i]].posted);
		if (there < number || there >= number + NCCL_RING)
			continue;
		*other = *tn__board_record(&state->board, neighbours[i], number);
		if (same(own, other))
			continue;
		*bad = (struct nccl_awaited){comm, neighbours[i], own->kind, number, own->bytes, -1, 0};
		uint64_t none = 0;
		atomic_compare_exchange_strong(&state->board.head->broken, &none, number);
		return false;
	}
	return true;
}

int
tn__nccl_wait_at_disagreement(struct nccl_comm *comm)
{
	const struct nccl_ranks *state = comm->state;
	uint64_t broken = atomic_load(&state->board.head->broken);
	int peer = (comm->rank + 1) % comm->ranks;
	struct nccl_record own = *tn__board_record(&state->board, comm->rank, broken), other = own;
	for (int i = 1; i < comm->ranks; i++) { /* one that did something else, if any does */
		int rank = (comm->rank + i) % comm->ranks;
		struct nccl_record its = *tn__board_record(&state->board, rank, broken);
		if (atomic_load(&state->board.members[rank].posted) < broken || same(&own, &its))
			continue;
		other = its;
		peer = rank;
		break;
	}
	struct nccl_awaited awaited = {comm, peer, own.kind, broken, own.bytes, -1, 0};
	return tn__nccl_wait_for_ever(&awaited, &other);
}
