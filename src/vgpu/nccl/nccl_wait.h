/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for another rank. Who waits for long says so in the rank's row of the ledger, with what it waits for
 * (doc/design/0022-many-cards.md, "Ending"). Ends when the communicator is aborted.
 */
#ifndef TN_NCCL_WAIT_H
#define TN_NCCL_WAIT_H

#include "vgpu/nccl/nccl_ranks.h"

struct nccl_awaited {
	struct nccl_comm *comm;
	int peer, operation; /* operation: enum nccl_kind, or -1 */
	uint64_t number, bytes;
	int other_operation; /* >= 0: the peer did that instead, and nothing can come of waiting */
	uint64_t other_bytes;
};

/* NCCL_REMOTE_ERROR when the communicator was aborted. That another rank did it is noted in the own rank's row. */
int tn__nccl_check_abort(const struct nccl_comm *comm);
/* Waits until *counter is at least `target`. An nccl_result. */
int tn__nccl_wait(const struct nccl_awaited *awaited, const _Atomic uint64_t *counter, uint64_t target);
/* The peer has put something else in this place: as on cards, nothing comes of it. Ends when the run or the communicator
 * does. */
int tn__nccl_wait_for_ever(struct nccl_awaited *awaited, const struct nccl_record *other);

#endif
