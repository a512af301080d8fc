/* SPDX-License-Identifier: Apache-2.0
 *
 * Driver: modules, functions, launches, occupancy. Any name may be asked of a module, as JIT compilers ask only for what
 * they put in; of its code only the sizes of parameters are read.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/driver/cu.h"

struct module_function {
	struct tn_kernel *kernel;
	struct module_function *next;
};

struct module {
	struct module_function *functions;
	struct tn_code *code; /* NULL: it cannot be read */
};

static pthread_mutex_t modules_lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult
make_module(CUmodule *out, struct tn_code *code)
{
	struct module *module = calloc(1, sizeof(*module));
	if (!module) {
		tn__module_code_close(code);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	module->code = code;
	*out = (CUmodule)module;
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuModuleLoadData(CUmodule *out, const void *image)
{
	CU_ENTER();
	if (!out || !image)
		return CUDA_ERROR_INVALID_VALUE;
	return make_module(out, tn__module_code_open(image));
}

TN_EXPORT CUresult CUDAAPI
cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int count, CUjit_option *options, void **values)
{
	return cuModuleLoadData(out, image);
}

TN_EXPORT CUresult CUDAAPI
cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
	return cuModuleLoadData(out, image);
}

TN_EXPORT CUresult CUDAAPI
cuModuleLoad(CUmodule *out, const char *path)
{
	CU_ENTER();
	if (!out || !path)
		return CUDA_ERROR_INVALID_VALUE;
	return make_module(out, NULL);
}

/* Functions stay known to the core for the list of launches; only the module's own list goes. */
TN_EXPORT CUresult CUDAAPI
cuModuleUnload(CUmodule handle)
{
	struct module *module = (struct module *)handle;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	while (module->functions) {
		struct module_function *first = module->functions;
		module->functions = first->next;
		free(first);
	}
	tn__module_code_close(module->code);
	free(module);
	return CUDA_SUCCESS;
}

static struct tn_kernel *
function_of(struct module *module, const char *name)
{
	for (struct module_function *f = module->functions; f; f = f->next)
		if (strcmp(f->kernel->name, name) == 0)
			return f->kernel;
	struct module_function *made = calloc(1, sizeof(*made));
	if (!made || tn__kernel_register(NULL, name, true, &made->kernel) != TN_CUDA_OK) {
		free(made);
		return NULL;
	}
	if (module->code)
		tn__kernel_learn(made->kernel, module->code);
	made->next = module->functions;
	module->functions = made;
	return made->kernel;
}

TN_EXPORT CUresult CUDAAPI
cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
	if (!out || !handle || !name)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&modules_lock);
	struct tn_kernel *kernel = function_of((struct module *)handle, name);
	pthread_mutex_unlock(&modules_lock);
	if (!kernel)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

/* A library is a module that belongs to no context. */
TN_EXPORT CUresult CUDAAPI
cuLibraryLoadData(CUlibrary *out, const void *image, CUjit_option *options, void **values, unsigned int count,
                  CUlibraryOption *library_options, void **library_values, unsigned int library_count)
{
	return cuModuleLoadData((CUmodule *)out, image);
}

TN_EXPORT CUresult CUDAAPI
cuLibraryUnload(CUlibrary library)
{
	return cuModuleUnload((CUmodule)library);
}

TN_EXPORT CUresult CUDAAPI
cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name)
{
	return cuModuleGetFunction((CUfunction *)out, (CUmodule)library, name);
}

TN_EXPORT CUresult CUDAAPI
cuKernelGetFunction(CUfunction *out, CUkernel kernel)
{
	if (!out || !tn__kernel_find(kernel))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

/* ---- attributes ---- */

static CUresult
get_attribute(int *value, CUfunction_attribute attribute, const void *function)
{
	const struct tn_kernel *kernel = tn__kernel_find(function);
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	const struct tn_gpu_figures *gpu = tn__gpu(tn__current_device());
	switch ((int)attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = 32;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
		*value = 0;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = gpu->compute_major * 10 + gpu->compute_minor;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = kernel->max_dynamic_shared ? kernel->max_dynamic_shared : 49152;
		return CUDA_SUCCESS;
	default:
		return (CUresult)tn__refuse("cuda", "cuFuncGetAttribute", CUDA_ERROR_INVALID_VALUE);
	}
}

static CUresult
set_attribute(const void *function, CUfunction_attribute attribute, int value)
{
	struct tn_kernel *kernel = tn__kernel_find(function);
	CU_ENTER();
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
		if (value < 0 || value > tn__gpu(tn__current_device())->shared_memory_optin_bytes)
			return CUDA_ERROR_INVALID_VALUE;
		kernel->max_dynamic_shared = value;
	}
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	return get_attribute(value, attribute, function);
}

TN_EXPORT CUresult CUDAAPI
cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
	return get_attribute(value, attribute, kernel);
}

TN_EXPORT CUresult CUDAAPI
cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	return set_attribute(function, attribute, value);
}

TN_EXPORT CUresult CUDAAPI
cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
	return set_attribute(kernel, attribute, value);
}

TN_EXPORT CUresult CUDAAPI
cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	return tn__kernel_find(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- launching ---- */

static CUresult
launch(const void *function, const struct tn_launch *shape)
{
	CU_ENTER();
	int result = tn__kernel_launch(function, shape);
	/* Two numbers of the runtime that the driver has others for. */
	if (result == 98)
		return CUDA_ERROR_INVALID_HANDLE;
	return result == 9 ? CUDA_ERROR_INVALID_VALUE : (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
               unsigned int bz, unsigned int shared, CUstream stream, void **parameters, void **extra)
{
	return launch(function, &(struct tn_launch){ .grid = { gx, gy, gz },
	                                             .block = { bx, by, bz },
	                                             .shared_bytes = shared,
	                                             .stream = cu_handle(stream),
	                                             .arguments = parameters });
}

TN_EXPORT CUresult CUDAAPI
cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                          unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **parameters)
{
	return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}

TN_EXPORT CUresult CUDAAPI
cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
	                      config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, parameters,
	                      extra);
}

TN_EXPORT CUresult CUDAAPI
cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int block_size, size_t shared,
                                                     unsigned int flags)
{
	CU_ENTER();
	if (!blocks || !tn__kernel_find(function))
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = tn__occupancy(block_size, shared);
	return CUDA_SUCCESS;
}

TN_EXPORT CUresult CUDAAPI
cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block_size, size_t shared)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared, 0);
}

TN_EXPORT CUresult CUDAAPI
cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config)
{
	CU_ENTER();
	const struct tn_gpu_figures *gpu = tn__gpu(tn__current_device());
	if (!clusters || !config || gpu->compute_major < 9)
		return CUDA_ERROR_INVALID_VALUE;
	int threads = (int)(config->blockDimX * config->blockDimY * config->blockDimZ);
	*clusters = tn__occupancy(threads, config->sharedMemBytes) * gpu->sm_count;
	return CUDA_SUCCESS;
}

/* Tensor maps are host structures of 128 bytes that only kernels read. One that is given one may write to the address in it
 * (src/vgpu/core/reach.c). */
TN_EXPORT CUresult CUDAAPI
cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                       const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                       const cuuint32_t *element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                       CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	if (!map || rank == 0 || rank > 5)
		return CUDA_ERROR_INVALID_VALUE;
	memset(map, 0, sizeof(*map));
	memcpy(map, &address, sizeof(address));
	return CUDA_SUCCESS;
}
