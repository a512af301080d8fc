/* SPDX-License-Identifier: Apache-2.0
 *
 * The types of elements that a kernel's mangled name can say (Itanium C++ ABI, builtin types, and PyTorch's own), and
 * their values as the host computes with them.
 */
#ifndef TN_VGPU_DTYPE_H
#define TN_VGPU_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum tn_dtype {
	TN_DTYPE_NONE,
	TN_DTYPE_U8,
	TN_DTYPE_I8,
	TN_DTYPE_BOOL,
	TN_DTYPE_I16,
	TN_DTYPE_I32,
	TN_DTYPE_I64,
	TN_DTYPE_F16,
	TN_DTYPE_BF16,
	TN_DTYPE_F32,
	TN_DTYPE_F64,
	/* known by their size only */
	TN_DTYPE_U16,
	TN_DTYPE_U32,
	TN_DTYPE_U64,
	TN_DTYPE_C64,
	TN_DTYPE_C128,
	TN_ELEMENTS
};

static inline size_t
tn__dtype_bytes(enum tn_dtype dtype)
{
	static const unsigned char bytes[TN_ELEMENTS] = {
		[TN_DTYPE_U8] = 1,  [TN_DTYPE_I8] = 1,  [TN_DTYPE_BOOL] = 1, [TN_DTYPE_I16] = 2, [TN_DTYPE_I32] = 4,
		[TN_DTYPE_I64] = 8, [TN_DTYPE_F16] = 2, [TN_DTYPE_BF16] = 2, [TN_DTYPE_F32] = 4, [TN_DTYPE_F64] = 8,
		[TN_DTYPE_U16] = 2, [TN_DTYPE_U32] = 4, [TN_DTYPE_U64] = 8,  [TN_DTYPE_C64] = 8, [TN_DTYPE_C128] = 16
	};
	return bytes[dtype];
}

/* The type at the start of `mangled`, or TN_DTYPE_NONE. */
static inline enum tn_dtype
tn__dtype_of(const char *mangled)
{
	static const struct {
		const char *prefix;
		enum tn_dtype dtype;
	} types[] = {
		{ "f", TN_DTYPE_F32 },
		{ "d", TN_DTYPE_F64 },
		{ "i", TN_DTYPE_I32 },
		{ "l", TN_DTYPE_I64 },
		{ "s", TN_DTYPE_I16 },
		{ "h", TN_DTYPE_U8 },
		{ "a", TN_DTYPE_I8 },
		{ "b", TN_DTYPE_BOOL },
		{ "t", TN_DTYPE_U16 },
		{ "j", TN_DTYPE_U32 },
		{ "m", TN_DTYPE_U64 },
		{ "N3c104HalfE", TN_DTYPE_F16 },
		{ "N3c108BFloat16E", TN_DTYPE_BF16 },
		{ "N3c107complexIfEE", TN_DTYPE_C64 },
		{ "N3c107complexIdEE", TN_DTYPE_C128 },
	};
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strncmp(mangled, types[i].prefix, strlen(types[i].prefix)) == 0)
			return types[i].dtype;
	return TN_DTYPE_NONE;
}

static inline bool
tn__dtype_is_integer(enum tn_dtype dtype)
{
	return dtype >= TN_DTYPE_U8 && dtype <= TN_DTYPE_I64;
}

static inline bool
tn__dtype_is_real(enum tn_dtype dtype)
{
	return dtype >= TN_DTYPE_F16 && dtype <= TN_DTYPE_F64;
}

/* IEEE binary16: exact in float. */
static inline float
tn__float_of_half(uint16_t bits)
{
	uint32_t exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff, wide;
	float value;
	if (exponent == 0)
		value = (float)mantissa * 0x1p-24f;
	else {
		wide = exponent == 31 ? 0x7f800000 | mantissa << 13 : (exponent + 112) << 23 | mantissa << 13;
		memcpy(&value, &wide, sizeof(value));
	}
	return bits & 0x8000 ? -value : value;
}

/* Rounded to nearest, ties to even. */
static inline uint16_t
tn__half_of_float(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
	bits &= 0x7fffffff;
	if (bits > 0x7f800000)
		return sign | 0x7fff;
	if (bits >= 0x477ff000) /* rounds to more than 65504 */
		return sign | 0x7c00;
	if (bits < 0x38800000) { /* below 2^-14: a multiple of 2^-24, which adding 0.5 in float rounds to */
		float small, rounded;
		memcpy(&small, &bits, sizeof(small));
		rounded = small + 0.5f;
		memcpy(&bits, &rounded, sizeof(bits));
		return (uint16_t)(sign | (bits - 0x3f000000));
	}
	bits += 0xfff + (bits >> 13 & 1);
	return (uint16_t)(sign | (bits - 0x38000000) >> 13);
}

static inline float
tn__float_of_bfloat16(uint16_t bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float value;
	memcpy(&value, &wide, sizeof(value));
	return value;
}

static inline uint16_t
tn__bfloat16_of_float(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	if ((bits & 0x7fffffff) > 0x7f800000)
		return 0x7fff;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* A real element; every one is exact in double. */
static inline double
tn__real_at(const unsigned char *at, enum tn_dtype dtype)
{
	uint16_t narrow;
	float single;
	double wide;
	switch (dtype) {
	case TN_DTYPE_F64:
		memcpy(&wide, at, sizeof(wide));
		return wide;
	case TN_DTYPE_F32:
		memcpy(&single, at, sizeof(single));
		return single;
	default:
		memcpy(&narrow, at, sizeof(narrow));
		return dtype == TN_DTYPE_F16 ? tn__float_of_half(narrow) : tn__float_of_bfloat16(narrow);
	}
}

static inline int64_t
tn__integer_at(const unsigned char *at, enum tn_dtype dtype)
{
	int16_t i16;
	int32_t i32;
	int64_t i64;
	switch (dtype) {
	case TN_DTYPE_I8:
		return (int8_t)*at;
	case TN_DTYPE_I16:
		memcpy(&i16, at, sizeof(i16));
		return i16;
	case TN_DTYPE_I32:
		memcpy(&i32, at, sizeof(i32));
		return i32;
	case TN_DTYPE_I64:
		memcpy(&i64, at, sizeof(i64));
		return i64;
	case TN_DTYPE_BOOL:
		return *at != 0;
	default:
		return *at;
	}
}

#endif
