/* SPDX-License-Identifier: Apache-2.0
 *
 * Driver: initialisation, devices, contexts, errors. What contexts are stands in core/context.c.
 */
#include <stdio.h>
#include <string.h>

#include "vgpu/core/attributes.h"
#include "vgpu/driver/cu.h"

TN_EXPORT CUresult CUDAAPI
cuInit(unsigned int flags)
{
	return tn__device_count() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

TN_EXPORT CUresult CUDAAPI
cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = 13020;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuDeviceGetCount(int *count)
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = tn__device_count();
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuDeviceGet(CUdevice *device, int ordinal)
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!tn__gpu(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuDeviceGetName(char *name, int length, CUdevice device)
{
	const struct tn_gpu_figures *gpu = tn__gpu(device);
	if (!name || length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!gpu)
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)length, "%s", gpu->name);
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	const struct tn_gpu_figures *gpu = tn__gpu(device);
	if (!bytes || !gpu)
		return bytes ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
	*bytes = gpu->total_bytes;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	const struct tn_gpu_figures *gpu = tn__gpu(device);
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!gpu)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!tn__device_attribute(gpu, tn__physical_device(device), (int)attribute, value))
		return (CUresult)tn__refuse("cuda", "cuDeviceGetAttribute", CUDA_ERROR_INVALID_VALUE);
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	if (!uuid || !tn__gpu(device))
		return uuid ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
	tn__device_uuid(tn__physical_device(device), (unsigned char *)uuid->bytes);
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	return cuDeviceGetUuid_v2(uuid, device);
}

TN_EXPORT CUresult CUDAAPI
cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	const struct tn_gpu_figures *gpu = tn__gpu(device);
	if (!major || !minor || !gpu)
		return CUDA_ERROR_INVALID_VALUE;
	*major = gpu->compute_major;
	*minor = gpu->compute_minor;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
	if (!text || length < 13 || !tn__gpu(device))
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(text, (size_t)length, "0000:%02X:00.0", (unsigned)tn__pci_bus(tn__physical_device(device)));
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	if (!can || !tn__gpu(device) || !tn__gpu(peer))
		return CUDA_ERROR_INVALID_VALUE;
	*can = device != peer;
	return CUDA_SUCCESS;
}

/* ---- contexts ---- */

TN_EXPORT CUresult CUDAAPI
cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	int result = context ? tn__context_retain(device) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*context = (CUcontext)tn__context_primary(device);
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return (CUresult)tn__context_release(device);
}

TN_EXPORT CUresult CUDAAPI
cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	if (!tn__gpu(device))
		return CUDA_ERROR_INVALID_DEVICE;
	tn__device_reset(device);
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
	return tn__gpu(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

TN_EXPORT CUresult CUDAAPI
cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	if (!flags || !active || !tn__gpu(device))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = 0;
	*active = tn__has_context(device);
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuCtxSetCurrent(CUcontext context)
{
	return (CUresult)tn__context_set(cu_handle(context));
}

TN_EXPORT CUresult CUDAAPI
cuCtxGetCurrent(CUcontext *context)
{
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = (CUcontext)tn__context_current();
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuCtxPushCurrent_v2(CUcontext context)
{
	return (CUresult)tn__context_push(cu_handle(context));
}

TN_EXPORT CUresult CUDAAPI
cuCtxPopCurrent_v2(CUcontext *context)
{
	uintptr_t popped;
	int result = tn__context_pop(&popped);
	if (result == TN_CUDA_OK && context)
		*context = (CUcontext)popped;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	uintptr_t made;
	int result = context ? tn__context_create(device, &made) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*context = (CUcontext)made;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags, CUdevice device)
{
	return cuCtxCreate_v2(context, flags, device);
}

/* Primary contexts are none of the program's to destroy: CUDA_ERROR_INVALID_CONTEXT. */
TN_EXPORT CUresult CUDAAPI
cuCtxDestroy_v2(CUcontext context)
{
	return (CUresult)tn__context_destroy(cu_handle(context));
}

TN_EXPORT CUresult CUDAAPI
cuCtxGetDevice(CUdevice *device)
{
	return device ? (CUresult)tn__context_device(device) : CUDA_ERROR_INVALID_VALUE;
}

/* Of any context; NULL means the current one. */
TN_EXPORT CUresult CUDAAPI
cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
	if (!context)
		return cuCtxGetDevice(device);
	int found = tn__device_of_context(cu_handle(context));
	if (!device || found < 0)
		return device ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	*device = found;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuCtxGetFlags(unsigned int *flags)
{
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = 0;
	return tn__context_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

TN_EXPORT CUresult CUDAAPI
cuCtxSynchronize(void)
{
	CU_ENTER();
	return (CUresult)tn__device_synchronize();
}

TN_EXPORT CUresult CUDAAPI
cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = 13020;
	return CUDA_SUCCESS;
}

static size_t limits[] = { 1024, 1048576, 8388608, 2, 2048, 64 };

TN_EXPORT CUresult CUDAAPI
cuCtxGetLimit(size_t *value, CUlimit limit)
{
	if (!value || (size_t)limit >= sizeof(limits) / sizeof(*limits))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*value = limits[limit];
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuCtxSetLimit(CUlimit limit, size_t value)
{
	if ((size_t)limit >= sizeof(limits) / sizeof(*limits))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	limits[limit] = value;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

/* ---- errors ---- */

static const struct {
	CUresult code;
	const char *name, *text;
} errors[] = {
	{ CUDA_SUCCESS, "CUDA_SUCCESS", "no error" },
	{ CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
	{ CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
	{ CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
	{ CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
	{ CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
	{ CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
	{ CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
	{ CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
};

static int
find_error(CUresult code)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].code == code)
			return (int)i;
	return -1;
}

TN_EXPORT CUresult CUDAAPI
cuGetErrorName(CUresult error, const char **name)
{
	int found = find_error(error);
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = found < 0 ? "CUDA_ERROR_UNKNOWN" : errors[found].name;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuGetErrorString(CUresult error, const char **text)
{
	int found = find_error(error);
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = found < 0 ? "unrecognized error code" : errors[found].text;
	return CUDA_SUCCESS;
}

/* ---- error logs: nothing is ever logged ---- */

TN_EXPORT CUresult CUDAAPI
cuLogsRegisterCallback(CUlogsCallback callback, void *data, CUlogsCallbackHandle *handle)
{
	static char registered;
	if (!callback)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle)
		*handle = (CUlogsCallbackHandle)&registered;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
	return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
