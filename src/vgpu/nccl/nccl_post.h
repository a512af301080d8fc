/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts operations on their streams and on the board. Small payloads whose values are known are moved over the board; what
 * they make is pending until somebody waits for it. Nothing else waits, but a rank that is a whole ring ahead.
 */
#ifndef TN_NCCL_POST_H
#define TN_NCCL_POST_H

#include "vgpu/nccl/nccl_comm.h"

/* Those of one group, in the program's order: `run` of struct nccl_transport. */
int tn__nccl_post(struct nccl_comm *comm, const struct nccl_operation *operations, size_t count);

#endif
