/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime: stream-ordered memory and its pools.
 */
#include <stdlib.h>

#include "vgpu/cudart/rt.h"

/* A pool is accounted as what is allocated from it: memory goes back to the device when it is freed, as with the default
 * release threshold of 0 (documentation of cudaMemPoolAttrReleaseThreshold). */
struct pool {
	int device;
	uint64_t release_threshold;
	uint64_t used, used_high;
	int reuse[4];
};

static struct pool default_pools[8] = {
	{ .device = 0 }, { .device = 1 }, { .device = 2 }, { .device = 3 },
	{ .device = 4 }, { .device = 5 }, { .device = 6 }, { .device = 7 },
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
	case 1:
	case 2:
	case 3: /* reuse policies: an int */
		*(int *)value = 1 - pool->reuse[attribute];
		return cudaSuccess;
	case 4:
		*(uint64_t *)value = pool->release_threshold;
		return cudaSuccess;
	case 5:
	case 7: /* reserved and used, now: the same, see above */
		*(uint64_t *)value = pool->used;
		return cudaSuccess;
	case 6:
	case 8:
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
	case 1:
	case 2:
	case 3:
		pool->reuse[attribute] = !*(int *)value;
		return cudaSuccess;
	case 4:
		pool->release_threshold = *(uint64_t *)value;
		return cudaSuccess;
	case 6:
	case 8:
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
