/* SPDX-License-Identifier: Apache-2.0
 *
 * Driver: memory, virtual memory management, copies, sets, pointer attributes.
 */
#include <string.h>

#include "vgpu/driver/cu.h"

TN_EXPORT CUresult CUDAAPI
cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	uint64_t free_now, total;
	CU_ENTER();
	if (!free_bytes || !total_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	tn__memory_info(tn__current_device(), &free_now, &total);
	*free_bytes = free_now;
	*total_bytes = total;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
	uint64_t address;
	CU_ENTER();
	if (!pointer || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	int result = tn__malloc(bytes, &address);
	if (result == TN_CUDA_OK)
		*pointer = address;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuMemFree_v2(CUdeviceptr pointer)
{
	CU_ENTER();
	return (CUresult)tn__free(pointer);
}

TN_EXPORT CUresult CUDAAPI
cuMemAllocHost_v2(void **pointer, size_t bytes)
{
	CU_ENTER();
	return pointer ? (CUresult)tn__malloc_host(bytes, pointer) : CUDA_ERROR_INVALID_VALUE;
}

TN_EXPORT CUresult CUDAAPI
cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
	return cuMemAllocHost_v2(pointer, bytes);
}

TN_EXPORT CUresult CUDAAPI
cuMemFreeHost(void *pointer)
{
	return (CUresult)tn__free_host(pointer);
}

TN_EXPORT CUresult CUDAAPI
cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
	CU_ENTER();
	return (CUresult)tn__register_host(pointer, bytes);
}

TN_EXPORT CUresult CUDAAPI
cuMemHostUnregister(void *pointer)
{
	return (CUresult)tn__unregister_host(pointer);
}

TN_EXPORT CUresult CUDAAPI
cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
	uint64_t address;
	CU_ENTER();
	int result = pointer ? tn__malloc_managed(bytes, &address) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*pointer = address;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
	struct tn_pointer_info info;
	tn__pointer_info(pointer, &info);
	if (info.kind == TN_MEMORY_UNKNOWN)
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = info.base;
	if (size)
		*size = info.size;
	return CUDA_SUCCESS;
}

/* ---- virtual memory management ---- */

TN_EXPORT CUresult CUDAAPI
cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                              CUmemAllocationGranularity_flags option)
{
	if (!granularity || !properties)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = (size_t)2 << 20;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuMemAddressReserve(CUdeviceptr *pointer, size_t size, size_t alignment, CUdeviceptr wanted, unsigned long long flags)
{
	uint64_t address;
	if (!pointer)
		return CUDA_ERROR_INVALID_VALUE;
	int result = tn__vmm_reserve(size, alignment, wanted, &address);
	if (result == TN_CUDA_OK)
		*pointer = address;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuMemAddressFree(CUdeviceptr pointer, size_t size)
{
	return (CUresult)tn__vmm_free(pointer, size);
}

TN_EXPORT CUresult CUDAAPI
cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
            unsigned long long flags)
{
	uintptr_t made;
	if (!handle || !properties || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return (CUresult)tn__refuse("cuda", "cuMemCreate on the host", CUDA_ERROR_NOT_SUPPORTED);
	if (properties->requestedHandleTypes & ~(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return CUDA_ERROR_NOT_SUPPORTED; /* fabric handles need NVLink switches: callers fall back */
	int result = tn__vmm_create(properties->location.id, size, &made);
	if (result == TN_CUDA_OK)
		*handle = made;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuMemRelease(CUmemGenericAllocationHandle handle)
{
	return (CUresult)tn__vmm_release(handle);
}

TN_EXPORT CUresult CUDAAPI
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	uintptr_t found;
	int result = handle ? tn__vmm_retain(cu_handle(address), &found) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*handle = found;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
	int device;
	int result = properties ? tn__vmm_device(handle, &device) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK) {
		memset(properties, 0, sizeof(*properties));
		properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
		properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		properties->location.id = device;
	}
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	return (CUresult)tn__vmm_map(pointer, size, offset, handle);
}

TN_EXPORT CUresult CUDAAPI
cuMemUnmap(CUdeviceptr pointer, size_t size)
{
	return (CUresult)tn__vmm_unmap(pointer, size);
}

TN_EXPORT CUresult CUDAAPI
cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *list, size_t count)
{
	struct tn_pointer_info info;
	tn__pointer_info(pointer, &info);
	return info.kind == TN_MEMORY_DEVICE && list && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

TN_EXPORT CUresult CUDAAPI
cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer)
{
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}

/* ---- copies and sets ---- */

static CUresult
copy(uint64_t to, uint64_t from, size_t bytes, CUstream stream, bool asynchronous)
{
	CU_ENTER();
	return (CUresult)tn__copy(to, from, bytes, cu_handle(stream), asynchronous);
}

TN_EXPORT CUresult CUDAAPI
cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy(to, from, bytes, 0, false);
}

TN_EXPORT CUresult CUDAAPI
cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy(to, from, bytes, stream, true);
}

TN_EXPORT CUresult CUDAAPI
cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	return copy(to, cu_handle(from), bytes, 0, false);
}

TN_EXPORT CUresult CUDAAPI
cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	return copy(to, cu_handle(from), bytes, stream, true);
}

TN_EXPORT CUresult CUDAAPI
cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	return copy(cu_handle(to), from, bytes, 0, false);
}

TN_EXPORT CUresult CUDAAPI
cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy(cu_handle(to), from, bytes, stream, true);
}

TN_EXPORT CUresult CUDAAPI
cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy(to, from, bytes, 0, false);
}

TN_EXPORT CUresult CUDAAPI
cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy(to, from, bytes, stream, true);
}

static CUresult
set(CUdeviceptr to, uint32_t value, uint32_t width, size_t count, CUstream stream)
{
	CU_ENTER();
	return (CUresult)tn__set(to, value, width, count, cu_handle(stream), true);
}

TN_EXPORT CUresult CUDAAPI
cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
	return set(to, value, 1, count, 0);
}

TN_EXPORT CUresult CUDAAPI
cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
	return set(to, value, 1, count, stream);
}

TN_EXPORT CUresult CUDAAPI
cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
	return set(to, value, 4, count, 0);
}

TN_EXPORT CUresult CUDAAPI
cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
	return set(to, value, 4, count, stream);
}

/* ---- what is this pointer? ---- */

static bool
pointer_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer, const struct tn_pointer_info *info)
{
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = (CUcontext)tn__context_primary(info->device);
		return true;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = info->kind == TN_MEMORY_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = pointer;
		return true;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)data = (void *)(uintptr_t)pointer;
		return info->kind != TN_MEMORY_DEVICE;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = info->base;
		return true;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(int *)data = 0;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(int *)data = info->kind == TN_MEMORY_MANAGED;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = info->device;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = info->base;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = info->size;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(int *)data = 1;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(int *)data = info->kind == TN_MEMORY_DEVICE && info->exportable;
		return true;
	default:
		tn__refuse("cuda", "cuPointerGetAttribute", 0);
		return false;
	}
}

TN_EXPORT CUresult CUDAAPI
cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	struct tn_pointer_info info;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	tn__pointer_info(pointer, &info);
	if (info.kind == TN_MEMORY_UNKNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	return pointer_attribute(data, attribute, pointer, &info) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Documented to succeed for any pointer: what does not apply is answered with zero. */
TN_EXPORT CUresult CUDAAPI
cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr pointer)
{
	struct tn_pointer_info info;
	tn__pointer_info(pointer, &info);
	for (unsigned i = 0; i < count; i++) {
		if (info.kind != TN_MEMORY_UNKNOWN && pointer_attribute(data[i], attributes[i], pointer, &info))
			continue;
		bool wide = attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT ||
		            attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
		            attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
		            attributes[i] == CU_POINTER_ATTRIBUTE_BUFFER_ID ||
		            attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
		            attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
		memset(data[i], 0, wide ? 8 : 4);
	}
	return CUDA_SUCCESS;
}
