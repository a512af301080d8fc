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
	int own_slot = tn__nccl_slot(comm, comm->rank), count = comm->run_count;
	int neighbours[] = { (own_slot + 1) % count, (own_slot + count - 1) % count };
	for (int i = 0; i < 2; i++) {
		uint64_t there = atomic_load(&state->board.members[neighbours[i]].posted);
		if (there < number || there >= number + NCCL_RING)
			continue;
		*other = *tn__board_record(&state->board, neighbours[i], number);
		if (same(own, other))
			continue;
		*bad = (struct nccl_awaited){
			comm, tn__nccl_rank_at(comm, neighbours[i]), own->kind, number, own->bytes, -1, 0
		};
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
	int own_slot = tn__nccl_slot(comm, comm->rank), peer = (own_slot + 1) % comm->run_count;
	struct nccl_record own = *tn__board_record(&state->board, own_slot, broken), other = own;
	for (int i = 1; i < comm->run_count; i++) { /* one that did something else, if any does */
		int slot = (own_slot + i) % comm->run_count;
		struct nccl_record its = *tn__board_record(&state->board, slot, broken);
		if (atomic_load(&state->board.members[slot].posted) < broken || same(&own, &its))
			continue;
		other = its;
		peer = slot;
		break;
	}
	struct nccl_awaited awaited = { comm, tn__nccl_rank_at(comm, peer), own.kind, broken, own.bytes, -1, 0 };
	return tn__nccl_wait_for_ever(&awaited, &other);
}
