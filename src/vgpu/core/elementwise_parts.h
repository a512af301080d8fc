/* SPDX-License-Identifier: Apache-2.0
 *
 * What elementwise.c and elementwise_names.c share: what a kernel's name says of it, and the numbers that are computed with.
 */
#ifndef TN_VGPU_ELEMENTWISE_PARTS_H
#define TN_VGPU_ELEMENTWISE_PARTS_H

#include <string.h>

#include "vgpu/core/dtype.h"
#include "vgpu/core/state.h"

enum form { FORM_UNREAD, FORM_NONE, FORM_DENSE, FORM_DENSE_CAST, FORM_STRIDED, FORM_STRIDED_CAST };

enum operation {
	OPERATION_UNKNOWN,
	OPERATION_FILL,
	OPERATION_COPY,
	OPERATION_ORDER,        /* <, <=, >, >= of two */
	OPERATION_ORDER_NUMBER, /* of one and a number */
	OPERATION_EQUAL,        /* ==, != */
	OPERATION_EQUAL_NUMBER,
	OPERATION_AND, /* of bits */
	OPERATION_OR,
	OPERATION_XOR,
	OPERATION_NOT_MASK,
	OPERATION_LOGICAL_NOT,
	OPERATION_LOGICAL_AND,
	OPERATION_LOGICAL_OR,
	OPERATION_MULTIPLY,
	OPERATION_MULTIPLY_NUMBER,
	OPERATION_ADD,        /* a + alpha * b */
	OPERATION_ADD_NUMBER, /* the second is a number */
	OPERATION_ADD_TO,     /* the first is a number */
	OPERATION_NEGATE,
	OPERATION_WHERE,
	OPERATION_MASKED_FILL,
};

#define OPERANDS 4 /* the result first */
#define DIMS 25    /* MAX_DIMS of OffsetCalculator.cuh */

/* Reads a kernel's name into kernel->elementwise. */
void tn__elementwise_decode(struct tn_kernel *kernel);

/* ---- numbers: inline, since a launch may be of millions of elements ---- */

struct tn_number {
	int64_t whole;
	double real;
};

static inline struct tn_number
tn__number_load(const unsigned char *at, enum tn_dtype stored, enum tn_dtype computed)
{
	struct tn_number n;
	if (tn__dtype_is_integer(stored)) {
		n.whole = tn__integer_at(at, stored);
		n.real = (double)n.whole;
	} else {
		n.real = tn__real_at(at, stored);
		n.whole = n.real >= -0x1p63 && n.real < 0x1p63 ? (int64_t)n.real : INT64_MIN;
	}
	if (computed == TN_DTYPE_BOOL && stored != TN_DTYPE_BOOL)
		n.whole = tn__dtype_is_integer(stored) ? n.whole != 0 : n.real != 0;
	return n;
}

static inline double
tn__number_rounded(double value, enum tn_dtype dtype)
{
	switch (dtype) {
	case TN_DTYPE_F16:
		return tn__float_of_half(tn__half_of_float((float)value));
	case TN_DTYPE_BF16:
		return tn__float_of_bfloat16(tn__bfloat16_of_float((float)value));
	case TN_DTYPE_F32:
		return (double)(float)value;
	default:
		return value;
	}
}

/* What the functor gave, as its own type first, then as what is stored. */
static inline void
tn__number_store(unsigned char *at, struct tn_number n, enum tn_dtype computed, enum tn_dtype stored)
{
	bool whole = tn__dtype_is_integer(computed);
	double real = whole ? (double)n.whole : tn__number_rounded(n.real, computed);
	uint64_t bits = (uint64_t)n.whole;
	unsigned char wrapped[sizeof(bits)];
	float single;
	uint16_t narrow;
	if (whole) { /* wraps */
		memcpy(wrapped, &bits, sizeof(bits));
		n.whole = computed == TN_DTYPE_BOOL ? n.whole != 0 : tn__integer_at(wrapped, computed);
		real = (double)n.whole;
	} else {
		n.whole = real >= -0x1p63 && real < 0x1p63 ? (int64_t)real : INT64_MIN;
	}
	switch (stored) {
	case TN_DTYPE_F64:
		memcpy(at, &real, sizeof(real));
		break;
	case TN_DTYPE_F32:
		single = (float)real;
		memcpy(at, &single, sizeof(single));
		break;
	case TN_DTYPE_F16:
	case TN_DTYPE_BF16:
		narrow = stored == TN_DTYPE_F16 ? tn__half_of_float((float)real) : tn__bfloat16_of_float((float)real);
		memcpy(at, &narrow, sizeof(narrow));
		break;
	case TN_DTYPE_BOOL:
		*at = whole ? n.whole != 0 : real != 0;
		break;
	default: /* little-endian: its low bytes are the element */
		memcpy(at, &n.whole, tn__dtype_bytes(stored));
	}
}

#endif
