/* SPDX-License-Identifier: Apache-2.0
 *
 * NVTX (libnvToolsExt of CUDA 12): with no tool attached the real library does nothing either, so its functions succeed
 * quietly. Those that return more than an int are written here.
 */
#include <stddef.h>
#include <stdint.h>

#define TN_SHELL_LIBRARY "nvtx"
#define TN_SHELL_TABLE "vgpu/nvtx/table.def"
#define TN_SHELL_REFUSAL 0
#include "vgpu/core/stubs.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* Functions that return a handle: none is ever looked into, so there is none. */
#define TN_NVTX_HANDLE(name)   \
	TN_EXPORT void *name(void) \
	{                          \
		return NULL;           \
	}
/* Functions that return the number of a range. */
#define TN_NVTX_RANGE(name)       \
	TN_EXPORT uint64_t name(void) \
	{                             \
		return 0;                 \
	}

TN_NVTX_HANDLE(nvtxDomainCreateA)
TN_NVTX_HANDLE(nvtxDomainCreateW)
TN_NVTX_HANDLE(nvtxDomainRegisterStringA)
TN_NVTX_HANDLE(nvtxDomainRegisterStringW)
TN_NVTX_HANDLE(nvtxDomainResourceCreate)
TN_NVTX_HANDLE(nvtxDomainSyncUserCreate)
TN_NVTX_RANGE(nvtxDomainRangeStartEx)
TN_NVTX_RANGE(nvtxRangeStartA)
TN_NVTX_RANGE(nvtxRangeStartEx)
TN_NVTX_RANGE(nvtxRangeStartW)
