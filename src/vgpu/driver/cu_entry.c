/* SPDX-License-Identifier: Apache-2.0
 *
 * Driver: which exported version of a function a caller gets by its plain name.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "vgpu/driver/cu.h"

#define NEVER 1000000 /* has a later version, which only its own name means */

/* From which CUDA version on a plain name means a later version of the function (cuda.h's own renaming, 13.2). Names that
 * are not listed have had one operation for as long as any supported wheel goes back. */
static const struct {
	const char *name;
	int since;
	const char *exported;
} versions[] = {
	{ "cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2" },
	{ "cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2" },
	{ "cuDevicePrimaryCtxReset", 11000, "cuDevicePrimaryCtxReset_v2" },
	{ "cuDevicePrimaryCtxSetFlags", 11000, "cuDevicePrimaryCtxSetFlags_v2" },
	{ "cuCtxCreate", 13000, "cuCtxCreate_v4" },
	{ "cuStreamWriteValue32", 12000, "cuStreamWriteValue32_v2" },
	{ "cuStreamWaitValue32", 12000, "cuStreamWaitValue32_v2" },
	{ "cuEventElapsedTime", 12080, "cuEventElapsedTime_v2" },
	{ "cuGetProcAddress", 12000, "cuGetProcAddress_v2" },
	{ "cuStreamGetCaptureInfo", 13000, "cuStreamGetCaptureInfo_v3" },
	{ "cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2" },
	{ "cuMemPrefetchAsync", 13000, "cuMemPrefetchAsync_v2" },
	{ "cuMemAdvise", 13000, "cuMemAdvise_v2" },
	{ "cuGraphKernelNodeGetParams", 12000, "cuGraphKernelNodeGetParams_v2" },
	{ "cuGraphKernelNodeSetParams", 12000, "cuGraphKernelNodeSetParams_v2" },
	{ "cuGraphAddKernelNode", 12000, "cuGraphAddKernelNode_v2" },
	{ "cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2" },
	{ "cuCtxGetDevice", NEVER, "cuCtxGetDevice_v2" },
	{ "cuCtxSynchronize", NEVER, "cuCtxSynchronize_v2" },
	{ "cuStreamGetCtx", NEVER, "cuStreamGetCtx_v2" },
	{ "cuLaunchHostFunc", NEVER, "cuLaunchHostFunc_v2" },
	{ "cuMulticastBindMem", NEVER, "cuMulticastBindMem_v2" },
	{ "cuMulticastBindAddr", NEVER, "cuMulticastBindAddr_v2" },
	{ "cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags" },
	{ "cuGraphInstantiate", 11000, "cuGraphInstantiate_v2" },
	{ "cuGraphAddNode", 13000, "cuGraphAddNode_v2" },
	{ "cuGraphGetEdges", 13000, "cuGraphGetEdges_v2" },
	{ "cuGraphAddDependencies", 13000, "cuGraphAddDependencies_v2" },
	{ "cuGraphRemoveDependencies", 13000, "cuGraphRemoveDependencies_v2" },
	{ "cuGraphNodeGetDependencies", 13000, "cuGraphNodeGetDependencies_v2" },
	{ "cuGraphNodeGetDependentNodes", 13000, "cuGraphNodeGetDependentNodes_v2" },
	{ "cuStreamUpdateCaptureDependencies", 13000, "cuStreamUpdateCaptureDependencies_v2" },
	{ "cuMemcpyBatchAsync", 13000, "cuMemcpyBatchAsync_v2" },
	{ "cuMemcpy3DBatchAsync", 13000, "cuMemcpy3DBatchAsync_v2" },
};

/* 64-bit addresses came with CUDA 3.2 and 4.0: those functions are _v2 for everybody. */
static void *
find(void *self, const char *symbol, int version)
{
	char later[128];
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		if (strcmp(versions[i].name, symbol) == 0 && version >= versions[i].since)
			return dlsym(self, versions[i].exported);
	bool listed = false;
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		listed |= strcmp(versions[i].name, symbol) == 0;
	snprintf(later, sizeof(later), "%s_v2", symbol);
	void *function = listed ? NULL : dlsym(self, later);
	return function ? function : dlsym(self, symbol);
}

static void *
self_handle(void)
{
	static _Atomic(void *) self;
	Dl_info about;
	if (!self && dladdr((void *)(uintptr_t)cuInit, &about))
		self = dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	return self;
}

TN_EXPORT CUresult CUDAAPI
cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult *status)
{
	if (!symbol || !function)
		return CUDA_ERROR_INVALID_VALUE;
	void *self = self_handle();
	void *found = self && *symbol ? find(self, symbol, version) : NULL;
	*function = found;
	if (status)
		*status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (!found && *symbol)
		tn__refuse("cuda", symbol, 0);
	return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

TN_EXPORT CUresult CUDAAPI
cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
