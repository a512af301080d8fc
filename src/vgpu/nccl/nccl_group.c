/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL groups: operations between ncclGroupStart and the matching ncclGroupEnd are collected by the calling thread and
 * given to their transports together, one communicator after the other in order of first use. What waits for other ranks (new
 * communicators) comes before them, in the order of its calls.
 */
#include <stdlib.h>

#include "base/array.h"
#include "vgpu/nccl/nccl_comm.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct later {
	int (*finish)(void *what);
	void *what;
};

struct group {
	int depth, result;
	struct nccl_operation *operations;
	size_t count, capacity;
	struct later *later;
	size_t later_count, later_capacity;
};

static _Thread_local struct group group;

static int
collect(const struct nccl_operation *operation)
{
	if (!tn__array_room(&group.operations, &group.capacity, group.count + 1, sizeof(*operation), SIZE_MAX))
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	group.operations[group.count++] = *operation;
	return NCCL_SUCCESS;
}

int
tn__nccl_submit(const struct nccl_operation *operation)
{
	if (group.depth > 0)
		return collect(operation);
	return operation->comm->transport->run(operation->comm, operation, 1);
}

int
tn__nccl_later(int (*finish)(void *what), void *what)
{
	if (group.depth == 0)
		return finish(what);
	if (!tn__array_room(&group.later, &group.later_capacity, group.later_count + 1, sizeof(*group.later), SIZE_MAX))
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	group.later[group.later_count++] = (struct later){ finish, what };
	return NCCL_SUCCESS;
}

/* A split makes communicators, which are joined after all splits of the group were heard. */
static int
finish_later(void)
{
	int result = NCCL_SUCCESS;
	group.depth++;
	for (size_t i = 0; i < group.later_count; i++) { /* the list grows meanwhile */
		struct later later = group.later[i];
		int one = later.finish(later.what);
		result = result == NCCL_SUCCESS ? one : result;
	}
	group.depth--;
	return result;
}

/* Runs what stands in the group, in place: the operations of the first communicator are moved to the front. */
static int
run_group(struct nccl_operation *operations, size_t count)
{
	while (count > 0) {
		struct nccl_comm *comm = operations[0].comm;
		size_t mine = 0;
		for (size_t i = 0; i < count; i++) {
			if (operations[i].comm != comm)
				continue;
			struct nccl_operation taken = operations[i];
			for (size_t k = i; k > mine; k--)
				operations[k] = operations[k - 1];
			operations[mine++] = taken;
		}
		int result = comm->transport->run(comm, operations, mine);
		if (result != NCCL_SUCCESS)
			return result;
		operations += mine;
		count -= mine;
	}
	return NCCL_SUCCESS;
}

static void
clear(void)
{
	free(group.operations);
	free(group.later);
	group = (struct group){ 0 };
}

TN_EXPORT int
ncclGroupStart(void)
{
	group.depth++;
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclGroupEnd(void)
{
	if (group.depth == 0)
		return tn__nccl_fail(NCCL_INVALID_USAGE, "ncclGroupEnd without ncclGroupStart");
	if (--group.depth > 0)
		return NCCL_SUCCESS;
	int result = finish_later();
	if (result == NCCL_SUCCESS)
		result = run_group(group.operations, group.count);
	clear();
	return result;
}

/* Ends the group without running it and says how long it would have taken: no time, among no others. */
TN_EXPORT int
ncclGroupSimulateEnd(void *information)
{
	struct {
		size_t size;
		uint32_t magic, version;
		float microseconds;
	} *info = information;

	if (group.depth == 0)
		return tn__nccl_fail(NCCL_INVALID_USAGE, "ncclGroupSimulateEnd without ncclGroupStart");
	clear();
	if (info)
		info->microseconds = 0;
	return NCCL_SUCCESS;
}

TN_NCCL_PROFILING(ncclGroupStart)
TN_NCCL_PROFILING(ncclGroupEnd)
TN_NCCL_PROFILING(ncclGroupSimulateEnd)
