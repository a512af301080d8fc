/* SPDX-License-Identifier: Apache-2.0
 *
 * cuFFT: what needs no plan, and the stubs of the table. The plans stand in plan.c.
 */
#include <stddef.h>

#define TN_SHELL_LIBRARY "cufft"
#define TN_SHELL_TABLE "vgpu/cufft/table.def"
#define TN_SHELL_REFUSAL 16 /* CUFFT_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"
#include "vgpu/cufft/plan.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#if TN_CUDA_MAJOR == 12
enum { VERSION_MAJOR = 11, VERSION_MINOR = 2, VERSION_PATCH = 1 };
#else
enum { VERSION_MAJOR = 12, VERSION_MINOR = 2, VERSION_PATCH = 0 };
#endif

TN_EXPORT int
cufftGetVersion(int *version)
{
	if (!version)
		return CUFFT_INVALID_VALUE;
	*version = VERSION_MAJOR * 1000 + VERSION_MINOR * 100 + VERSION_PATCH;
	return CUFFT_SUCCESS;
}

TN_EXPORT int
cufftGetProperty(int which, int *value)
{
	static const int parts[] = { VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH };

	if (!value || which < 0 || which > 2)
		return CUFFT_INVALID_VALUE;
	*value = parts[which];
	return CUFFT_SUCCESS;
}
