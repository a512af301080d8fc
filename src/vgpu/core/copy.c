/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and sets: time on the stream, values where they are small, no pages touched where they are not (values.c).
 */
#include <string.h>

#include "vgpu/core/memory_log.h"
#include "vgpu/core/state.h"

#define HOST_LINK_BYTES_PER_NS 16 /* PCIe 4.0 x16, about half of its peak: see doc/design/0003-time.md */

static void
move_values(uint64_t to, uint64_t from, uint64_t bytes)
{
	bool to_device = tn__on_device(to), from_device = tn__on_device(from);
	if (to_device && from_device)
		tn__values_move(to, from, bytes);
	else if (to_device)
		tn__values_write(to, (const void *)(uintptr_t)from, bytes);
	else if (from_device)
		tn__values_read(from, (void *)(uintptr_t)to, bytes);
	else
		memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

static uint64_t
copy_time(uint64_t to, uint64_t from, uint64_t bytes)
{
	if (tn__on_device(to) && tn__on_device(from))
		return tn__time_of_bytes(2 * bytes);
	return TN_CLOCK_KERNEL_NS + bytes / HOST_LINK_BYTES_PER_NS;
}

/* On the device bytes are read and written; to and from the host they go over the link. */
static struct tn_effort
copy_effort(uint64_t to, uint64_t from, uint64_t bytes)
{
	bool to_device = tn__on_device(to), from_device = tn__on_device(from);
	return (struct tn_effort){ .kind = to_device && from_device ? TN_EFFORT_KERNEL
		                               : to_device              ? TN_EFFORT_TO_DEVICE
		                               : from_device            ? TN_EFFORT_TO_HOST
		                                                        : TN_EFFORT_NONE,
		                       .math = TN_MATH_FP32,
		                       .bytes = to_device && from_device ? 2.0 * (double)bytes : (double)bytes };
}

/* Puts a copy or set on the stream. *values says whether its values move now (a captured one moves none). */
static int
enqueue(uintptr_t stream_handle, const struct tn_node_description *work, bool asynchronous, bool *values)
{
	struct tn_gates gates = { 0 };
	tn__lock();
	struct tn_stream *stream = tn__stream_locked(stream_handle);
	int result = stream ? TN_CUDA_OK : TN_CUDA_INVALID_HANDLE;
	*values = stream && !stream->capture;
	if (stream && stream->capture && !asynchronous)
		result = TN_CUDA_CAPTURE_UNSUPPORTED;
	else if (stream)
		result = tn__enqueue_locked(stream, work);
	if (result == TN_CUDA_OK && !asynchronous) {
		tn_clock_wait(&tn__core.devices[stream->device].clock, stream->tail);
		gates = stream->gates;
		stream->gates.count = 0;
	}
	tn__unlock();
	tn__gates_wait(&gates);
	return result;
}

int
tn__copy(uint64_t to, uint64_t from, uint64_t bytes, uintptr_t stream, bool asynchronous)
{
	bool values;
	if (bytes == 0)
		return TN_CUDA_OK;
	if (!to || !from)
		return TN_CUDA_INVALID_VALUE;
	const struct tn_node_description work = { .kind = TN_NODE_MEMCPY,
		                                      .duration = copy_time(to, from, bytes),
		                                      .effort = copy_effort(to, from, bytes) };
	int result = enqueue(stream, &work, asynchronous, &values);
	if (result != TN_CUDA_OK || !values)
		return result;
	move_values(to, from, bytes);
	if (tn__on_device(to) && !tn__on_device(from))
		tn__note_copied(to, bytes);
	return result;
}

int
tn__copy_2d(uint64_t to, uint64_t to_pitch, uint64_t from, uint64_t from_pitch, uint64_t width, uint64_t height,
            uintptr_t stream, bool asynchronous)
{
	bool values;
	if (width == 0 || height == 0)
		return TN_CUDA_OK;
	if (!to || !from || to_pitch < width || from_pitch < width)
		return TN_CUDA_INVALID_VALUE;
	const struct tn_node_description work = { .kind = TN_NODE_MEMCPY,
		                                      .duration = copy_time(to, from, width * height),
		                                      .effort = copy_effort(to, from, width * height) };
	int result = enqueue(stream, &work, asynchronous, &values);
	if (result != TN_CUDA_OK || !values)
		return result;
	if (width * height > tn__core.values_bound && tn__on_device(to)) {
		tn__values_forget_range(to, to_pitch * height);
		return result;
	}
	for (uint64_t row = 0; row < height; row++)
		move_values(to + row * to_pitch, from + row * from_pitch, width);
	return result;
}

/* A host address can only be set when it is memory that the device knows: then it is real memory. */
static void
set_host(uint64_t to, uint32_t value, uint32_t value_bytes, uint64_t count)
{
	unsigned char *bytes = (unsigned char *)(uintptr_t)to;
	for (uint64_t i = 0; i < count; i++)
		memcpy(bytes + i * value_bytes, &value, value_bytes);
}

int
tn__set(uint64_t to, uint32_t value, uint32_t value_bytes, uint64_t count, uintptr_t stream, bool asynchronous)
{
	bool values;
	uint64_t bytes = count * value_bytes;
	if (bytes == 0)
		return TN_CUDA_OK;
	if (!to)
		return TN_CUDA_INVALID_VALUE;
	const struct tn_node_description work = { .kind = TN_NODE_MEMSET,
		                                      .duration = tn__time_of_bytes(bytes),
		                                      .effort = { .kind = tn__on_device(to) ? TN_EFFORT_KERNEL : TN_EFFORT_NONE,
		                                                  .math = TN_MATH_FP32,
		                                                  .bytes = (double)bytes } };
	int result = enqueue(stream, &work, asynchronous, &values);
	if (result != TN_CUDA_OK || !values)
		return result;
	unsigned char low = (unsigned char)value;
	bool one_byte = value_bytes == 1 || value == low * UINT32_C(0x01010101) ||
	                (value_bytes == 2 && value == low * UINT32_C(0x0101));
	if (!tn__on_device(to))
		set_host(to, value, value_bytes, count);
	else if (one_byte)
		tn__values_set(to, low, bytes);
	else
		tn__values_forget_range(to, bytes);
	return result;
}
