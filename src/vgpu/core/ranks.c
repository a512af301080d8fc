/* SPDX-License-Identifier: Apache-2.0
 *
 * This process among the ranks (doc/design/0022-many-cards.md): transfers between them, and its row in the ledger.
 */
#include <sched.h>
#include <stdlib.h>

#include "vgpu/core/state.h"

static _Atomic(void (*)(char *, uint64_t, int32_t *)) wait_observer;
static _Atomic int observing; /* threads that may be in it */
static struct tn_ledger_rank *_Atomic own_row;

int
tn__transfer(uintptr_t stream_handle, uint64_t nanoseconds, uint64_t gate, uint64_t number, bool *captured)
{
	int result = tn__enter();
	if (result != TN_CUDA_OK)
		return result;
	tn__lock();
	struct tn_stream *stream = tn__stream_locked(stream_handle);
	*captured = stream && stream->capture;
	if (stream)
		tn__enqueue_locked(stream, &(struct tn_node_description){
									   .kind = TN_NODE_EMPTY, .duration = nanoseconds, .effort = {.kind = TN_EFFORT_NONE}});
	if (stream && !stream->capture && gate)
		tn__gates_add(&stream->gates, gate, number);
	tn__unlock();
	return stream ? TN_CUDA_OK : TN_CUDA_INVALID_HANDLE;
}

const char *
tn__run_folder(void)
{
	tn__device_count();
	return tn__core.private_ledger ? NULL : getenv("TONNAGE_RUN");
}

uint64_t
tn__process_started(int pid)
{
	return tn__process_start_time(pid);
}

void
tn__rank_join(int rank, int ranks, int device)
{
	tn__lock();
	if (tn__core.slot >= 0)
		own_row = tn_ledger_join_rank(tn__core.ledger, tn__core.slot, rank, ranks, tn__core.devices[device].physical);
	tn__unlock();
}

void
tn__rank_count(int operation, uint64_t bytes)
{
	struct tn_ledger_rank *row = own_row;
	if (!row || operation < 0 || operation >= TN_COLLECTIVES)
		return;
	atomic_fetch_add_explicit(&row->calls[operation], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&row->bytes[operation], bytes, memory_order_relaxed);
}

void
tn__rank_waits(const struct tn_ledger_wait *wait)
{
	struct tn_ledger_rank *row = own_row;
	if (!row)
		return;
	uint32_t why = wait->why;
	bool again = row->wait.why != TN_WAITS_NOT && row->wait.number == wait->number && row->wait.operation == wait->operation;
	if (!again) {
		row->wait.why = TN_WAITS_NOT;
		row->wait.line = 0;
		row->wait.file[0] = '\0';
		atomic_fetch_add(&observing, 1);
		void (*observer)(char *, uint64_t, int32_t *) = atomic_load(&wait_observer);
		if (observer)
			observer(row->wait.file, sizeof(row->wait.file), &row->wait.line);
		atomic_fetch_sub(&observing, 1);
	}
	row->wait.operation = wait->operation;
	row->wait.peer = wait->peer;
	row->wait.peer_pid = wait->peer_pid;
	row->wait.peer_operation = wait->peer_operation;
	row->wait.number = wait->number;
	row->wait.bytes = wait->bytes;
	row->wait.peer_bytes = wait->peer_bytes;
	atomic_store_explicit(&row->wait.why, why, memory_order_release);
}

void
tn__rank_goes_on(void)
{
	struct tn_ledger_rank *row = own_row;
	if (row)
		atomic_store_explicit(&row->wait.why, TN_WAITS_NOT, memory_order_release);
}

void
tn__rank_hears_abort(void)
{
	struct tn_ledger_rank *row = own_row;
	if (row)
		atomic_store_explicit(&row->peer_aborted, 1, memory_order_relaxed);
}

tn_status
tn__communication_malloc(int device, uint64_t bytes, uint64_t *address)
{
	return tn__class_malloc(device, TN_BYTES_COMMUNICATION, bytes, address);
}

/* ---- for the guest ---- */

void
tn_vgpu_set_wait_observer(void (*observer)(char *file, uint64_t room, int32_t *line))
{
	atomic_store(&wait_observer, observer);
	while (!observer && atomic_load(&observing) > 0) /* what the old one needs is about to go */
		sched_yield();
}

int
tn_vgpu_settled(void)
{
	struct tn_ledger_rank *row = own_row;
	return !row || tn_ledger_settle_rank(tn__core.ledger, row);
}

/* In the child of a fork. */
static void
forget(void)
{
	atomic_store(&observing, 0);
	own_row = NULL;
}

__attribute__((constructor)) static void
start(void)
{
	pthread_atfork(NULL, NULL, forget);
}
