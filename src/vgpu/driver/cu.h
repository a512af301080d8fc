/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver shell's shared part. Compiled against CUDA 13's cuda.h with all versions of each function declared under
 * their exported names; which version a caller gets is decided by cuGetProcAddress (cu_entry.c).
 */
#ifndef TN_VGPU_DRIVER_CU_H
#define TN_VGPU_DRIVER_CU_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "vgpu/core/runtime.h"

static inline uintptr_t
cu_handle(const void *opaque)
{
	return (uintptr_t)opaque;
}

#define CU_ENTER()                       \
	do {                                 \
		int cu_entered = tn__enter();    \
		if (cu_entered)                  \
			return (CUresult)cu_entered; \
	} while (0)

/* Names that the header keeps for old binaries only have no prototype. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#endif
