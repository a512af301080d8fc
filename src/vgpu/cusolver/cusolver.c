/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSOLVER: handles can be made, bound to a stream and destroyed, and the version asked for; workspace sizes and
 * solvers are refused. Dense, sparse and refactorization handles are the same object here. A handle belongs to one
 * thread at a time, as in the real library: no lock.
 */
#include <stdlib.h>

#define TN_SHELL_LIBRARY "cusolver"
#define TN_SHELL_TABLE "vgpu/cusolver/cusolver.def"
#define TN_SHELL_REFUSAL 9 /* CUSOLVER_STATUS_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 2, INVALID_VALUE = 3 };
#if TN_CUDA_MAJOR == 12
enum { VERSION_MAJOR = 11, VERSION_MINOR = 6, VERSION_PATCH = 1 };
#else
enum { VERSION_MAJOR = 12, VERSION_MINOR = 2, VERSION_PATCH = 0 };
#endif

struct handle {
	void *stream;
	int deterministic;
};

static int
create(struct handle **out)
{
	struct handle *handle;

	if (!out)
		return INVALID_VALUE;
	if (tn__ensure_context(tn__current_device()) != TN_OK)
		return NOT_INITIALIZED;
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return ALLOC_FAILED;
	*out = handle;
	return SUCCESS;
}

static int
destroy(struct handle *handle)
{
	free(handle);
	return handle ? SUCCESS : NOT_INITIALIZED;
}

static int
set_stream(struct handle *handle, void *stream)
{
	if (!handle)
		return NOT_INITIALIZED;
	handle->stream = stream;
	return SUCCESS;
}

static int
get_stream(const struct handle *handle, void **stream)
{
	if (!handle || !stream)
		return handle ? INVALID_VALUE : NOT_INITIALIZED;
	*stream = handle->stream;
	return SUCCESS;
}

TN_EXPORT int
cusolverDnCreate(struct handle **out)
{
	return create(out);
}

TN_EXPORT int
cusolverDnDestroy(struct handle *handle)
{
	return destroy(handle);
}

TN_EXPORT int
cusolverDnSetStream(struct handle *handle, void *stream)
{
	return set_stream(handle, stream);
}

TN_EXPORT int
cusolverDnGetStream(const struct handle *handle, void **stream)
{
	return get_stream(handle, stream);
}

TN_EXPORT int
cusolverDnSetDeterministicMode(struct handle *handle, int mode)
{
	if (!handle)
		return NOT_INITIALIZED;
	handle->deterministic = mode;
	return SUCCESS;
}

TN_EXPORT int
cusolverDnGetDeterministicMode(const struct handle *handle, int *mode)
{
	if (!handle || !mode)
		return handle ? INVALID_VALUE : NOT_INITIALIZED;
	*mode = handle->deterministic;
	return SUCCESS;
}

TN_EXPORT int
cusolverDnCreateParams(struct handle **out)
{
	return create(out);
}

TN_EXPORT int
cusolverDnDestroyParams(struct handle *parameters)
{
	return destroy(parameters);
}

TN_EXPORT int
cusolverSpCreate(struct handle **out)
{
	return create(out);
}

TN_EXPORT int
cusolverSpDestroy(struct handle *handle)
{
	return destroy(handle);
}

TN_EXPORT int
cusolverSpSetStream(struct handle *handle, void *stream)
{
	return set_stream(handle, stream);
}

TN_EXPORT int
cusolverSpGetStream(const struct handle *handle, void **stream)
{
	return get_stream(handle, stream);
}

TN_EXPORT int
cusolverGetVersion(int *version)
{
	if (!version)
		return INVALID_VALUE;
	*version = VERSION_MAJOR * 1000 + VERSION_MINOR * 100 + VERSION_PATCH;
	return SUCCESS;
}

TN_EXPORT int
cusolverGetProperty(int which, int *value)
{
	static const int parts[] = {VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH};

	if (!value || which < 0 || which > 2)
		return INVALID_VALUE;
	*value = parts[which];
	return SUCCESS;
}
