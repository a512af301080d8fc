/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL's collectives and point-to-point calls: each checks its arguments and becomes an operation.
 */
#include <string.h>

#include "vgpu/nccl/nccl_operation.h"
#include "vgpu/nccl/nccl_reduce.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* What a call says, in the order of NCCL's parameters; `peer` is the root, too. */
struct call {
	enum nccl_kind kind;
	const void *send;
	void *receive;
	size_t count;
	int type, operator, peer;
};

static int
submit(struct nccl_comm *comm, void *stream, struct call call)
{
	struct nccl_operation operation = {
		comm, call.kind, call.send, call.receive, 0, call.peer, call.operator, (uintptr_t)stream, call.type, 0,
	};

	if (!comm)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the communicator is NULL");
	if (call.type < 0 || call.type >= NCCL_TYPES)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "unknown data type");
	if (call.peer < 0 || call.peer >= comm->ranks)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the root or peer is no rank of the communicator");
	if (__builtin_mul_overflow(call.count, tn__nccl_type_bytes(call.type), &operation.bytes))
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the count is too large");
	int made = call.operator - NCCL_BUILT_IN_OPERATORS;
	if (tn__nccl_reduces(call.kind) &&
	    (call.operator < 0 || made >= NCCL_MADE_OPERATORS || (made >= 0 && !comm->operators[made].used)))
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "unknown reduction operator");
	return tn__nccl_submit(&operation);
}

TN_EXPORT int
ncclAllReduce(const void *send, void *receive, size_t count, int type, int operator, struct nccl_comm *comm,
              void *stream)
{
	return submit(comm, stream, (struct call){ NCCL_ALL_REDUCE, send, receive, count, type, operator, 0 });
}

TN_EXPORT int
ncclReduce(const void *send, void *receive, size_t count, int type, int operator, int root, struct nccl_comm *comm,
           void *stream)
{
	return submit(comm, stream, (struct call){ NCCL_REDUCE, send, receive, count, type, operator, root });
}

TN_EXPORT int
ncclBroadcast(const void *send, void *receive, size_t count, int type, int root, struct nccl_comm *comm, void *stream)
{
	return submit(comm, stream, (struct call){ NCCL_BROADCAST, send, receive, count, type, 0, root });
}

TN_EXPORT int
ncclBcast(void *buffer, size_t count, int type, int root, struct nccl_comm *comm, void *stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

TN_EXPORT int
ncclReduceScatter(const void *send, void *receive, size_t count, int type, int operator, struct nccl_comm *comm,
                  void *stream)
{
	return submit(comm, stream, (struct call){ NCCL_REDUCE_SCATTER, send, receive, count, type, operator, 0 });
}

TN_EXPORT int
ncclAllGather(const void *send, void *receive, size_t count, int type, struct nccl_comm *comm, void *stream)
{
	return submit(comm, stream, (struct call){ NCCL_ALL_GATHER, send, receive, count, type, 0, 0 });
}

TN_EXPORT int
ncclAlltoAll(const void *send, void *receive, size_t count, int type, struct nccl_comm *comm, void *stream)
{
	return submit(comm, stream, (struct call){ NCCL_ALL_TO_ALL, send, receive, count, type, 0, 0 });
}

TN_EXPORT int
ncclGather(const void *send, void *receive, size_t count, int type, int root, struct nccl_comm *comm, void *stream)
{
	return submit(comm, stream, (struct call){ NCCL_GATHER, send, receive, count, type, 0, root });
}

TN_EXPORT int
ncclScatter(const void *send, void *receive, size_t count, int type, int root, struct nccl_comm *comm, void *stream)
{
	return submit(comm, stream, (struct call){ NCCL_SCATTER, send, receive, count, type, 0, root });
}

TN_EXPORT int
ncclSend(const void *send, size_t count, int type, int peer, struct nccl_comm *comm, void *stream)
{
	return submit(comm, stream, (struct call){ NCCL_SEND, send, NULL, count, type, 0, peer });
}

TN_EXPORT int
ncclRecv(void *receive, size_t count, int type, int peer, struct nccl_comm *comm, void *stream)
{
	return submit(comm, stream, (struct call){ NCCL_RECEIVE, NULL, receive, count, type, 0, peer });
}

/* Operators that the program makes. `residence`: ncclScalarDevice 0, the scalar is read as an operation runs;
 * ncclScalarHostImmediate 1, it is read now. */
TN_EXPORT int
ncclRedOpCreatePreMulSum(int *operator, void *scalar, int type, int residence, struct nccl_comm *comm)
{
	int made = 0;
	if (!operator || !scalar || !comm || type < 0 || type >= NCCL_TYPES)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT,
		                     "the operator, the scalar or the communicator is NULL, or the type unknown");
	while (made < NCCL_MADE_OPERATORS && comm->operators[made].used)
		made++;
	if (made == NCCL_MADE_OPERATORS)
		return tn__nccl_fail(NCCL_INTERNAL_ERROR, "more operators than a communicator can have");
	comm->operators[made] = (struct nccl_made_operator){
		.used = true, .type = type, .on_device = residence == 0, .address = (uintptr_t)scalar
	};
	if (residence != 0)
		memcpy(comm->operators[made].scalar, scalar, tn__nccl_type_bytes(type));
	*operator = NCCL_BUILT_IN_OPERATORS + made;
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclRedOpDestroy(int operator, struct nccl_comm *comm)
{
	int made = operator - NCCL_BUILT_IN_OPERATORS;
	if (made < 0)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "a built-in operator cannot be destroyed");
	if (!comm || made >= NCCL_MADE_OPERATORS || !comm->operators[made].used)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "no such operator");
	comm->operators[made].used = false;
	return NCCL_SUCCESS;
}

TN_NCCL_PROFILING(ncclAllReduce)
TN_NCCL_PROFILING(ncclReduce)
TN_NCCL_PROFILING(ncclBroadcast)
TN_NCCL_PROFILING(ncclBcast)
TN_NCCL_PROFILING(ncclReduceScatter)
TN_NCCL_PROFILING(ncclAllGather)
TN_NCCL_PROFILING(ncclAlltoAll)
TN_NCCL_PROFILING(ncclGather)
TN_NCCL_PROFILING(ncclScatter)
TN_NCCL_PROFILING(ncclSend)
TN_NCCL_PROFILING(ncclRecv)
TN_NCCL_PROFILING(ncclRedOpCreatePreMulSum)
TN_NCCL_PROFILING(ncclRedOpDestroy)
