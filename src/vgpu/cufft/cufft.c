/* SPDX-License-Identifier: Apache-2.0
 *
 * cuFFT: plans are handles without a transform behind them. Making a plan asks for a work size, which is not
 * modelled, so it is refused; what merely creates, configures or asks for the version is answered. Must not know: any
 * size or algorithm of the real library. Thread-safe: one atomic counter.
 */
#include <stdatomic.h>
#include <stddef.h>

#define TN_SHELL_LIBRARY "cufft"
#define TN_SHELL_TABLE "vgpu/cufft/cufft.def"
#define TN_SHELL_REFUSAL 16 /* CUFFT_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { CUFFT_SUCCESS = 0, CUFFT_INVALID_PLAN = 1, CUFFT_INVALID_VALUE = 4 };
#if TN_CUDA_MAJOR == 12
enum { VERSION_MAJOR = 11, VERSION_MINOR = 2, VERSION_PATCH = 1 };
#else
enum { VERSION_MAJOR = 12, VERSION_MINOR = 2, VERSION_PATCH = 0 };
#endif

static atomic_int last_plan;

/* cufftHandle is a number; the first plan is 1. */
TN_EXPORT int
cufftCreate(int *plan)
{
	if (!plan)
		return CUFFT_INVALID_VALUE;
	*plan = 1 + atomic_fetch_add(&last_plan, 1);
	return CUFFT_SUCCESS;
}

static int
check(int plan)
{
	return plan >= 1 && plan <= atomic_load(&last_plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

TN_EXPORT int
cufftDestroy(int plan)
{
	return check(plan);
}

TN_EXPORT int
cufftSetStream(int plan, void *stream)
{
	return check(plan);
}

TN_EXPORT int
cufftSetAutoAllocation(int plan, int automatic)
{
	return check(plan);
}

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
	static const int parts[] = {VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH};

	if (!value || which < 0 || which > 2)
		return CUFFT_INVALID_VALUE;
	*value = parts[which];
	return CUFFT_SUCCESS;
}
