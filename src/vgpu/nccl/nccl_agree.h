/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the ranks put the same collective in the same place. The first that they did not agree on is `broken` of the
 * board's head: nobody gets past it, as on cards.
 */
#ifndef TN_NCCL_AGREE_H
#define TN_NCCL_AGREE_H

#include "vgpu/nccl/nccl_wait.h"

/* Whether a neighbour that was here already did the same; if not, *bad and *other say what it did. */
bool tn__nccl_agrees(struct nccl_comm *comm, const struct nccl_record *own, uint64_t number, struct nccl_awaited *bad,
                     struct nccl_record *other);
/* Ranks did not agree on a collective: waits for a rank that did something else. */
int tn__nccl_wait_at_disagreement(struct nccl_comm *comm);

#endif
