/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that write what programs read next: how many are selected, whether all or any are, sums, norms, indices. Their
 * results are exact when what they read is known, else assumptions (likely.c); anything else becomes unknown, as with a
 * kernel that nobody knows.
 *
 * Names and orders of parameters: CUB (dispatch_reduce, dispatch_select_if, dispatch_reduce_by_key, dispatch_scan, the same
 * from 2013 to 2026), Thrust's unique, and PyTorch's Nonzero.cu, UniqueCub.cu, SummaryOps.cu in
 * aten/src/ATen/native/cuda. An argument is believed only where it is an address of a device, or a plausible number.
 *
 * Called with the core lock held.
 */
#include "vgpu/core/selected.h"

#include <stdlib.h>
#include <string.h>

#include "vgpu/core/names.h"
#include "vgpu/core/reductions.h"

#define MOST_ELEMENTS (INT64_C(1) << 31)

/* ---- names ---- */

/* ReduceOp<type, operator, 32-bit index, type of the result, ...>; a type that was named before is a substitution. */
static enum tn_dtype
result_of_reduction(const char *reduction)
{
	static const char *const types[] = { "f", "d", "i", "l", "s", "h", "a", "b", "N3c104HalfE", "N3c108BFloat16E" };
	char wanted[32];
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		strcpy(wanted, "j");
		strcat(strcat(wanted, types[i]), "Li4E");
		if (strstr(reduction, wanted))
			return tn__dtype_of(types[i]);
	}
	const char *substituted = strstr(reduction, "EjS");
	return substituted ? tn__dtype_of(reduction) : TN_DTYPE_NONE;
}

static void
decode_reduction(struct tn_kernel *kernel, const char *reduction)
{
	static const struct {
		const char *part;
		unsigned char selection;
	} operators[] = {
		{ "and_kernel_cuda", SELECTION_ALL },   { "or_kernel_cuda", SELECTION_ANY },
		{ "ArgMaxOps", SELECTION_INDEX },       { "ArgMinOps", SELECTION_INDEX },
		{ "sum_functor", SELECTION_SUM },       { "MaxNanFunctor", SELECTION_EXTREME },
		{ "MinNanFunctor", SELECTION_EXTREME },
	};
	kernel->selection = SELECTION_FIGURE;
	kernel->selected = (unsigned char)result_of_reduction(reduction);
	kernel->reduced = (unsigned char)tn__dtype_of(reduction);
	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
		if (strstr(reduction, operators[i].part))
			kernel->selection = operators[i].selection;
	if (kernel->selected == TN_DTYPE_NONE)
		kernel->selection = SELECTION_NONE;
}

static void
decode(struct tn_kernel *kernel)
{
	const char *name = kernel->name, *found;
	kernel->selection = SELECTION_NONE;
	if ((found = skip_to(skip_to(name, "13reduce_kernelILi"), "8ReduceOpI"))) {
		decode_reduction(kernel, found);
	} else if (strstr(name, "DeviceReduceSingleTileKernel") || strstr(name, "18DeviceReduceKernel")) {
		found = skip_to(name, "NonZeroOpI");
		kernel->selected = (unsigned char)(found ? tn__dtype_of(found) : TN_DTYPE_NONE);
		kernel->selection = strstr(name, "SingleTile") ? SELECTION_COUNT : SELECTION_COUNT_PARTS;
	} else if (strstr(name, "DeviceSelectSweepKernel")) {
		kernel->selection = SELECTION_UNIQUE;
	} else if (strstr(name, "DeviceReduceByKeyKernel")) {
		kernel->selection = SELECTION_RUNS;
	} else if (strstr(name, "20DeviceScanInitKernel") || strstr(name, "23DeviceCompactInitKernel")) {
		kernel->selection = SELECTION_SCRATCH;
	} else if (strstr(name, "8__unique11UniqueAgent")) {
		kernel->selection = SELECTION_THRUST_UNIQUE;
	} else if (strstr(name, "16DeviceScanKernel") && strstr(name, "PKlPl") && strstr(name, "plus")) {
		kernel->selection = SELECTION_SCAN;
	} else if (strstr(name, "topk10gatherTopKI")) { /* sbtopk and mbtopk */
		kernel->selection = SELECTION_TOPK;
	} else if (strstr(name, "22fillSliceWithIndex_kernelI")) {
		kernel->selection = SELECTION_NUMBER_SLICES;
	} else if (strstr(name, "18radixSortKVInPlaceI") || strstr(name, "20bitonicSortKVInPlaceI") ||
	           strstr(name, "23warpMergeSortKVInPlaceI")) {
		kernel->selection = SELECTION_SORT;
	} else if (strstr(name, "kernelHistogram1DI")) {
		kernel->selection = SELECTION_HISTOGRAM;
		kernel->selected = (unsigned char)tn__dtype_of(skip_to(name, "kernelHistogram1DI"));
	}
}

/* ---- arguments ---- */

/* The address that stands in the first 16 bytes of an argument: a pointer, or an iterator that holds one. 0: none. A
 * pointer has 8; what stands behind it on the caller's stack is looked at, too, which is not for a sanitizer. */
__attribute__((no_sanitize("address"))) static uint64_t
address_in(const struct tn_launch *launch, size_t number)
{
	uint64_t words[2];
	memcpy(words, launch->arguments[number], sizeof(words));
	return tn__on_device(words[0]) ? words[0] : tn__on_device(words[1]) ? words[1] : 0;
}

static uint64_t
pointer_in(const struct tn_launch *launch, size_t number)
{
	uint64_t pointer;
	memcpy(&pointer, launch->arguments[number], sizeof(pointer));
	return tn__on_device(pointer) ? pointer : 0;
}

/* A number of elements: the low half will do, there are fewer than 2^31 a launch. */
static uint64_t
count_in(const struct tn_launch *launch, size_t number)
{
	int32_t count;
	memcpy(&count, launch->arguments[number], sizeof(count));
	return count > 0 ? (uint64_t)count : 0;
}

/* These arguments point at what the kernel writes; its scratch memory is nobody's to read. */
static void
forget_written(const struct tn_launch *launch, const size_t numbers[], size_t count)
{
	uint64_t addresses[4];
	for (size_t i = 0; i < count; i++)
		addresses[i] = address_in(launch, numbers[i]);
	tn__values_forget_reached(addresses, count);
}

static void
assume_count(uint64_t address, uint64_t bytes, uint64_t bound)
{
	const struct tn_likely likely = { .kind = TN_LIKELY_COUNT, .bound = bound };
	tn__values_assume(address, bytes, &likely);
}

/* ---- what is not zero ---- */

static bool
is_zero(const unsigned char *at, enum tn_dtype dtype)
{
	return tn__dtype_is_integer(dtype) ? tn__integer_at(at, dtype) == 0 : tn__real_at(at, dtype) == 0;
}

/* How many of a known range are not zero; false when it is not known, or large. */
static bool
count_known(uint64_t address, uint64_t count, enum tn_dtype dtype, int32_t *out)
{
	uint64_t width = tn__dtype_bytes(dtype), bytes = count * width;
	bool followed = tn__dtype_is_integer(dtype) || tn__dtype_is_real(dtype);
	unsigned char *values = followed && bytes <= tn__core.values_bound ? malloc(bytes) : NULL;
	bool known = values && tn__values_known(address, values, bytes);
	*out = 0;
	for (uint64_t i = 0; known && i < count; i++)
		*out += !is_zero(values + i * width, dtype);
	free(values);
	return known;
}

/* How many of so many elements at an address can be selected, by what is known of the tensor there. */
static uint64_t
most_selected(uint64_t address, uint64_t count, enum tn_dtype dtype)
{
	uint64_t width = tn__dtype_bytes(dtype);
	return width ? tn__values_selected(address, count * width, width) : count;
}

/* Parameters: (what is counted, result, how many, ...). Partial counts carry the bound of them all. */
static void
count_selected(const struct tn_kernel *kernel, const struct tn_launch *launch)
{
	uint64_t in = address_in(launch, 0), out = pointer_in(launch, 1), count = count_in(launch, 2);
	struct tn_likely part;
	int32_t known;
	bool of_parts = kernel->selected == TN_DTYPE_NONE;
	if (!in || !out || !count)
		return tn__values_forget();
	if (of_parts) {
		bool counted = tn__values_assumed(in, &part) && part.kind == TN_LIKELY_COUNT;
		bool exact = tn__values_known(in, &known, sizeof(known));
		tn__values_forget_reached(&out, 1);
		if (exact)
			tn__values_put(out, (const void *)&known, sizeof(known));
		else if (counted)
			assume_count(out, sizeof(uint64_t), part.bound);
		return;
	}
	uint64_t bytes = count * tn__dtype_bytes((enum tn_dtype)kernel->selected);
	bool exact = count_known(in, count, (enum tn_dtype)kernel->selected, &known);
	if (exact)
		tn__values_counted(in, bytes, known);
	else
		exact = tn__values_count_of(in, bytes, &known);
	uint64_t bound = most_selected(in, count, (enum tn_dtype)kernel->selected);
	tn__values_forget_reached(&out, 1);
	if (exact) /* of parts the first stands for all */
		tn__values_put(out, (const void *)&known, sizeof(known));
	else
		assume_count(out, sizeof(uint64_t), bound);
}

/* ---- unique ---- */

static void
count_unique(const struct tn_launch *launch, size_t result, size_t items)
{
	uint64_t out = pointer_in(launch, result), count = count_in(launch, items);
	forget_written(launch, (const size_t[]){ result - 1, result }, 2);
	if (out && count)
		assume_count(out, sizeof(uint64_t), count);
}

/* Each run may be as long as all there is: the bound of each length, not of their sum. */
static void
count_runs(const struct tn_launch *launch)
{
	uint64_t lengths = pointer_in(launch, 3), out = pointer_in(launch, 4), count = count_in(launch, 9);
	const struct tn_likely length = { .kind = TN_LIKELY_COUNT, .dtype = TN_DTYPE_I64, .bound = count };
	forget_written(launch, (const size_t[]){ 1, 3, 4 }, 3);
	if (!out || !count)
		return;
	if (lengths)
		tn__values_assume(lengths, count * sizeof(int64_t), &length);
	assume_count(out, sizeof(uint64_t), count);
}

/* ---- sums ---- */

/* Inclusive sums of 64-bit numbers. Parameters: (in, out, state, first tile, operator, start, how many). */
static void
scan(const struct tn_launch *launch)
{
	uint64_t in = pointer_in(launch, 0), out = pointer_in(launch, 1), count = count_in(launch, 6);
	bool known = false;
	unsigned char *values = in && out && count ? tn__likely_whole(in, count, TN_DTYPE_I64, &known) : NULL;
	forget_written(launch, (const size_t[]){ 1 }, 1);
	if (!values)
		return;
	int64_t sum = 0;
	for (uint64_t i = 0; i < count; i++) {
		sum += tn__integer_at(values + i * sizeof(sum), TN_DTYPE_I64);
		memcpy(values + i * sizeof(sum), &sum, sizeof(sum));
	}
	const struct tn_likely likely = { .kind = TN_LIKELY_COUNT,
		                              .dtype = TN_DTYPE_I64,
		                              .bound = sum > 0 ? (uint64_t)sum : 0 };
	if (known)
		tn__values_put(out, values, count * sizeof(sum));
	else
		tn__values_assume_bytes(out, values, count * sizeof(sum), &likely);
	free(values);
}

/* ---- histograms ---- */

/* TensorInfo of a dense result: its address, its sizes. The bins share what there is, the first ones what is left over. */
static void
share_out(const struct tn_kernel *kernel, const struct tn_launch *launch)
{
	struct {
		uint64_t data;
		int64_t sizes[1];
	} result, input;
	enum tn_dtype dtype = (enum tn_dtype)kernel->selected;
	memcpy(&result, launch->arguments[0], sizeof(result));
	memcpy(&input, launch->arguments[2], sizeof(input));
	int64_t bins = result.sizes[0], count = input.sizes[0], width = (int64_t)tn__dtype_bytes(dtype);
	bool plausible = tn__on_device(result.data) && tn__on_device(input.data) && bins > 0 && bins <= 65536 &&
	                 count > 0 && count < MOST_ELEMENTS && width > 0;
	unsigned char pattern[16], *values = plausible ? malloc((size_t)(bins * width)) : NULL;
	struct tn_likely likely = { .kind = TN_LIKELY_COUNT, .dtype = (unsigned char)dtype };
	forget_written(launch, (const size_t[]){ 0, 1 }, 2);
	if (!values)
		return;
	for (int64_t i = 0; i < bins; i++) {
		(void)tn__likely_pattern(&likely, (double)(count / bins + (i < count % bins)), pattern);
		memcpy(values + i * width, pattern, (size_t)width);
	}
	likely.bound = (uint64_t)(count / bins + (count % bins > 0));
	tn__values_assume_bytes(result.data, values, (uint64_t)(bins * width), &likely);
	free(values);
}

/* ---- what is among the largest, what is sorted ---- */

/* Indices that a slice has once each: 0, 1, 2, ...; NULL: too many. The caller frees them. */
static int64_t *
numbers_of(uint64_t slices, uint64_t each)
{
	bool plausible = each > 0 && slices > 0 && each <= TN_FOLLOWED_MAX &&
	                 slices <= TN_FOLLOWED_MAX / each / sizeof(int64_t);
	int64_t *numbers = plausible ? malloc(slices * each * sizeof(*numbers)) : NULL;
	for (uint64_t i = 0; numbers && i < slices * each; i++)
		numbers[i] = (int64_t)(i % each);
	return numbers;
}

static const struct tn_likely some_index = { .kind = TN_LIKELY_INDEX, .dtype = TN_DTYPE_I64 };

/* Arguments: (input, its slices' size, k, whether the largest, slices, stride, values, stride, indices, stride, ...). No two
 * indices of a slice are the same: programs take them as keys. */
static void
topk(const struct tn_launch *launch)
{
	uint64_t indices = pointer_in(launch, 8), k = count_in(launch, 2), slices = count_in(launch, 4);
	int64_t *numbers = indices ? numbers_of(slices, k) : NULL;
	forget_written(launch, (const size_t[]){ 6, 8 }, 2);
	if (numbers)
		tn__values_assume_bytes(indices, numbers, slices * k * sizeof(*numbers), &some_index);
	free(numbers);
}

/* Arguments: (result, slices, size, stride). */
static void
number_slices(const struct tn_launch *launch)
{
	uint64_t out = pointer_in(launch, 0), slices = count_in(launch, 1), size = count_in(launch, 2);
	int64_t *numbers = out && count_in(launch, 3) == 1 ? numbers_of(slices, size) : NULL;
	forget_written(launch, (const size_t[]){ 0 }, 1);
	if (numbers)
		tn__values_put(out, numbers, slices * size * sizeof(*numbers));
	free(numbers);
}

/* Arguments: (keys, slices, size, stride, values, ...). The values are the same in another order. */
static void
sort(const struct tn_launch *launch)
{
	uint64_t values = pointer_in(launch, 4), slices = count_in(launch, 1), size = count_in(launch, 2);
	int64_t *numbers = values ? numbers_of(slices, size) : NULL;
	bool known = numbers && tn__values_known(values, numbers, slices * size * sizeof(*numbers));
	struct tn_likely likely;
	bool assumed = values && tn__values_assumed(values, &likely);
	forget_written(launch, (const size_t[]){ 0 }, 1);
	if (known)
		tn__values_assume_bytes(values, numbers, slices * size * sizeof(*numbers), &some_index);
	else if (values && !assumed)
		tn__values_forget_reached(&values, 1);
	free(numbers);
}

/* ---- launches ---- */

bool
tn__selected_is(struct tn_kernel *kernel)
{
	if (kernel->selection == SELECTION_UNREAD)
		decode(kernel);
	return kernel->selection != SELECTION_NONE;
}

bool
tn__selected_reads(struct tn_kernel *kernel)
{
	if (kernel->selection == SELECTION_UNREAD)
		decode(kernel);
	return tn__reduction_is_exact(kernel);
}

bool
tn__selected_launch(struct tn_kernel *kernel, const struct tn_launch *launch, bool after_mask)
{
	if (kernel->selection == SELECTION_UNREAD)
		decode(kernel);
	if (kernel->selection == SELECTION_NONE || !launch->arguments)
		return false;
	switch ((enum selection)kernel->selection) {
	case SELECTION_SCRATCH:
		break;
	case SELECTION_COUNT_PARTS:
	case SELECTION_COUNT:
		count_selected(kernel, launch);
		break;
	case SELECTION_UNIQUE:
		count_unique(launch, 3, 7);
		break;
	case SELECTION_THRUST_UNIQUE:
		count_unique(launch, 3, 4);
		break;
	case SELECTION_RUNS:
		count_runs(launch);
		break;
	case SELECTION_SCAN:
		scan(launch);
		break;
	case SELECTION_HISTOGRAM:
		share_out(kernel, launch);
		break;
	case SELECTION_TOPK:
		topk(launch);
		break;
	case SELECTION_NUMBER_SLICES:
		number_slices(launch);
		break;
	case SELECTION_SORT:
		sort(launch);
		break;
	default:
		return tn__reduce(kernel, launch, after_mask);
	}
	return true;
}
