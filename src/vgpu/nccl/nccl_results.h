/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes of operations, once the ranks that they need have put theirs on the board: known values in the receiving buffers. Results are
 * finished in the order of their numbers, when somebody waits for them or as the next operation is put there.
 */
#ifndef TN_NCCL_RESULTS_H
#define TN_NCCL_RESULTS_H

#include "vgpu/nccl/nccl_wait.h"

/* False: no memory. `lock` is held, as in the next two. */
bool tn__nccl_queue(struct nccl_queue *queue, const struct nccl_operation *operation, uint64_t number);
/* Finishes collectives that all it takes have put there, in order, up to a number. */
void tn__nccl_finish_collectives(struct nccl_comm *comm, uint64_t number);
/* Finishes receives from a rank. False: one met a send of another size, which *bad and *other are. */
bool tn__nccl_finish_receives(struct nccl_comm *comm, int peer, uint64_t number, struct nccl_awaited *bad,
                              struct nccl_record *other);

/* Waits for receives from `peer`, or, where it is -1, collectives, up to a number, and finishes them. */
int tn__nccl_wait_for_results(struct nccl_comm *comm, int peer, uint64_t number);

#endif
