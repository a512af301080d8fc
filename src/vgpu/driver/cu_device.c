/* SPDX-License-Identifier: Apache-2.0
 *
 * Driver: initialisation, devices, contexts, errors. Each device has one context, its primary one; cuCtxCreate hands the
 * same out.
 */
#include <stdio.h>
#include <string.h>

#include "vgpu/core/attributes.h"
#include "vgpu/driver/cu.h"

/* Context handles: opaque, one a device. */
static char contexts[8];

static CUcontext
context_of(int device)
{
	return (CUcontext)&contexts[device];
}

static bool
device_of(CUcontext context, int *device)
{
	const char *at = (const char *)context;
	*device = (int)(at - contexts);
	return at >= contexts && at < contexts + sizeof(contexts) && tn__gpu(*device);
}

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
	if (!context || !tn__gpu(device))
		return context ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
	if (tn__ensure_context(device) != TN_OK)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*context = context_of(device);
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return tn__gpu(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
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

static _Thread_local struct {
	int devices[16];
	int depth;
} pushed;

TN_EXPORT CUresult CUDAAPI
cuCtxSetCurrent(CUcontext context)
{
	int device;
	if (!context)
		return CUDA_SUCCESS;
	if (!device_of(context, &device))
		return CUDA_ERROR_INVALID_CONTEXT;
	return tn__set_device(device) == TN_OK ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

TN_EXPORT CUresult CUDAAPI
cuCtxGetCurrent(CUcontext *context)
{
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	int device = tn__current_device();
	*context = tn__has_context(device) ? context_of(device) : NULL;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuCtxPushCurrent_v2(CUcontext context)
{
	int device;
	if (!device_of(context, &device) || pushed.depth == 16)
		return CUDA_ERROR_INVALID_CONTEXT;
	pushed.devices[pushed.depth++] = tn__current_device();
	return cuCtxSetCurrent(context);
}

TN_EXPORT CUresult CUDAAPI
cuCtxPopCurrent_v2(CUcontext *context)
{
	if (pushed.depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context)
		*context = context_of(tn__current_device());
	tn__set_device(pushed.devices[--pushed.depth]);
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	CUresult result = cuDevicePrimaryCtxRetain(context, device);
	return result == CUDA_SUCCESS ? cuCtxSetCurrent(*context) : result;
}

TN_EXPORT CUresult CUDAAPI
cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags, CUdevice device)
{
	return cuCtxCreate_v2(context, flags, device);
}

TN_EXPORT CUresult CUDAAPI
cuCtxDestroy_v2(CUcontext context)
{
	int device;
	return device_of(context, &device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

TN_EXPORT CUresult CUDAAPI
cuCtxGetDevice(CUdevice *device)
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!tn__has_context(tn__current_device()))
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = tn__current_device();
	return CUDA_SUCCESS;
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

static size_t limits[] = {1024, 1048576, 8388608, 2, 2048, 64};

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
	{CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
	{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
	{CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
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
