/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, events and the order in which they complete on the virtual clock.
 */
#include "vgpu/core/state.h"

#include <stdlib.h>

static struct tn_clock *
clock_of(const struct tn_stream *stream)
{
	return &tn__core.devices[stream->device].clock;
}

/* The legacy default stream waits for all blocking streams and they wait for it; the flag 1 (non-blocking) is free of
 * that. Only the default stream's side matters to memory: work on it starts when every blocking stream is done. */
static void
join_legacy(struct tn_stream *stream)
{
	if (stream->handle != 0)
		return;
	for (size_t i = 0; i < tn__core.streams.count; i++) {
		const struct tn_stream *other = tn__core.streams.items[i];
		if (!other || other->device != stream->device || other->flags & 1)
			continue;
		if (other->tail > stream->tail)
			stream->tail = other->tail;
		tn__gates_merge(&stream->gates, &other->gates);
	}
}

/* The place in a stream's queue of what is put on it next, once there is room. NULL where there is no memory for a queue. */
static uint64_t *
queue_place(struct tn_stream *stream, struct tn_clock *clock)
{
	if (!stream->queue && !(stream->queue = calloc(TN_CLOCK_QUEUE, sizeof(*stream->queue))))
		return NULL;
	uint64_t *oldest = &stream->queue[stream->queued++ % TN_CLOCK_QUEUE];
	if (clock->now < *oldest)
		clock->now = *oldest;
	return oldest;
}

void
tn__run_locked(struct tn_stream *stream, uint64_t duration, const struct tn_effort *effort)
{
	struct tn_clock *clock = clock_of(stream);
	tn_clock_advance(clock, TN_CLOCK_LAUNCH_NS);
	tn__work_count_locked(effort);
	join_legacy(stream);
	uint64_t *done = queue_place(stream, clock);
	tn_clock_enqueue(clock, &stream->tail, duration);
	if (done)
		*done = stream->tail;
}

int
tn__enqueue_locked(struct tn_stream *stream, const struct tn_node_description *work)
{
	if (!stream->capture) {
		tn__run_locked(stream, work->duration, &work->effort);
		return TN_CUDA_OK;
	}
	tn_clock_advance(clock_of(stream), TN_CLOCK_LAUNCH_NS);
	return tn__capture_add_locked(stream, work);
}

int
tn__stream_create(unsigned flags, int priority, uintptr_t *out)
{
	struct tn_stream *stream = calloc(1, sizeof(*stream));
	if (!stream)
		return TN_CUDA_OUT_OF_MEMORY;
	tn__lock();
	stream->flags = flags;
	stream->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
	stream->device = tn__current_device();
	stream->id = ++tn__core.next_stream_id + 16; /* small numbers are the default streams' */
	stream->handle = tn__table_add(&tn__core.streams, stream);
	uintptr_t handle = stream->handle;
	tn__unlock();
	if (!handle) {
		free(stream);
		return TN_CUDA_OUT_OF_MEMORY;
	}
	*out = handle;
	return TN_CUDA_OK;
}

int
tn__stream_destroy(uintptr_t handle)
{
	tn__lock();
	struct tn_stream *stream = handle > 2 ? tn__table_remove(&tn__core.streams, handle) : NULL;
	if (stream) {
		struct tn_device_state *device = &tn__core.devices[stream->device];
		if (stream->tail > device->other_tail)
			device->other_tail = stream->tail;
		tn__capture_forget_stream(stream);
		free(stream->queue);
	}
	tn__unlock();
	free(stream);
	return stream ? TN_CUDA_OK : TN_CUDA_INVALID_HANDLE;
}

int
tn__stream_query(uintptr_t handle)
{
	tn__lock();
	struct tn_stream *stream = tn__stream_locked(handle);
	int result = TN_CUDA_INVALID_HANDLE;
	if (stream && stream->capture)
		result = TN_CUDA_CAPTURE_UNSUPPORTED;
	else if (stream)
		result = tn_clock_query(clock_of(stream), stream->tail) ? TN_CUDA_OK : TN_CUDA_NOT_READY;
	tn__unlock();
	return result;
}

int
tn__stream_synchronize(uintptr_t handle)
{
	struct tn_gates gates;
	gates.count = 0;
	tn__lock();
	struct tn_stream *stream = tn__stream_locked(handle);
	int result = TN_CUDA_INVALID_HANDLE;
	if (stream && stream->capture) {
		result = TN_CUDA_CAPTURE_UNSUPPORTED;
	} else if (stream) {
		join_legacy(stream);
		tn_clock_wait(clock_of(stream), stream->tail);
		gates = stream->gates;
		stream->gates.count = 0;
		result = TN_CUDA_OK;
	}
	tn__unlock();
	tn__gates_wait(&gates);
	return result;
}

int
tn__stream_info(uintptr_t handle, struct tn_stream_info *info)
{
	tn__lock();
	const struct tn_stream *stream = tn__stream_locked(handle);
	if (stream)
		*info = (struct tn_stream_info){ .flags = stream->flags,
			                             .priority = stream->priority,
			                             .device = stream->device,
			                             .id = stream->handle ? stream->id : handle };
	tn__unlock();
	return stream ? TN_CUDA_OK : TN_CUDA_INVALID_HANDLE;
}

int
tn__synchronize_locked(struct tn_gates *gates)
{
	int index = tn__current_device();
	struct tn_device_state *device = &tn__core.devices[index];
	uint64_t latest = device->default_stream.tail > device->other_tail ? device->default_stream.tail
	                                                                   : device->other_tail;
	int result = device->default_stream.capture ? TN_CUDA_CAPTURE_UNSUPPORTED : TN_CUDA_OK;
	for (size_t i = 0; i < tn__core.streams.count; i++) {
		struct tn_stream *stream = tn__core.streams.items[i];
		if (!stream || stream->device != index)
			continue;
		tn__gates_merge(gates, &stream->gates);
		stream->gates.count = 0;
		if (stream->capture)
			result = TN_CUDA_CAPTURE_UNSUPPORTED;
		if (stream->tail > latest)
			latest = stream->tail;
	}
	tn__gates_merge(gates, &device->default_stream.gates);
	device->default_stream.gates.count = 0;
	if (result == TN_CUDA_OK)
		tn_clock_wait(&device->clock, latest);
	return result;
}

int
tn__device_synchronize(void)
{
	struct tn_gates gates;
	gates.count = 0;
	tn__lock();
	int result = tn__synchronize_locked(&gates);
	tn__unlock();
	tn__gates_wait(&gates);
	return result;
}

int
tn__stream_host_function(uintptr_t handle, void (*function)(void *), void *argument)
{
	tn__lock();
	struct tn_stream *stream = tn__stream_locked(handle);
	bool captured = stream && stream->capture;
	int result = TN_CUDA_INVALID_HANDLE;
	if (stream)
		result = tn__enqueue_locked(stream, &(struct tn_node_description){ .kind = TN_NODE_HOST,
		                                                                   .duration = TN_CLOCK_KERNEL_NS,
		                                                                   .host_function = function,
		                                                                   .host_argument = argument });
	tn__unlock();
	if (result == TN_CUDA_OK && !captured)
		function(argument);
	return result;
}

/* ---- events ---- */

int
tn__event_create(unsigned flags, uintptr_t *out)
{
	struct tn_event *event = calloc(1, sizeof(*event));
	if (!event)
		return TN_CUDA_OUT_OF_MEMORY;
	event->flags = flags;
	event->device = tn__current_device();
	tn__lock();
	uintptr_t handle = tn__table_add(&tn__core.events, event);
	tn__unlock();
	if (!handle) {
		free(event);
		return TN_CUDA_OUT_OF_MEMORY;
	}
	*out = handle;
	return TN_CUDA_OK;
}

int
tn__event_destroy(uintptr_t handle)
{
	tn__lock();
	struct tn_event *event = tn__table_remove(&tn__core.events, handle);
	tn__unlock();
	free(event);
	return event ? TN_CUDA_OK : TN_CUDA_INVALID_HANDLE;
}

int
tn__event_record(uintptr_t handle, uintptr_t stream_handle)
{
	tn__lock();
	struct tn_event *event = tn__table_get(&tn__core.events, handle);
	struct tn_stream *stream = tn__stream_locked(stream_handle);
	int result = TN_CUDA_INVALID_HANDLE;
	if (event && stream && event->device == stream->device) {
		struct tn_clock *clock = clock_of(stream);
		tn_clock_advance(clock, TN_CLOCK_CALL_NS);
		join_legacy(stream);
		event->recorded = true;
		event->capture = stream->capture;
		event->node = stream->last_node;
		event->gates.count = 0;
		tn__gates_merge(&event->gates, &stream->gates);
		event->time = stream->tail > clock->now ? stream->tail : clock->now;
		result = TN_CUDA_OK;
	}
	tn__unlock();
	return result;
}

int
tn__event_query(uintptr_t handle)
{
	tn__lock();
	const struct tn_event *event = tn__table_get(&tn__core.events, handle);
	int result = TN_CUDA_INVALID_HANDLE;
	if (event && event->capture)
		result = TN_CUDA_CAPTURE_UNSUPPORTED;
	else if (event)
		result = !event->recorded || tn_clock_query(&tn__core.devices[event->device].clock, event->time)
		             ? TN_CUDA_OK
		             : TN_CUDA_NOT_READY;
	tn__unlock();
	return result;
}

int
tn__event_synchronize(uintptr_t handle)
{
	struct tn_gates gates;
	gates.count = 0;
	tn__lock();
	struct tn_event *event = tn__table_get(&tn__core.events, handle);
	int result = TN_CUDA_INVALID_HANDLE;
	if (event && event->capture) {
		result = TN_CUDA_CAPTURE_UNSUPPORTED;
	} else if (event) {
		if (event->recorded)
			tn_clock_wait(&tn__core.devices[event->device].clock, event->time);
		gates = event->gates;
		event->gates.count = 0;
		result = TN_CUDA_OK;
	}
	tn__unlock();
	tn__gates_wait(&gates);
	return result;
}

int
tn__event_elapsed(uintptr_t start_handle, uintptr_t end_handle, float *milliseconds)
{
	tn__lock();
	const struct tn_event *start = tn__table_get(&tn__core.events, start_handle);
	const struct tn_event *end = tn__table_get(&tn__core.events, end_handle);
	int result = TN_CUDA_INVALID_HANDLE;
	if (start && end && start->recorded && end->recorded && !((start->flags | end->flags) & 2)) {
		struct tn_clock *clock = &tn__core.devices[end->device].clock;
		bool done = tn_clock_query(clock, end->time) && start->time <= clock->now;
		result = done ? TN_CUDA_OK : TN_CUDA_NOT_READY;
		if (done)
			*milliseconds = (float)(((double)end->time - (double)start->time) / 1e6);
	}
	tn__unlock();
	return result;
}

int
tn__stream_wait_event(uintptr_t stream_handle, uintptr_t event_handle)
{
	tn__lock();
	struct tn_stream *stream = tn__stream_locked(stream_handle);
	const struct tn_event *event = tn__table_get(&tn__core.events, event_handle);
	int result = TN_CUDA_INVALID_HANDLE;
	if (stream && event) {
		tn_clock_advance(clock_of(stream), TN_CLOCK_CALL_NS);
		result = TN_CUDA_OK;
		if (event->recorded && event->capture)
			tn__capture_join_locked(stream, event);
		else if (event->recorded && event->device == stream->device && event->time > stream->tail)
			stream->tail = event->time;
		if (event->recorded && !event->capture)
			tn__gates_merge(&stream->gates, &event->gates);
	}
	tn__unlock();
	return result;
}
