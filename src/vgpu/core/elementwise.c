/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise kernels of PyTorch over operands of any shape, strides and types: what they compute of known bytes is
 * computed here, and where they write is known even where what they compute is not.
 *
 * Four forms of launches, all made by gpu_kernel (ATen/native/cuda/CUDALoops.cuh, in the wheel's own headers):
 *   dense         (count, functor, addresses)
 *   dense, cast   (count, functor, addresses, two offset calculators, loader, storer): the last two say the types
 *   strided       (count, closure): OffsetCalculator of bytes, addresses, functor
 *   strided, cast (count, closure): the same, then the types
 * A closure holds its captures in the order of their first use. The mangled name carries the functor and its types. A launch
 * that does not look as expected is not followed.
 *
 * Exact: integers wrap as on the device; real numbers are rounded once after each operation, as the device does.
 *
 * Called with the core lock held.
 */
#include "vgpu/core/elementwise.h"

#include <stdlib.h>
#include <string.h>

#include "vgpu/core/elementwise_parts.h"

#define BYTES_MAX (UINT64_C(1) << 20) /* of an operand that is computed with, whatever --values says */
#define FEW 4096                      /* elements of a launch that is always computed */
#define MANY_MAX (UINT64_C(1) << 25)  /* elements of all larger launches of a process: half a second */
#define RUNS_MAX 4096                 /* pieces that a strided result leaves */

/* ---- launches ---- */

struct operand {
	uint64_t address;
	enum tn_dtype computed, stored; /* as the functor takes it, as it lies in memory */
	uint32_t strides[DIMS];         /* in bytes */
	uint64_t span;                  /* bytes from the first element to the last one's end */
	unsigned char *bytes, *known;   /* of the span; owned */
};

struct work {
	uint64_t count;
	const unsigned char *functor;
	int32_t dims;
	uint32_t sizes[DIMS];
	size_t operand_count;
	struct operand operands[OPERANDS];
};

/* c10::ScalarType's numbers: c10/core/ScalarType.h (torch/headeronly/core/ScalarType.h). */
static enum tn_dtype
element_of_scalar(signed char number)
{
	static const unsigned char elements[] = { TN_DTYPE_U8,   TN_DTYPE_I8,   TN_DTYPE_I16,  TN_DTYPE_I32,
		                                      TN_DTYPE_I64,  TN_DTYPE_F16,  TN_DTYPE_F32,  TN_DTYPE_F64,
		                                      TN_DTYPE_NONE, TN_DTYPE_NONE, TN_DTYPE_NONE, TN_DTYPE_BOOL,
		                                      TN_DTYPE_NONE, TN_DTYPE_NONE, TN_DTYPE_NONE, TN_DTYPE_BF16 };
	bool known = number >= 0 && (size_t)number < sizeof(elements);
	return known ? (enum tn_dtype)elements[(size_t)number] : TN_DTYPE_NONE;
}

static enum tn_dtype
computed_type(const struct tn_kernel *kernel, size_t operand)
{
	enum operation operation = (enum operation)kernel->elementwise.operation;
	bool mask = (operand == 0 && kernel->elementwise.logical) || (operation == OPERATION_WHERE && operand == 1) ||
	            (operation == OPERATION_MASKED_FILL && operand == 2);
	return mask ? TN_DTYPE_BOOL : (enum tn_dtype)kernel->elementwise.dtype;
}

static void
read_dense(const struct tn_launch *launch, struct work *work)
{
	work->functor = launch->arguments[1];
	work->dims = 1;
	work->sizes[0] = (uint32_t)work->count;
	for (size_t i = 0; i < work->operand_count; i++)
		memcpy(&work->operands[i].address, (const unsigned char *)launch->arguments[2] + i * sizeof(uint64_t),
		       sizeof(uint64_t));
}

/* OffsetCalculator: the number of dimensions, their sizes (each with what makes dividing by it fast), the strides. */
static bool
read_closure(const struct tn_launch *launch, struct work *work, const unsigned char **types)
{
	const unsigned char *closure = launch->arguments[1];
	size_t operands = work->operand_count, strides = 4 + DIMS * 12, end = strides + DIMS * 4 * operands;
	size_t addresses = (end + 7) & ~(size_t)7;
	uint64_t count = 1;
	memcpy(&work->dims, closure, sizeof(work->dims));
	if (work->dims < 0 || work->dims > DIMS)
		return false;
	for (size_t d = 0; d < (size_t)work->dims; d++) {
		memcpy(&work->sizes[d], closure + 4 + d * 12, sizeof(uint32_t));
		count *= work->sizes[d];
		for (size_t i = 0; i < operands; i++)
			memcpy(&work->operands[i].strides[d], closure + strides + (d * operands + i) * 4, sizeof(uint32_t));
		if (work->sizes[d] == 0 || count > work->count)
			return false;
	}
	for (size_t i = 0; i < operands; i++)
		memcpy(&work->operands[i].address, closure + addresses + i * sizeof(uint64_t), sizeof(uint64_t));
	work->functor = closure + addresses + operands * sizeof(uint64_t);
	*types = work->functor;
	return count == work->count;
}

/* How many bytes the functor takes in a closure, where types stand behind it; 0: not known. */
static size_t
functor_bytes(const struct tn_kernel *kernel)
{
	enum tn_dtype dtype = (enum tn_dtype)kernel->elementwise.dtype;
	bool narrow = dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16;
	size_t width = tn__dtype_bytes(dtype), wide = narrow ? sizeof(float) : width;
	switch ((enum operation)kernel->elementwise.operation) {
	case OPERATION_FILL:
	case OPERATION_MASKED_FILL:
		return width;
	case OPERATION_ADD:
		return wide;
	case OPERATION_ADD_NUMBER:
	case OPERATION_ADD_TO:
	case OPERATION_MULTIPLY_NUMBER:
		return 2 * wide;
	case OPERATION_EQUAL:
	case OPERATION_ORDER:
		return sizeof(int32_t);
	case OPERATION_ORDER_NUMBER: /* a lambda that captures more than its name tells */
		return 0;
	case OPERATION_EQUAL_NUMBER: /* aligned as its larger part */
		return width > sizeof(int32_t) ? 2 * width : 2 * sizeof(int32_t);
	default:
		return 1; /* an empty object */
	}
}

static bool
read_types(const struct tn_kernel *kernel, const struct tn_launch *launch, struct work *work,
           const unsigned char *types)
{
	enum form form = (enum form)kernel->elementwise.form;
	signed char numbers[OPERANDS];
	if (form == FORM_DENSE_CAST) {
		memcpy(numbers + 1, launch->arguments[5], work->operand_count - 1);
		memcpy(numbers, launch->arguments[6], 1);
	} else if (form == FORM_STRIDED_CAST) {
		if (!functor_bytes(kernel))
			return false;
		memcpy(numbers, types + functor_bytes(kernel), work->operand_count);
	}
	for (size_t i = 0; i < work->operand_count; i++) {
		bool cast = form == FORM_DENSE_CAST || form == FORM_STRIDED_CAST;
		struct operand *operand = &work->operands[i];
		operand->computed = computed_type(kernel, i);
		operand->stored = cast ? element_of_scalar(numbers[i]) : operand->computed;
		if (i == 1 && kernel->elementwise.from != TN_DTYPE_NONE)
			operand->stored = (enum tn_dtype)kernel->elementwise.from;
		if (!tn__dtype_is_integer(operand->stored) && !tn__dtype_is_real(operand->stored))
			return false;
	}
	return true;
}

static bool
read_work(const struct tn_kernel *kernel, const struct tn_launch *launch, struct work *work)
{
	enum form form = (enum form)kernel->elementwise.form;
	bool dense = form == FORM_DENSE || form == FORM_DENSE_CAST;
	const unsigned char *types = NULL;
	int32_t count;
	memcpy(&count, launch->arguments[0], sizeof(count));
	*work = (struct work){ .count = count > 0 ? (uint64_t)count : 0 };
	work->operand_count = 1 + (size_t)kernel->elementwise.inputs;
	if (count <= 0)
		return false;
	if (dense)
		read_dense(launch, work);
	else if (!read_closure(launch, work, &types))
		return false;
	if (!read_types(kernel, launch, work, types))
		return false;
	for (size_t i = 0; i < work->operand_count; i++) {
		struct operand *operand = &work->operands[i];
		uint64_t width = tn__dtype_bytes(operand->stored);
		if (!tn__on_device(operand->address))
			return false;
		if (dense)
			operand->strides[0] = (uint32_t)width;
		operand->span = width;
		for (int32_t d = 0; d < work->dims; d++)
			operand->span += (uint64_t)(work->sizes[d] - 1) * operand->strides[d];
	}
	return true;
}

/* ---- operations ---- */

/* Numbers of PyTorch's enum OpType of CompareKernels.cu and EqOpType of CompareEQKernel.cu. */
enum { OP_GE, OP_GT, OP_LE, OP_LT, OPS, OP_EQ = 0, OP_NE = 1 };

static bool
holds(struct tn_number a, struct tn_number b, bool whole, bool equality, int32_t op)
{
	bool less = whole ? a.whole < b.whole : a.real < b.real, equal = whole ? a.whole == b.whole : a.real == b.real;
	bool greater = whole ? a.whole > b.whole : a.real > b.real;
	if (equality)
		return equal == (op == OP_EQ);
	return op == OP_GE ? greater || equal : op == OP_GT ? greater : op == OP_LE ? less || equal : less;
}

/* What the functor carries: numbers in the type that it computes in (float for the narrow ones). */
struct carried {
	int32_t op;
	struct tn_number first, second;
};

static bool
read_carried(const struct tn_kernel *kernel, const struct work *work, struct carried *out)
{
	enum operation operation = (enum operation)kernel->elementwise.operation;
	enum tn_dtype dtype = (enum tn_dtype)kernel->elementwise.dtype;
	bool narrow = dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16;
	enum tn_dtype wide = narrow ? TN_DTYPE_F32 : dtype;
	size_t width = tn__dtype_bytes(dtype), wide_width = tn__dtype_bytes(wide);
	*out = (struct carried){ 0 };
	switch (operation) {
	case OPERATION_FILL:
	case OPERATION_MASKED_FILL:
		out->first = tn__number_load(work->functor, dtype, dtype);
		return true;
	case OPERATION_ORDER:
	case OPERATION_ORDER_NUMBER:
	case OPERATION_EQUAL:
	case OPERATION_EQUAL_NUMBER:
		memcpy(&out->op, work->functor, sizeof(out->op));
		if (operation == OPERATION_ORDER_NUMBER || operation == OPERATION_EQUAL_NUMBER)
			out->first = tn__number_load(work->functor + (width > sizeof(out->op) ? width : sizeof(out->op)), dtype,
			                             dtype);
		bool equality = operation == OPERATION_EQUAL || operation == OPERATION_EQUAL_NUMBER;
		return out->op >= 0 && out->op < (equality ? 2 : OPS);
	case OPERATION_MULTIPLY_NUMBER: /* an empty object, then the number */
		out->first = tn__number_load(work->functor + wide_width, wide, wide);
		return true;
	case OPERATION_ADD:
		out->first = tn__number_load(work->functor, wide, wide);
		break;
	case OPERATION_ADD_NUMBER:
	case OPERATION_ADD_TO:
		out->second = tn__number_load(work->functor, wide, wide);
		out->first = tn__number_load(work->functor + wide_width, wide, wide);
		break;
	default:
		return true;
	}
	/* alpha: where it is one, it does not matter whether the device rounds between */
	return tn__dtype_is_integer(dtype) || out->first.real == 1 || out->first.real == -1;
}

static struct tn_number
whole(uint64_t value)
{
	return (struct tn_number){ .whole = (int64_t)value, .real = (double)(int64_t)value };
}

static struct tn_number
plus(struct tn_number a, struct tn_number alpha, struct tn_number b)
{
	return (struct tn_number){ .whole = (int64_t)((uint64_t)a.whole + (uint64_t)alpha.whole * (uint64_t)b.whole),
		                       .real = a.real + alpha.real * b.real };
}

static struct tn_number
times(struct tn_number a, struct tn_number b)
{
	return (struct tn_number){ .whole = (int64_t)((uint64_t)a.whole * (uint64_t)b.whole), .real = a.real * b.real };
}

static struct tn_number
apply(const struct tn_kernel *kernel, const struct carried *carried, const struct tn_number in[])
{
	bool is_whole = tn__dtype_is_integer((enum tn_dtype)kernel->elementwise.dtype);
	bool x = is_whole ? in[0].whole != 0 : in[0].real != 0, y = is_whole ? in[1].whole != 0 : in[1].real != 0;
	switch ((enum operation)kernel->elementwise.operation) {
	case OPERATION_FILL:
		return carried->first;
	case OPERATION_ORDER:
		return whole(holds(in[0], in[1], is_whole, false, carried->op));
	case OPERATION_ORDER_NUMBER:
		return whole(holds(in[0], carried->first, is_whole, false, carried->op));
	case OPERATION_EQUAL:
		return whole(holds(in[0], in[1], is_whole, true, carried->op));
	case OPERATION_EQUAL_NUMBER:
		return whole(holds(in[0], carried->first, is_whole, true, carried->op));
	case OPERATION_AND:
		return whole((uint64_t)in[0].whole & (uint64_t)in[1].whole);
	case OPERATION_OR:
		return whole((uint64_t)in[0].whole | (uint64_t)in[1].whole);
	case OPERATION_XOR:
		return whole((uint64_t)in[0].whole ^ (uint64_t)in[1].whole);
	case OPERATION_NOT_MASK:
	case OPERATION_LOGICAL_NOT:
		return whole(!x);
	case OPERATION_LOGICAL_AND:
		return whole(x && y);
	case OPERATION_LOGICAL_OR:
		return whole(x || y);
	case OPERATION_MULTIPLY:
		return times(in[0], in[1]);
	case OPERATION_MULTIPLY_NUMBER:
		return times(in[0], carried->first);
	case OPERATION_ADD:
		return plus(in[0], carried->first, in[1]);
	case OPERATION_ADD_NUMBER:
		return plus(in[0], carried->first, carried->second);
	case OPERATION_ADD_TO:
		return plus(carried->second, carried->first, in[0]);
	case OPERATION_NEGATE:
		return times(in[0], (struct tn_number){ .whole = -1, .real = -1 });
	case OPERATION_WHERE:
		return in[0].whole ? in[1] : in[2];
	case OPERATION_MASKED_FILL:
		return in[1].whole ? carried->first : in[0];
	default:
		return in[0];
	}
}

/* ---- what is known of the operands ---- */

static bool
take(struct operand *operand)
{
	operand->bytes = malloc(2 * operand->span);
	operand->known = operand->bytes ? operand->bytes + operand->span : NULL;
	if (operand->bytes)
		tn__values_peek(operand->address, operand->span, operand->bytes, operand->known);
	return operand->bytes != NULL;
}

/* Offsets of the next element, the first dimension fastest. */
static void
advance(const struct work *work, uint32_t at[], uint64_t offsets[])
{
	for (int32_t d = 0; d < work->dims; d++) {
		for (size_t i = 0; i < work->operand_count; i++)
			offsets[i] += work->operands[i].strides[d];
		if (++at[d] < work->sizes[d])
			return;
		at[d] = 0;
		for (size_t i = 0; i < work->operand_count; i++)
			offsets[i] -= (uint64_t)work->operands[i].strides[d] * work->sizes[d];
	}
}

static bool
all_known(const struct operand *operand, uint64_t offset)
{
	const unsigned char *known = operand->known + offset;
	for (size_t i = 0; i < tn__dtype_bytes(operand->stored); i++)
		if (!known[i])
			return false;
	return true;
}

/* Computes every element into the result's bytes; false: an input is not known. */
static bool
compute(const struct tn_kernel *kernel, struct work *work)
{
	struct carried carried;
	struct operand *result = &work->operands[0];
	uint32_t at[DIMS] = { 0 };
	uint64_t offsets[OPERANDS] = { 0 };
	if (!read_carried(kernel, work, &carried))
		return false;
	memset(result->known, 0, result->span);
	for (uint64_t n = 0; n < work->count; n++, advance(work, at, offsets)) {
		struct tn_number in[OPERANDS] = { { 0 } };
		for (size_t i = 1; i < work->operand_count; i++) {
			const struct operand *operand = &work->operands[i];
			if (!all_known(operand, offsets[i]))
				return false;
			in[i - 1] = tn__number_load(operand->bytes + offsets[i], operand->stored, operand->computed);
		}
		tn__number_store(result->bytes + offsets[0], apply(kernel, &carried, in), result->computed, result->stored);
		memset(result->known + offsets[0], 1, tn__dtype_bytes(result->stored));
	}
	return true;
}

/* The pieces of the result that were written become known; what lies between them stays as it was. */
static void
put_result(const struct operand *result)
{
	size_t runs = 0;
	for (uint64_t from = 0, to; from < result->span; from = to) {
		to = from + 1;
		while (to < result->span && result->known[to] == result->known[from])
			to++;
		if (!result->known[from])
			continue;
		if (++runs > RUNS_MAX)
			return tn__values_forget_range(result->address + from, result->span - from);
		tn__values_put(result->address + from, result->bytes + from, to - from);
	}
}

/* A fill of any size over dense memory is a pattern. */
static bool
fill(const struct tn_kernel *kernel, const struct work *work)
{
	const struct operand *result = &work->operands[0];
	struct carried carried;
	unsigned char pattern[16];
	size_t width = tn__dtype_bytes(result->stored);
	if (kernel->elementwise.operation != OPERATION_FILL || result->span != work->count * width)
		return false;
	(void)read_carried(kernel, work, &carried);
	tn__number_store(pattern, carried.first, result->computed, result->stored);
	tn__values_fill(result->address, result->span, pattern, width);
	return true;
}

/* Small operands whose first elements are known. Sizes and masks are few: a program that computes its data from known numbers
 * on and on (pictures made ready on the card) must not pay for each of them. */
static bool
is_worth(const struct work *work)
{
	bool worth = work->count <= FEW || tn__core.computed_elements + work->count <= MANY_MAX;
	for (size_t i = 0; i < work->operand_count && worth; i++) {
		const struct operand *operand = &work->operands[i];
		worth = operand->span <= BYTES_MAX && operand->span <= tn__core.values_bound &&
		        (i == 0 || tn__values_known(operand->address, NULL, tn__dtype_bytes(operand->stored)));
	}
	return worth;
}

/* One operand of a sum, from what is known or what it is taken to be: a mask, or a sum of masks. `assumed` is set where it is. */
static bool
load_counted(const struct operand *operand, struct tn_number *out, bool *assumed)
{
	unsigned char bytes[16] = { 0 };
	size_t width = tn__dtype_bytes(operand->stored);
	struct tn_likely likely;
	if (!tn__values_known(operand->address, bytes, width)) {
		if (!tn__values_assumed(operand->address, &likely) || likely.dtype != (unsigned char)operand->stored)
			return false;
		if (likely.kind == TN_LIKELY_TRUTH && operand->stored == TN_DTYPE_BOOL)
			bytes[0] = likely.truth;
		else if (likely.kind == TN_LIKELY_WHOLE && likely.each)
			tn__values_likely(operand->address, bytes, width, operand->stored);
		else
			return false;
		*assumed = true;
	}
	*out = tn__number_load(bytes, operand->stored, operand->computed);
	return true;
}

/* How often something was found, one number: a program adds masks up (gradients that are not finite), and asks once. */
static bool
count_masks(const struct tn_kernel *kernel, const struct work *work)
{
	const struct operand *result = &work->operands[0];
	struct tn_number in[OPERANDS] = { { 0 } };
	struct carried carried;
	unsigned char bytes[16];
	bool assumed = false;
	if (kernel->elementwise.operation != OPERATION_ADD || work->count != 1 || !read_carried(kernel, work, &carried))
		return false;
	for (size_t i = 1; i < work->operand_count; i++)
		if (!load_counted(&work->operands[i], &in[i - 1], &assumed))
			return false;
	if (!assumed)
		return false;
	const struct tn_likely likely = { .kind = TN_LIKELY_WHOLE, .dtype = (unsigned char)result->stored };
	tn__number_store(bytes, apply(kernel, &carried, in), result->computed, result->stored);
	tn__values_forget_range(result->address, tn__dtype_bytes(result->stored));
	tn__values_assume_bytes(result->address, bytes, tn__dtype_bytes(result->stored), &likely);
	return true;
}

bool
tn__elementwise_is(struct tn_kernel *kernel)
{
	if (kernel->elementwise.form == FORM_UNREAD)
		tn__elementwise_decode(kernel);
	return kernel->elementwise.form != FORM_NONE || kernel->elementwise.operation != OPERATION_UNKNOWN;
}

bool
tn__elementwise_launch(struct tn_kernel *kernel, const struct tn_launch *launch)
{
	struct work work;
	bool done = false, room = true;
	if (kernel->elementwise.form == FORM_UNREAD)
		tn__elementwise_decode(kernel);
	if (kernel->elementwise.operation == OPERATION_UNKNOWN || !launch->arguments || !read_work(kernel, launch, &work))
		return false;
	if (fill(kernel, &work))
		return true;
	if (!is_worth(&work))
		return count_masks(kernel, &work);
	for (size_t i = 0; i < work.operand_count && room; i++)
		room = take(&work.operands[i]);
	if (room && compute(kernel, &work)) {
		put_result(&work.operands[0]);
		tn__core.computed_elements += work.count > FEW ? work.count : 0;
		done = true;
	}
	for (size_t i = 0; i < work.operand_count; i++)
		free(work.operands[i].bytes);
	return done;
}

bool
tn__elementwise_result(const struct tn_kernel *kernel, const struct tn_launch *launch, uint64_t *address,
                       uint64_t *least, uint64_t *most)
{
	enum form form = (enum form)kernel->elementwise.form;
	bool dense = form == FORM_DENSE || form == FORM_DENSE_CAST;
	const unsigned char *types;
	int32_t count;
	if (form <= FORM_NONE || !launch->arguments || (!dense && kernel->elementwise.operation == OPERATION_UNKNOWN))
		return false;
	memcpy(&count, launch->arguments[0], sizeof(count));
	if (count <= 0)
		return false;
	struct work work = { .count = (uint64_t)count, .operand_count = 1 + (size_t)kernel->elementwise.inputs };
	if (dense) {
		work.operand_count = 1;
		read_dense(launch, &work);
		work.operands[0].strides[0] = kernel->elementwise.width;
	} else if (!read_closure(launch, &work, &types)) {
		return false;
	}
	*address = work.operands[0].address;
	*most = kernel->elementwise.width;
	for (int32_t d = 0; d < work.dims; d++)
		*most += (uint64_t)(work.sizes[d] - 1) * work.operands[0].strides[d];
	*least = dense ? work.count : *most;
	return tn__on_device(*address);
}

bool
tn__elementwise_reads(struct tn_kernel *kernel)
{
	if (kernel->elementwise.form == FORM_UNREAD)
		tn__elementwise_decode(kernel);
	return kernel->elementwise.operation != OPERATION_UNKNOWN && kernel->elementwise.operation != OPERATION_FILL;
}
