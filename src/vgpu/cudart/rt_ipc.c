/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime: memory and events that processes share. A handle's 64 bytes are a struct tn_ipc_token.
 */
#include <string.h>

#include "vgpu/cudart/rt.h"

_Static_assert(sizeof(cudaIpcMemHandle_t) == TN_IPC_BYTES && sizeof(cudaIpcEventHandle_t) == TN_IPC_BYTES,
               "a token fills a handle");

TN_EXPORT cudaError_t CUDARTAPI
cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
	struct tn_ipc_token token;
	RT_ENTER();
	int result = handle ? tn__ipc_memory_token(rt_handle(pointer), &token) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		memcpy(handle, &token, sizeof(token));
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned int flags)
{
	struct tn_ipc_token token;
	uint64_t address;
	RT_ENTER();
	memcpy(&token, &handle, sizeof(token));
	int result = pointer && flags == cudaIpcMemLazyEnablePeerAccess ? tn__ipc_memory_open(&token, &address)
	                                                                : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*pointer = (void *)(uintptr_t)address;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaIpcCloseMemHandle(void *pointer)
{
	RT_ENTER();
	return rt(tn__ipc_memory_close(rt_handle(pointer)));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	struct tn_ipc_token token;
	RT_ENTER();
	int result = handle ? tn__ipc_event_token(rt_handle(event), &token) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		memcpy(handle, &token, sizeof(token));
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	struct tn_ipc_token token;
	uintptr_t made;
	RT_ENTER();
	memcpy(&token, &handle, sizeof(token));
	int result = event ? tn__ipc_event_open(&token, &made) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*event = (cudaEvent_t)made;
	return rt(result);
}
