/* SPDX-License-Identifier: Apache-2.0
 *
 * NVSHMEM (host side): never initialised, and everything that would start or use it is refused. What a program may ask
 * before it starts anything is answered as an uninitialised library does.
 */
#include <stddef.h>
#include <stdint.h>

#define TN_SHELL_LIBRARY "nvshmem"
#define TN_SHELL_TABLE "vgpu/nvshmem/table.def"
#define TN_SHELL_REFUSAL 3 /* NVSHMEMX_ERROR_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* The one variable that PyTorch imports: which transport kernels use; none. As wide as in the real library. */
TN_EXPORT int64_t nvshmem_selected_device_transport;

TN_EXPORT int
nvshmemid_init_status(void)
{
	return 0; /* NVSHMEM_STATUS_NOT_INITIALIZED */
}

TN_EXPORT int
nvshmemx_init_status(void)
{
	return 0; /* NVSHMEM_STATUS_NOT_INITIALIZED */
}

TN_EXPORT int
nvshmem_my_pe(void)
{
	return -1;
}

TN_EXPORT int
nvshmem_n_pes(void)
{
	return -1;
}

/* The version of the OpenSHMEM specification that the library follows. */
TN_EXPORT void
nvshmem_info_get_version(int *major, int *minor)
{
	if (major)
		*major = 1;
	if (minor)
		*minor = 3;
}

/* Nothing was started, so there is nothing to end. */
TN_EXPORT void
nvshmemid_hostlib_finalize(void *device_context, void *transport_context)
{
}

TN_EXPORT void
nvshmem_free(void *pointer)
{
}
