/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that move elements without computing. What is known or assumed of them moves along; and a mask of zeros in which
 * N places are set at indices that nobody knows has N that are set at most: samplers of detectors make masks so.
 *
 * Parameters: CatArrayBatchedCopy of aten/src/ATen/native/cuda/Shape.cu (inputs of one launch: grid.y), gpu_index_kernel of
 * IndexKernel.cu and _scatter_gather_elementwise_kernel of ScatterGatherKernel.cu. The closures of these two hold their
 * captures in the order of their first use.
 *
 * Called with the core lock held.
 */
#include "vgpu/core/rearrange.h"

#include <stdlib.h>
#include <string.h>

#include "vgpu/core/dtype.h"
#include "vgpu/core/indexed.h"
#include "vgpu/core/names.h"

enum {
	REARRANGE_UNREAD,
	REARRANGE_NONE,
	REARRANGE_CAT,
	REARRANGE_INDEX,
	REARRANGE_INDEX_PUT,
	REARRANGE_ROWS, /* rows at indices */
	REARRANGE_GATHER,
	REARRANGE_SCATTER,
	REARRANGE_SCATTER_FILL, /* one number */
	REARRANGE_SCATTER_ADD,  /* of 64-bit whole numbers */
	REARRANGE_SCATTER_INTO, /* what comes out is not followed */
};

#define PIECES_MAX 65536

static size_t
number_behind(const char *name, const char *part)
{
	const char *found = strstr(name, part);
	return found ? strtoul(found + strlen(part), NULL, 10) : 0;
}

/* "<scatters?, scalar, index>" behind the name of the function that launches it; the index's type since torch 2.8, 64 bits
 * before. Where only assigned, scalars are OpaqueType<bytes>. */
static void
decode_scatter(struct tn_kernel *kernel, const char *name)
{
	const char *internal = skip_to(name, "36_cuda_scatter_gather_internal_kernelILb");
	const char *fill = skip_to(name, "34_cuda_scatter_fill_internal_kernelI");
	const char *opaque = skip_to(internal ? internal : fill, "10OpaqueTypeILi");
	bool assigns = strstr(name, "12TensorAssign") != NULL;
	if (!internal && !fill)
		return;
	kernel->rearrange.width = (unsigned char)(opaque ? strtoul(opaque, NULL, 10) : sizeof(int64_t));
	kernel->rearrange.kind = REARRANGE_SCATTER_INTO;
	if (strstr(name, "EEiEcl")) /* 32-bit indices */
		return;
	if (fill)
		kernel->rearrange.kind = assigns && opaque ? REARRANGE_SCATTER_FILL : REARRANGE_SCATTER_INTO;
	else if (assigns && opaque)
		kernel->rearrange.kind = *internal == '1' ? REARRANGE_SCATTER : REARRANGE_GATHER;
	else if ((skip(internal, "1ElEcl") || skip(internal, "1EllEcl")) && strstr(name, "9ReduceAdd"))
		kernel->rearrange.kind = REARRANGE_SCATTER_ADD;
}

static void
decode(struct tn_kernel *kernel)
{
	const char *name = kernel->name;
	kernel->rearrange.kind = REARRANGE_NONE;
	if (strstr(name, "CatArrayBatchedCopy")) {
		const char *width = strstr(name, "10OpaqueTypeILj"), *index = width ? strstr(width, "EEjLi") : NULL;
		const char *batch = index ? strstr(index + 5, "ELi") : NULL;
		kernel->rearrange.width = (unsigned char)number_behind(name, "10OpaqueTypeILj");
		kernel->rearrange.batch = batch ? (unsigned char)strtoul(batch + 3, NULL, 10) : 0;
		if (kernel->rearrange.width && kernel->rearrange.batch)
			kernel->rearrange.kind = REARRANGE_CAT;
	} else if (strstr(name, "24vectorized_gather_kernelILi") && strstr(name, "ElEEv")) { /* 64-bit indices */
		kernel->rearrange.kind = REARRANGE_ROWS;
	} else if (strstr(name, "34_scatter_gather_elementwise_kernelILi")) {
		decode_scatter(kernel, name);
	} else if (strstr(name, "24index_elementwise_kernelILi") && strstr(name, "16gpu_index_kernelI")) {
		kernel->rearrange.width = (unsigned char)number_behind(name, "10OpaqueTypeILi");
		if (kernel->rearrange.width && strstr(name, "21index_put_kernel_impl"))
			kernel->rearrange.kind = REARRANGE_INDEX_PUT;
		else if (kernel->rearrange.width && strstr(name, "17index_kernel_implI"))
			kernel->rearrange.kind = REARRANGE_INDEX;
	}
}

/* ---- cat ---- */

struct cat_input {
	uint64_t address;
	uint32_t offset, size, elements; /* along the dimension; in all */
};

static struct cat_input
cat_input(const unsigned char *metadata, size_t batch, size_t number)
{
	struct cat_input input;
	memcpy(&input.address, metadata + number * 8, 8);
	memcpy(&input.offset, metadata + batch * 8 + number * 4, 4);
	memcpy(&input.size, metadata + batch * 12 + number * 4, 4);
	memcpy(&input.elements, metadata + batch * 16 + number * 4, 4);
	return input;
}

/* How far the dimension reaches, over the inputs of this launch; 0: they do not follow each other. */
static uint64_t
cat_size(const unsigned char *metadata, size_t batch, size_t inputs)
{
	uint64_t size = 0;
	for (size_t i = 0; i < inputs; i++) {
		struct cat_input input = cat_input(metadata, batch, i);
		if (input.offset != size)
			return 0;
		size += input.size;
	}
	return size;
}

/* Arguments: (result, {addresses, offsets, sizes, elements, whether contiguous}, sizes, dimension, elements of what lies
 * inside the dimension). Each input is dense; where more than one piece of each is copied, the launch must have them all. */
static bool
cat(const struct tn_kernel *kernel, const struct tn_launch *launch)
{
	const unsigned char *metadata = launch->arguments[1];
	size_t batch = kernel->rearrange.batch, inputs = launch->grid[1];
	uint64_t result, end = 0, width = kernel->rearrange.width;
	uint32_t inner;
	memcpy(&result, launch->arguments[0], sizeof(result));
	memcpy(&inner, launch->arguments[4], sizeof(inner));
	if (!tn__on_device(result) || inputs == 0 || inputs > batch || inner == 0)
		return false;
	uint64_t whole = inputs < batch ? cat_size(metadata, batch, inputs) * inner * width : 0;
	for (size_t i = 0; i < inputs; i++) {
		struct cat_input input = cat_input(metadata, batch, i);
		uint64_t piece = (uint64_t)input.size * inner * width, bytes = (uint64_t)input.elements * width;
		bool dense = metadata[batch * 20 + i] != 0;
		if (!tn__on_device(input.address) || !dense || piece == 0 || bytes % piece != 0 ||
		    (bytes > piece && (whole == 0 || bytes / piece > PIECES_MAX)))
			return false;
	}
	for (size_t i = 0; i < inputs; i++) {
		struct cat_input input = cat_input(metadata, batch, i);
		uint64_t piece = (uint64_t)input.size * inner * width, to = result + (uint64_t)input.offset * inner * width;
		for (uint64_t done = 0; done < (uint64_t)input.elements * width; done += piece, to += whole) {
			tn__values_move_known(to, input.address + done, piece);
			end = to + piece > end ? to + piece : end;
		}
	}
	tn__values_join(result, end > result ? end - result : 0);
	return true;
}

/* ---- indices ---- */

/* A mask of zeros of which at most `count` are set afterwards; or one that had some already. */
static void
set_some(uint64_t mask, uint64_t count)
{
	struct tn_likely likely;
	uint64_t bytes = tn__values_extent(mask, &likely);
	if (bytes == 0)
		return tn__values_forget_reached(&mask, 1);
	uint64_t set = tn__values_selected(mask, bytes, 1);
	likely = (struct tn_likely){ .kind = TN_LIKELY_TRUTH, .dtype = TN_DTYPE_BOOL, .truth = true };
	likely.bound = set + count < bytes ? set + count : 0;
	tn__values_assume(mask, bytes, &likely);
}

/* Arguments: (64-bit count, closure). */
static bool
move_indexed(const struct tn_kernel *kernel, const struct tn_launch *launch)
{
	struct tn_indexed c;
	uint64_t count, last[3], width = kernel->rearrange.width;
	bool put = kernel->rearrange.kind == REARRANGE_INDEX_PUT;
	memcpy(&count, launch->arguments[0], sizeof(count));
	memcpy(&c, launch->arguments[1], sizeof(c));
	if (!tn__indexed_is_plausible(&c, count))
		return false;
	if (tn__indexed_move(&c, count, put, width))
		return true;
	if (put && width == 1) {
		set_some(c.result, count);
	} else if (put) {
		tn__values_forget_reached(&c.result, 1);
	} else {
		tn__indexed_offsets(&c, count - 1, last);
		tn__values_forget_range(c.result, last[0] + width);
		tn__values_forget_reached(&c.result, 1);
	}
	return true;
}

/* Rows at indices (aten/src/ATen/native/cuda/IndexKernelUtils.h). Arguments: (result, input, indices, how many, bytes of a
 * row, rows of the input, bytes between rows of the input, and of the result, whether indices may be negative). */
static bool
gather_rows(const struct tn_launch *launch)
{
	uint64_t result, input, indices;
	int64_t row, rows, from, to;
	int32_t count;
	memcpy(&result, launch->arguments[0], 8);
	memcpy(&input, launch->arguments[1], 8);
	memcpy(&indices, launch->arguments[2], 8);
	memcpy(&count, launch->arguments[3], 4);
	memcpy(&row, launch->arguments[4], 8);
	memcpy(&rows, launch->arguments[5], 8);
	memcpy(&from, launch->arguments[6], 8);
	memcpy(&to, launch->arguments[7], 8);
	if (!tn__on_device(result) || !tn__on_device(input) || !tn__on_device(indices) || count <= 0 || row <= 0 ||
	    rows <= 0 || from < row || to < row || (uint64_t)row > UINT64_MAX / 4 / (uint64_t)count)
		return false;
	bool known = (uint64_t)count <= TN_INDEXED_MAX && tn__values_known(indices, NULL, (uint64_t)count * 8);
	uint64_t bytes = (uint64_t)(count - 1) * (uint64_t)to + (uint64_t)row;
	if (known && !tn__values_any(input, (uint64_t)(rows - 1) * (uint64_t)from + (uint64_t)row)) {
		tn__values_forget_range(result, bytes);
		return true;
	}
	if (!known) {
		tn__values_forget_range(result, bytes);
		tn__values_forget_reached(&result, 1);
	}
	for (int32_t i = 0; known && i < count; i++) {
		int64_t index = 0;
		(void)tn__values_known(indices + (uint64_t)i * 8, &index, sizeof(index));
		index += index < 0 ? rows : 0;
		if (index >= 0 && index < rows)
			tn__values_move_known(result + (uint64_t)i * (uint64_t)to, input + (uint64_t)index * (uint64_t)from,
			                      (uint64_t)row);
		else
			tn__values_forget_range(result + (uint64_t)i * (uint64_t)to, (uint64_t)row);
	}
	tn__values_join(result, bytes);
	return true;
}

/* ---- scatter and gather ---- */

/* Captures behind the OffsetCalculator, which ends at 604 bytes for (result, input, index) and 504 for (result, index).
 * index_stride is in elements; the input's address, or the number of a fill, comes last. */
struct scatter_captures {
	uint64_t index;
	int64_t index_size;
	unsigned char functor[8];
	uint64_t result;
	int64_t index_stride, elements;
	unsigned char last[16];
};

#define FILL_CAPTURES 504

/* Arguments: (32-bit count, closure). As if it were indexed along one dimension. */
static bool
read_scatter(const struct tn_kernel *kernel, const struct tn_launch *launch, struct tn_indexed *c,
             unsigned char number[16])
{
	struct scatter_captures captures;
	const unsigned char *bytes = launch->arguments[1];
	bool fill = strstr(kernel->name, "34_cuda_scatter_fill_internal_kernelI") != NULL;
	memset(c, 0, sizeof(*c));
	size_t last = fill ? kernel->rearrange.width : sizeof(c->input);
	memcpy(&captures, bytes + (fill ? FILL_CAPTURES : offsetof(struct tn_indexed, result)),
	       offsetof(struct scatter_captures, last) + last);
	memcpy(number, captures.last, last);
	memcpy(c, bytes, fill ? offsetof(struct tn_indexed, strides) : offsetof(struct tn_indexed, result));
	for (size_t d = 0; fill && d < TN_INDEXED_DIMS; d++) {
		memcpy(&c->strides[d][0], bytes + offsetof(struct tn_indexed, strides) + d * 8, 4);
		memcpy(&c->strides[d][2], bytes + offsetof(struct tn_indexed, strides) + d * 8 + 4, 4);
	}
	c->result = c->input = captures.result;
	if (!fill)
		memcpy(&c->input, number, sizeof(c->input));
	c->indices = 1;
	c->index[0] = captures.index;
	c->index_sizes[0] = captures.index_size;
	c->index_strides[0] = captures.index_stride * kernel->rearrange.width;
	int32_t count;
	memcpy(&count, launch->arguments[0], sizeof(count));
	return count > 0 && tn__indexed_is_plausible(c, (uint64_t)count);
}

/* Puts a number, or adds whole ones, at indices that are all known; false: something is not. */
static bool
put_each(const struct tn_indexed *c, const unsigned char *number, uint64_t width)
{
	uint64_t offsets[3], place, count = tn__indexed_elements(c), end = c->result;
	int64_t old, more;
	bool known = count <= TN_INDEXED_MAX;
	for (uint64_t n = 0; known && n < count; n++) {
		tn__indexed_offsets(c, n, offsets);
		known = tn__indexed_place(c, offsets[2], &place) &&
		        (number || (tn__values_known(c->result + offsets[0] + place, &old, 8) &&
		                    tn__values_known(c->input + offsets[1], &more, 8)));
	}
	for (uint64_t n = 0; known && n < count; n++) {
		tn__indexed_offsets(c, n, offsets);
		(void)tn__indexed_place(c, offsets[2], &place);
		uint64_t address = c->result + offsets[0] + place;
		if (!number) {
			(void)tn__values_known(address, &old, 8);
			(void)tn__values_known(c->input + offsets[1], &more, 8);
			old = (int64_t)((uint64_t)old + (uint64_t)more);
		}
		tn__values_put(address, number ? number : (const unsigned char *)&old, width);
		end = address + width > end ? address + width : end;
	}
	tn__values_join(c->result, end - c->result);
	return known;
}

/* Where indices are not known, the result is not either. Nothing else is written. */
static bool
scatter(const struct tn_kernel *kernel, const struct tn_launch *launch)
{
	struct tn_indexed c;
	unsigned char number[16], kind = kernel->rearrange.kind;
	uint64_t width = kernel->rearrange.width;
	bool known = false;
	if (!read_scatter(kernel, launch, &c, number))
		return false;
	if (kind == REARRANGE_GATHER || kind == REARRANGE_SCATTER)
		known = tn__indexed_move(&c, tn__indexed_elements(&c), kind == REARRANGE_SCATTER, width);
	else if (kind == REARRANGE_SCATTER_FILL || kind == REARRANGE_SCATTER_ADD)
		known = put_each(&c, kind == REARRANGE_SCATTER_FILL ? number : NULL, width);
	if (!known && width == 1 && kind == REARRANGE_SCATTER_FILL)
		set_some(c.result, tn__indexed_elements(&c));
	else if (!known)
		tn__values_forget_reached(&c.result, 1);
	return true;
}

bool
tn__rearrange_launch(struct tn_kernel *kernel, const struct tn_launch *launch)
{
	if (kernel->rearrange.kind == REARRANGE_UNREAD)
		decode(kernel);
	if (kernel->rearrange.kind == REARRANGE_NONE || !launch->arguments)
		return false;
	switch (kernel->rearrange.kind) {
	case REARRANGE_CAT:
		return cat(kernel, launch);
	case REARRANGE_ROWS:
		return gather_rows(launch);
	case REARRANGE_INDEX:
	case REARRANGE_INDEX_PUT:
		return move_indexed(kernel, launch);
	default:
		return scatter(kernel, launch);
	}
}

bool
tn__rearrange_reads(struct tn_kernel *kernel)
{
	if (kernel->rearrange.kind == REARRANGE_UNREAD)
		decode(kernel);
	return kernel->rearrange.kind != REARRANGE_NONE;
}
