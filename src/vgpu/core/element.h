/* SPDX-License-Identifier: Apache-2.0
 *
 * The types of elements that a kernel's mangled name can say (Itanium C++ ABI, builtin types, and PyTorch's own), and
 * their values as the host computes with them.
 */
#ifndef TN_VGPU_ELEMENT_H
#define TN_VGPU_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum tn_element {
	TN_ELEMENT_NONE,
	TN_ELEMENT_U8,
	TN_ELEMENT_I8,
	TN_ELEMENT_BOOL,
	TN_ELEMENT_I16,
	TN_ELEMENT_I32,
	TN_ELEMENT_I64,
	TN_ELEMENT_F16,
	TN_ELEMENT_BF16,
	TN_ELEMENT_F32,
	TN_ELEMENT_F64,
	/* known by their size only */
	TN_ELEMENT_U16,
	TN_ELEMENT_U32,
	TN_ELEMENT_U64,
	TN_ELEMENT_C64,
	TN_ELEMENT_C128,
	TN_ELEMENTS
};

static inline size_t
tn__element_bytes(enum tn_element element)
{
	static const unsigned char bytes[TN_ELEMENTS] = {
		[TN_ELEMENT_U8] = 1,   [TN_ELEMENT_I8] = 1,  [TN_ELEMENT_BOOL] = 1, [TN_ELEMENT_I16] = 2, [TN_ELEMENT_I32] = 4,
		[TN_ELEMENT_I64] = 8,  [TN_ELEMENT_F16] = 2, [TN_ELEMENT_BF16] = 2, [TN_ELEMENT_F32] = 4, [TN_ELEMENT_F64] = 8,
		[TN_ELEMENT_U16] = 2,  [TN_ELEMENT_U32] = 4, [TN_ELEMENT_U64] = 8,  [TN_ELEMENT_C64] = 8, [TN_ELEMENT_C128] = 16};
	return bytes[element];
}

/* The type at the start of `mangled`, or TN_ELEMENT_NONE. */
static inline enum tn_element
tn__element_of(const char *mangled)
{
	static const struct {
		const char *prefix;
		enum tn_element element;
	} types[] = {
		{"f", TN_ELEMENT_F32},
		{"d", TN_ELEMENT_F64},
		{"i", TN_ELEMENT_I32},
		{"l", TN_ELEMENT_I64},
		{"s", TN_ELEMENT_I16},
		{"h", TN_ELEMENT_U8},
		{"a", TN_ELEMENT_I8},
		{"b", TN_ELEMENT_BOOL},
		{"t", TN_ELEMENT_U16},
		{"j", TN_ELEMENT_U32},
		{"m", TN_ELEMENT_U64},
		{"N3c104HalfE", TN_ELEMENT_F16},
		{"N3c108BFloat16E", TN_ELEMENT_BF16},
		{"N3c107complexIfEE", TN_ELEMENT_C64},
		{"N3c107complexIdEE", TN_ELEMENT_C128},
	};
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strncmp(mangled, types[i].prefix, strlen(types[i].prefix)) == 0)
			return types[i].element;
	return TN_ELEMENT_NONE;
}

static inline bool
tn__element_is_integer(enum tn_element element)
{
	return element >= TN_ELEMENT_U8 && element <= TN_ELEMENT_I64;
}

static inline bool
tn__element_is_real(enum tn_element element)
{
	return element >= TN_ELEMENT_F16 && element <= TN_ELEMENT_F64;
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
tn__real_at(const unsigned char *at, enum tn_element element)
{
	uint16_t narrow;
	float single;
	double wide;
	switch (element) {
	case TN_ELEMENT_F64:
		memcpy(&wide, at, sizeof(wide));
		return wide;
	case TN_ELEMENT_F32:
		memcpy(&single, at, sizeof(single));
		return single;
	default:
		memcpy(&narrow, at, sizeof(narrow));
		return element == TN_ELEMENT_F16 ? tn__float_of_half(narrow) : tn__float_of_bfloat16(narrow);
	}
}

static inline int64_t
tn__integer_at(const unsigned char *at, enum tn_element element)
{
	int16_t i16;
	int32_t i32;
	int64_t i64;
	switch (element) {
	case TN_ELEMENT_I8:
		return (int8_t)*at;
	case TN_ELEMENT_I16:
		memcpy(&i16, at, sizeof(i16));
		return i16;
	case TN_ELEMENT_I32:
		memcpy(&i32, at, sizeof(i32));
		return i32;
	case TN_ELEMENT_I64:
		memcpy(&i64, at, sizeof(i64));
		return i64;
	case TN_ELEMENT_BOOL:
		return *at != 0;
	default:
		return *at;
	}
}

#endif
