/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime: memory, copies, sets, pointers, pools.
 */
#include <stdlib.h>
#include <pthread.h>
#include <string.h>

#include "vgpu/cudart/rt.h"
#include "base/array.h"

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

/* ---- variables of the program that live on the device ---- */

struct symbol {
	const void *host;
	uint64_t address;
	size_t size;
};

static struct symbol *symbols;
static size_t symbol_count, symbol_capacity;
static pthread_mutex_t symbols_lock = PTHREAD_MUTEX_INITIALIZER;

void
tn__rt_note_symbol(const void *host, size_t size)
{
	pthread_mutex_lock(&symbols_lock);
	if (tn__array_room(&symbols, &symbol_capacity, symbol_count + 1, sizeof(*symbols), SIZE_MAX))
		symbols[symbol_count++] = (struct symbol){.host = host, .size = size};
	pthread_mutex_unlock(&symbols_lock);
}

/* Variables belong to their module, whose bytes are part of the context's figure: only an address is made up. */
static cudaError_t
find_symbol(const void *host, uint64_t *address, size_t *size)
{
	cudaError_t result = cudaErrorInvalidSymbol;
	pthread_mutex_lock(&symbols_lock);
	for (size_t i = 0; i < symbol_count && result != cudaSuccess; i++) {
		struct symbol *symbol = &symbols[i];
		if (symbol->host != host)
			continue;
		if (!symbol->address && tn__vmm_reserve(((symbol->size >> 21) + 1) << 21, 0, 0, &symbol->address) != 0)
			break;
		*address = symbol->address;
		*size = symbol->size;
		result = cudaSuccess;
	}
	pthread_mutex_unlock(&symbols_lock);
	return result;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGetSymbolAddress(void **pointer, const void *symbol)
{
	uint64_t address;
	size_t size;
	RT_ENTER();
	cudaError_t result = pointer ? find_symbol(symbol, &address, &size) : cudaErrorInvalidValue;
	if (result == cudaSuccess)
		*pointer = (void *)(uintptr_t)address;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGetSymbolSize(size_t *size, const void *symbol)
{
	uint64_t address;
	RT_ENTER();
	return rt(size ? find_symbol(symbol, &address, size) : cudaErrorInvalidValue);
}

static cudaError_t
copy_symbol(const void *symbol, void *host, size_t bytes, size_t offset, bool to_symbol, cudaStream_t stream,
            bool asynchronous)
{
	uint64_t address;
	size_t size;
	RT_ENTER();
	cudaError_t result = find_symbol(symbol, &address, &size);
	if (result != cudaSuccess || offset > size || bytes > size - offset)
		return rt(result != cudaSuccess ? result : cudaErrorInvalidValue);
	uint64_t device = address + offset, other = rt_handle(host);
	return rt(tn__copy(to_symbol ? device : other, to_symbol ? other : device, bytes, rt_handle(stream), asynchronous));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpyToSymbol(const void *symbol, const void *from, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	return copy_symbol(symbol, (void *)(uintptr_t)from, count, offset, true, 0, false);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t count, size_t offset, enum cudaMemcpyKind kind,
                        cudaStream_t stream)
{
	return copy_symbol(symbol, (void *)(uintptr_t)from, count, offset, true, stream, true);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpyFromSymbol(void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	return copy_symbol(symbol, to, count, offset, false, 0, false);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
                          cudaStream_t stream)
{
	return copy_symbol(symbol, to, count, offset, false, stream, true);
}

/* ---- stream-ordered memory and pools ---- */

/* A pool is accounted as what is allocated from it: memory goes back to the device when it is freed, as with the default
 * release threshold of 0 (documentation of cudaMemPoolAttrReleaseThreshold). */
struct pool {
	int device;
	uint64_t release_threshold;
	uint64_t used, used_high;
	int reuse[4];
};

static struct pool default_pools[8] = {
	{.device = 0}, {.device = 1}, {.device = 2}, {.device = 3}, {.device = 4}, {.device = 5}, {.device = 6}, {.device = 7},
};

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	if (!pool)
		return rt(cudaErrorInvalidValue);
	if (!tn__gpu(device))
		return rt(cudaErrorInvalidDevice);
	*pool = (cudaMemPool_t)&default_pools[device];
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	return cudaDeviceGetDefaultMemPool(pool, device);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	return tn__gpu(device) && pool ? cudaSuccess : rt(cudaErrorInvalidValue);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemPoolCreate(cudaMemPool_t *out, const struct cudaMemPoolProps *properties)
{
	RT_ENTER();
	if (!out || !properties)
		return rt(cudaErrorInvalidValue);
	struct pool *pool = calloc(1, sizeof(*pool));
	if (!pool)
		return rt(cudaErrorMemoryAllocation);
	pool->device = properties->location.id;
	*out = (cudaMemPool_t)pool;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemPoolDestroy(cudaMemPool_t handle)
{
	struct pool *pool = (struct pool *)handle;
	if (!pool || (pool >= default_pools && pool < default_pools + 8))
		return rt(cudaErrorInvalidValue);
	free(pool);
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemPoolGetAttribute(cudaMemPool_t handle, enum cudaMemPoolAttr attribute, void *value)
{
	struct pool *pool = (struct pool *)handle;
	if (!pool || !value)
		return rt(cudaErrorInvalidValue);
	switch ((int)attribute) {
	case 1: case 2: case 3: /* reuse policies: an int */
		*(int *)value = 1 - pool->reuse[attribute];
		return cudaSuccess;
	case 4:
		*(uint64_t *)value = pool->release_threshold;
		return cudaSuccess;
	case 5: case 7: /* reserved and used, now: the same, see above */
		*(uint64_t *)value = pool->used;
		return cudaSuccess;
	case 6: case 8:
		*(uint64_t *)value = pool->used_high;
		return cudaSuccess;
	default:
		return rt(tn__refuse("cudart", "cudaMemPoolGetAttribute", cudaErrorInvalidValue));
	}
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemPoolSetAttribute(cudaMemPool_t handle, enum cudaMemPoolAttr attribute, void *value)
{
	struct pool *pool = (struct pool *)handle;
	if (!pool || !value)
		return rt(cudaErrorInvalidValue);
	switch ((int)attribute) {
	case 1: case 2: case 3:
		pool->reuse[attribute] = !*(int *)value;
		return cudaSuccess;
	case 4:
		pool->release_threshold = *(uint64_t *)value;
		return cudaSuccess;
	case 6: case 8:
		pool->used_high = pool->used;
		return cudaSuccess;
	default:
		return rt(cudaErrorInvalidValue);
	}
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count)
{
	return pool && (list || !count) ? cudaSuccess : rt(cudaErrorInvalidValue);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool, struct cudaMemLocation *location)
{
	if (!flags || !pool || !location)
		return rt(cudaErrorInvalidValue);
	*flags = cudaMemAccessFlagsProtReadWrite;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	return pool ? cudaSuccess : rt(cudaErrorInvalidValue);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t handle, cudaStream_t stream)
{
	struct pool *pool = (struct pool *)handle;
	if (!pool)
		return rt(cudaErrorInvalidValue);
	cudaError_t result = cudaMalloc(pointer, size);
	if (result == cudaSuccess) {
		pool->used += size;
		if (pool->used > pool->used_high)
			pool->used_high = pool->used;
	}
	return result;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream)
{
	return cudaMallocFromPoolAsync(pointer, size, (cudaMemPool_t)&default_pools[tn__current_device()], stream);
}

/* A stream-ordered free does not wait for the device; which pool it came from is only kept for its counters. */
TN_EXPORT cudaError_t CUDARTAPI
cudaFreeAsync(void *pointer, cudaStream_t stream)
{
	struct tn_pointer_info info;
	RT_ENTER();
	tn__pointer_info(rt_handle(pointer), &info);
	if (info.kind == TN_MEMORY_DEVICE) {
		struct pool *pool = &default_pools[info.device];
		pool->used -= info.size < pool->used ? info.size : pool->used;
	}
	return rt(tn__free(rt_handle(pointer)));
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
