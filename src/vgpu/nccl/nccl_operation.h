/* SPDX-License-Identifier: Apache-2.0
 *
 * What operations are made of: how many bytes one reads and writes, and which ranks give and take. Looks at nothing but
 * the operation.
 */
#ifndef TN_NCCL_OPERATION_H
#define TN_NCCL_OPERATION_H

#include "vgpu/nccl/nccl_comm.h"

/* A rank that gives has a part for each rank; one that takes gets a part of each; what is given is combined into one. */
bool tn__nccl_scatters(enum nccl_kind kind);
bool tn__nccl_gathers(enum nccl_kind kind);
bool tn__nccl_reduces(enum nccl_kind kind);
/* Only the root gives; only the root takes. */
bool tn__nccl_from_root(enum nccl_kind kind);
bool tn__nccl_to_root(enum nccl_kind kind);

/* Of the buffers of the calling rank. */
size_t tn__nccl_send_bytes(const struct nccl_operation *operation);
size_t tn__nccl_receive_bytes(const struct nccl_operation *operation);

/* Whether the calling rank gives something, and takes something. */
bool tn__nccl_contributes(const struct nccl_operation *operation);
bool tn__nccl_receives(const struct nccl_operation *operation);

/* Whether the calling rank needs what `from` gives to a collective of this kind and root. */
bool tn__nccl_needs(const struct nccl_comm *comm, int kind, int root, int from);

#endif
