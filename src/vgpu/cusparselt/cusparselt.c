/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSELt: the library can be opened and asked for its version; descriptors, workspaces and products are refused.
 * Handles are memory of the program, which nothing needs to be written to.
 */
#include <stddef.h>

#define TN_SHELL_LIBRARY "cusparselt"
#define TN_SHELL_TABLE "vgpu/cusparselt/table.def"
#define TN_SHELL_REFUSAL 10 /* CUSPARSE_STATUS_NOT_SUPPORTED: cuSPARSELt shares cuSPARSE's statuses */
#include "vgpu/core/stubs.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 3, NOT_SUPPORTED = 10 };
enum { VERSION_MAJOR = 0, VERSION_MINOR = 8, VERSION_PATCH = 1 };

TN_EXPORT int
cusparseLtInit(void *handle)
{
	if (!handle)
		return INVALID_VALUE;
	return tn__ensure_context(tn__current_device()) == TN_OK ? SUCCESS : NOT_INITIALIZED;
}

TN_EXPORT int
cusparseLtDestroy(const void *handle)
{
	return handle ? SUCCESS : INVALID_VALUE;
}

TN_EXPORT int
cusparseLtGetVersion(const void *handle, int *version)
{
	if (!handle || !version)
		return INVALID_VALUE;
	*version = VERSION_MAJOR * 1000 + VERSION_MINOR * 100 + VERSION_PATCH;
	return SUCCESS;
}

TN_EXPORT int
cusparseLtGetProperty(int which, int *value)
{
	static const int parts[] = { VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH };

	if (!value || which < 0 || which > 2)
		return INVALID_VALUE;
	*value = parts[which];
	return SUCCESS;
}

TN_EXPORT const char *
cusparseLtGetErrorName(int status)
{
	return status == SUCCESS         ? "CUSPARSE_STATUS_SUCCESS"
	       : status == NOT_SUPPORTED ? "CUSPARSE_STATUS_NOT_SUPPORTED"
	                                 : "CUSPARSE_STATUS_INVALID_VALUE";
}

TN_EXPORT const char *
cusparseLtGetErrorString(int status)
{
	return status == NOT_SUPPORTED ? "not supported on a virtual GPU" : cusparseLtGetErrorName(status);
}
