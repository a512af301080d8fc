/* SPDX-License-Identifier: Apache-2.0
 *
 * Driver: streams and events.
 */
#include "vgpu/driver/cu.h"

TN_EXPORT CUresult CUDAAPI
cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	uintptr_t handle;
	CU_ENTER();
	int result = stream ? tn__stream_create(flags, priority, &handle) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*stream = (CUstream)handle;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuStreamCreate(CUstream *stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(stream, flags, 0);
}

TN_EXPORT CUresult CUDAAPI
cuStreamDestroy_v2(CUstream stream)
{
	return (CUresult)tn__stream_destroy(cu_handle(stream));
}

TN_EXPORT CUresult CUDAAPI
cuStreamQuery(CUstream stream)
{
	CU_ENTER();
	return (CUresult)tn__stream_query(cu_handle(stream));
}

TN_EXPORT CUresult CUDAAPI
cuStreamSynchronize(CUstream stream)
{
	CU_ENTER();
	return (CUresult)tn__stream_synchronize(cu_handle(stream));
}

TN_EXPORT CUresult CUDAAPI
cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	CU_ENTER();
	return (CUresult)tn__stream_wait_event(cu_handle(stream), cu_handle(event));
}

TN_EXPORT CUresult CUDAAPI
cuStreamGetPriority(CUstream stream, int *priority)
{
	struct tn_stream_info info;
	CU_ENTER();
	int result = priority ? tn__stream_info(cu_handle(stream), &info) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*priority = info.priority;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	struct tn_stream_info info;
	CU_ENTER();
	int result = flags ? tn__stream_info(cu_handle(stream), &info) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*flags = info.flags;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	struct tn_stream_info info;
	CU_ENTER();
	int result = context ? tn__stream_info(cu_handle(stream), &info) : TN_CUDA_INVALID_VALUE;
	return result == TN_CUDA_OK ? cuDevicePrimaryCtxRetain(context, info.device) : (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	struct tn_capture_info info;
	CU_ENTER();
	int result = status ? tn__capture_info(cu_handle(stream), &info) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*status = (CUstreamCaptureStatus)info.status;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	CU_ENTER();
	return (CUresult)tn__set(address, value, 4, 1, cu_handle(stream), true);
}

TN_EXPORT CUresult CUDAAPI
cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	return cuStreamWriteValue32_v2(stream, address, value, flags);
}

TN_EXPORT CUresult CUDAAPI
cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	CU_ENTER();
	return function ? (CUresult)tn__stream_host_function(cu_handle(stream), function, data) : CUDA_ERROR_INVALID_VALUE;
}

TN_EXPORT CUresult CUDAAPI
cuEventCreate(CUevent *event, unsigned int flags)
{
	uintptr_t handle;
	CU_ENTER();
	int result = event ? tn__event_create(flags, &handle) : TN_CUDA_INVALID_VALUE;
	if (result == TN_CUDA_OK)
		*event = (CUevent)handle;
	return (CUresult)result;
}

TN_EXPORT CUresult CUDAAPI
cuEventDestroy_v2(CUevent event)
{
	return (CUresult)tn__event_destroy(cu_handle(event));
}

TN_EXPORT CUresult CUDAAPI
cuEventRecord(CUevent event, CUstream stream)
{
	CU_ENTER();
	return (CUresult)tn__event_record(cu_handle(event), cu_handle(stream));
}

TN_EXPORT CUresult CUDAAPI
cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	return cuEventRecord(event, stream);
}

TN_EXPORT CUresult CUDAAPI
cuEventQuery(CUevent event)
{
	return (CUresult)tn__event_query(cu_handle(event));
}

TN_EXPORT CUresult CUDAAPI
cuEventSynchronize(CUevent event)
{
	return (CUresult)tn__event_synchronize(cu_handle(event));
}

TN_EXPORT CUresult CUDAAPI
cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
	if (!milliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	return (CUresult)tn__event_elapsed(cu_handle(start), cu_handle(end), milliseconds);
}

TN_EXPORT CUresult CUDAAPI
cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
	return cuEventElapsedTime_v2(milliseconds, start, end);
}
