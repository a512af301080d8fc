/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "vgpu/nccl/nccl_reduce.h"

/* In the order of ncclDataType_t: i8 u8 i32 u32 i64 u64 f16 f32 f64 bf16 f8e4m3 f8e5m2. */
static const size_t type_bytes[NCCL_TYPES] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

size_t
tn__nccl_type_bytes(int type)
{
	return type_bytes[type];
}

/* ---- small floating-point types: sign, `exponent_bits`, `fraction_bits` ---- */

struct small {
	int exponent_bits, fraction_bits;
	bool infinities; /* f8e4m3 has none: its largest exponent holds numbers, and one NaN */
};

static const struct small half = { 5, 10, true }, brain = { 8, 7, true }, e4m3 = { 4, 3, false }, e5m2 = { 5, 2, true };

static float
read_small(uint32_t bits, const struct small *form)
{
	int bias = (1 << (form->exponent_bits - 1)) - 1;
	uint32_t fraction = bits & ((1u << form->fraction_bits) - 1);
	uint32_t exponent = bits >> form->fraction_bits & ((1u << form->exponent_bits) - 1);
	bool negative = bits >> (form->fraction_bits + form->exponent_bits) & 1;
	bool largest = exponent == (1u << form->exponent_bits) - 1;
	float value;
	if (largest && form->infinities)
		value = fraction ? NAN : INFINITY;
	else if (largest && fraction == (1u << form->fraction_bits) - 1)
		value = NAN;
	else if (exponent == 0)
		value = ldexpf((float)fraction, 1 - bias - form->fraction_bits);
	else
		value = ldexpf((float)(fraction | 1u << form->fraction_bits), (int)exponent - bias - form->fraction_bits);
	return negative ? -value : value;
}

static uint32_t
write_small(float value, const struct small *form)
{
	int bias = (1 << (form->exponent_bits - 1)) - 1, exponent;
	uint32_t sign = signbit(value) ? 1u << (form->fraction_bits + form->exponent_bits) : 0;
	uint32_t most = (1u << form->exponent_bits) - 1, all = (1u << form->fraction_bits) - 1;
	if (isnan(value))
		return sign | most << form->fraction_bits | (form->infinities ? 1u << (form->fraction_bits - 1) : all);
	uint32_t infinite = form->infinities ? most << form->fraction_bits : (most << form->fraction_bits | (all - 1));
	if (isinf(value))
		return sign | infinite;
	if (value == 0)
		return sign;
	(void)frexpf(fabsf(value), &exponent); /* value = m * 2^exponent, m in [0.5, 1) */
	int power = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
	uint32_t units = (uint32_t)nearbyintf(ldexpf(fabsf(value), form->fraction_bits - power));
	/* Carries into the exponent by itself: units count from the exponent's own step. */
	uint32_t bits = units < 1u << form->fraction_bits
	                    ? units
	                    : ((uint32_t)(power + bias) << form->fraction_bits) + (units - (1u << form->fraction_bits));
	return sign | (bits > infinite ? infinite : bits);
}

static const struct small *
small_of(enum nccl_type type)
{
	switch (type) {
	case NCCL_F16:
		return &half;
	case NCCL_BF16:
		return &brain;
	case NCCL_F8E4M3:
		return &e4m3;
	case NCCL_F8E5M2:
		return &e5m2;
	default:
		return NULL;
	}
}

/* ---- elements ---- */

static bool
is_integer(enum nccl_type type)
{
	return type <= NCCL_U64;
}

static bool
is_signed(enum nccl_type type)
{
	return type == NCCL_I8 || type == NCCL_I32 || type == NCCL_I64;
}

static double
read_real(const unsigned char *at, enum nccl_type type)
{
	float single;
	double value;
	uint16_t two;
	const struct small *form = small_of(type);
	if (type == NCCL_F64) {
		memcpy(&value, at, sizeof(value));
		return value;
	}
	if (type == NCCL_F32) {
		memcpy(&single, at, sizeof(single));
		return single;
	}
	memcpy(&two, at, tn__nccl_type_bytes(type) == 2 ? 2 : 0);
	return read_small(tn__nccl_type_bytes(type) == 2 ? two : at[0], form);
}

static void
write_real(unsigned char *at, enum nccl_type type, double value)
{
	float single = (float)value;
	const struct small *form = small_of(type);
	if (type == NCCL_F64) {
		memcpy(at, &value, sizeof(value));
	} else if (type == NCCL_F32) {
		memcpy(at, &single, sizeof(single));
	} else {
		uint32_t bits = write_small(single, form);
		memcpy(at, &bits, tn__nccl_type_bytes(type)); /* little-endian */
	}
}

static uint64_t
read_whole(const unsigned char *at, enum nccl_type type)
{
	uint64_t value = 0;
	size_t bytes = tn__nccl_type_bytes(type);
	memcpy(&value, at, bytes);
	if (is_signed(type) && bytes < 8 && value >> (8 * bytes - 1))
		value |= ~UINT64_C(0) << 8 * bytes;
	return value;
}

static uint64_t
combine_whole(uint64_t a, uint64_t b, bool with_sign, int operator)
{
	bool less = with_sign ? (int64_t)a < (int64_t)b : a < b;
	switch (operator) {
	case NCCL_PRODUCT:
		return a * b;
	case NCCL_MAX:
		return less ? b : a;
	case NCCL_MIN:
		return less ? a : b;
	default:
		return a + b;
	}
}

static double
combine_real(double a, double b, int operator)
{
	switch (operator) {
	case NCCL_PRODUCT:
		return a * b;
	case NCCL_MAX:
		return a < b || isnan(b) ? b : a;
	case NCCL_MIN:
		return a > b || isnan(b) ? b : a;
	default:
		return a + b;
	}
}

void
tn__nccl_combine(void *into, const void *with, size_t count, enum nccl_type type, int operator)
{
	size_t width = tn__nccl_type_bytes(type);
	for (size_t i = 0; i < count; i++) {
		unsigned char *a = (unsigned char *)into + i * width;
		const unsigned char *b = (const unsigned char *)with + i * width;
		if (is_integer(type)) {
			uint64_t value = combine_whole(read_whole(a, type), read_whole(b, type), is_signed(type), operator);
			memcpy(a, &value, width);
		} else {
			write_real(a, type, combine_real(read_real(a, type), read_real(b, type), operator));
		}
	}
}

void
tn__nccl_divide(void *values, size_t count, enum nccl_type type, int by)
{
	size_t width = tn__nccl_type_bytes(type);
	for (size_t i = 0; i < count; i++) {
		unsigned char *at = (unsigned char *)values + i * width;
		if (is_integer(type)) {
			uint64_t value = read_whole(at, type);
			value = is_signed(type) ? (uint64_t)((int64_t)value / by) : value / (uint64_t)by;
			memcpy(at, &value, width);
		} else {
			write_real(at, type, read_real(at, type) / by);
		}
	}
}

void
tn__nccl_scale(void *values, size_t count, enum nccl_type type, double scalar)
{
	size_t width = tn__nccl_type_bytes(type);
	for (size_t i = 0; i < count; i++) {
		unsigned char *at = (unsigned char *)values + i * width;
		if (is_integer(type)) {
			uint64_t value = read_whole(at, type) * (uint64_t)(int64_t)scalar;
			memcpy(at, &value, width);
		} else {
			write_real(at, type, read_real(at, type) * scalar);
		}
	}
}

bool
tn__nccl_scalar(const struct nccl_comm *comm, int operator, double *out)
{
	unsigned char bytes[8];
	*out = 1;
	if (operator < NCCL_BUILT_IN_OPERATORS)
		return true;
	const struct nccl_made_operator *made = &comm->operators[operator - NCCL_BUILT_IN_OPERATORS];
	memcpy(bytes, made->scalar, sizeof(bytes));
	if (made->on_device && !tn__values_known(made->address, bytes, tn__nccl_type_bytes(made->type)))
		return false;
	enum nccl_type type = (enum nccl_type)made->type;
	*out = !is_integer(type) ? read_real(bytes, type)
	       : is_signed(type) ? (double)(int64_t)read_whole(bytes, type)
	                         : (double)read_whole(bytes, type);
	return true;
}
