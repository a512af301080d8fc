/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSE: handles and the old matrix descriptors, which are only flags, can be made and configured; products with a
 * dense operand run (generic.c). Other buffer sizes, and what else computes, are refused.
 */
#include <stdlib.h>

#include "vgpu/core/library_handle.h"

#define TN_SHELL_COMPUTE handle_work

#define TN_SHELL_LIBRARY "cusparse"
#define TN_SHELL_TABLE "vgpu/cusparse/table.def"
#define TN_SHELL_REFUSAL 10 /* CUSPARSE_STATUS_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { NOT_SUPPORTED = 10 };
enum { VERSION_MAJOR = 12, VERSION_MINOR = 7, VERSION_PATCH = 10 };

struct descriptor {
	int type, fill, diagonal, base;
};

static const char *const status_names[] = {
	"CUSPARSE_STATUS_SUCCESS",          "CUSPARSE_STATUS_NOT_INITIALIZED", "CUSPARSE_STATUS_ALLOC_FAILED",
	"CUSPARSE_STATUS_INVALID_VALUE",    "CUSPARSE_STATUS_ARCH_MISMATCH",   "CUSPARSE_STATUS_MAPPING_ERROR",
	"CUSPARSE_STATUS_EXECUTION_FAILED", "CUSPARSE_STATUS_INTERNAL_ERROR",  "CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
	"CUSPARSE_STATUS_ZERO_PIVOT",       "CUSPARSE_STATUS_NOT_SUPPORTED",   "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES",
};

TN_EXPORT const char *
cusparseGetErrorName(int status)
{
	int count = (int)(sizeof(status_names) / sizeof(status_names[0]));

	return status >= 0 && status < count ? status_names[status] : "unknown cuSPARSE status";
}

TN_EXPORT const char *
cusparseGetErrorString(int status)
{
	return status == NOT_SUPPORTED ? "not supported on a virtual GPU" : cusparseGetErrorName(status);
}

TN_EXPORT int
cusparseCreate(struct tn_library_handle **out)
{
	return handle_create(out);
}

TN_EXPORT int
cusparseDestroy(struct tn_library_handle *handle)
{
	return handle_destroy(handle);
}

TN_EXPORT int
cusparseSetStream(struct tn_library_handle *handle, void *stream)
{
	return handle_set_stream(handle, stream);
}

TN_EXPORT int
cusparseGetStream(const struct tn_library_handle *handle, void **stream)
{
	return handle_get_stream(handle, stream);
}

TN_EXPORT int
cusparseSetPointerMode(struct tn_library_handle *handle, int mode)
{
	return handle_set_mode(handle, mode);
}

TN_EXPORT int
cusparseGetPointerMode(const struct tn_library_handle *handle, int *mode)
{
	return handle_get_mode(handle, mode);
}

TN_EXPORT int
cusparseGetVersion(const struct tn_library_handle *handle, int *version)
{
	if (!handle || !version)
		return handle ? HANDLE_INVALID_VALUE : HANDLE_NOT_INITIALIZED;
	*version = VERSION_MAJOR * 1000 + VERSION_MINOR * 100 + VERSION_PATCH;
	return HANDLE_SUCCESS;
}

TN_EXPORT int
cusparseGetProperty(int which, int *value)
{
	static const int parts[] = { VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH };

	if (!value || which < 0 || which > 2)
		return HANDLE_INVALID_VALUE;
	*value = parts[which];
	return HANDLE_SUCCESS;
}

/* ---- matrix descriptors of the old interface: four flags ---- */

TN_EXPORT int
cusparseCreateMatDescr(struct descriptor **out)
{
	struct descriptor *descriptor;

	if (!out)
		return HANDLE_INVALID_VALUE;
	descriptor = calloc(1, sizeof(*descriptor));
	if (!descriptor)
		return HANDLE_ALLOC_FAILED;
	*out = descriptor;
	return HANDLE_SUCCESS;
}

TN_EXPORT int
cusparseDestroyMatDescr(struct descriptor *descriptor)
{
	free(descriptor);
	return HANDLE_SUCCESS;
}

static int
set_flag(int *flag, int value, int highest)
{
	if (value < 0 || value > highest)
		return HANDLE_INVALID_VALUE;
	*flag = value;
	return HANDLE_SUCCESS;
}

TN_EXPORT int
cusparseSetMatType(struct descriptor *descriptor, int type)
{
	return descriptor ? set_flag(&descriptor->type, type, 3) : HANDLE_INVALID_VALUE;
}

TN_EXPORT int
cusparseSetMatFillMode(struct descriptor *descriptor, int fill)
{
	return descriptor ? set_flag(&descriptor->fill, fill, 1) : HANDLE_INVALID_VALUE;
}

TN_EXPORT int
cusparseSetMatDiagType(struct descriptor *descriptor, int diagonal)
{
	return descriptor ? set_flag(&descriptor->diagonal, diagonal, 1) : HANDLE_INVALID_VALUE;
}

TN_EXPORT int
cusparseSetMatIndexBase(struct descriptor *descriptor, int base)
{
	return descriptor ? set_flag(&descriptor->base, base, 1) : HANDLE_INVALID_VALUE;
}

TN_EXPORT int
cusparseGetMatType(const struct descriptor *descriptor)
{
	return descriptor ? descriptor->type : 0;
}

TN_EXPORT int
cusparseGetMatFillMode(const struct descriptor *descriptor)
{
	return descriptor ? descriptor->fill : 0;
}

TN_EXPORT int
cusparseGetMatDiagType(const struct descriptor *descriptor)
{
	return descriptor ? descriptor->diagonal : 0;
}

TN_EXPORT int
cusparseGetMatIndexBase(const struct descriptor *descriptor)
{
	return descriptor ? descriptor->base : 0;
}
