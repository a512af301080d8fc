/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport for one rank: every collective is a copy of the rank's own part, or nothing when it is in place, as the
 * real library does it (an asynchronous copy on the stream, no kernel). Sends meet receives of the same group in order.
 */
#include "vgpu/core/runtime.h"
#include "vgpu/nccl/nccl_comm.h"

static int
connect_self(struct nccl_comm *comm)
{
	return NCCL_SUCCESS;
}

static void
disconnect_self(struct nccl_comm *comm, bool abort)
{
}

static int
say_to_self(struct nccl_comm *comm, const struct nccl_split *own)
{
	return NCCL_SUCCESS;
}

static int
suspend_self(struct nccl_comm *comm, bool back)
{
	return NCCL_SUCCESS;
}

static int
move(const struct nccl_operation *operation, const void *from, void *to)
{
	if (from != to && operation->bytes &&
	    tn__copy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, operation->bytes, operation->stream, true) != 0)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the copy between the buffers of the only rank failed");
	/* An operator made by the program scales its input: a kernel even with one rank. */
	if (operation->operator >= NCCL_BUILT_IN_OPERATORS &&
	    tn__work(operation->stream, tn__time_of_bytes(2 * operation->bytes), "nccl") != TN_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the operator's kernel was refused");
	return NCCL_SUCCESS;
}

/* The receive that belongs to the `nth` send of the group, or NULL. */
static const struct nccl_operation *
nth_receive(const struct nccl_operation *operations, size_t count, size_t nth)
{
	for (size_t i = 0; i < count; i++)
		if (operations[i].kind == NCCL_RECEIVE && nth-- == 0)
			return &operations[i];
	return NULL;
}

static int
run_self(struct nccl_comm *comm, const struct nccl_operation *operations, size_t count)
{
	size_t sends = 0, receives = 0;
	int result = NCCL_SUCCESS;

	for (size_t i = 0; i < count && result == NCCL_SUCCESS; i++) {
		const struct nccl_operation *operation = &operations[i];
		if (operation->kind == NCCL_RECEIVE) {
			receives++;
		} else if (operation->kind == NCCL_SEND) {
			const struct nccl_operation *other = nth_receive(operations, count, sends++);
			if (!other || other->bytes != operation->bytes)
				return tn__nccl_fail(NCCL_INVALID_USAGE, "a send to the own rank needs its receive in the same group");
			result = move(operation, operation->send, other->receive);
		} else {
			result = move(operation, operation->send, operation->receive);
		}
	}
	if (result == NCCL_SUCCESS && receives != sends)
		return tn__nccl_fail(NCCL_INVALID_USAGE, "a receive from the own rank needs its send in the same group");
	return result;
}

/* With nobody else there is nothing to hear: what this rank says is what all say (nccl.c). */
const struct nccl_transport tn__nccl_self = {
	connect_self, connect_self, disconnect_self, run_self, say_to_self, NULL, suspend_self, connect_self,
};
