/* SPDX-License-Identifier: Apache-2.0
 *
 * Likely values: what is offered for a value that only a kernel could know. The first is what programs go on with (a
 * comparison holds, a loss is small and positive, as many are selected as --assume says); the others are for a line that
 * the likely one leads nowhere at. Pure, but for the share that the environment sets.
 */
#include "vgpu/core/likely.h"

#include <math.h>

#include "vgpu/core/state.h"

#define LIKELY_REAL 0.5
#define SMALL_REAL 1e-7 /* not zero: programs divide by it. Half precision still holds it */
#define LARGE_REAL 1e4

static double
count_of(const struct tn_likely *likely, int choice)
{
	double full = (double)likely->bound, share = tn__core.assumed_share;
	if (choice == 0)
		return ceil(full * share);
	if (choice == 1)
		return share > 0 ? 0 : full;
	return full > 0 ? 1 : 0;
}

double
tn__likely_value(const struct tn_likely *likely, int choice)
{
	switch ((enum tn_likely_kind)likely->kind) {
	case TN_LIKELY_TRUTH:
		return likely->truth != (choice == 1);
	case TN_LIKELY_REAL:
		return choice == 0 ? LIKELY_REAL : choice == 1 ? SMALL_REAL : LARGE_REAL;
	case TN_LIKELY_WHOLE:
	case TN_LIKELY_SELECTED:
		return choice == 0 ? 1 : choice == 1 ? 0 : 2;
	case TN_LIKELY_INDEX:
		return choice;
	case TN_LIKELY_COUNT:
		return count_of(likely, choice);
	default:
		return 0;
	}
}

size_t
tn__likely_pattern(const struct tn_likely *likely, double value, unsigned char pattern[16])
{
	enum tn_dtype dtype = (enum tn_dtype)likely->dtype;
	int64_t whole = (int64_t)value;
	float single = (float)value;
	uint16_t narrow;
	memset(pattern, 0, 16);
	switch (dtype) {
	case TN_DTYPE_F16:
	case TN_DTYPE_BF16:
		narrow = dtype == TN_DTYPE_F16 ? tn__half_of_float(single) : tn__bfloat16_of_float(single);
		memcpy(pattern, &narrow, sizeof(narrow));
		return sizeof(narrow);
	case TN_DTYPE_F32:
	case TN_DTYPE_C64:
		memcpy(pattern, &single, sizeof(single));
		return tn__dtype_bytes(dtype);
	case TN_DTYPE_F64:
	case TN_DTYPE_C128:
		memcpy(pattern, &value, sizeof(value));
		return tn__dtype_bytes(dtype);
	case TN_DTYPE_NONE:
		memcpy(pattern, &whole, sizeof(whole));
		return sizeof(whole);
	default: /* little-endian: its low bytes are the element */
		memcpy(pattern, &whole, tn__dtype_bytes(dtype));
		return tn__dtype_bytes(dtype);
	}
}
