/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts and the stack of them that each thread has, as the driver API documents it: setting replaces the top, or makes
 * one where there is none; popping an empty stack is an error; a destroyed context stays on other threads' stacks. The
 * runtime works on the top as well, and puts the primary context of its device there when the stack is empty.
 *
 * Invariant: while a stack is not empty, the thread's current device is the top's. Lock: the core's for tables and counts;
 * stacks are the thread's own.
 * Not done: freeing what was allocated in a context of cuCtxCreate when that is destroyed.
 */
#include "vgpu/core/state.h"

#include <stdlib.h>

#define PRIMARY_BASE UINT64_C(0x520000000000)
#define STEP 64

struct context {
	int device;
	bool destroyed;
	uint64_t bytes; /* of the card */
};

_Thread_local __attribute__((tls_model("initial-exec"))) int tn__context_depth;
static _Thread_local uintptr_t stack[TN_CONTEXT_STACK];
static _Thread_local int below_stack; /* the device that the thread had before anything was on the stack */
static struct tn_table created = { .base = (uintptr_t)UINT64_C(0x521000000000) };
static uint32_t retained[TN_NODE_DEVICES]; /* primary contexts, by visible device */

uintptr_t
tn__context_primary(int device)
{
	return (uintptr_t)PRIMARY_BASE + (uintptr_t)device * STEP;
}

static bool
is_primary(uintptr_t context)
{
	uint64_t at = context - PRIMARY_BASE;
	return context >= PRIMARY_BASE && at % STEP == 0 && at / STEP < (uint64_t)tn__device_count();
}

int
tn__device_of_context(uintptr_t handle)
{
	if (is_primary(handle))
		return (int)((handle - PRIMARY_BASE) / STEP);
	tn__lock();
	const struct context *context = tn__table_get(&created, handle);
	int device = context && !context->destroyed ? context->device : -1;
	tn__unlock();
	return device;
}

static int
push(uintptr_t context, int device)
{
	if (tn__context_depth == TN_CONTEXT_STACK)
		return TN_CUDA_INVALID_VALUE;
	if (tn__context_depth == 0)
		below_stack = tn__current_device();
	stack[tn__context_depth++] = context;
	return tn__set_device(device) == TN_OK ? TN_CUDA_OK : TN_CUDA_INVALID_CONTEXT;
}

uintptr_t
tn__context_current(void)
{
	return tn__context_depth ? stack[tn__context_depth - 1] : 0;
}

int
tn__context_set(uintptr_t context)
{
	if (!context) {
		tn__context_pop(NULL); /* of an empty stack: nothing is done */
		return TN_CUDA_OK;
	}
	int device = tn__device_of_context(context);
	if (device < 0)
		return TN_CUDA_INVALID_CONTEXT;
	if (tn__context_depth == 0)
		return push(context, device);
	stack[tn__context_depth - 1] = context;
	return tn__set_device(device) == TN_OK ? TN_CUDA_OK : TN_CUDA_INVALID_CONTEXT;
}

int
tn__context_push(uintptr_t context)
{
	int device = tn__device_of_context(context);
	return device < 0 ? TN_CUDA_INVALID_CONTEXT : push(context, device);
}

int
tn__context_pop(uintptr_t *context)
{
	if (tn__context_depth == 0)
		return TN_CUDA_INVALID_CONTEXT;
	uintptr_t popped = stack[--tn__context_depth];
	int device = tn__context_depth ? tn__device_of_context(stack[tn__context_depth - 1]) : below_stack;
	if (device >= 0)
		tn__set_device(device);
	if (context)
		*context = popped;
	return TN_CUDA_OK;
}

int
tn__context_device(int *device)
{
	uintptr_t context = tn__context_current();
	if (!context)
		return TN_CUDA_INVALID_CONTEXT;
	int found = tn__device_of_context(context);
	if (found < 0)
		return TN_CUDA_CONTEXT_IS_DESTROYED;
	*device = found;
	return TN_CUDA_OK;
}

void
tn__context_bind(void)
{
	push(tn__context_primary(tn__current_device()), tn__current_device());
}

/* ---- contexts of the program's own ---- */

int
tn__context_create(int device, uintptr_t *out)
{
	const struct tn_gpu_figures *gpu = tn__gpu(device);
	if (!gpu)
		return TN_CUDA_INVALID_DEVICE;
	/* The first context of a process costs what the primary one does: only further ones are taken for themselves. */
	bool first = !tn__has_context(device);
	if (tn__ensure_context(device) != TN_OK)
		return TN_CUDA_OUT_OF_MEMORY;
	struct context *context = calloc(1, sizeof(*context));
	if (!context)
		return TN_CUDA_OUT_OF_MEMORY;
	*context = (struct context){ .device = device, .bytes = first ? 0 : gpu->context_bytes };
	tn__lock();
	tn_status status = context->bytes ? tn__memory_take(device, TN_BYTES_CONTEXT, context->bytes) : TN_OK;
	uintptr_t handle = status == TN_OK ? tn__table_add(&created, context) : 0;
	if (status == TN_OK && !handle && context->bytes)
		tn__memory_give(device, TN_BYTES_CONTEXT, context->bytes);
	tn__unlock();
	if (!handle) {
		free(context);
		return TN_CUDA_OUT_OF_MEMORY;
	}
	*out = handle;
	return push(handle, device);
}

int
tn__context_destroy(uintptr_t handle)
{
	tn__lock();
	struct context *context = tn__table_get(&created, handle);
	bool there = context && !context->destroyed;
	if (there) {
		context->destroyed = true; /* the handle stays: other threads may have it on their stacks */
		if (context->bytes)
			tn__memory_give(context->device, TN_BYTES_CONTEXT, context->bytes);
	}
	tn__unlock();
	if (!there)
		return TN_CUDA_INVALID_CONTEXT;
	if (tn__context_current() == handle)
		tn__context_pop(NULL);
	return TN_CUDA_OK;
}

/* ---- primary contexts ---- */

int
tn__context_retain(int device)
{
	if (!tn__gpu(device))
		return TN_CUDA_INVALID_DEVICE;
	if (tn__ensure_context(device) != TN_OK)
		return TN_CUDA_OUT_OF_MEMORY;
	tn__lock();
	retained[device]++;
	tn__unlock();
	return TN_CUDA_OK;
}

int
tn__context_release(int device)
{
	if (!tn__gpu(device))
		return TN_CUDA_INVALID_DEVICE;
	tn__lock();
	bool held = retained[device] > 0;
	if (held)
		retained[device]--;
	tn__unlock();
	return held ? TN_CUDA_OK : TN_CUDA_INVALID_CONTEXT;
}

/* ---- before each call ---- */

/* The calls that find no context: the first one of a device, of a thread, of a forked child. */
static __attribute__((noinline, cold)) int
enter_first(int device)
{
	if (tn__device_count() == 0)
		return 100; /* cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE */
	if (tn__core.used_before_fork)
		return TN_CUDA_NOT_INITIALIZED;
	switch (tn__ensure_context(device)) {
	case TN_OK:
		if (tn__context_depth == 0)
			tn__context_bind();
		return TN_CUDA_OK;
	case TN_OUT_OF_DEVICE_MEMORY:
		return TN_CUDA_OUT_OF_MEMORY;
	default:
		return TN_CUDA_INVALID_DEVICE;
	}
}

int
tn__enter(void)
{
	int device = tn__current_device();
	if (__builtin_expect(tn__core.attached && !tn__core.used_before_fork && device < tn__core.count &&
	                         tn__core.devices[device].has_context && tn__context_depth,
	                     1))
		return TN_CUDA_OK;
	return enter_first(device);
}
