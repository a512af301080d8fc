/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime: what the compiler's host code calls to register and launch kernels; function attributes and occupancy; driver
 * entry points.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/core/attributes.h"
#include "vgpu/cudart/rt.h"

void tn__rt_note_symbol(const void *host, size_t size);

/* ---- registration: declared in the compiler's crt/host_runtime.h ---- */

/* What the compiler's host code registers: __fatBinC_Wrapper_t of its fatbinary_section.h. */
struct fat_binary {
	int32_t magic, version;
	const void *image;
	void *more; /* of version 2, whose code is linked from several */
};
#define FAT_BINARY_MAGIC 0x466243b1
#define FAT_BINARY_ONE 1

/* The handle is a struct tn_kernel_code, which kernels point at from then on. */
TN_EXPORT void **
__cudaRegisterFatBinary(void *binary)
{
	static struct tn_kernel_code unknown;
	const struct fat_binary *fat = binary;
	bool one = fat && fat->magic == FAT_BINARY_MAGIC && fat->version == FAT_BINARY_ONE;
	struct tn_kernel_code *code = one ? malloc(sizeof(*code)) : NULL;
	if (code)
		code->image = fat->image;
	return (void **)(code ? code : &unknown);
}

TN_EXPORT void
__cudaRegisterFatBinaryEnd(void **handle)
{
}

TN_EXPORT void
__cudaUnregisterFatBinary(void **handle)
{
	if (handle)
		tn__kernel_code_gone((struct tn_kernel_code *)handle);
}

TN_EXPORT char
__cudaInitModule(void **handle)
{
	return 1;
}

TN_EXPORT void
__cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int thread_limit, void *tid,
                       void *bid, void *block, void *grid, int *warp_size)
{
	struct tn_kernel *kernel;
	if (tn__kernel_register(host, name, false, &kernel) == TN_CUDA_OK)
		kernel->code = (const struct tn_kernel_code *)handle;
}

TN_EXPORT void
__cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size, int constant,
                  int global)
{
	tn__rt_note_symbol(host, size);
}

TN_EXPORT void
__cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external, size_t size,
                         int constant, int global)
{
	tn__rt_note_symbol(host, size);
}

/* ---- launching ---- */

struct configuration {
	dim3 grid, block;
	size_t shared;
	void *stream;
};

#define CONFIGURATIONS 8
static _Thread_local struct configuration configurations[CONFIGURATIONS];
static _Thread_local unsigned configuration_count;

TN_EXPORT unsigned
__cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
	if (configuration_count == CONFIGURATIONS)
		return 1;
	configurations[configuration_count++] = (struct configuration){
		.grid = grid, .block = block, .shared = shared, .stream = stream
	};
	return 0;
}

TN_EXPORT cudaError_t
__cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (configuration_count == 0)
		return rt(cudaErrorMissingConfiguration);
	const struct configuration *top = &configurations[--configuration_count];
	*grid = top->grid;
	*block = top->block;
	*shared = top->shared;
	memcpy(stream, &top->stream, sizeof(top->stream));
	return cudaSuccess;
}

static cudaError_t
launch(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
	RT_ENTER();
	const struct tn_launch shape = { .grid = { grid.x, grid.y, grid.z },
		                             .block = { block.x, block.y, block.z },
		                             .shared_bytes = shared,
		                             .stream = rt_handle(stream),
		                             .arguments = arguments };
	return rt(tn__kernel_launch(function, &shape));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
	return launch(function, grid, block, arguments, shared, stream);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                            cudaStream_t stream)
{
	return launch(function, grid, block, arguments, shared, stream);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
	if (!config)
		return rt(cudaErrorInvalidValue);
	return launch(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream);
}

/* CUDA 13 host code asks for a kernel handle once and launches by it. */
TN_EXPORT cudaError_t
__cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
	struct tn_kernel *found = tn__kernel_find(function);
	if (!kernel || !found)
		return rt(cudaErrorInvalidDeviceFunction);
	*kernel = (cudaKernel_t)found;
	return cudaSuccess;
}

TN_EXPORT cudaError_t
__cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
	return launch(kernel, grid, block, arguments, shared, stream);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
	return __cudaGetKernel(kernel, function);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
	return __cudaGetKernel((cudaKernel_t *)function, symbol);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaFuncGetName(const char **name, const void *function)
{
	const struct tn_kernel *kernel = tn__kernel_find(function);
	if (!name || !kernel)
		return rt(cudaErrorInvalidValue);
	*name = kernel->name;
	return cudaSuccess;
}

/* ---- attributes ---- */

/* The compute capability whose machine code the wheels carry for a card: the newest listed one of its major that is not
 * above it (compatibility within a major: CUDA programming guide, "Binary Compatibility"). */
static int
code_version(const struct tn_gpu_figures *gpu)
{
	static const int built[] = { 50, 60, 70, 75, 80, 86, 90, 100, 120 };
	int capability = gpu->compute_major * 10 + gpu->compute_minor, best = capability;
	for (size_t i = 0; i < sizeof(built) / sizeof(*built); i++)
		if (built[i] <= capability && built[i] / 10 == gpu->compute_major)
			best = built[i];
	return best;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
	RT_ENTER();
	const struct tn_kernel *kernel = tn__kernel_find(function);
	if (!attributes)
		return rt(cudaErrorInvalidValue);
	if (!kernel)
		return rt(cudaErrorInvalidDeviceFunction);
	memset(attributes, 0, sizeof(*attributes));
	attributes->maxThreadsPerBlock = 1024;
	attributes->numRegs = 32;
	attributes->binaryVersion = attributes->ptxVersion = code_version(tn__gpu(tn__current_device()));
	attributes->maxDynamicSharedSizeBytes = kernel->max_dynamic_shared ? kernel->max_dynamic_shared : 49152;
	attributes->preferredShmemCarveout = kernel->preferred_carveout ? kernel->preferred_carveout : -1;
	return cudaSuccess;
}

static cudaError_t
set_attribute(struct tn_kernel *kernel, enum cudaFuncAttribute attribute, int value)
{
	if (!kernel)
		return rt(cudaErrorInvalidDeviceFunction);
	if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
		if (value < 0 || value > tn__gpu(tn__current_device())->shared_memory_optin_bytes)
			return rt(cudaErrorInvalidValue);
		kernel->max_dynamic_shared = value;
	} else if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
		kernel->preferred_carveout = value;
	}
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
	RT_ENTER();
	return set_attribute(tn__kernel_find(function), attribute, value);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value, int device)
{
	RT_ENTER();
	return set_attribute(tn__kernel_find(kernel), attribute, value);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config)
{
	return tn__kernel_find(function) ? cudaSuccess : rt(cudaErrorInvalidDeviceFunction);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_size, size_t shared,
                                                       unsigned int flags)
{
	RT_ENTER();
	if (!blocks || block_size <= 0)
		return rt(cudaErrorInvalidValue);
	if (!tn__kernel_find(function))
		return rt(cudaErrorInvalidDeviceFunction);
	*blocks = tn__occupancy(block_size, shared);
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size, size_t shared)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared, 0);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int block_size)
{
	RT_ENTER();
	if (!bytes || blocks <= 0 || !tn__kernel_find(function))
		return rt(cudaErrorInvalidValue);
	const struct tn_gpu_figures *gpu = tn__gpu(tn__current_device());
	size_t share = (size_t)tn__shared_bytes_per_sm(gpu) / (size_t)blocks;
	size_t reserved = gpu->compute_major >= 8 ? 1024 : 0;
	*bytes = share > reserved ? share - reserved : 0;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const cudaLaunchConfig_t *config)
{
	RT_ENTER();
	const struct tn_gpu_figures *gpu = tn__gpu(tn__current_device());
	if (!clusters || !config || gpu->compute_major < 9)
		return rt(cudaErrorInvalidValue);
	int threads = (int)(config->blockDim.x * config->blockDim.y * config->blockDim.z);
	unsigned size = 1;
	for (unsigned i = 0; i < config->numAttrs; i++)
		if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
			size = config->attrs[i].val.clusterDim.x * config->attrs[i].val.clusterDim.y *
			       config->attrs[i].val.clusterDim.z;
	*clusters = size ? tn__occupancy(threads, config->dynamicSmemBytes) * gpu->sm_count / (int)size : 0;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaProfilerStart(void)
{
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaProfilerStop(void)
{
	return cudaSuccess;
}

/* ---- driver entry points ---- */

typedef int (*get_proc_address)(const char *symbol, void **function, int version, uint64_t flags, int *status);

static get_proc_address
driver_lookup(void)
{
	static _Atomic(get_proc_address) lookup;
	get_proc_address found = lookup;
	if (!found) {
		void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
		found = driver ? (get_proc_address)(uintptr_t)dlsym(driver, "cuGetProcAddress_v2") : NULL;
		lookup = found;
	}
	return found;
}

static cudaError_t
driver_entry(const char *symbol, void **function, int version, unsigned long long flags,
             enum cudaDriverEntryPointQueryResult *status)
{
	int found = cudaDriverEntryPointSymbolNotFound;
	get_proc_address lookup = driver_lookup();
	if (!symbol || !function)
		return rt(cudaErrorInvalidValue);
	*function = NULL;
	if (lookup)
		lookup(symbol, function, version, flags, &found);
	if (status)
		*status = (enum cudaDriverEntryPointQueryResult)found;
	if (*function || status)
		return cudaSuccess;
	return rt(cudaErrorSymbolNotFound);
}

#undef cudaGetDriverEntryPoint
TN_EXPORT cudaError_t CUDARTAPI
cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                        enum cudaDriverEntryPointQueryResult *status)
{
	return driver_entry(symbol, function, CUDART_VERSION, flags, status);
}

#undef cudaGetDriverEntryPointByVersion
TN_EXPORT cudaError_t CUDARTAPI
cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned int version, unsigned long long flags,
                                 enum cudaDriverEntryPointQueryResult *status)
{
	return driver_entry(symbol, function, (int)version, flags, status);
}
