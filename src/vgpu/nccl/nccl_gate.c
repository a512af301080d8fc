/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>

#include "vgpu/nccl/nccl_gate.h"

#define GATES 1024

static pthread_mutex_t gates_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct nccl_comm *comm;
	nccl_gate_wait wait;
	nccl_gate_take take;
	uint32_t generation;
	int users;
} gates[GATES];
static uint32_t rows; /* that were ever used */

uint64_t
tn__nccl_gate(const struct nccl_comm *comm, int peer)
{
	const struct nccl_ranks *state = comm->state;
	return (uint64_t)state->generation << 32 | (uint64_t)state->gate << 16 | (uint64_t)(peer + 1);
}

static void
wait_for_gate(uint64_t gate, uint64_t number)
{
	uint32_t generation = (uint32_t)(gate >> 32), row = (uint32_t)(gate >> 16) & 0xffff;
	int peer = (int)(gate & 0xffff) - 1;
	pthread_mutex_lock(&gates_lock);
	struct nccl_comm *comm = row < GATES && gates[row].generation == generation ? gates[row].comm : NULL;
	nccl_gate_wait wait = comm ? gates[row].wait : NULL;
	if (comm)
		gates[row].users++;
	pthread_mutex_unlock(&gates_lock);
	if (!comm)
		return;
	(void)wait(comm, peer, number);
	pthread_mutex_lock(&gates_lock);
	gates[row].users--;
	pthread_mutex_unlock(&gates_lock);
}

void
tn__nccl_gates_take(void)
{
	pthread_mutex_lock(&gates_lock);
	for (uint32_t row = 0; row < rows; row++) {
		struct nccl_comm *comm = gates[row].comm;
		nccl_gate_take take = gates[row].take;
		if (!comm)
			continue;
		gates[row].users++; /* it stays while the lock is not held */
		pthread_mutex_unlock(&gates_lock);
		take(comm);
		pthread_mutex_lock(&gates_lock);
		gates[row].users--;
	}
	pthread_mutex_unlock(&gates_lock);
}

bool
tn__nccl_gate_add(struct nccl_comm *comm, nccl_gate_wait wait, nccl_gate_take take)
{
	static uint32_t generations;
	struct nccl_ranks *state = comm->state;
	uint32_t row = 0;
	pthread_mutex_lock(&gates_lock);
	while (row < GATES && gates[row].comm)
		row++;
	if (row < GATES) {
		gates[row].comm = comm;
		gates[row].wait = wait;
		gates[row].take = take;
		rows = row < rows ? rows : row + 1;
		gates[row].generation = state->generation = ++generations;
		state->gate = row;
	}
	pthread_mutex_unlock(&gates_lock);
	tn__set_gatekeeper(wait_for_gate);
	return row < GATES;
}

void
tn__nccl_gate_remove(const struct nccl_ranks *state)
{
	pthread_mutex_lock(&gates_lock);
	gates[state->gate].comm = NULL;
	while (gates[state->gate].users > 0) { /* waiters have seen that it was aborted */
		pthread_mutex_unlock(&gates_lock);
		sched_yield();
		pthread_mutex_lock(&gates_lock);
	}
	gates[state->gate].generation = 0;
	pthread_mutex_unlock(&gates_lock);
}
