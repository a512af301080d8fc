/* SPDX-License-Identifier: Apache-2.0
 *
 * How large a work area is: pure arithmetic.
 */
#include "vgpu/cufft/plan.h"

#define WORST 8 /* times the data, where a size has a larger prime factor than 7 */

size_t
tn__cufft_element(int type)
{
	switch (type) {
	case 0x29: /* C2C */
	case 0x2a: /* R2C */
	case 0x2c: /* C2R */
		return 8;
	case 0x69: /* Z2Z */
	case 0x6a: /* D2Z */
	case 0x6c: /* Z2D */
		return 16;
	default:
		return 0;
	}
}

size_t
tn__cufft_xt_element(int type)
{
	switch (type) {
	case 4: /* CUDA_C_32F */
		return 8;
	case 5: /* CUDA_C_64F */
		return 16;
	case 6:  /* CUDA_C_16F */
	case 15: /* CUDA_C_16BF */
		return 4;
	default:
		return 0;
	}
}

static bool
has_small_factors(int64_t size)
{
	static const int factors[] = { 2, 3, 5, 7 };
	for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++)
		while (size % factors[i] == 0)
			size /= factors[i];
	return size == 1;
}

int
tn__cufft_work_size(int rank, const int64_t *sizes, int64_t batch, size_t dtype, size_t *bytes)
{
	uint64_t total = dtype;
	bool small = true;
	if (rank < 1 || rank > 3 || batch < 1)
		return CUFFT_INVALID_SIZE;
	for (int i = 0; i < rank; i++) {
		if (sizes[i] < 1 || __builtin_mul_overflow(total, (uint64_t)sizes[i], &total))
			return CUFFT_INVALID_SIZE;
		small = small && has_small_factors(sizes[i]);
	}
	if (__builtin_mul_overflow(total, (uint64_t)batch, &total) ||
	    __builtin_mul_overflow(total, (uint64_t)(small ? 1 : WORST), &total) || total > SIZE_MAX / 2)
		return CUFFT_INVALID_SIZE;
	*bytes = (size_t)total;
	return CUFFT_SUCCESS;
}
