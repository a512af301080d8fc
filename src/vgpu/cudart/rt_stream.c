/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime: streams and events, capture as a stream sees it.
 */
#include <stdlib.h>
#include <string.h>

#include "vgpu/cudart/rt.h"

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
	uintptr_t handle;
	RT_ENTER();
	if (!stream || flags > cudaStreamNonBlocking)
		return rt(cudaErrorInvalidValue);
	int result = tn__stream_create(flags, priority, &handle);
	if (result == TN_CUDA_OK)
		*stream = (cudaStream_t)handle;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamDestroy(cudaStream_t stream)
{
	return rt(tn__stream_destroy(rt_handle(stream)));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamQuery(cudaStream_t stream)
{
	RT_ENTER();
	return rt(tn__stream_query(rt_handle(stream)));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamSynchronize(cudaStream_t stream)
{
	RT_ENTER();
	return rt(tn__stream_synchronize(rt_handle(stream)));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	RT_ENTER();
	return rt(tn__stream_wait_event(rt_handle(stream), rt_handle(event)));
}

/* Asks what a stream is and hands one part of the answer out. */
#define STREAM_QUESTION(type, out, part)                    \
	struct tn_stream_info info;                             \
	RT_ENTER();                                             \
	if (!(out))                                             \
		return rt(cudaErrorInvalidValue);                   \
	int result = tn__stream_info(rt_handle(stream), &info); \
	if (result == TN_CUDA_OK)                               \
		*(out) = (type)info.part;                           \
	return rt(result)

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	STREAM_QUESTION(int, priority, priority);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	STREAM_QUESTION(unsigned int, flags, flags);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
	STREAM_QUESTION(unsigned long long, id, id);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamGetDevice(cudaStream_t stream, int *device)
{
	STREAM_QUESTION(int, device, device);
}

struct callback {
	cudaStreamCallback_t function;
	cudaStream_t stream;
	void *data;
};

static void
run_callback(void *argument)
{
	struct callback *callback = argument;
	callback->function(callback->stream, cudaSuccess, callback->data);
	free(callback);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned int flags)
{
	RT_ENTER();
	if (!function || flags != 0)
		return rt(cudaErrorInvalidValue);
	if (tn__stream_is_capturing(rt_handle(stream)))
		return rt(cudaErrorStreamCaptureUnsupported);
	struct callback *callback = malloc(sizeof(*callback));
	if (!callback)
		return rt(cudaErrorMemoryAllocation);
	*callback = (struct callback){ .function = function, .stream = stream, .data = data };
	int result = tn__stream_host_function(rt_handle(stream), run_callback, callback);
	if (result != TN_CUDA_OK)
		free(callback);
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
	RT_ENTER();
	if (!function)
		return rt(cudaErrorInvalidValue);
	return rt(tn__stream_host_function(rt_handle(stream), function, data));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t length, unsigned int flags)
{
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaCtxResetPersistingL2Cache(void)
{
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue *value)
{
	return value ? cudaSuccess : rt(cudaErrorInvalidValue); /* hints: cache policy, priority, memory domain */
}

/* ---- events ---- */

TN_EXPORT cudaError_t CUDARTAPI
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	uintptr_t handle;
	RT_ENTER();
	if (!event)
		return rt(cudaErrorInvalidValue);
	int result = tn__event_create(flags, &handle);
	if (result == TN_CUDA_OK)
		*event = (cudaEvent_t)handle;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaEventDestroy(cudaEvent_t event)
{
	return rt(tn__event_destroy(rt_handle(event)));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	RT_ENTER();
	return rt(tn__event_record(rt_handle(event), rt_handle(stream)));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	return cudaEventRecord(event, stream);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaEventQuery(cudaEvent_t event)
{
	return rt(tn__event_query(rt_handle(event)));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaEventSynchronize(cudaEvent_t event)
{
	return rt(tn__event_synchronize(rt_handle(event)));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
	if (!milliseconds)
		return rt(cudaErrorInvalidValue);
	return rt(tn__event_elapsed(rt_handle(start), rt_handle(end), milliseconds));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
	return cudaEventElapsedTime(milliseconds, start, end);
}

/* ---- capture ---- */

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	RT_ENTER();
	return rt(tn__capture_begin(rt_handle(stream), (enum tn_capture_mode)mode));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                              const cudaGraphEdgeData *data, size_t count, enum cudaStreamCaptureMode mode)
{
	RT_ENTER();
	int result = tn__capture_begin_to(rt_handle(stream), rt_handle(graph), (enum tn_capture_mode)mode);
	if (result == TN_CUDA_OK && count)
		result = tn__capture_set_dependencies(rt_handle(stream), (const uintptr_t *)dependencies, count, false);
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	uintptr_t handle = 0;
	if (!graph)
		return rt(cudaErrorInvalidValue);
	int result = tn__capture_end(rt_handle(stream), &handle);
	if (result == TN_CUDA_OK)
		*graph = (cudaGraph_t)handle;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	struct tn_capture_info info;
	RT_ENTER();
	if (!status)
		return rt(cudaErrorInvalidValue);
	int result = tn__capture_info(rt_handle(stream), &info);
	if (result == TN_CUDA_OK)
		*status = (enum cudaStreamCaptureStatus)info.status;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	if (!mode)
		return rt(cudaErrorInvalidValue);
	*mode = (enum cudaStreamCaptureMode)tn__capture_exchange_mode((enum tn_capture_mode) * mode);
	return cudaSuccess;
}

static cudaError_t
capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
             const cudaGraphNode_t **dependencies, size_t *count)
{
	static _Thread_local cudaGraphNode_t last; /* the array that is handed out lives until the next call */
	struct tn_capture_info info;
	RT_ENTER();
	if (!status)
		return rt(cudaErrorInvalidValue);
	int result = tn__capture_info(rt_handle(stream), &info);
	if (result != TN_CUDA_OK)
		return rt(result);
	*status = (enum cudaStreamCaptureStatus)info.status;
	last = (cudaGraphNode_t)info.last;
	if (id)
		*id = info.id;
	if (graph)
		*graph = (cudaGraph_t)info.graph;
	if (dependencies)
		*dependencies = &last;
	if (count)
		*count = info.last != 0;
	return cudaSuccess;
}

static cudaError_t
capture_info_with_edges(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                        cudaGraph_t *graph, const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
                        size_t *count)
{
	static const cudaGraphEdgeData plain;
	if (edges)
		*edges = &plain;
	return capture_info(stream, status, id, graph, dependencies, count);
}

static cudaError_t
update_dependencies(cudaStream_t stream, const cudaGraphNode_t *nodes, size_t count, unsigned int flags)
{
	return rt(tn__capture_set_dependencies(rt_handle(stream), (const uintptr_t *)nodes, count,
	                                       flags == cudaStreamAddCaptureDependencies));
}

#if TN_CUDA_MAJOR >= 13
TN_EXPORT cudaError_t CUDARTAPI
cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                         cudaGraph_t *graph, const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
                         size_t *count)
{
	return capture_info_with_edges(stream, status, id, graph, dependencies, edges, count);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges,
                                    size_t count, unsigned int flags)
{
	return update_dependencies(stream, nodes, count, flags);
}
#else
#undef cudaStreamGetCaptureInfo
TN_EXPORT cudaError_t CUDARTAPI
cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                            cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count)
{
	return capture_info(stream, status, id, graph, dependencies, count);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                            cudaGraph_t *graph, const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
                            size_t *count)
{
	return capture_info_with_edges(stream, status, id, graph, dependencies, edges, count);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes, size_t count, unsigned int flags)
{
	return update_dependencies(stream, nodes, count, flags);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges,
                                       size_t count, unsigned int flags)
{
	return update_dependencies(stream, nodes, count, flags);
}
#endif
