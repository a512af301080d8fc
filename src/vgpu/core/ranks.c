/* SPDX-License-Identifier: Apache-2.0
 *
 * This process among the ranks (doc/design/0022-many-cards.md): transfers between them, and its row in the ledger.
 */
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/ranges.h"
#include "vgpu/core/marks.h"
#include "vgpu/core/runtime.h"
#include "vgpu/core/state.h"

static _Atomic(void (*)(char *, uint64_t, int32_t *)) wait_observer;
static _Atomic int observing; /* threads that may be in it */
static struct tn_ledger_rank *_Atomic own_row;
static _Thread_local bool next_peer_absent;
static int run_ranks[TN_LEDGER_RANKS], run_count = -1;

int
tn__ranks_run(const int **ranks)
{
	tn__lock();
	if (run_count < 0) {
		const char *text = getenv("TONNAGE_RANKS");
		run_count = text ? tn__ranges_read(text, run_ranks, TN_LEDGER_RANKS) : 0;
	}
	int count = run_count > 0 ? run_count : 0;
	tn__unlock();
	*ranks = run_ranks;
	return count;
}

bool
tn__next_peer_is_absent(void)
{
	return next_peer_absent;
}

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
		tn__enqueue_locked(stream, &(struct tn_node_description){ .kind = TN_NODE_EMPTY,
		                                                          .duration = nanoseconds,
		                                                          .effort = { .kind = TN_EFFORT_NONE } });
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
	const int *run;
	bool some = tn__ranks_run(&run) > 0; /* the guest says who this is; else the launcher has */
	const char *own = getenv(some ? "TONNAGE_RANK" : "RANK");
	const char *world = getenv(some ? "TONNAGE_WORLD" : "WORLD_SIZE");
	if (own && world && atoi(world) >= ranks && atoi(own) >= 0 && atoi(own) < atoi(world)) {
		rank = atoi(own); /* the communicator may be a part of the job */
		ranks = atoi(world);
	}
	tn__lock();
	if (tn__core.slot >= 0)
		own_row = tn__ledger_join_rank(tn__core.ledger, tn__core.slot, rank, ranks,
		                               tn__ledger_device(tn__core.devices[device].physical));
	tn__unlock();
	if (own_row)
		tn__ledger_join_job(tn__core.ledger, getpid(), 0);
}

void
tn__rank_is_in_group(int ranks, int stride)
{
	tn__lock();
	struct tn_ledger_rank *row = own_row;
	bool smaller = row && ranks < row->ranks;
	for (int i = 0; smaller && i < TN_LEDGER_GROUPS; i++) {
		if (row->groups[i].ranks == 0) {
			row->groups[i].stride = stride;
			row->groups[i].ranks = ranks;
		}
		if (row->groups[i].ranks == ranks && row->groups[i].stride == stride)
			break;
	}
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
	tn__mark_operation(operation, bytes);
}

void
tn__rank_waits(const struct tn_ledger_wait *wait)
{
	struct tn_ledger_rank *row = own_row;
	if (!row)
		return;
	uint32_t why = wait->why;
	bool again = row->wait.why != TN_WAITS_NOT && row->wait.number == wait->number &&
	             row->wait.operation == wait->operation;
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

/* This thread's next communicator of two ranks is with one that is not run. */
void
tn_vgpu_next_peer_absent(int absent)
{
	next_peer_absent = absent != 0;
}

/* The guest could not answer a call. */
void
tn_vgpu_refused(const char *library, const char *name)
{
	tn__device_count();
	if (tn__core.ledger)
		tn__ledger_count_call(tn__core.ledger, library, name);
}

void
tn_vgpu_rank_step(uint64_t step, uint64_t allocations)
{
	struct tn_ledger_rank *row = own_row;
	if (!row)
		return;
	row->marks[step % TN_LEDGER_MARKS].hash = tn__marks() ^ allocations;
	row->marks[step % TN_LEDGER_MARKS].step = step;
}

void
tn_vgpu_join_job(int ranks)
{
	tn__device_count();
	if (tn__core.ledger)
		tn__ledger_join_job(tn__core.ledger, getpid(), ranks);
}

int
tn_vgpu_settled(void)
{
	struct tn_ledger *ledger = tn__core.ledger;
	bool ranks = !ledger || tn__ledger_settle_member(ledger, getpid());
	return ranks && (!ledger || tn__ledger_settle_program(ledger, tn__program_number()));
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
