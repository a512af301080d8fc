/* SPDX-License-Identifier: Apache-2.0
 *
 * cuFFT's plans: handles are small numbers, behind which stand the transform's size, its work area and its stream.
 * Numbers are those of the documented API (cufft.h is not included: its package is large). Thread-safe: one lock.
 */
#ifndef TN_VGPU_CUFFT_PLAN_H
#define TN_VGPU_CUFFT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CUFFT_SUCCESS = 0,
	CUFFT_INVALID_PLAN = 1,
	CUFFT_ALLOC_FAILED = 2,
	CUFFT_INVALID_TYPE = 3,
	CUFFT_INVALID_VALUE = 4,
	CUFFT_INVALID_SIZE = 8
};

/* Bytes of one complex element of a transform by cufftType, and by cudaDataType as the Xt functions have it; 0: neither. */
size_t tn__cufft_element(int type);
size_t tn__cufft_xt_element(int type);

/* The work area of `batch` transforms with complex elements of `element` bytes. NVIDIA's cuFFT guide ("Multidimensional
 * Transforms" and the notes on cufftEstimate) gives bounds and no formula: from once the complex data, for sizes that are
 * products of 2, 3, 5 and 7, to eight times, for others. These two bounds are our answer: a model.
 * CUFFT_INVALID_SIZE where a size is below 1 or the product is too large. */
int tn__cufft_work_size(int rank, const int64_t *sizes, int64_t batch, size_t dtype, size_t *bytes);

#endif
