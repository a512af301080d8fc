/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSE's generic interface: descriptors, and buffers of products of a sparse and a dense operand, by a model: the
 * guide says which routines need extra storage, not how much.
 *   plain        8 bytes a row, where the parts of the matrix begin that blocks of threads share
 *   transposed   a copy of the matrix in the other order: what cusparseCsr2cscEx2 documents as proportional to the
 *                number of elements, taken as index and value of each
 * A product of two sparse matrices stays refused: how many elements it has is known from values only.
 */
#include "vgpu/core/library_handle.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct sparse {
	int64_t rows, columns, elements;
	int value_type;
};

struct dense {
	int64_t rows, columns;
};

typedef const struct tn_library_handle *handle_t;

static int
make_sparse(struct sparse **out, int64_t rows, int64_t columns, int64_t elements, int value_type)
{
	if (!out || rows < 0 || columns < 0 || elements < 0)
		return HANDLE_INVALID_VALUE;
	struct sparse *made = malloc(sizeof(*made));
	if (!made)
		return HANDLE_ALLOC_FAILED;
	*made = (struct sparse){ rows, columns, elements, value_type };
	*out = made;
	return HANDLE_SUCCESS;
}

static int
make_dense(struct dense **out, int64_t rows, int64_t columns)
{
	if (!out || rows < 0 || columns < 0)
		return HANDLE_INVALID_VALUE;
	struct dense *made = malloc(sizeof(*made));
	if (!made)
		return HANDLE_ALLOC_FAILED;
	*made = (struct dense){ rows, columns };
	*out = made;
	return HANDLE_SUCCESS;
}

#define COMPRESSED(name)                                                                                          \
	TN_EXPORT int name(struct sparse **out, int64_t rows, int64_t columns, int64_t elements, const void *offsets, \
	                   const void *indices, const void *values, int offset_type, int index_type, int base,        \
	                   int value_type)                                                                            \
	{                                                                                                             \
		return make_sparse(out, rows, columns, elements, value_type);                                             \
	}
#define COORDINATES(name)                                                                                             \
	TN_EXPORT int name(struct sparse **out, int64_t rows, int64_t columns, int64_t elements, const void *row_indices, \
	                   const void *column_indices, const void *values, int index_type, int base, int value_type)      \
	{                                                                                                                 \
		return make_sparse(out, rows, columns, elements, value_type);                                                 \
	}
#define DENSE_MATRIX(name)                                                                                     \
	TN_EXPORT int name(struct dense **out, int64_t rows, int64_t columns, int64_t leading, const void *values, \
	                   int type, int order)                                                                    \
	{                                                                                                          \
		return make_dense(out, rows, columns);                                                                 \
	}
#define DENSE_VECTOR(name)                                                             \
	TN_EXPORT int name(struct dense **out, int64_t size, const void *values, int type) \
	{                                                                                  \
		return make_dense(out, size, 1);                                               \
	}
#define DESTROY(name)                    \
	TN_EXPORT int name(void *descriptor) \
	{                                    \
		free(descriptor);                \
		return HANDLE_SUCCESS;           \
	}

COMPRESSED(cusparseCreateCsr)
COMPRESSED(cusparseCreateConstCsr)
COMPRESSED(cusparseCreateCsc)
COMPRESSED(cusparseCreateConstCsc)
COORDINATES(cusparseCreateCoo)
COORDINATES(cusparseCreateConstCoo)
DENSE_MATRIX(cusparseCreateDnMat)
DENSE_MATRIX(cusparseCreateConstDnMat)
DENSE_VECTOR(cusparseCreateDnVec)
DENSE_VECTOR(cusparseCreateConstDnVec)
DESTROY(cusparseDestroySpMat)
DESTROY(cusparseDestroyDnMat)
DESTROY(cusparseDestroyDnVec)

TN_EXPORT int
cusparseSpMatGetSize(const struct sparse *matrix, int64_t *rows, int64_t *columns, int64_t *elements)
{
	if (!matrix || !rows || !columns || !elements)
		return HANDLE_INVALID_VALUE;
	*rows = matrix->rows;
	*columns = matrix->columns;
	*elements = matrix->elements;
	return HANDLE_SUCCESS;
}

static size_t
value_bytes(int type)
{
	static const size_t sizes[] = {
		4, 8, 2, 1, 8, 16, 4, 2
	}; /* CUDA_R_32F, R_64F, R_16F, R_8I, C_32F, C_64F, C_16F, R_8U */
	return type >= 0 && type < 8 ? sizes[type] : type == 14 ? 2 : 16;
}

static int
product_bytes(handle_t handle, const struct sparse *matrix, int operation, size_t *out)
{
	if (!handle)
		return HANDLE_NOT_INITIALIZED;
	if (!matrix || !out)
		return HANDLE_INVALID_VALUE;
	tn__count_answer(false,
	                 "cuSOLVER, cuSPARSE cannot be asked without a card: workspaces by a model of their documents");
	*out = operation ? (size_t)matrix->elements * (8 + value_bytes(matrix->value_type))
	                 : (size_t)(matrix->rows + 1) * 8;
	return HANDLE_SUCCESS;
}

TN_EXPORT int
cusparseSpMM_bufferSize(handle_t handle, int op_a, int op_b, const void *alpha, const struct sparse *a,
                        const struct dense *b, const void *beta, const struct dense *c, int compute, int algorithm,
                        size_t *out)
{
	return product_bytes(handle, a, op_a, out);
}

TN_EXPORT int
cusparseSpMV_bufferSize(handle_t handle, int op_a, const void *alpha, const struct sparse *a, const struct dense *x,
                        const void *beta, const struct dense *y, int compute, int algorithm, size_t *out)
{
	return product_bytes(handle, a, op_a, out);
}

TN_EXPORT int
cusparseSDDMM_bufferSize(handle_t handle, int op_a, int op_b, const void *alpha, const struct dense *a,
                         const struct dense *b, const void *beta, const struct sparse *c, int compute, int algorithm,
                         size_t *out)
{
	return product_bytes(handle, c, 0, out);
}
