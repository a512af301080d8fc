/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt: descriptors, one heuristic answer, products recorded by shape. Descriptors may lie in the program's own memory
 * (cublasLt*Init), so that ours fit into the documented opaque structures: 64 bytes for a layout, 256 for a product, 64
 * for an algorithm.
 *
 * The heuristic offers one algorithm that needs no workspace: PyTorch sizes its workspace by itself, whatever is
 * answered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/blas.h"
#include "vgpu/core/memory_log.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct layout {
	uint64_t rows, columns;
	int64_t lead, stride;
	int32_t type, order, batch, unused;
};

struct description {
	int32_t compute, scale, transposed_a, transposed_b, transposed_c, pointer_mode, epilogue, unused;
};

struct preference {
	uint64_t workspace_limit;
};

struct algorithm {
	int32_t id;
	uint64_t workspace_limit;
};

struct heuristic_result { /* cublasLtMatmulHeuristicResult_t */
	uint64_t algorithm[8];
	size_t workspace_bytes;
	int state;
	float waves;
	int reserved[4];
};

_Static_assert(sizeof(struct layout) <= 64 && sizeof(struct description) <= 256 && sizeof(struct algorithm) <= 64,
               "descriptors fit into the documented opaque structures");

/* ---- handles ---- */

TN_EXPORT int
cublasLtCreate(void **out)
{
	if (!out)
		return BLAS_INVALID_VALUE;
	if (tn__ensure_context(tn__current_device()) != TN_OK)
		return BLAS_NOT_INITIALIZED;
	*out = calloc(1, sizeof(struct blas_handle));
	return *out ? BLAS_OK : BLAS_ALLOC_FAILED;
}

TN_EXPORT int
cublasLtDestroy(void *handle)
{
	free(handle);
	return BLAS_OK;
}

TN_EXPORT size_t
cublasLtGetVersion(void)
{
	return TN_CUDA_MAJOR == 12 ? 120405 : 130400;
}

TN_EXPORT size_t
cublasLtGetCudartVersion(void)
{
	return TN_CUDA_MAJOR == 12 ? 12040 : 13020;
}

TN_EXPORT const char *
cublasLtGetStatusName(int status)
{
	return status == BLAS_OK ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_NOT_SUPPORTED";
}

TN_EXPORT const char *
cublasLtGetStatusString(int status)
{
	return cublasLtGetStatusName(status);
}

/* ---- attributes: one table for each descriptor says where they lie ---- */

struct field {
	int attribute;
	size_t offset, size;
};

static const struct field layout_fields[] = {
	/* cublasLtMatrixLayoutAttribute_t: type, order, rows, columns, leading dimension, batch count, batch stride */
	{ 0, offsetof(struct layout, type), 4 },   { 1, offsetof(struct layout, order), 4 },
	{ 2, offsetof(struct layout, rows), 8 },   { 3, offsetof(struct layout, columns), 8 },
	{ 4, offsetof(struct layout, lead), 8 },   { 5, offsetof(struct layout, batch), 4 },
	{ 6, offsetof(struct layout, stride), 8 },
};

static const struct field description_fields[] = {
	/* cublasLtMatmulDescAttributes_t: compute type, scale type, pointer mode, transposition of A, B, C, epilogue */
	{ 0, offsetof(struct description, compute), 4 },      { 1, offsetof(struct description, scale), 4 },
	{ 2, offsetof(struct description, pointer_mode), 4 }, { 3, offsetof(struct description, transposed_a), 4 },
	{ 4, offsetof(struct description, transposed_b), 4 }, { 5, offsetof(struct description, transposed_c), 4 },
	{ 7, offsetof(struct description, epilogue), 4 },
};

static const struct field preference_fields[] = {
	/* cublasLtMatmulPreferenceAttributes_t: the largest workspace */
	{ 1, offsetof(struct preference, workspace_limit), 8 },
};

static const struct field *
find_field(const struct field *fields, size_t count, int attribute)
{
	for (size_t i = 0; i < count; i++)
		if (fields[i].attribute == attribute)
			return &fields[i];
	return NULL;
}

/* Attributes without a field (bias pointers, scales, alignments) change nothing that is modelled: they are taken. */
static int
set_field(const struct field *fields, size_t count, void *object, int attribute, const void *value, size_t size)
{
	const struct field *field = find_field(fields, count, attribute);
	if (!object || !value)
		return BLAS_INVALID_VALUE;
	if (!field)
		return BLAS_OK;
	if (size != field->size)
		return BLAS_INVALID_VALUE;
	memcpy((char *)object + field->offset, value, size);
	return BLAS_OK;
}

static int
get_field(const struct field *fields, size_t count, const void *object, int attribute, void *value, size_t size,
          size_t *written, const char *name)
{
	const struct field *field = find_field(fields, count, attribute);
	if (!object)
		return BLAS_INVALID_VALUE;
	if (!field)
		return tn__refuse("cublasLt", name, BLAS_NOT_SUPPORTED);
	if (written)
		*written = field->size;
	if (size == 0 && written)
		return BLAS_OK;
	if (!value || size < field->size)
		return BLAS_INVALID_VALUE;
	memcpy(value, (const char *)object + field->offset, field->size);
	return BLAS_OK;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LT_DESCRIPTOR(structure, fields, destroy, set, get)                                         \
	TN_EXPORT int destroy(void *object)                                                             \
	{                                                                                               \
		free(object);                                                                               \
		return BLAS_OK;                                                                             \
	}                                                                                               \
	TN_EXPORT int set(void *object, int attribute, const void *value, size_t size)                  \
	{                                                                                               \
		return set_field(fields, COUNT(fields), object, attribute, value, size);                    \
	}                                                                                               \
	TN_EXPORT int get(const void *object, int attribute, void *value, size_t size, size_t *written) \
	{                                                                                               \
		return get_field(fields, COUNT(fields), object, attribute, value, size, written, #get);     \
	}

LT_DESCRIPTOR(struct layout, layout_fields, cublasLtMatrixLayoutDestroy, cublasLtMatrixLayoutSetAttribute,
              cublasLtMatrixLayoutGetAttribute)
LT_DESCRIPTOR(struct description, description_fields, cublasLtMatmulDescDestroy, cublasLtMatmulDescSetAttribute,
              cublasLtMatmulDescGetAttribute)
LT_DESCRIPTOR(struct preference, preference_fields, cublasLtMatmulPreferenceDestroy,
              cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreferenceGetAttribute)

/* ---- making descriptors ---- */

static void
init_layout(struct layout *layout, int type, uint64_t rows, uint64_t columns, int64_t lead)
{
	*layout = (struct layout){ .rows = rows, .columns = columns, .lead = lead, .type = type, .batch = 1 };
}

TN_EXPORT int
cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t lead)
{
	struct layout *layout = out ? malloc(64) : NULL;
	if (!layout)
		return out ? BLAS_ALLOC_FAILED : BLAS_INVALID_VALUE;
	init_layout(layout, type, rows, columns, lead);
	*out = layout;
	return BLAS_OK;
}

TN_EXPORT int
cublasLtMatrixLayoutInit_internal(void *layout, size_t size, int type, uint64_t rows, uint64_t columns, int64_t lead)
{
	if (!layout || size < sizeof(struct layout))
		return BLAS_INVALID_VALUE;
	init_layout(layout, type, rows, columns, lead);
	return BLAS_OK;
}

TN_EXPORT int
cublasLtMatmulDescInit_internal(void *object, size_t size, int compute, int scale)
{
	if (!object || size < sizeof(struct description))
		return BLAS_INVALID_VALUE;
	*(struct description *)object = (struct description){ .compute = compute, .scale = scale, .epilogue = 1 };
	return BLAS_OK;
}

TN_EXPORT int
cublasLtMatmulDescCreate(void **out, int compute, int scale)
{
	void *object = out ? malloc(256) : NULL;
	if (!object)
		return out ? BLAS_ALLOC_FAILED : BLAS_INVALID_VALUE;
	*out = object;
	return cublasLtMatmulDescInit_internal(object, 256, compute, scale);
}

TN_EXPORT int
cublasLtMatmulPreferenceInit_internal(void *object, size_t size)
{
	if (!object || size < sizeof(struct preference))
		return BLAS_INVALID_VALUE;
	*(struct preference *)object = (struct preference){ 0 };
	return BLAS_OK;
}

TN_EXPORT int
cublasLtMatmulPreferenceCreate(void **out)
{
	void *object = out ? malloc(256) : NULL;
	if (!object)
		return out ? BLAS_ALLOC_FAILED : BLAS_INVALID_VALUE;
	*out = object;
	return cublasLtMatmulPreferenceInit_internal(object, 256);
}

/* ---- algorithms ---- */

TN_EXPORT int
cublasLtMatmulAlgoGetHeuristic(void *handle, const void *description, const void *a, const void *b, const void *c,
                               const void *d, const void *preference, int wanted, struct heuristic_result *results,
                               int *count)
{
	if (!description || !a || !b || !c || !d || !preference || wanted < 1 || !results || !count)
		return BLAS_INVALID_VALUE;
	memset(&results[0], 0, sizeof(results[0]));
	((struct algorithm *)(void *)results[0].algorithm)->id = 1;
	results[0].waves = 1.0f;
	*count = 1;
	return BLAS_OK;
}

TN_EXPORT int
cublasLtMatmulAlgoInit(void *handle, int compute, int scale, int a, int b, int c, int d, int id, void *algorithm)
{
	if (!algorithm)
		return BLAS_INVALID_VALUE;
	memset(algorithm, 0, 64);
	((struct algorithm *)algorithm)->id = id;
	return BLAS_OK;
}

TN_EXPORT int
cublasLtMatmulAlgoGetIds(void *handle, int compute, int scale, int a, int b, int c, int d, int wanted, int *ids,
                         int *count)
{
	if (wanted < 1 || !ids || !count)
		return BLAS_INVALID_VALUE;
	ids[0] = 1;
	*count = 1;
	return BLAS_OK;
}

TN_EXPORT int
cublasLtMatmulAlgoCheck(void *handle, const void *description, const void *a, const void *b, const void *c,
                        const void *d, const void *algorithm, struct heuristic_result *result)
{
	if (!algorithm || !result)
		return BLAS_INVALID_VALUE;
	memset(result, 0, sizeof(*result));
	memcpy(result->algorithm, algorithm, sizeof(result->algorithm));
	result->waves = 1.0f;
	return BLAS_OK;
}

TN_EXPORT int
cublasLtMatmulAlgoConfigSetAttribute(void *algorithm, int attribute, const void *value, size_t size)
{
	return algorithm && value ? BLAS_OK : BLAS_INVALID_VALUE;
}

/* Every configuration attribute is a 32-bit number (16 bits for two of them); ours are all the defaults. */
TN_EXPORT int
cublasLtMatmulAlgoConfigGetAttribute(const void *algorithm, int attribute, void *value, size_t size, size_t *written)
{
	if (!algorithm || (size && !value))
		return BLAS_INVALID_VALUE;
	if (written)
		*written = size ? size : sizeof(int32_t);
	if (size)
		memset(value, 0, size);
	if (attribute == 0 && size >= sizeof(int32_t))
		memcpy(value, &((const struct algorithm *)algorithm)->id, sizeof(int32_t));
	return BLAS_OK;
}

/* ---- the product ---- */

#define EPILOGUE_WRITES_MORE (128 | 256 | 512) /* cublasLtEpilogue_t: ..._AUX, BGRADA, BGRADB */
#define ORDER_COLUMNS 0                        /* CUBLASLT_ORDER_COL */

/* From the first element of a result to the last. */
static int64_t
elements_of(const struct layout *d)
{
	if (d->rows == 0 || d->columns == 0)
		return 0;
	return (int64_t)d->rows + ((int64_t)d->columns - 1) * d->lead + (d->batch > 1 ? d->batch - 1 : 0) * d->stride;
}

TN_EXPORT int
cublasLtMatmul(void *handle, const void *description, const void *alpha, const void *a, const void *a_layout,
               const void *b, const void *b_layout, const void *beta, const void *c, const void *c_layout, void *d,
               const void *d_layout, const void *algorithm, void *workspace, size_t workspace_bytes, uintptr_t stream)
{
	const struct description *about = description;
	const struct layout *la = a_layout, *lb = b_layout, *ld = d_layout;
	if (!handle || !about || !la || !lb || !ld)
		return BLAS_INVALID_VALUE;
	const struct tn_matmul shape = {
		.m = (int64_t)ld->rows,
		.n = (int64_t)ld->columns,
		.k = (int64_t)(about->transposed_a ? la->rows : la->columns),
		.batch = ld->batch > 0 ? ld->batch : 1,
		.a_type = la->type,
		.b_type = lb->type,
		.c_type = ld->type,
		.compute_type = about->compute,
		.library = "cublasLt",
		.unaligned = !tn__matmul_aligned(la->type, la->lead) || !tn__matmul_aligned(lb->type, lb->lead) ||
		             !tn__matmul_aligned(ld->type, ld->lead),
		.result = ld->order == ORDER_COLUMNS && !(about->epilogue & EPILOGUE_WRITES_MORE) ? d : NULL,
		.result_elements = elements_of(ld),
	};
	tn__note_workspace(TN_LIBRARY_CUBLASLT, workspace, workspace_bytes);
	tn__work_matmul(stream, &shape, blas_math_of(la->type, about->compute, 0));
	return BLAS_OK;
}
