/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of our NCCL share: the communicator, an operation, and the transport that carries operations out.
 *
 * Invariant: a communicator knows its rank and how many there are, never how bytes get there: that is the transport's.
 * One transport is written, for a single rank; one for ranks in several processes is another table of these functions.
 */
#ifndef TN_NCCL_COMM_H
#define TN_NCCL_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/core/core.h"

enum nccl_result { /* ncclResult_t */
	NCCL_SUCCESS = 0,
	NCCL_UNHANDLED_CUDA_ERROR = 1,
	NCCL_SYSTEM_ERROR = 2,
	NCCL_INTERNAL_ERROR = 3,
	NCCL_INVALID_ARGUMENT = 4,
	NCCL_INVALID_USAGE = 5,
	NCCL_REMOTE_ERROR = 6,
	NCCL_IN_PROGRESS = 7,
};

enum { NCCL_BUILT_IN_OPERATORS = 5, NCCL_TYPES = 12 };

struct nccl_id { /* ncclUniqueId: passed by value */
	char bytes[128];
};

struct nccl_transport;

struct nccl_comm {
	int rank, ranks, device;
	const struct nccl_transport *transport;
	void *state; /* the transport's */
};

enum nccl_kind {
	NCCL_ALL_REDUCE,
	NCCL_REDUCE,
	NCCL_BROADCAST,
	NCCL_REDUCE_SCATTER,
	NCCL_ALL_GATHER,
	NCCL_ALL_TO_ALL,
	NCCL_GATHER,
	NCCL_SCATTER,
	NCCL_SEND,
	NCCL_RECEIVE,
};

struct nccl_operation {
	struct nccl_comm *comm;
	enum nccl_kind kind;
	const void *send;
	void *receive;
	size_t bytes; /* of one rank's part: the count of the call times the size of its type */
	int peer;     /* root or peer, where the kind has one */
	int operator; /* reductions: below NCCL_BUILT_IN_OPERATORS built in, above made by the program */
	uintptr_t stream;
};

struct nccl_transport {
	/* Joins the communicator's ranks; `id` is the same on all of them. */
	int (*connect)(struct nccl_comm *comm, const struct nccl_id *id);
	void (*disconnect)(struct nccl_comm *comm);
	/* Puts operations of one communicator on their streams: those of one group, in the program's order. */
	int (*run)(struct nccl_comm *comm, const struct nccl_operation *operations, size_t count);
};

/* The transport of a communicator with one rank. */
extern const struct nccl_transport tn__nccl_self;

/* Keeps words for ncclGetLastError and returns `result`. `text` is a literal. */
int tn__nccl_fail(int result, const char *text);

/* Gives an operation to its transport: at once, or at the end of the calling thread's group. */
int tn__nccl_submit(const struct nccl_operation *operation);

/* The profiling interface: every name exists a second time with a p before it. */
#define TN_NCCL_PROFILING(name) \
	extern __typeof__(name) p##name __attribute__((alias(#name), visibility("default")));

#endif
