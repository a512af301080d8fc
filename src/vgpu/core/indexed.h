/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements at indices: what rearrange.c follows of indexing, gather and scatter.
 */
#ifndef TN_VGPU_INDEXED_H
#define TN_VGPU_INDEXED_H

#include "vgpu/core/state.h"

#define TN_INDEXED_DIMS 25                 /* of an OffsetCalculator, and of indices */
#define TN_INDEXED_MAX (UINT64_C(1) << 17) /* elements that are looked at one by one */

/* The closure of gpu_index_kernel: an OffsetCalculator of (result, input, index) in bytes, then these. */
struct tn_indexed {
	int32_t dims;
	uint32_t sizes[TN_INDEXED_DIMS][3]; /* each with what makes dividing by it fast */
	uint32_t strides[TN_INDEXED_DIMS][3];
	uint64_t result, input;
	int32_t indices;
	uint64_t index[TN_INDEXED_DIMS];
	int64_t index_sizes[TN_INDEXED_DIMS], index_strides[TN_INDEXED_DIMS];
};
_Static_assert(offsetof(struct tn_indexed, result) == 608 && offsetof(struct tn_indexed, index) == 632,
               "as in PyTorch");

/* Whether it is such a closure, of `count` elements. */
bool tn__indexed_is_plausible(const struct tn_indexed *c, uint64_t count);
uint64_t tn__indexed_elements(const struct tn_indexed *c);
/* Where the n-th element lies in result, input and index, in bytes. */
void tn__indexed_offsets(const struct tn_indexed *c, uint64_t n, uint64_t offsets[3]);
/* The place that the indices name, in bytes; false: one is not known, or out of range. */
bool tn__indexed_place(const struct tn_indexed *c, uint64_t index_offset, uint64_t *place);
/* Moves each element of `width` bytes from the place that its indices name, or, to `put`, to there; false: they are not all known, and nothing
 * was moved. Wants the core lock. */
bool tn__indexed_move(const struct tn_indexed *c, uint64_t count, bool put, uint64_t width);

#endif
