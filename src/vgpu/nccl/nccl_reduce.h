/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of reductions on the types of ncclDataType_t: integers wrap, floating point is computed in float (double for
 * double) and rounded to its type after each step, to the nearest, ties to even.
 */
#ifndef TN_NCCL_REDUCE_H
#define TN_NCCL_REDUCE_H

#include "vgpu/nccl/nccl_comm.h"

size_t tn__nccl_type_bytes(int type);

/* The scalar of an operator that the program made as a number; 1 for a built-in one. False: its value is not known. */
bool tn__nccl_scalar(const struct nccl_comm *comm, int operator, double * out);

/* Multiplies `count` elements by a scalar; combines them with others; divides them. */
void tn__nccl_scale(void *values, size_t count, enum nccl_type type, double scalar);
void tn__nccl_combine(void *into, const void *with, size_t count, enum nccl_type type, int operator);
void tn__nccl_divide(void *values, size_t count, enum nccl_type type, int by);

#endif
