/* SPDX-License-Identifier: Apache-2.0
 *
 * What the names of elementwise kernels say: how they are launched, which functor they apply, and to which types. The functors and
 * the files they are from are those of elementwise.c.
 */
#include "vgpu/core/elementwise_parts.h"

#include <ctype.h>

#include "vgpu/core/names.h"

#define WIDEST 8 /* bytes of an element, but for complex numbers in double */

/* Where the functor stands in the name; NULL: no such kernel. */
static const char *
functor_in(const char *name, enum form *form)
{
	const char *found = skip_to(name, "29vectorized_elementwise_kernelILi");
	*form = FORM_DENSE;
	if (found) {
		while (isdigit((unsigned char)*found))
			found++;
		return skip(found, "E");
	}
	if ((found = skip_to(name, "27unrolled_elementwise_kernelI"))) {
		if (!strstr(found, "23TrivialOffsetCalculator") || strstr(found, "16OffsetCalculator"))
			return NULL;
		*form = strstr(found, "12LoadWithCast") ? FORM_DENSE_CAST : FORM_DENSE;
		return found;
	}
	*form = FORM_STRIDED;
	if (!strstr(name, "18elementwise_kernelILi"))
		return NULL;
	if ((found = skip_to(name, "22gpu_kernel_impl_nocastI")))
		return found;
	*form = FORM_STRIDED_CAST;
	return skip_to(name, "15gpu_kernel_implI");
}

/* The type that the functor's own lambda takes, the last one in its name: "_clEvEUl<type>...E_". */
static const char *
lambda_type(const char *functor)
{
	const char *found = NULL;
	for (const char *next = functor; (next = skip_to(next, "_clEvEUl"));)
		found = next;
	return found;
}

static const struct {
	const char *prefix; /* of the functor */
	const char *part;   /* somewhere in it, or NULL */
	unsigned char operation, operands;
	bool lambda, logical; /* the type is the lambda's; the result is a mask */
} functors[] = {
	{ "NS0_11FillFunctorI", NULL, OPERATION_FILL, 0, false, false },
	{ "ZZZNS0_23direct_copy_kernel_cuda", NULL, OPERATION_COPY, 1, true, false },
	{ "ZNS0_27converting_copy_kernel_cudaI", NULL, OPERATION_COPY, 1, false, false }, /* <from, to>: torch 2.15 */
	{ "NS0_13BinaryFunctorI", "17BitwiseAndFunctorI", OPERATION_AND, 2, false, false },
	{ "NS0_13BinaryFunctorI", "16BitwiseOrFunctorI", OPERATION_OR, 2, false, false },
	{ "NS0_13BinaryFunctorI", "17BitwiseXorFunctorI", OPERATION_XOR, 2, false, false },
	{ "NS0_13BinaryFunctorI", "10MulFunctorI", OPERATION_MULTIPLY, 2, false, false },
	{ "NS0_13BinaryFunctorI", "16CompareEqFunctorI", OPERATION_EQUAL, 2, false, true },
	{ "NS0_13BinaryFunctorI", "23logical_and_kernel_cuda", OPERATION_LOGICAL_AND, 2, false, true },
	{ "NS0_13BinaryFunctorI", "22logical_or_kernel_cuda", OPERATION_LOGICAL_OR, 2, false, true },
	{ "NS0_13AUnaryFunctorI", "16CompareEqFunctorI", OPERATION_EQUAL_NUMBER, 1, false, true },
	{ "NS0_13AUnaryFunctorI", "10MulFunctorI", OPERATION_MULTIPLY_NUMBER, 1, false, false },
	{ "NS0_13BUnaryFunctorI", "10MulFunctorI", OPERATION_MULTIPLY_NUMBER, 1, false, false },
	{ "NS0_15CUDAFunctor_addI", NULL, OPERATION_ADD, 2, false, false },
	{ "NS0_21CUDAFunctorOnSelf_addI", NULL, OPERATION_ADD_NUMBER, 1, false, false },
	{ "NS0_22CUDAFunctorOnOther_addI", NULL, OPERATION_ADD_TO, 1, false, false },
	{ "ZNS0_21compare_scalar_kernelI", NULL, OPERATION_ORDER_NUMBER, 1, false, true },
	{ "ZNS0_23bitwise_not_kernel_cuda", "EEUlbE_", OPERATION_NOT_MASK, 1, false, true },
	{ "ZZZNS0_23logical_not_kernel_cuda", NULL, OPERATION_LOGICAL_NOT, 1, true, true },
	{ "ZZZNS0_15neg_kernel_cuda", NULL, OPERATION_NEGATE, 1, true, false },
	{ "ZZZNS0_", "17where_kernel_impl", OPERATION_WHERE, 3, true, false },
	{ "ZZZNS0_", "18masked_fill_kernel", OPERATION_MASKED_FILL, 2, true, false },
	{ "NS0_", "14CompareFunctorI", OPERATION_ORDER, 2, false, true },
};

/* Behind a builtin type, or one of PyTorch's: the first of a template's arguments. */
static const char *
behind_type(const char *type)
{
	if (*type != 'N')
		return type + 1;
	const char *end = strchr(type, 'E');
	return end ? end + 1 : NULL;
}

/* where() of torch 2.15 moves numbers as unsigned ones of their width. */
static enum tn_dtype
moved(enum tn_dtype dtype)
{
	return dtype == TN_DTYPE_U16   ? TN_DTYPE_I16
	       : dtype == TN_DTYPE_U32 ? TN_DTYPE_I32
	       : dtype == TN_DTYPE_U64 ? TN_DTYPE_I64
	                               : dtype;
}

/* Bytes of an element of the result, at most: that of the type that the functor takes first, where its name tells. */
static size_t
width_of(const char *functor)
{
	static const char half[] = "float16_copy_kernel_cuda"; /* and bfloat16; they take a float */
	const char *lambda = lambda_type(functor), *template = skip_to(functor, "FunctorI");
	const char *type = lambda ? lambda : template ? template : skip_to(functor, "EEUl");
	if (strstr(functor, half))
		return sizeof(uint16_t);
	size_t width = type && *type != 'b' ? tn__dtype_bytes(tn__dtype_of(type)) : 0;
	return width ? width : WIDEST;
}

void
tn__elementwise_decode(struct tn_kernel *kernel)
{
	enum form form;
	const char *functor = functor_in(kernel->name, &form);
	kernel->elementwise.form = FORM_NONE;
	if (!functor || strstr(functor, "multi_outputs"))
		return;
	kernel->elementwise.form = (unsigned char)form;
	kernel->elementwise.width = (unsigned char)width_of(functor);
	for (size_t i = 0; i < sizeof(functors) / sizeof(*functors); i++) {
		const char *type = skip(functor, functors[i].prefix);
		if (!type || (functors[i].part && !strstr(type, functors[i].part)))
			continue;
		if (functors[i].operation == OPERATION_NOT_MASK)
			type = "b";
		else if (functors[i].operation == OPERATION_ORDER)
			type = skip_to(type, "14CompareFunctorI");
		else if (functors[i].lambda)
			type = lambda_type(functor);
		if (functors[i].operation == OPERATION_WHERE) /* (bool, T, T) */
			type = skip(type, "b");
		kernel->elementwise.from = TN_DTYPE_NONE;
		if (functors[i].operation == OPERATION_COPY && !functors[i].lambda) {
			kernel->elementwise.from = (unsigned char)tn__dtype_of(type);
			type = behind_type(type);
		}
		enum tn_dtype dtype = type ? moved(tn__dtype_of(type)) : TN_DTYPE_NONE;
		if (!tn__dtype_is_integer(dtype) && !tn__dtype_is_real(dtype))
			return;
		kernel->elementwise.operation = functors[i].operation;
		kernel->elementwise.inputs = functors[i].operands;
		kernel->elementwise.dtype = (unsigned char)dtype;
		kernel->elementwise.logical = functors[i].logical;
		return;
	}
}
