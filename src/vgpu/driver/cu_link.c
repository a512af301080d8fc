/* SPDX-License-Identifier: Apache-2.0
 *
 * Driver: the linker, by which JIT compilers (numba) make a module of several pieces. As a module's code is not read, what is
 * linked is the pieces themselves, one after the other, and belongs to the linker until that is destroyed. The options'
 * log buffers stay as the caller made them: there is nothing to say.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/driver/cu.h"

struct link {
	char *image;
	size_t size;
};

TN_EXPORT CUresult CUDAAPI
cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values, CUlinkState *out)
{
	CU_ENTER();
	if (!out || (count > 0 && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	struct link *link = calloc(1, sizeof(*link));
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = (CUlinkState)link;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned int count,
                 CUjit_option *options, void **values)
{
	struct link *link = (struct link *)state;
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	char *larger = size < SIZE_MAX - link->size ? realloc(link->image, link->size + size) : NULL;
	if (!larger)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(larger + link->size, data, size);
	link->image = larger;
	link->size += size;
	return CUDA_SUCCESS;
}

/* The path stands for what is in the file. */
TN_EXPORT CUresult CUDAAPI
cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int count, CUjit_option *options,
                 void **values)
{
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	if (access(path, R_OK) != 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	return cuLinkAddData_v2(state, type, (void *)path, strlen(path) + 1, path, count, options, values);
}

TN_EXPORT CUresult CUDAAPI
cuLinkComplete(CUlinkState state, void **image, size_t *size)
{
	struct link *link = (struct link *)state;
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!image || link->size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	*image = link->image;
	if (size)
		*size = link->size;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuLinkDestroy(CUlinkState state)
{
	struct link *link = (struct link *)state;
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	free(link->image);
	free(link);
	return CUDA_SUCCESS;
}
