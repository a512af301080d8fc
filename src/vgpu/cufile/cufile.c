/* SPDX-License-Identifier: Apache-2.0
 *
 * cuFile (GPUDirect Storage): refused as on a platform without it. Its functions return a pair of errors in one
 * register, the cuFile error in the low half; reads and writes return a negative count.
 */
#include <sys/types.h>

#define TN_SHELL_LIBRARY "cufile"
#define TN_SHELL_TABLE "vgpu/cufile/table.def"
#define TN_SHELL_REFUSAL 5007 /* CU_FILE_PLATFORM_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { SUCCESS = 0, INVALID_VALUE = 5022, PLATFORM_NOT_SUPPORTED = 5007 };

struct file_error { /* CUfileError_t: two enums */
	int error, driver_error;
};

TN_EXPORT ssize_t
cuFileRead(void *file, void *buffer, size_t size, off_t file_offset, off_t buffer_offset)
{
	return -(ssize_t)tn__refuse("cufile", "cuFileRead", PLATFORM_NOT_SUPPORTED);
}

TN_EXPORT ssize_t
cuFileWrite(void *file, const void *buffer, size_t size, off_t file_offset, off_t buffer_offset)
{
	return -(ssize_t)tn__refuse("cufile", "cuFileWrite", PLATFORM_NOT_SUPPORTED);
}

/* How many files the driver is open for. */
TN_EXPORT long
cuFileUseCount(void)
{
	return 0;
}

TN_EXPORT struct file_error
cuFileGetVersion(int *version)
{
	if (!version)
		return (struct file_error){ INVALID_VALUE, 0 };
	*version = 1015;
	return (struct file_error){ SUCCESS, 0 };
}
