/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport for several ranks (doc/design/0022-many-cards.md): coming to a communicator, leaving it, and splits. What
 * comes between, operations, is in nccl_post.c and nccl_results.c.
 */
#include <stdlib.h>
#include <unistd.h>

#include "device/ledger.h"
#include "vgpu/nccl/nccl_gate.h"
#include "vgpu/nccl/nccl_memory.h"
#include "vgpu/nccl/nccl_post.h"
#include "vgpu/nccl/nccl_results.h"

static void
free_state(struct nccl_comm *comm)
{
	struct nccl_ranks *state = comm->state;
	comm->state = NULL;
	for (int rank = 0; state->receives && rank < comm->ranks; rank++)
		free(state->receives[rank].items);
	free(state->receives);
	free(state->received);
	free(state->peer_memory);
	free(state->collectives.items);
	pthread_mutex_destroy(&state->lock);
	free(state);
}

static int
connect_ranks(struct nccl_comm *comm)
{
	size_t ranks = (size_t)comm->ranks;
	struct nccl_ranks *state = comm->state = calloc(1, sizeof(*state));
	if (!state)
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	pthread_mutex_init(&state->lock, NULL);
	state->receives = calloc(ranks, sizeof(*state->receives));
	state->received = calloc(ranks, sizeof(*state->received));
	state->peer_memory = calloc(ranks, sizeof(*state->peer_memory));
	bool memory = state->receives && state->received && state->peer_memory;
	int result = memory ? tn__board_open(&state->board, &comm->id, comm->run_count)
	                    : tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	if (result == NCCL_SUCCESS && !tn__nccl_gate_add(comm, tn__nccl_wait_for_results, tn__nccl_take)) {
		tn__board_close(&state->board);
		result = tn__nccl_fail(NCCL_SYSTEM_ERROR, "more communicators than a process can have");
	}
	if (result != NCCL_SUCCESS) {
		free_state(comm);
		return result;
	}
	struct nccl_member *own = tn__nccl_member(comm, comm->rank);
	own->pid = (int32_t)getpid();
	own->start_time = tn__process_started(own->pid);
	atomic_store(&own->presence, NCCL_HERE);
	tn__board_tell(&state->board);
	return NCCL_SUCCESS;
}

static int
meet_ranks(struct nccl_comm *comm)
{
	int result = NCCL_SUCCESS;
	if (!comm->together)
		tn__rank_join(comm->rank, comm->ranks, comm->device);
	if (comm->group.ranks > 0)
		tn__rank_is_in_group(comm->group.ranks, comm->group.stride);
	for (int rank = 0; rank < comm->ranks && result == NCCL_SUCCESS; rank++) {
		const struct nccl_awaited awaited = { comm, rank, -1, 0, 0, -1, 0 };
		if (!tn__nccl_is_absent(comm, rank))
			result = tn__nccl_wait(&awaited, &tn__nccl_member(comm, rank)->presence, NCCL_HERE);
	}
	return result;
}

static void
disconnect_ranks(struct nccl_comm *comm, bool abort)
{
	struct nccl_ranks *state = comm->state;
	atomic_store(&state->aborted, true);
	if (abort)
		atomic_store(&state->board.head->aborted, 1);
	atomic_store(&tn__nccl_member(comm, comm->rank)->presence, NCCL_GONE);
	tn__board_tell(&state->board);
	tn__nccl_gate_remove(state);
	tn__nccl_give_memory_back(comm);
	tn__board_close(&state->board);
	free_state(comm);
}

static int
say_split(struct nccl_comm *comm, const struct nccl_split *own)
{
	struct nccl_ranks *state = comm->state;
	struct nccl_member *member = tn__nccl_member(comm, comm->rank);
	member->split[state->splits % 2] = *own;
	atomic_store(&member->splits, ++state->splits);
	tn__board_tell(&state->board);
	return NCCL_SUCCESS;
}

/* Nobody can be two splits ahead: each waits for all. */
static int
hear_splits(struct nccl_comm *comm, struct nccl_split *all)
{
	const struct nccl_ranks *state = comm->state;
	int result = NCCL_SUCCESS;
	for (int rank = 0; rank < comm->ranks && result == NCCL_SUCCESS; rank++) {
		const struct nccl_member *member = &state->board.members[rank];
		const struct nccl_awaited awaited = { comm, rank, -1, state->splits, 0, -1, 0 };
		result = tn__nccl_wait(&awaited, &member->splits, state->splits);
		all[rank] = member->split[(state->splits - 1) % 2];
	}
	return result;
}

static int
suspend_ranks(struct nccl_comm *comm, bool back)
{
	struct nccl_ranks *state = comm->state;
	if (!back)
		tn__nccl_give_memory_back(comm);
	state->suspended = !back; /* what is used again connects again */
	return NCCL_SUCCESS;
}

static int
error_ranks(struct nccl_comm *comm)
{
	return tn__nccl_check_abort(comm);
}

const struct nccl_transport tn__nccl_ranks = {
	connect_ranks, meet_ranks, disconnect_ranks, tn__nccl_post, say_split, hear_splits, suspend_ranks, error_ranks,
};
