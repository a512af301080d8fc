/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes of operations once the other ranks have put theirs on the board: values in the receiving buffers, as far as
 * they are known. Operations are finished in the order of their numbers: when somebody waits for them, or as the next one
 * is posted.
 */
#ifndef TN_NCCL_RESULTS_H
#define TN_NCCL_RESULTS_H

#include "vgpu/nccl/nccl_wait.h"

/* Keeps an operation until it can be finished. False: no memory. The communicator's lock is held, as for the next two. */
bool tn__nccl_queue(struct nccl_queue *queue, const struct nccl_operation *operation, uint64_t number);
/* Finishes collectives up to a number, as far as the ranks that they need have posted them. */
void tn__nccl_finish_collectives(struct nccl_comm *comm, uint64_t number);
/* The same for receives from a rank. False: one met a send of another size; *bad and *other say which. */
bool tn__nccl_finish_receives(struct nccl_comm *comm, int peer, uint64_t number, struct nccl_awaited *bad,
                              struct nccl_record *other);

/* Finishes all collectives and receives for which that is so; nothing where somebody has the communicator's lock, and may be at it. */
void tn__nccl_take(struct nccl_comm *comm);
/* Waits for receives from `peer`, or, where it is -1, collectives, up to a number, and finishes them; or, from NCCL_SENDS_TO on, until
 * the receive of a send is on a stream. */
int tn__nccl_wait_for_results(struct nccl_comm *comm, int peer, uint64_t number);

#endif
