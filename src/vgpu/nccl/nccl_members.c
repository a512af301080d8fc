/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/ranges.h"
#include "vgpu/nccl/nccl_members.h"

#define MARK "tonnage:"

static bool
is_run(const int *run, int count, int rank)
{
	for (int i = 0; i < count; i++)
		if (run[i] == rank)
			return true;
	return false;
}

/* The ranks of the job that a network's name lists; the caller frees them. */
static int *
listed(const char *network, int *count)
{
	int *world = malloc(NCCL_MOST_MEMBERS * sizeof(*world));
	bool marked = network && strncmp(network, MARK, sizeof(MARK) - 1) == 0;
	*count = world && marked ? tn__ranges_read(network + sizeof(MARK) - 1, world, NCCL_MOST_MEMBERS) : -1;
	return world;
}

int
tn__nccl_listed(const char *network, int *own)
{
	int count, *world = listed(network, &count);
	const char *rank = getenv("TONNAGE_RANK");
	*own = -1;
	for (int i = 0; i < count && rank; i++)
		if (world[i] == atoi(rank))
			*own = i;
	free(world);
	return count;
}

/* The group that a communicator is of, where its ranks are as far from each other. */
static void
note_group(struct nccl_comm *comm, const int *world, int count)
{
	bool regular = count > 1;
	for (int i = 2; regular && i < count; i++)
		regular = world[i] - world[i - 1] == world[1] - world[0];
	comm->group.ranks = regular ? count : 0;
	comm->group.stride = regular ? world[1] - world[0] : 0;
}

static int
set(struct nccl_comm *comm, const bool *present)
{
	int count = 0;
	for (int rank = 0; rank < comm->ranks; rank++)
		count += present[rank];
	if (count == comm->ranks)
		return NCCL_SUCCESS;
	comm->slots = calloc((size_t)comm->ranks, sizeof(*comm->slots));
	comm->run = calloc((size_t)count + 1, sizeof(*comm->run));
	if (!comm->slots || !comm->run)
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	for (int rank = 0; rank < comm->ranks; rank++) {
		comm->slots[rank] = present[rank] ? comm->run_count : -1;
		if (present[rank])
			comm->run[comm->run_count++] = rank;
	}
	return NCCL_SUCCESS;
}

int
tn__nccl_read_members(struct nccl_comm *comm, const char *network)
{
	const int *run;
	int run_count = tn__ranks_run(&run), count, result = NCCL_SUCCESS;
	comm->slots = comm->run = NULL;
	comm->run_count = comm->ranks;
	if (run_count == 0 || comm->ranks == 1 || comm->together)
		return NCCL_SUCCESS;
	comm->run_count = 0;
	int *world = listed(network, &count);
	bool *present = calloc((size_t)comm->ranks, sizeof(*present));
	bool pair = comm->ranks == 2 && count != 2; /* PyTorch's for an unbatched send or receive */
	if (!world || !present)
		result = tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	else if (count != comm->ranks && !pair)
		result = tn__nccl_fail(NCCL_INVALID_USAGE,
		                       "some ranks of the job are not run, and nobody has said which ones are "
		                       "in this communicator");
	if (result == NCCL_SUCCESS)
		note_group(comm, world, count);
	for (int i = 0; result == NCCL_SUCCESS && i < comm->ranks; i++)
		present[i] = i == comm->rank || (pair ? !tn__next_peer_is_absent() : is_run(run, run_count, world[i]));
	if (result == NCCL_SUCCESS)
		result = set(comm, present);
	if (result == NCCL_SUCCESS && !comm->slots)
		comm->run_count = comm->ranks;
	free(present);
	free(world);
	return result;
}

void
tn__nccl_free_members(struct nccl_comm *comm)
{
	free(comm->slots);
	free(comm->run);
}

int
tn__nccl_stand_in(const struct nccl_comm *comm, int rank)
{
	if (!tn__nccl_is_absent(comm, rank))
		return rank;
	int slot = 0;
	while (slot + 1 < comm->run_count && comm->run[slot + 1] < rank)
		slot++;
	return comm->run[slot];
}
