/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <time.h>

#include "device/ledger.h"
#include "vgpu/nccl/nccl_gate.h"
#include "vgpu/nccl/nccl_wait.h"

#define YIELDS 64
#define TOLD_AFTER_NS UINT64_C(1000000000) /* of waiting */

static uint64_t
now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool
has_ended(const struct nccl_member *member)
{
	uint64_t presence = atomic_load(&member->presence);
	return presence == NCCL_GONE || (presence == NCCL_HERE && tn__process_started(member->pid) != member->start_time);
}

static void
tell_wait(const struct nccl_awaited *awaited)
{
	const struct nccl_member *peer = tn__nccl_member(awaited->comm, awaited->peer);
	tn__rank_waits(&(struct tn_ledger_wait){
		.why = awaited->other_operation >= 0 ? TN_WAITS_OTHER_OPERATION
	           : has_ended(peer)             ? TN_WAITS_ENDED
	                                         : TN_WAITS,
		.operation = awaited->operation,
		.peer = awaited->peer,
		.peer_pid = peer->pid,
		.peer_operation = awaited->other_operation,
		.number = awaited->number,
		.bytes = awaited->bytes,
		.peer_bytes = awaited->other_bytes,
	});
}

int
tn__nccl_check_abort(const struct nccl_comm *comm)
{
	const struct nccl_ranks *state = comm->state;
	if (atomic_load(&state->aborted))
		return tn__nccl_fail(NCCL_REMOTE_ERROR, "the communicator was aborted");
	if (!atomic_load(&state->board.head->aborted))
		return NCCL_SUCCESS;
	tn__rank_hears_abort();
	return tn__nccl_fail(NCCL_REMOTE_ERROR, "another rank aborted the communicator");
}

int
tn__nccl_wait(const struct nccl_awaited *awaited, const _Atomic uint64_t *counter, uint64_t target)
{
	struct nccl_ranks *state = awaited->comm->state;
	uint64_t began = 0, told = 0;
	for (unsigned turn = 0;; turn++) {
		uint32_t news = atomic_load(&state->board.head->news);
		if (atomic_load(counter) >= target)
			break;
		int aborted = tn__nccl_check_abort(awaited->comm);
		if (aborted != NCCL_SUCCESS) {
			if (told)
				tn__rank_goes_on();
			return aborted;
		}
		if (turn < YIELDS) {
			sched_yield();
			continue;
		}
		tn__nccl_gates_take();
		tn__board_sleep(&state->board, news);
		uint64_t now = now_ns();
		began = began ? began : now;
		if (now - began >= TOLD_AFTER_NS && now - told >= TOLD_AFTER_NS / 2) {
			tell_wait(awaited);
			told = now;
		}
	}
	if (told)
		tn__rank_goes_on();
	return NCCL_SUCCESS;
}

int
tn__nccl_wait_for_ever(struct nccl_awaited *awaited, const struct nccl_record *other)
{
	static const _Atomic uint64_t nothing;
	awaited->other_operation = other->kind;
	awaited->other_bytes = other->bytes;
	tell_wait(awaited);
	return tn__nccl_wait(awaited, &nothing, 1);
}
