/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of our NCCL share: the communicator, an operation, and the transport that carries operations out.
 *
 * Invariant: a communicator knows its rank and how many there are, never how bytes get there: that is the transport's.
 * There are two: one for a single rank (nccl_self.c), and one for ranks that meet on a board in the run's folder
 * (nccl_ranks.c, nccl_board.c).
 */
#ifndef TN_NCCL_COMM_H
#define TN_NCCL_COMM_H

#include <stdatomic.h>
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
enum nccl_operator { NCCL_SUM, NCCL_PRODUCT, NCCL_MAX, NCCL_MIN, NCCL_AVERAGE }; /* ncclRedOp_t */
enum nccl_type {                                                                 /* ncclDataType_t */
	             NCCL_I8,
	             NCCL_U8,
	             NCCL_I32,
	             NCCL_U32,
	             NCCL_I64,
	             NCCL_U64,
	             NCCL_F16,
	             NCCL_F32,
	             NCCL_F64,
	             NCCL_BF16,
	             NCCL_F8E4M3,
	             NCCL_F8E5M2,
};

struct nccl_id { /* ncclUniqueId: passed by value */
	char bytes[128];
};

/* The fields of ncclConfig_t that are followed, as far as a version of the header has them; the rest is its own. */
struct nccl_config {
	size_t size;
	unsigned int magic, version;
	int blocking, cga_cluster_size, min_ctas, max_ctas;
	const char *net_name;
	int split_share;
};

struct nccl_transport;

/* An operator that the program made (ncclRedOpCreatePreMulSum): a sum of inputs that were multiplied first. */
struct nccl_made_operator {
	bool used;
	int type;
	bool on_device; /* the scalar is read when an operation runs */
	uint64_t address;
	unsigned char scalar[8];
};

#define NCCL_MADE_OPERATORS 32

struct nccl_comm {
	int rank, ranks, device;
	const struct nccl_transport *transport;
	void *state; /* the transport's */
	int *slots;  /* by rank: its place among those that are run, -1: it is not run. NULL: all are (nccl_members.h) */
	int *run;    /* the ranks that are, by place */
	int run_count;
	struct {
		int ranks, stride; /* of the job: so many, each so far from the next; 0: not known, or not regular */
	} group;               /* of which some are not run (nccl_members.h) */
	struct nccl_id id;
	unsigned splits;  /* communicators that were made of it */
	int max_channels; /* 0: as many as the library likes */
	bool together;    /* all its ranks are devices of this process */
	bool shares;      /* resources of the communicator that it was split from */
	struct nccl_made_operator operators[NCCL_MADE_OPERATORS];
};

enum nccl_kind { /* as enum tn_collective */
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
	int type; /* enum nccl_type */
	uint64_t
		like; /* of a broadcast or receive from a rank that is not run: the address whose values are taken for it; 0: none */
};

struct nccl_split {
	int color, key;
};

struct nccl_transport {
	/* Comes to the communicator that `comm->id` names, without waiting for its other ranks. */
	int (*connect)(struct nccl_comm *comm);
	/* Waits until all of them have come. */
	int (*meet)(struct nccl_comm *comm);
	void (*disconnect)(struct nccl_comm *comm, bool abort);
	/* Puts operations of one communicator on their streams: those of one group, in the program's order. */
	int (*run)(struct nccl_comm *comm, const struct nccl_operation *operations, size_t count);
	/* A split of all ranks: says what this rank wants, then (in a second call) hears what all want. `all` has room for each
	 * rank. */
	int (*say)(struct nccl_comm *comm, const struct nccl_split *own);
	int (*hear)(struct nccl_comm *comm, struct nccl_split *all);
	/* Gives the device memory back for a while, or takes it again. */
	int (*suspend)(struct nccl_comm *comm, bool back);
	int (*error)(struct nccl_comm *comm);
};

/* The transport of a communicator with one rank, and of one with several. */
extern const struct nccl_transport tn__nccl_self, tn__nccl_ranks;

/* Keeps words for ncclGetLastError and returns `result`. `text` is a literal. */
int tn__nccl_fail(int result, const char *text);

/* Gives an operation to its transport: at once, or at the end of the calling thread's group. */
int tn__nccl_submit(const struct nccl_operation *operation);

/* Something that waits for other ranks: done at once, or at the end of the calling thread's group, so that a thread can
 * begin it for several devices. `finish` frees what it is given. */
int tn__nccl_later(int (*finish)(void *what), void *what);

/* The profiling interface: every name exists a second time with a p before it. */
#define TN_NCCL_PROFILING(name) extern __typeof__(name) p##name __attribute__((alias(#name), visibility("default")));

#endif
