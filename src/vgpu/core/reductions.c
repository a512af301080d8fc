/* SPDX-License-Identifier: Apache-2.0
 *
 * PyTorch's reductions (aten/src/ATen/native/cuda/Reduce.cuh): all, any, sums, extremes, norms, indices. Their results are exact when
 * what they read is known, else assumptions (likely.c).
 *
 * Called with the core lock held.
 */
#include "vgpu/core/reductions.h"

#include <stdlib.h>
#include <string.h>

unsigned char *
tn__likely_whole(uint64_t address, uint64_t count, enum tn_dtype dtype, bool *known)
{
	uint64_t width = tn__dtype_bytes(dtype), bytes = count * width;
	const struct tn_likely one = { .kind = TN_LIKELY_WHOLE, .dtype = (unsigned char)dtype };
	unsigned char pattern[16], *values = bytes <= TN_FOLLOWED_MAX ? malloc(bytes) : NULL;
	*known = false;
	if (!values)
		return NULL;
	(void)tn__likely_pattern(&one, 1, pattern);
	for (uint64_t i = 0; i < count; i++)
		memcpy(values + i * width, pattern, width);
	*known = tn__values_known(address, NULL, bytes);
	tn__values_likely(address, values, bytes, dtype);
	return values;
}

/* Where ReduceOp's fields lie depends on the size of the operator and of its start: kernel_decode.c has the whole struct. */
struct reduction {
	int32_t inputs, outputs; /* inputs of each output */
	uint64_t source, result;
	bool dense; /* one dimension whose elements adjoin */
};

#define CONFIG_TO_SOURCE 972
#define CONFIG_TO_INPUT 64 /* OffsetCalculator of the inputs: dimensions, sizes of 12 bytes each, strides in bytes */

static bool
read_reduction(const struct tn_launch *launch, struct reduction *out)
{
	static const size_t starts[] = { 4, 8, 12, 16, 24, 32 };
	const unsigned char *bytes = launch->arguments[0];
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		size_t source = (starts[i] + CONFIG_TO_SOURCE + 7) & ~(size_t)7;
		int32_t config[3];
		uint64_t addresses[2];
		memcpy(config, bytes + starts[i], sizeof(config));
		memcpy(addresses, bytes + source, sizeof(addresses));
		bool width = config[0] == 1 || config[0] == 2 || config[0] == 4 || config[0] == 8 || config[0] == 16;
		if (!width || config[1] <= 0 || config[2] <= 0 || !tn__on_device(addresses[0]) || !tn__on_device(addresses[1]))
			continue;
		uint32_t dims, size, stride;
		memcpy(&dims, bytes + starts[i] + CONFIG_TO_INPUT, 4);
		memcpy(&size, bytes + starts[i] + CONFIG_TO_INPUT + 4, 4);
		memcpy(&stride, bytes + starts[i] + CONFIG_TO_INPUT + 4 + 25 * 12, 4);
		bool dense = config[1] == 1 || (dims == 1 && size == (uint32_t)config[1] && stride == (uint32_t)config[0]);
		*out = (struct reduction){ config[1], config[2], addresses[0], addresses[1], dense };
		return true;
	}
	return false;
}

/* Of numbers that each say whether something is selected: how many are. Of counts: what they come to. */
static struct tn_likely
sum_of(const struct reduction *r, enum tn_dtype dtype, const struct tn_likely *of)
{
	struct tn_likely likely = { .kind = TN_LIKELY_WHOLE, .dtype = (unsigned char)dtype };
	uint64_t inputs = (uint64_t)r->inputs;
	if (of->kind == TN_LIKELY_SELECTED) {
		likely.kind = TN_LIKELY_COUNT;
		likely.bound = of->bound > 0 && of->bound < inputs && r->outputs == 1 ? of->bound : inputs;
	} else if (of->kind == TN_LIKELY_COUNT && r->outputs == 1) {
		bool known;
		unsigned char *values = tn__likely_whole(r->source, inputs, (enum tn_dtype)of->dtype, &known);
		size_t width = tn__dtype_bytes((enum tn_dtype)of->dtype);
		likely.kind = TN_LIKELY_COUNT;
		for (uint64_t i = 0; values && i < inputs; i++)
			likely.bound += (uint64_t)tn__integer_at(values + i * width, (enum tn_dtype)of->dtype);
		free(values);
	}
	return likely;
}

/* Of a mask that compares two tensors all are taken to hold, and none where the program asks for any. */
static bool
truth_of_mask(const struct tn_kernel *kernel, const struct tn_likely *mask, bool after_mask)
{
	bool mixed = mask ? mask->mixed : after_mask;
	if (mixed)
		return kernel->selection == SELECTION_ALL && (!mask || mask->truth);
	return !mask || mask->truth;
}

/* Whether any or all of whole numbers are not zero must agree with what the numbers themselves read as: PyTorch asks
 * infos.any() of a batched solver's reports first, and then looks for the one that is not zero (_linalg_check_errors in
 * aten/src/ATen/native/BatchLinearAlgebra.cpp). Of many that nothing is assumed of, each reads as 0: tn_vgpu_reading. All
 * are taken not to be zero all the same, since nobody looks for the first that is. */
static bool
truth_of_numbers(const struct tn_kernel *kernel, const struct tn_likely *numbers)
{
	if (numbers)
		return tn__likely_value(numbers, 0) != 0;
	return kernel->selection == SELECTION_ALL;
}

static struct tn_likely
result_of(const struct tn_kernel *kernel, const struct reduction *r, bool after_mask)
{
	enum tn_dtype dtype = (enum tn_dtype)kernel->selected;
	struct tn_likely of = { .kind = TN_LIKELY_NONE }, likely = { .dtype = (unsigned char)dtype, .truth = true };
	bool assumed = tn__values_assumed(r->source, &of), whole = tn__dtype_is_integer(dtype);
	switch ((enum selection)kernel->selection) {
	case SELECTION_ALL:
	case SELECTION_ANY:
		likely.kind = TN_LIKELY_TRUTH;
		likely.dtype = TN_DTYPE_BOOL;
		if (kernel->reduced != TN_DTYPE_BOOL && tn__dtype_is_integer((enum tn_dtype)kernel->reduced))
			likely.truth = truth_of_numbers(kernel, assumed && of.dtype == kernel->reduced ? &of : NULL);
		else
			likely.truth = truth_of_mask(kernel, assumed && of.kind == TN_LIKELY_TRUTH ? &of : NULL, after_mask);
		return likely;
	case SELECTION_INDEX:
		likely.kind = TN_LIKELY_INDEX;
		likely.dtype = TN_DTYPE_I64;
		return likely;
	case SELECTION_SUM:
		if (whole)
			return sum_of(r, dtype, &of);
		break;
	case SELECTION_EXTREME:
		if (assumed && of.dtype == dtype)
			return of;
		break;
	default:
		break;
	}
	likely.kind = whole ? TN_LIKELY_WHOLE : TN_LIKELY_REAL;
	return likely;
}

bool
tn__reduction_is_exact(const struct tn_kernel *kernel)
{
	return (kernel->selection == SELECTION_EXTREME || kernel->selection == SELECTION_SUM) &&
	       kernel->reduced == kernel->selected && tn__dtype_is_integer((enum tn_dtype)kernel->selected);
}

/* The largest or smallest, or the sum, of whole numbers that are known and dense: sizes of what is built next hang on it. */
static bool
reduce_known(const struct tn_kernel *kernel, const struct reduction *r)
{
	enum tn_dtype dtype = (enum tn_dtype)kernel->selected;
	uint64_t width = tn__dtype_bytes(dtype), bytes = (uint64_t)r->inputs * width;
	bool least = strstr(kernel->name, "MinNanFunctor") != NULL, sum = kernel->selection == SELECTION_SUM;
	if (!tn__reduction_is_exact(kernel) || r->outputs != 1 || !r->dense || bytes > TN_FOLLOWED_MAX)
		return false;
	unsigned char *values = malloc(bytes);
	bool known = values && tn__values_known(r->source, values, bytes);
	int64_t result = known ? tn__integer_at(values, dtype) : 0;
	for (uint64_t i = 1; known && i < (uint64_t)r->inputs; i++) {
		int64_t value = tn__integer_at(values + i * width, dtype);
		if (sum)
			result = (int64_t)((uint64_t)result + (uint64_t)value);
		else if (least ? value < result : value > result)
			result = value;
	}
	free(values);
	if (known) { /* little-endian: its low bytes are the element */
		tn__values_forget_reached(&r->result, 1);
		tn__values_put(r->result, &result, width);
	}
	return known;
}

bool
tn__reduce(const struct tn_kernel *kernel, const struct tn_launch *launch, bool after_mask)
{
	struct reduction r;
	if (!read_reduction(launch, &r))
		return false;
	if (reduce_known(kernel, &r))
		return true;
	struct tn_likely likely = result_of(kernel, &r, after_mask);
	tn__values_forget_reached(&r.result, 1);
	tn__values_assume(r.result, (uint64_t)r.outputs * tn__dtype_bytes((enum tn_dtype)likely.dtype), &likely);
	return true;
}
