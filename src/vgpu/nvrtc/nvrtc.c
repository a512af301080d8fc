/* SPDX-License-Identifier: Apache-2.0
 *
 * NVRTC, for environments that have none: compiling needs no GPU, so the real library is used wherever it is installed.
 * Here a program can be told what is missing, and no more.
 */
#include <stddef.h>

#define TN_SHELL_LIBRARY "nvrtc"
#define TN_SHELL_TABLE "vgpu/nvrtc/table.def"
#define TN_SHELL_REFUSAL 11 /* NVRTC_ERROR_INTERNAL_ERROR: there is no status for "not supported" */
#include "vgpu/core/stubs.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { SUCCESS = 0, INVALID_INPUT = 3 };

static const char *const names[] = {
	"NVRTC_SUCCESS",
	"NVRTC_ERROR_OUT_OF_MEMORY",
	"NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
	"NVRTC_ERROR_INVALID_INPUT",
	"NVRTC_ERROR_INVALID_PROGRAM",
	"NVRTC_ERROR_INVALID_OPTION",
	"NVRTC_ERROR_COMPILATION",
	"NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
	"NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
	"NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
	"NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
	"NVRTC_ERROR_INTERNAL_ERROR (NVRTC is not installed: compiling kernels needs the real library)",
};

TN_EXPORT const char *
nvrtcGetErrorString(int result)
{
	int count = (int)(sizeof(names) / sizeof(names[0]));

	return result >= 0 && result < count ? names[result] : "NVRTC_ERROR unknown";
}

TN_EXPORT int
nvrtcVersion(int *major, int *minor)
{
	if (!major || !minor)
		return INVALID_INPUT;
	*major = TN_CUDA_MAJOR;
	*minor = TN_CUDA_MAJOR == 12 ? 4 : 0;
	return SUCCESS;
}
