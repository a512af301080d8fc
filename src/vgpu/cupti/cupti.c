/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI: a profiler can subscribe, enable activities and flush, and gets no records, since nothing runs; counters,
 * metrics and sampling are refused. So torch.profiler works and shows the host's side. The subscriber is one atomic
 * flag; correlation ids are kept by thread.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define TN_SHELL_LIBRARY "cupti"
#define TN_SHELL_TABLE "vgpu/cupti/table.def"
#define TN_SHELL_REFUSAL 27 /* CUPTI_ERROR_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum cupti_result {
	SUCCESS = 0,
	INVALID_PARAMETER = 1,
	MAX_LIMIT_REACHED = 12,
	QUEUE_EMPTY = 18,
	NOT_SUPPORTED = 27,
	MULTIPLE_SUBSCRIBERS = 39,
};

enum { API_VERSION = TN_CUDA_MAJOR == 12 ? 22 : 130001 };

/* ---- version, time and errors ---- */

TN_EXPORT int
cuptiGetVersion(uint32_t *version)
{
	if (!version)
		return INVALID_PARAMETER;
	*version = API_VERSION;
	return SUCCESS;
}

/* Nanoseconds of the host's real-time clock, which profilers line up with their own. */
TN_EXPORT int
cuptiGetTimestamp(uint64_t *timestamp)
{
	struct timespec now;

	if (!timestamp)
		return INVALID_PARAMETER;
	clock_gettime(CLOCK_REALTIME, &now);
	*timestamp = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return SUCCESS;
}

TN_EXPORT int
cuptiGetResultString(int result, const char **text)
{
	if (!text)
		return INVALID_PARAMETER;
	*text = result == SUCCESS             ? "CUPTI_SUCCESS"
	        : result == INVALID_PARAMETER ? "CUPTI_ERROR_INVALID_PARAMETER"
	        : result == MAX_LIMIT_REACHED ? "CUPTI_ERROR_MAX_LIMIT_REACHED"
	        : result == QUEUE_EMPTY       ? "CUPTI_ERROR_QUEUE_EMPTY"
	        : result == NOT_SUPPORTED     ? "CUPTI_ERROR_NOT_SUPPORTED (virtual GPU)"
	                                      : "CUPTI error";
	return SUCCESS;
}

TN_EXPORT int
cuptiGetErrorMessage(int result, const char **text)
{
	return cuptiGetResultString(result, text);
}

/* ---- callbacks: never called ---- */

static atomic_int subscriber;

TN_EXPORT int
cuptiSubscribe(void **out, void *callback, void *user)
{
	int nobody = 0;

	if (!out)
		return INVALID_PARAMETER;
	if (!atomic_compare_exchange_strong(&subscriber, &nobody, 1))
		return MULTIPLE_SUBSCRIBERS;
	*out = &subscriber;
	return SUCCESS;
}

TN_EXPORT int
cuptiUnsubscribe(void *handle)
{
	if (handle != &subscriber)
		return INVALID_PARAMETER;
	atomic_store(&subscriber, 0);
	return SUCCESS;
}

TN_EXPORT int
cuptiFinalize(void)
{
	atomic_store(&subscriber, 0);
	return SUCCESS;
}

/* ---- activities: never recorded ---- */

TN_EXPORT int
cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, void **record)
{
	return record ? MAX_LIMIT_REACHED : INVALID_PARAMETER;
}

TN_EXPORT int
cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	if (!dropped)
		return INVALID_PARAMETER;
	*dropped = 0;
	return SUCCESS;
}

TN_EXPORT int
cuptiGetDeviceId(void *context, uint32_t *device)
{
	if (!device)
		return INVALID_PARAMETER;
	*device = (uint32_t)tn__current_device();
	return SUCCESS;
}

/* ---- ids that the program correlates records with: a stack by kind ---- */

enum { KINDS = 8, DEPTH = 64 };

static _Thread_local struct {
	uint64_t ids[DEPTH]; /* ids deeper than this are only counted */
	uint32_t depth;
} correlation[KINDS];

TN_EXPORT int
cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id)
{
	if (kind >= KINDS)
		return INVALID_PARAMETER;
	if (correlation[kind].depth < DEPTH)
		correlation[kind].ids[correlation[kind].depth] = id;
	correlation[kind].depth++;
	return SUCCESS;
}

TN_EXPORT int
cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *last)
{
	if (kind >= KINDS)
		return INVALID_PARAMETER;
	if (correlation[kind].depth == 0)
		return QUEUE_EMPTY;
	uint32_t top = --correlation[kind].depth;
	if (last)
		*last = top < DEPTH ? correlation[kind].ids[top] : 0;
	return SUCCESS;
}
