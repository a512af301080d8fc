/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime shell's shared part. The folder is compiled once against the CUDA 12 headers and once against CUDA 13's
 * (TN_CUDA_MAJOR), so that structures and changed signatures are those of the library that is stood in for.
 */
#ifndef TN_VGPU_CUDART_RT_H
#define TN_VGPU_CUDART_RT_H

#include <cuda_runtime_api.h>

#include "vgpu/core/runtime.h"

/* The thread's last error, as cudaGetLastError and cudaPeekAtLastError document it. */
extern _Thread_local int tn__rt_last_error;

/* Remembers a failure and returns it. */
static inline cudaError_t
rt(int code)
{
	if (__builtin_expect(code != 0, 0))
		tn__rt_last_error = code;
	return (cudaError_t)code;
}

/* A call that needs a device: attaches, then goes on; a failure is remembered. */
#define RT_ENTER()                           \
	do {                                     \
		int rt_entered = tn__enter();        \
		if (__builtin_expect(rt_entered, 0)) \
			return rt(rt_entered);           \
	} while (0)

static inline uintptr_t
rt_handle(const void *opaque)
{
	return (uintptr_t)opaque;
}

/* Functions that the compiler's host code calls, and those of newer minor versions than the headers', are declared here
 * and nowhere in the headers. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#endif
