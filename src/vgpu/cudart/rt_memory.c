/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime: memory, copies, sets, pointers.
 */
#include <string.h>

#include "vgpu/cudart/rt.h"

TN_EXPORT cudaError_t CUDARTAPI
cudaMalloc(void **pointer, size_t size)
{
	uint64_t address;
	RT_ENTER();
	if (!pointer)
		return rt(cudaErrorInvalidValue);
	int result = tn__malloc(size, &address);
	if (result == TN_CUDA_OK)
		*pointer = (void *)(uintptr_t)address;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaFree(void *pointer)
{
	RT_ENTER();
	return rt(tn__free(rt_handle(pointer)));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
	if (!pitch)
		return rt(cudaErrorInvalidValue);
	size_t rounded = (width + 511) / 512 * 512;
	cudaError_t result = cudaMalloc(pointer, rounded * height);
	if (result == cudaSuccess)
		*pitch = rounded;
	return result;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMallocManaged(void **pointer, size_t size, unsigned int flags)
{
	uint64_t address;
	RT_ENTER();
	if (!pointer)
		return rt(cudaErrorInvalidValue);
	int result = tn__malloc_managed(size, &address);
	if (result == TN_CUDA_OK)
		*pointer = (void *)(uintptr_t)address;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaHostAlloc(void **pointer, size_t size, unsigned int flags)
{
	RT_ENTER();
	if (!pointer)
		return rt(cudaErrorInvalidValue);
	return rt(tn__malloc_host(size, pointer));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMallocHost(void **pointer, size_t size)
{
	return cudaHostAlloc(pointer, size, cudaHostAllocDefault);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaFreeHost(void *pointer)
{
	return rt(tn__free_host(pointer));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaHostRegister(void *pointer, size_t size, unsigned int flags)
{
	RT_ENTER();
	return rt(tn__register_host(pointer, size));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaHostUnregister(void *pointer)
{
	return rt(tn__unregister_host(pointer));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaHostGetDevicePointer(void **device_pointer, void *pointer, unsigned int flags)
{
	struct tn_pointer_info info;
	if (!device_pointer)
		return rt(cudaErrorInvalidValue);
	tn__pointer_info(rt_handle(pointer), &info);
	if (info.kind != TN_MEMORY_HOST)
		return rt(cudaErrorInvalidValue);
	*device_pointer = pointer; /* unified addressing */
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaHostGetFlags(unsigned int *flags, void *pointer)
{
	struct tn_pointer_info info;
	if (!flags)
		return rt(cudaErrorInvalidValue);
	tn__pointer_info(rt_handle(pointer), &info);
	if (info.kind != TN_MEMORY_HOST)
		return rt(cudaErrorInvalidValue);
	*flags = cudaHostAllocMapped;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	uint64_t free_now, total;
	RT_ENTER();
	if (!free_bytes || !total_bytes)
		return rt(cudaErrorInvalidValue);
	tn__memory_info(tn__current_device(), &free_now, &total);
	*free_bytes = free_now;
	*total_bytes = total;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
	static const enum cudaMemoryType kinds[] = {
		[TN_MEMORY_UNKNOWN] = cudaMemoryTypeUnregistered,
		[TN_MEMORY_HOST] = cudaMemoryTypeHost,
		[TN_MEMORY_DEVICE] = cudaMemoryTypeDevice,
		[TN_MEMORY_MANAGED] = cudaMemoryTypeManaged,
	};
	struct tn_pointer_info info;
	RT_ENTER();
	if (!attributes)
		return rt(cudaErrorInvalidValue);
	tn__pointer_info(rt_handle(pointer), &info);
	memset(attributes, 0, sizeof(*attributes));
	attributes->type = kinds[info.kind];
	attributes->device = info.kind == TN_MEMORY_UNKNOWN ? cudaInvalidDeviceId : info.device;
	if (info.kind != TN_MEMORY_UNKNOWN)
		attributes->devicePointer = (void *)(uintptr_t)pointer;
	if (info.kind != TN_MEMORY_DEVICE)
		attributes->hostPointer = (void *)(uintptr_t)pointer;
	return cudaSuccess;
}

/* ---- copies and sets ---- */

static cudaError_t
copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream, bool asynchronous)
{
	RT_ENTER();
	if ((unsigned)kind > cudaMemcpyDefault)
		return rt(cudaErrorInvalidMemcpyDirection);
	return rt(tn__copy(rt_handle(to), rt_handle(from), bytes, rt_handle(stream), asynchronous));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	return copy(to, from, bytes, kind, 0, false);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy(to, from, bytes, kind, stream, true);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
	return copy(to, from, bytes, cudaMemcpyDefault, 0, false);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream)
{
	return copy(to, from, bytes, cudaMemcpyDefault, stream, true);
}

static cudaError_t
copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
        cudaStream_t stream, bool asynchronous)
{
	RT_ENTER();
	return rt(tn__copy_2d(rt_handle(to), to_pitch, rt_handle(from), from_pitch, width, height, rt_handle(stream),
	                      asynchronous));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
             enum cudaMemcpyKind kind)
{
	return copy_2d(to, to_pitch, from, from_pitch, width, height, 0, false);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                  enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_2d(to, to_pitch, from, from_pitch, width, height, stream, true);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemset(void *pointer, int value, size_t count)
{
	RT_ENTER();
	return rt(tn__set(rt_handle(pointer), (unsigned char)value, 1, count, 0, true));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemsetAsync(void *pointer, int value, size_t count, cudaStream_t stream)
{
	RT_ENTER();
	return rt(tn__set(rt_handle(pointer), (unsigned char)value, 1, count, rt_handle(stream), true));
}

static cudaError_t
set_2d(void *pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
	RT_ENTER();
	int result = TN_CUDA_OK;
	for (size_t row = 0; row < height && result == TN_CUDA_OK; row++)
		result = tn__set(rt_handle(pointer) + row * pitch, (unsigned char)value, 1, width, rt_handle(stream), true);
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height)
{
	return set_2d(pointer, pitch, value, width, height, 0);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
	return set_2d(pointer, pitch, value, width, height, stream);
}

/* ---- hints about managed memory ---- */

#if TN_CUDA_MAJOR >= 13
TN_EXPORT cudaError_t CUDARTAPI
cudaMemPrefetchAsync(const void *pointer, size_t count, struct cudaMemLocation location, unsigned int flags,
                     cudaStream_t stream)
{
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemAdvise(const void *pointer, size_t count, enum cudaMemoryAdvise advice, struct cudaMemLocation location)
{
	return cudaSuccess;
}
#else
TN_EXPORT cudaError_t CUDARTAPI
cudaMemPrefetchAsync(const void *pointer, size_t count, int device, cudaStream_t stream)
{
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemAdvise(const void *pointer, size_t count, enum cudaMemoryAdvise advice, int device)
{
	return cudaSuccess;
}
#endif
