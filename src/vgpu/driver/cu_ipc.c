/* SPDX-License-Identifier: Apache-2.0
 *
 * Driver: memory and events that processes share. A handle's 64 bytes are a struct tn_ipc_token.
 */
#include <string.h>

#include "vgpu/driver/cu.h"

_Static_assert(sizeof(CUipcMemHandle) == TN_IPC_BYTES && sizeof(CUipcEventHandle) == TN_IPC_BYTES,
               "a token fills a handle");

TN_EXPORT CUresult CUDAAPI
cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
	struct tn_ipc_token token;
	CU_ENTER();
	int result = handle ? tn__ipc_memory_token(pointer, &token) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		memcpy(handle, &token, sizeof(token));
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
	struct tn_ipc_token token;
	uint64_t address;
	CU_ENTER();
	memcpy(&token, &handle, sizeof(token));
	int result = pointer && flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ? tn__ipc_memory_open(&token, &address)
	                                                                    : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*pointer = address;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
	return cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

TN_EXPORT CUresult CUDAAPI
cuIpcCloseMemHandle(CUdeviceptr pointer)
{
	CU_ENTER();
	return (CUresult)tn__ipc_memory_close(pointer);
}

TN_EXPORT CUresult CUDAAPI
cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	struct tn_ipc_token token;
	CU_ENTER();
	int result = handle ? tn__ipc_event_token(cu_handle(event), &token) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		memcpy(handle, &token, sizeof(token));
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	struct tn_ipc_token token;
	uintptr_t made;
	CU_ENTER();
	memcpy(&token, &handle, sizeof(token));
	int result = event ? tn__ipc_event_open(&token, &made) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*event = (CUevent)made;
	return (CUresult)result;
}

/* Only descriptors: memory that was made for another kind of handle cannot be (cuMemCreate refuses it). */
TN_EXPORT CUresult CUDAAPI
cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                             unsigned long long flags)
{
	int descriptor;
	CU_ENTER();
	if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	int result = tn__vmm_export(handle, &descriptor);
	if (result == TN_CUDA_OK)
		memcpy(out, &descriptor, sizeof(descriptor));
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os_handle, CUmemAllocationHandleType type)
{
	uintptr_t made;
	CU_ENTER();
	if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	int result = tn__vmm_import((int)(intptr_t)os_handle, &made);
	if (result == TN_CUDA_OK)
		*handle = made;
	return (CUresult)result;
}
