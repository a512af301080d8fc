/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime: devices, versions, errors, limits.
 */
#include <stdio.h>
#include <string.h>

#include "vgpu/core/attributes.h"
#include "vgpu/cudart/rt.h"

_Thread_local int tn__rt_last_error;

/* ---- errors ---- */

TN_EXPORT cudaError_t CUDARTAPI
cudaGetLastError(void)
{
	int last = tn__rt_last_error;
	tn__rt_last_error = 0;
	return (cudaError_t)last;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaPeekAtLastError(void)
{
	return (cudaError_t)tn__rt_last_error;
}

struct error_text {
	cudaError_t code;
	const char *name, *text;
};

static const struct error_text *
find_error(cudaError_t code)
{
	static const struct error_text texts[] = {
#define TN_CUDA_ERROR(name, text) { name, #name, text },
#include "vgpu/cudart/errors.def"
#undef TN_CUDA_ERROR
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i].code == code)
			return &texts[i];
	return NULL;
}

TN_EXPORT const char *CUDARTAPI
cudaGetErrorName(cudaError_t error)
{
	const struct error_text *found = find_error(error);
	return found ? found->name : "unrecognized error code";
}

TN_EXPORT const char *CUDARTAPI
cudaGetErrorString(cudaError_t error)
{
	const struct error_text *found = find_error(error);
	return found ? found->text : "unrecognized error code";
}

/* ---- versions ---- */

TN_EXPORT cudaError_t CUDARTAPI
cudaDriverGetVersion(int *version)
{
	if (!version)
		return rt(cudaErrorInvalidValue);
	*version = 13020; /* the newest driver that the supported wheels want */
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return rt(cudaErrorInvalidValue);
	*version = CUDART_VERSION;
	return cudaSuccess;
}

/* ---- choosing a device ---- */

TN_EXPORT cudaError_t CUDARTAPI
cudaGetDeviceCount(int *count)
{
	if (!count)
		return rt(cudaErrorInvalidValue);
	*count = tn__device_count();
	return *count ? cudaSuccess : rt(cudaErrorNoDevice);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGetDevice(int *device)
{
	if (!device)
		return rt(cudaErrorInvalidValue);
	*device = tn__current_device();
	return cudaSuccess;
}

/* Since CUDA 12 cudaSetDevice also makes the device's primary context, and makes it current (runtime documentation). */
TN_EXPORT cudaError_t CUDARTAPI
cudaSetDevice(int device)
{
	if (!tn__gpu(device))
		return rt(cudaErrorInvalidDevice);
	tn__context_set(tn__context_primary(device));
	return rt(tn__enter());
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceReset(void)
{
	if (tn__device_count() == 0)
		return rt(cudaErrorNoDevice);
	tn__device_reset(tn__current_device());
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
	if (!tn__gpu(device))
		return rt(cudaErrorInvalidDevice);
	return tn__ensure_context(device) == TN_OK ? cudaSuccess : rt(cudaErrorMemoryAllocation);
}

static _Thread_local unsigned int device_flags_set = cudaDeviceMapHost;

TN_EXPORT cudaError_t CUDARTAPI
cudaSetDeviceFlags(unsigned int flags)
{
	device_flags_set = flags | cudaDeviceMapHost;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGetDeviceFlags(unsigned int *flags)
{
	if (!flags)
		return rt(cudaErrorInvalidValue);
	*flags = device_flags_set;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceSynchronize(void)
{
	RT_ENTER();
	return rt(tn__device_synchronize());
}

TN_EXPORT cudaError_t CUDARTAPI
cudaChooseDevice(int *device, const struct cudaDeviceProp *properties)
{
	if (!device || !properties)
		return rt(cudaErrorInvalidValue);
	*device = 0;
	return tn__device_count() ? cudaSuccess : rt(cudaErrorNoDevice);
}

/* ---- properties ---- */

static int
attribute_of(int device, int attribute)
{
	int value = 0;
	tn__device_attribute(tn__gpu(device), tn__physical_device(device), attribute, &value);
	return value;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	const struct tn_gpu_figures *gpu = tn__gpu(device);
	if (!value)
		return rt(cudaErrorInvalidValue);
	if (!gpu)
		return rt(cudaErrorInvalidDevice);
	if (!tn__device_attribute(gpu, tn__physical_device(device), (int)attribute, value))
		return rt(tn__refuse("cudart", "cudaDeviceGetAttribute", cudaErrorInvalidValue));
	return cudaSuccess;
}

static void
fill_texture_limits(struct cudaDeviceProp *p)
{
	p->maxTexture1D = 131072;
	p->maxTexture1DMipmap = 32768;
	p->maxTexture2D[0] = p->maxTexture2D[1] = 131072;
	p->maxTexture2DLinear[0] = p->maxTexture2DLinear[1] = 131072;
	p->maxTexture2DLinear[2] = 2097120;
	p->maxTexture3D[0] = p->maxTexture3D[1] = p->maxTexture3D[2] = 16384;
	p->textureAlignment = 512;
	p->texturePitchAlignment = 32;
	p->surfaceAlignment = 512;
}

static void
fill_limits(struct cudaDeviceProp *p, int device)
{
	p->sharedMemPerBlock = 49152;
	p->regsPerBlock = 65536;
	p->warpSize = 32;
	p->memPitch = INT32_MAX;
	p->maxThreadsPerBlock = 1024;
	p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
	p->maxThreadsDim[2] = 64;
	p->maxGridSize[0] = INT32_MAX;
	p->maxGridSize[1] = p->maxGridSize[2] = 65535;
	p->totalConstMem = 65536;
	p->canMapHostMemory = 1;
	p->concurrentKernels = 1;
	p->asyncEngineCount = 2;
	p->unifiedAddressing = 1;
	p->streamPrioritiesSupported = 1;
	p->globalL1CacheSupported = p->localL1CacheSupported = 1;
	p->regsPerMultiprocessor = 65536;
	p->managedMemory = 1;
	p->concurrentManagedAccess = 1;
	p->computePreemptionSupported = 1;
	p->canUseHostPointerForRegisteredMem = 1;
	p->cooperativeLaunch = 1;
	p->hostRegisterSupported = 1;
	p->memoryPoolsSupported = 1;
	p->ipcEventSupported = 1;
	p->unifiedFunctionPointers = 1;
	p->accessPolicyMaxWindowSize = attribute_of(device, 109);
	p->persistingL2CacheMaxSize = attribute_of(device, 108);
	p->reservedSharedMemPerBlock = (size_t)attribute_of(device, 111);
	p->clusterLaunch = attribute_of(device, 120);
	fill_texture_limits(p);
}

static void
fill_card(struct cudaDeviceProp *p, const struct tn_gpu_figures *gpu, int physical)
{
	snprintf(p->name, sizeof(p->name), "%s", gpu->name);
	tn__device_uuid(physical, (unsigned char *)p->uuid.bytes);
	p->totalGlobalMem = gpu->total_bytes;
	p->major = gpu->compute_major;
	p->minor = gpu->compute_minor;
	p->multiProcessorCount = gpu->sm_count;
	p->l2CacheSize = (int)gpu->l2_bytes;
	p->maxThreadsPerMultiProcessor = gpu->max_threads_per_sm;
	p->maxBlocksPerMultiProcessor = gpu->max_blocks_per_sm;
	p->sharedMemPerBlockOptin = (size_t)gpu->shared_memory_optin_bytes;
	p->sharedMemPerMultiprocessor = (size_t)tn__shared_bytes_per_sm(gpu);
	p->memoryBusWidth = tn__memory_bus_bits(gpu);
	p->pciBusID = tn__pci_bus(physical);
#if TN_CUDA_MAJOR < 13
	p->clockRate = gpu->sm_clock_khz;
	p->memoryClockRate = gpu->memory_clock_khz;
	p->deviceOverlap = 1;
	p->singleToDoublePrecisionPerfRatio = 64;
#endif
}

static cudaError_t
properties_of(struct cudaDeviceProp *properties, int device)
{
	const struct tn_gpu_figures *gpu = tn__gpu(device);
	if (!properties)
		return rt(cudaErrorInvalidValue);
	if (!gpu)
		return rt(cudaErrorInvalidDevice);
	memset(properties, 0, sizeof(*properties));
	fill_limits(properties, device);
	fill_card(properties, gpu, tn__physical_device(device));
	return cudaSuccess;
}

/* With CUDA 12 headers this is cudaGetDeviceProperties_v2: the name is theirs to choose. */
TN_EXPORT cudaError_t CUDARTAPI
cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	return properties_of(properties, device);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceGetPCIBusId(char *text, int length, int device)
{
	if (!text || length < 13)
		return rt(cudaErrorInvalidValue);
	if (!tn__gpu(device))
		return rt(cudaErrorInvalidDevice);
	snprintf(text, (size_t)length, "0000:%02X:00.0", (unsigned)tn__pci_bus(tn__physical_device(device)));
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceGetByPCIBusId(int *device, const char *text)
{
	unsigned domain, bus;
	if (!device || !text || sscanf(text, "%x:%x", &domain, &bus) != 2)
		return rt(cudaErrorInvalidValue);
	for (int i = 0; i < tn__device_count(); i++)
		if ((unsigned)tn__pci_bus(tn__physical_device(i)) == bus) {
			*device = i;
			return cudaSuccess;
		}
	return rt(cudaErrorInvalidDevice);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return cudaSuccess;
}

/* ---- limits and hints ---- */

#define LIMITS 8
static size_t limits[LIMITS] = { 1024, 1048576, 8388608, 2, 2048, 64, 0, 0 };

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	if (!value || (unsigned)limit >= LIMITS)
		return rt(cudaErrorUnsupportedLimit);
	*value = limits[limit];
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	if ((unsigned)limit >= LIMITS)
		return rt(cudaErrorUnsupportedLimit);
	limits[limit] = value;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
	if (!config)
		return rt(cudaErrorInvalidValue);
	*config = cudaFuncCachePreferNone;
	return cudaSuccess;
}

/* ---- peers ---- */

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	if (!can)
		return rt(cudaErrorInvalidValue);
	if (!tn__gpu(device) || !tn__gpu(peer))
		return rt(cudaErrorInvalidDevice);
	*can = device != peer;
	return cudaSuccess;
}

static bool peers[8][8];

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	int device = tn__current_device();
	if (!tn__gpu(peer) || peer == device)
		return rt(cudaErrorInvalidDevice);
	if (peers[device][peer])
		return rt(cudaErrorPeerAccessAlreadyEnabled);
	peers[device][peer] = true;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceDisablePeerAccess(int peer)
{
	int device = tn__current_device();
	if (!tn__gpu(peer) || !peers[device][peer])
		return rt(cudaErrorPeerAccessNotEnabled);
	peers[device][peer] = false;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int source, int destination)
{
	if (!value || !tn__gpu(source) || !tn__gpu(destination))
		return rt(cudaErrorInvalidValue);
	*value = attribute == cudaDevP2PAttrPerformanceRank ? 0 : source != destination;
	return cudaSuccess;
}
