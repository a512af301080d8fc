/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels whose name says what they write: PyTorch's arange, sums of whole numbers, all and any, which are computed here when
 * what they read is known (values.c); and comparisons, logic on masks, copies and conversions of what is not (elementwise.c
 * has the rest): their results are assumed. Either way nothing else becomes stale.
 *
 * The name carries the template arguments, so the types are certain; how the functor lies in the argument buffer is not
 * in the name and was read off torch 2.6.0, 2.11.0 and 2.15.0 (the tests run all three). A launch that does not look as
 * expected counts as a kernel that nobody knows. Sources, in PyTorch's aten/src/ATen/native/cuda: CUDALoops.cuh,
 * Loops.cuh, Reduce.cuh, RangeFactories.cu, CompareKernels.cu, CompareEQKernel.cu, BinaryBitwiseOpsKernels.cu,
 * ReduceLogicKernel.cu.
 *
 * Called with the core lock held.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/core/dtype.h"
#include "vgpu/core/elementwise.h"
#include "vgpu/core/names.h"
#include "vgpu/core/reach.h"
#include "vgpu/core/rearrange.h"
#include "vgpu/core/selected.h"
#include "vgpu/core/state.h"

enum operation {
	OPERATION_UNREAD,
	OPERATION_UNKNOWN,
	OPERATION_ARANGE,
	OPERATION_ORDER_TWO,    /* <, <=, >, >= of two tensors */
	OPERATION_ORDER_SCALAR, /* of a tensor and a number */
	OPERATION_EQUAL_TWO,    /* ==, != */
	OPERATION_EQUAL_SCALAR,
	OPERATION_AND, /* of masks */
	OPERATION_OR,
	OPERATION_XOR,
	OPERATION_NOT,
	OPERATION_ALL,
	OPERATION_ANY,
	OPERATION_SUM,  /* of 64-bit whole numbers */
	OPERATION_COPY, /* the same type, the same order */
	OPERATION_CONVERT,
	OPERATION_MASK_ELSEWHERE, /* a comparison or logic whose operands are not in order: where it writes is not known */
};

#define COMPUTED_MAX (UINT64_C(64) << 20) /* bytes of one operand, whatever --values says */

/* ---- reading names ---- */

/* "50_GLOBAL__N__..." is one name of 50 letters: the unnamed namespace of a file. */
static const char *
skip_unnamed(const char *text)
{
	size_t length = 0;
	const char *cursor = text;
	while (cursor && isdigit((unsigned char)*cursor))
		length = length * 10 + (size_t)(*cursor++ - '0');
	bool unnamed = skip(cursor, "_GLOBAL__N__") && strnlen(cursor, length) == length;
	return unnamed ? cursor + length : text;
}

/* The functor of a kernel that maps whole tensors, element by element, in the order of memory and without conversions:
 * its arguments are (int count, functor, array of addresses: result first, ...). */
static const char *
functor_of(const char *name)
{
	const char *vectorized = skip_to(name, "29vectorized_elementwise_kernelILi");
	if (vectorized) {
		while (isdigit((unsigned char)*vectorized))
			vectorized++;
		return skip(vectorized, "E");
	}
	bool plain = strstr(name, "23TrivialOffsetCalculator") && strstr(name, "15LoadWithoutCast") &&
	             strstr(name, "16StoreWithoutCast");
	return plain ? skip_to(name, "27unrolled_elementwise_kernelI") : NULL;
}

static void
decode(struct tn_kernel *kernel, enum operation operation, const char *type)
{
	kernel->dtype = (unsigned char)tn__dtype_of(type);
	if (kernel->dtype != TN_DTYPE_NONE)
		kernel->operation = (unsigned char)operation;
}

/* <from, to>: what a mask becomes counts what it selects. */
static void
decode_conversion(struct tn_kernel *kernel, const char *types)
{
	kernel->from_mask = types[0] == 'b';
	if (strlen(types) > 1 && tn__dtype_of(types) != TN_DTYPE_NONE && !strchr("NS", types[0]))
		decode(kernel, OPERATION_CONVERT, types + 1);
	kernel->converts = true;
}

/* Of masks alone. The functor is a lambda of these functions, whatever the compiler calls it. */
static void
decode_logical(struct tn_kernel *kernel, const char *functor)
{
	if (skip(functor, "NS0_13BinaryFunctorIbbb")) {
		if (strstr(functor, "23logical_and_kernel_cuda"))
			decode(kernel, OPERATION_AND, "b");
		else if (strstr(functor, "22logical_or_kernel_cuda"))
			decode(kernel, OPERATION_OR, "b");
		else if (strstr(functor, "23logical_xor_kernel_cuda"))
			decode(kernel, OPERATION_XOR, "b");
	} else if (skip(functor, "ZZZNS0_23logical_not_kernel_cuda") && strstr(functor, "_clEvEUlbE_")) {
		decode(kernel, OPERATION_NOT, "b");
	}
}

static void
decode_map(struct tn_kernel *kernel, const char *functor)
{
	static const struct {
		const char *functor;
		enum operation operation;
	} masks[] = {
		{ "NS0_13BinaryFunctorIbbbNS0_17BitwiseAndFunctorIbEEEE", OPERATION_AND },
		{ "NS0_13BinaryFunctorIbbbNS0_16BitwiseOrFunctorIbEEEE", OPERATION_OR },
		{ "NS0_13BinaryFunctorIbbbNS0_17BitwiseXorFunctorIbEEEE", OPERATION_XOR },
		{ "ZNS0_23bitwise_not_kernel_cudaERNS_18TensorIteratorBaseEEUlbE_", OPERATION_NOT },
		{ "NS0_13BinaryFunctorIbbbNS0_15binary_internal10MulFunctorIbEEEE", OPERATION_AND },
		{ "NS0_13BinaryFunctorIhhhNS0_17BitwiseAndFunctorIhEEEE", OPERATION_AND },
		{ "NS0_13BinaryFunctorIhhhNS0_16BitwiseOrFunctorIhEEEE", OPERATION_OR },
	};
	const char *type;
	for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++)
		if (skip(functor, masks[i].functor))
			decode(kernel, masks[i].operation, "b");
	decode_logical(kernel, functor);
	if ((type = skip(functor, "ZNS0_21compare_scalar_kernelI")) && strstr(type, "E_St5arrayIPcLm2EE"))
		decode(kernel, OPERATION_ORDER_SCALAR, type);
	else if ((type = skip(skip_unnamed(skip(functor, "NS0_")), "14CompareFunctorI")))
		decode(kernel, OPERATION_ORDER_TWO, type);
	else if ((type = skip(functor, "NS0_13AUnaryFunctorI")) && strstr(type, "16CompareEqFunctorI"))
		decode(kernel, OPERATION_EQUAL_SCALAR, type);
	else if ((type = skip(functor, "NS0_13BinaryFunctorI")) && strstr(type, "16CompareEqFunctorI"))
		decode(kernel, OPERATION_EQUAL_TWO, type);
	else if ((type = skip(functor, "ZZZNS0_23direct_copy_kernel_cuda")) && (type = skip_to(type, "_clEvEUl")))
		decode(kernel, OPERATION_COPY, type);
	else if ((type = skip(functor, "ZNS0_27converting_copy_kernel_cudaI"))) /* <from, to>: torch 2.15 */
		decode_conversion(kernel, type);
}

/* The inner lambda's number is the place of its type among those that the function is compiled for. */
static void
decode_arange(struct tn_kernel *kernel, const char *after_name)
{
	static const char *const types[] = { "h", "a", "i", "l", "s", "d", "f", "N3c104HalfE", "N3c108BFloat16E" };
	const char *cursor = skip_to(after_name, "NKUlvE_clEvENKUlvE");
	size_t number = 0;
	if (cursor && isdigit((unsigned char)*cursor))
		number = (size_t)(*cursor++ - '0') + 1;
	if (skip(cursor, "_clEvEUllE_E") && number < sizeof(types) / sizeof(*types))
		decode(kernel, OPERATION_ARANGE, types[number]);
}

static void
decode_kernel(struct tn_kernel *kernel)
{
	const char *name = kernel->name, *found;
	kernel->operation = OPERATION_UNKNOWN;
	if ((found = functor_of(name)))
		decode_map(kernel, found);
	else if ((found = skip_to(name, "27unrolled_elementwise_kernelIZZZNS0_23direct_copy_kernel_cuda")) &&
	         strstr(found, "LoadWithCastILi1E") && (found = skip_to(found, "_clEvEUl")))
		decode(kernel, OPERATION_CONVERT, found);
	else if (strstr(name, "gpu_kernel_impl_nocast") &&
	         (strstr(name, "14CompareFunctorI") || strstr(name, "compare_scalar_kernelI") ||
	          strstr(name, "16CompareEqFunctorI")))
		kernel->operation = OPERATION_MASK_ELSEWHERE;
	else if ((found = skip_to(skip_to(name, "29elementwise_kernel_with_indexIi"), "15arange_cuda_outE")))
		decode_arange(kernel, found);
	else if ((found = skip_to(name, "13reduce_kernelILi512ELi1ENS0_8ReduceOpIbNS0_14func_wrapper_tIbZZZNS0_")) &&
	         strstr(found, "EUlbbE_EEjbLi4E"))
		kernel->operation = skip(found, "15and_kernel_cudaE")  ? OPERATION_ALL
		                    : skip(found, "14or_kernel_cudaE") ? OPERATION_ANY
		                                                       : OPERATION_UNKNOWN;
	else if (skip_to(name, "13reduce_kernelILi512ELi1ENS0_8ReduceOpIlNS0_14func_wrapper_tIlZNS0_11sum_functorIlllE"))
		kernel->operation = OPERATION_SUM;
}

/* ---- maps ---- */

/* An elementwise launch: one result, `inputs` operands of `width` bytes an element. */
struct map {
	uint64_t count, addresses[3];
	const unsigned char *functor;
};

static bool
read_map(const struct tn_launch *launch, size_t inputs, struct map *map)
{
	int32_t count;
	memcpy(&count, launch->arguments[0], sizeof(count));
	map->functor = launch->arguments[1];
	memcpy(map->addresses, launch->arguments[2], (1 + inputs) * sizeof(uint64_t));
	bool on_device = count > 0;
	for (size_t i = 0; i <= inputs; i++)
		on_device &= tn__on_device(map->addresses[i]);
	map->count = on_device ? (uint64_t)count : 0;
	return on_device;
}

/* Bytes at an address, if all are known and few; the caller frees them. */
static unsigned char *
known_bytes(uint64_t address, uint64_t bytes)
{
	if (bytes > tn__core.values_bound || bytes > COMPUTED_MAX || !tn__values_known(address, NULL, bytes))
		return NULL;
	unsigned char *out = malloc(bytes);
	if (out && tn__values_known(address, out, bytes))
		return out;
	free(out);
	return NULL;
}

/* Numbers of PyTorch's enum OpType of CompareKernels.cu and EqOpType of CompareEQKernel.cu. */
enum { OP_GE, OP_GT, OP_LE, OP_LT, OPS, OP_EQ = 0, OP_NE = 1 };

/* Of two numbers: whether a < b, a == b, a > b. None when one is not a number. */
struct order {
	bool less, equal, greater;
};

static struct order
order_of(const unsigned char *a, const unsigned char *b, enum tn_dtype dtype)
{
	if (tn__dtype_is_integer(dtype)) {
		int64_t x = tn__integer_at(a, dtype), y = tn__integer_at(b, dtype);
		return (struct order){ x < y, x == y, x > y };
	}
	double x = tn__real_at(a, dtype), y = tn__real_at(b, dtype);
	return (struct order){ x < y, x == y, x > y };
}

static bool
holds(struct order order, bool equality, int32_t op)
{
	if (equality)
		return order.equal == (op == OP_EQ);
	switch (op) {
	case OP_GE:
		return order.greater || order.equal;
	case OP_GT:
		return order.greater;
	case OP_LE:
		return order.less || order.equal;
	default:
		return order.less;
	}
}

/* ---- what a mask is taken to be ---- */

static void
assume_mask(const struct map *map, bool truth, bool mixed, uint64_t most)
{
	const struct tn_likely likely = { .kind = TN_LIKELY_TRUTH,
		                              .dtype = TN_DTYPE_BOOL,
		                              .truth = truth,
		                              .mixed = mixed,
		                              .bound = most < map->count ? most : 0 };
	tn__values_assume(map->addresses[0], map->count, &likely);
}

/* A computed mask that nothing is known of: as it is assumed, else it holds. */
static bool
truth_of(uint64_t address)
{
	struct tn_likely likely;
	return !tn__values_assumed(address, &likely) || likely.kind != TN_LIKELY_TRUTH || likely.truth;
}

/* Of a computed number and another: the number is the likely one. But it is not likely to be exactly one that the program
 * names (the end of a text, what is to be ignored), unless it counts something. */
static bool
likely_to_hold(const struct map *map, enum tn_dtype dtype, bool equality, int32_t op, const unsigned char *scalar)
{
	struct tn_likely likely = { .kind = TN_LIKELY_NONE };
	unsigned char pattern[16];
	bool assumed = tn__values_assumed(map->addresses[1], &likely) && likely.dtype == (unsigned char)dtype;
	if (!assumed) {
		likely.kind = tn__dtype_is_integer(dtype) ? TN_LIKELY_WHOLE : TN_LIKELY_REAL;
		likely.dtype = (unsigned char)dtype;
	}
	if (equality && !(assumed && likely.kind == TN_LIKELY_COUNT))
		return op == OP_NE;
	(void)tn__likely_pattern(&likely, tn__likely_value(&likely, 0), pattern);
	struct order order = order_of(pattern, scalar, dtype);
	return (order.equal && !equality) || holds(order, equality, op); /* a threshold of just that is passed */
}

/* Two tensors are taken to be as compared; but one compared with itself is not not-a-number. */
static bool
likely_truth(const struct map *map, enum tn_dtype dtype, bool equality, int32_t op, const unsigned char *scalar)
{
	if (scalar)
		return likely_to_hold(map, dtype, equality, op, scalar);
	return equality ? op == OP_EQ : true;
}

/* The functor begins with the comparison's number; the scalar follows at the element's alignment. */
static bool
compare(const struct tn_launch *launch, enum tn_dtype dtype, bool equality, bool scalar)
{
	struct map map;
	int32_t op;
	size_t width = tn__dtype_bytes(dtype);
	if (!tn__dtype_is_integer(dtype) && !tn__dtype_is_real(dtype))
		return false;
	if (!read_map(launch, scalar ? 1 : 2, &map))
		return false;
	memcpy(&op, map.functor, sizeof(op));
	if (op < 0 || op >= (equality ? 2 : OPS))
		return false;
	const unsigned char *right = scalar ? map.functor + (width > sizeof(op) ? width : sizeof(op)) : NULL;
	assume_mask(&map, likely_truth(&map, dtype, equality, op, right), !scalar && !equality, map.count);
	return true;
}

/* How many hold at most. */
static uint64_t
most_of(const struct map *map, enum operation operation)
{
	uint64_t a = tn__values_selected(map->addresses[1], map->count, 1);
	if (operation == OPERATION_NOT || a == 0) /* a bound of zero would be none */
		return map->count;
	uint64_t b = tn__values_selected(map->addresses[2], map->count, 1);
	return operation == OPERATION_AND ? (b < a && b > 0 ? b : a) : a + b;
}

static bool
combine_masks(const struct tn_launch *launch, enum operation operation)
{
	struct map map;
	bool one = operation == OPERATION_NOT;
	if (!read_map(launch, one ? 1 : 2, &map))
		return false;
	bool x = truth_of(map.addresses[1]), y = one || truth_of(map.addresses[2]);
	struct tn_likely of;
	bool flipped = one && tn__values_assumed(map.addresses[1], &of);
	assume_mask(&map,
	            operation == OPERATION_AND   ? x && y
	            : operation == OPERATION_NOT ? !(flipped && x)
	                                         : x || y,
	            false, most_of(&map, operation));
	return true;
}

/* ---- copies ---- */

static bool
copy(const struct tn_launch *launch, enum tn_dtype dtype)
{
	struct map map;
	if (!read_map(launch, 1, &map))
		return false;
	tn__values_move(map.addresses[0], map.addresses[1], map.count * tn__dtype_bytes(dtype));
	return true;
}

/* c10::ScalarType's number of bool. */
#define SCALAR_BOOL 11

/* Arguments: (count, functor, addresses, two calculators of offsets, loader with the type it loads, ...), or only the first
 * three where the name says both types. The result is not
 * followed, what it is taken to be is. */
static bool
convert(const struct tn_kernel *kernel, const struct tn_launch *launch, enum tn_dtype dtype)
{
	struct map map;
	struct tn_likely likely = { .kind = TN_LIKELY_NONE };
	if (!read_map(launch, 1, &map))
		return false;
	bool assumed = tn__values_assumed(map.addresses[1], &likely);
	bool from_mask = kernel->converts ? kernel->from_mask : *(const signed char *)launch->arguments[5] == SCALAR_BOOL;
	uint64_t bytes = map.count * tn__dtype_bytes(dtype);
	tn__values_forget_range(map.addresses[0], bytes);
	if (assumed && dtype == TN_DTYPE_BOOL && likely.kind == TN_LIKELY_WHOLE && likely.each && map.count == 1) {
		unsigned char counted[16] = { 0 }; /* of masks that were added up: whether any holds */
		tn__values_likely(map.addresses[1], counted, tn__dtype_bytes((enum tn_dtype)likely.dtype),
		                  (enum tn_dtype)likely.dtype);
		assume_mask(&map, memcmp(counted, (unsigned char[16]){ 0 }, sizeof(counted)) != 0, false, 1);
		return true;
	}
	if (from_mask && assumed && dtype != TN_DTYPE_BOOL && map.count == 1 && likely.kind == TN_LIKELY_TRUTH &&
	    !likely.truth) {
		static const unsigned char none[16]; /* a flag that does not hold is no number that does */
		likely = (struct tn_likely){ .kind = TN_LIKELY_WHOLE, .dtype = (unsigned char)dtype };
		tn__values_assume_bytes(map.addresses[0], none, bytes, &likely);
		return true;
	}
	if (from_mask && dtype != TN_DTYPE_BOOL)
		likely.kind = TN_LIKELY_SELECTED;
	else if (!assumed || likely.kind == TN_LIKELY_TRUTH)
		return true;
	if (likely.kind == TN_LIKELY_REAL && tn__dtype_is_integer(dtype))
		likely.kind = TN_LIKELY_WHOLE;
	likely.dtype = (unsigned char)dtype;
	tn__values_assume(map.addresses[0], bytes, &likely);
	return true;
}

/* ---- arange ---- */

/* The device multiplies and adds in one rounding (FFMA and DFMA in the wheels' code), in float for the narrow types. */
static void
put_of_range(unsigned char *out, uint64_t i, const unsigned char *range, enum tn_dtype dtype)
{
	if (tn__dtype_is_integer(dtype)) {
		uint64_t pair[2];
		memcpy(pair, range, sizeof(pair));
		uint64_t value = pair[0] + pair[1] * i; /* little-endian: its low bytes are the element */
		memcpy(out, &value, tn__dtype_bytes(dtype));
	} else if (dtype == TN_DTYPE_F64) {
		double pair[2];
		memcpy(pair, range, sizeof(pair));
		double value = fma(pair[1], (double)i, pair[0]);
		memcpy(out, &value, sizeof(value));
	} else {
		float pair[2];
		memcpy(pair, range, sizeof(pair));
		float value = fmaf(pair[1], (float)i, pair[0]);
		uint16_t narrow = dtype == TN_DTYPE_F16 ? tn__half_of_float(value) : tn__bfloat16_of_float(value);
		if (dtype == TN_DTYPE_F32)
			memcpy(out, &value, sizeof(value));
		else
			memcpy(out, &narrow, sizeof(narrow));
	}
}

/* Arguments: (int count, {start, step}, address). */
static bool
arange(const struct tn_launch *launch, enum tn_dtype dtype)
{
	struct map map;
	size_t width = tn__dtype_bytes(dtype);
	if (!read_map(launch, 0, &map))
		return false;
	uint64_t bytes = map.count * width;
	bool few = bytes <= tn__core.values_bound && bytes <= COMPUTED_MAX;
	unsigned char *out = few ? malloc(bytes) : NULL;
	for (uint64_t i = 0; out && i < map.count; i++)
		put_of_range(out + i * width, i, map.functor, dtype);
	tn__values_put(map.addresses[0], out, bytes);
	free(out);
	return true;
}

/* ---- all and any ---- */

/* struct ReduceOp of Reduce.cuh for 32-bit indices, passed by value, from its configuration on: what stands before that is the
 * functor and the identity, of the type that is summed. */
struct reduction {
	struct {
		int32_t element_bytes, inputs, outputs, step_input, step_output, blocks_per_output;
		int32_t input_factor[3], output_factor[2], block_width, block_height, threads;
		unsigned char vectorized;
		int32_t output_vector;
	} config;
	struct {
		int32_t dims;
		uint32_t sizes[25][3]; /* a divisor and what makes dividing by it fast */
		uint32_t strides[25];
	} input;
	struct {
		int32_t dims;
		uint32_t sizes[25][3];
		uint32_t strides[25][2];
	} output;
	uint64_t source, results[2], accumulator, block_buffer, semaphores;
	int64_t first;
	unsigned char accumulate, final, unused[2];
	int32_t outputs;
} __attribute__((packed, aligned(4)));
_Static_assert(offsetof(struct reduction, output) + sizeof(((struct reduction *)0)->output) == 972, "as in PyTorch");

/* Reads it for a type of so many bytes; returns the identity's place. */
static const unsigned char *
read_reduction(const struct tn_launch *launch, size_t width, struct reduction *out)
{
	const unsigned char *bytes = launch->arguments[0];
	size_t config = width < 4 ? 4 : 2 * width, head = offsetof(struct reduction, source);
	size_t source = (config + head + 7) & ~(size_t)7; /* the addresses are aligned */
	memcpy(out, bytes + config, head);
	memcpy(&out->source, bytes + source, sizeof(*out) - head);
	return bytes + width;
}

/* One result of a dense tensor, by one block: nothing else is written. */
static bool
is_plain(const struct reduction *r, size_t width)
{
	bool dense = r->config.inputs == 1 || (r->input.dims == 1 && r->input.sizes[0][0] == (uint32_t)r->config.inputs &&
	                                       r->input.strides[0] == width);
	return r->config.element_bytes == (int32_t)width && r->config.inputs > 0 && r->config.outputs == 1 &&
	       r->config.blocks_per_output == 1 && dense && tn__on_device(r->source) && tn__on_device(r->results[0]) &&
	       !r->results[1] && !r->accumulator && !r->block_buffer && !r->semaphores && r->first == 0 && !r->accumulate &&
	       r->final == 1 && r->outputs == 1;
}

static bool
reduce(const struct tn_launch *launch, bool all)
{
	struct reduction r;
	const unsigned char *identity = read_reduction(launch, 1, &r);
	if (*identity != all || !is_plain(&r, 1))
		return false;
	uint64_t count = (uint64_t)r.config.inputs;
	unsigned char *in = known_bytes(r.source, count);
	if (!in)
		return false; /* selected.c says what is likely */
	unsigned char result = all;
	for (uint64_t i = 0; i < count; i++)
		result = all ? result && in[i] : result || in[i];
	tn__values_put(r.results[0], &result, 1);
	free(in);
	return true;
}

static bool
sum(const struct tn_launch *launch)
{
	struct reduction r;
	static const int64_t nothing;
	const unsigned char *identity = read_reduction(launch, sizeof(int64_t), &r);
	if (memcmp(identity, &nothing, sizeof(nothing)) != 0 || !is_plain(&r, sizeof(int64_t)))
		return false;
	uint64_t count = (uint64_t)r.config.inputs, result = 0;
	unsigned char *in = known_bytes(r.source, count * sizeof(int64_t));
	if (!in)
		return false;
	for (uint64_t i = 0; i < count; i++)
		result += (uint64_t)tn__integer_at(in + i * sizeof(int64_t), TN_DTYPE_I64);
	tn__values_put(r.results[0], (const unsigned char *)&result, sizeof(result));
	free(in);
	return true;
}

/* ---- launches ---- */

static bool
follow(const struct tn_kernel *kernel, const struct tn_launch *launch)
{
	enum tn_dtype dtype = kernel->dtype;
	switch ((enum operation)kernel->operation) {
	case OPERATION_ARANGE:
		return arange(launch, dtype);
	case OPERATION_ORDER_TWO:
	case OPERATION_ORDER_SCALAR:
		return compare(launch, dtype, false, kernel->operation == OPERATION_ORDER_SCALAR);
	case OPERATION_EQUAL_TWO:
	case OPERATION_EQUAL_SCALAR:
		return compare(launch, dtype, true, kernel->operation == OPERATION_EQUAL_SCALAR);
	case OPERATION_AND:
	case OPERATION_OR:
	case OPERATION_XOR:
	case OPERATION_NOT:
		return combine_masks(launch, kernel->operation);
	case OPERATION_ALL:
	case OPERATION_ANY:
		return reduce(launch, kernel->operation == OPERATION_ALL);
	case OPERATION_SUM:
		return sum(launch);
	case OPERATION_COPY:
		return copy(launch, dtype);
	case OPERATION_CONVERT:
		return convert(kernel, launch, dtype);
	default:
		return false;
	}
}

/* A kernel whose result is not known: what it can write is forgotten. */
static void
forget_result(struct tn_kernel *kernel, const struct tn_launch *launch)
{
	static struct tn_reach reach; /* guarded by the core lock */
	uint64_t address, least, most;
	if (tn__elementwise_result(kernel, launch, &address, &least, &most)) {
		tn__values_forget_at_most(address, least, most);
		tn__values_forget_reached(&address, 1);
	} else if (tn__reach_of(kernel, launch, &reach)) {
		tn__values_forget_reached(reach.addresses, reach.count);
	} else {
		tn__values_forget();
	}
}

/* Most kernels' names tell nothing: they are asked once. */
static bool
is_followed(struct tn_kernel *kernel)
{
	if (kernel->followed == TN_FOLLOWED_UNREAD) {
		if (kernel->operation == OPERATION_UNREAD)
			decode_kernel(kernel);
		bool told = tn__elementwise_is(kernel) || tn__rearrange_reads(kernel) || tn__selected_is(kernel) ||
		            kernel->operation != OPERATION_UNKNOWN;
		kernel->followed = told ? TN_FOLLOWED : TN_FOLLOWED_NOT;
	}
	return kernel->followed == TN_FOLLOWED;
}

void
tn__values_launch(struct tn_kernel *kernel, const struct tn_launch *launch)
{
	static bool last_is_mask; /* the launch before wrote a mask whose place is not known; guarded by the core lock */
	bool followed = is_followed(kernel);
	bool known = followed && (tn__elementwise_launch(kernel, launch) || tn__rearrange_launch(kernel, launch) ||
	                          (kernel->operation != OPERATION_UNKNOWN && launch->arguments && follow(kernel, launch)));
	if (!known && !(followed && tn__selected_launch(kernel, launch, last_is_mask)))
		forget_result(kernel, launch);
	last_is_mask = !known && kernel->operation == OPERATION_MASK_ELSEWHERE;
}

bool
tn__kernel_reads_values_locked(struct tn_kernel *kernel)
{
	if (kernel->operation == OPERATION_UNREAD)
		decode_kernel(kernel);
	bool known = kernel->operation != OPERATION_UNKNOWN && kernel->operation != OPERATION_ARANGE;
	return tn__elementwise_reads(kernel) || tn__rearrange_reads(kernel) || tn__selected_reads(kernel) || known;
}
