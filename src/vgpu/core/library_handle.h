/* SPDX-License-Identifier: Apache-2.0
 *
 * The handle of a mathematics library that does no more than belong to a stream: cuSPARSE, cuSOLVER. Their first status
 * numbers are the same. A handle belongs to one thread at a time, as in the real libraries: no lock.
 */
#ifndef TN_VGPU_LIBRARY_HANDLE_H
#define TN_VGPU_LIBRARY_HANDLE_H

#include <stdlib.h>

#include "vgpu/core/core.h"

enum { HANDLE_SUCCESS = 0, HANDLE_NOT_INITIALIZED = 1, HANDLE_ALLOC_FAILED = 2, HANDLE_INVALID_VALUE = 3 };

struct tn_library_handle {
	void *stream;
	int mode; /* the library's one setting: pointer mode, deterministic mode */
};

static inline int
handle_create(struct tn_library_handle **out)
{
	if (!out)
		return HANDLE_INVALID_VALUE;
	if (tn__ensure_context(tn__current_device()) != TN_OK)
		return HANDLE_NOT_INITIALIZED;
	struct tn_library_handle *handle = calloc(1, sizeof(*handle));
	if (!handle)
		return HANDLE_ALLOC_FAILED;
	*out = handle;
	return HANDLE_SUCCESS;
}

static inline int
handle_destroy(struct tn_library_handle *handle)
{
	free(handle);
	return handle ? HANDLE_SUCCESS : HANDLE_NOT_INITIALIZED;
}

static inline int
handle_set_stream(struct tn_library_handle *handle, void *stream)
{
	if (!handle)
		return HANDLE_NOT_INITIALIZED;
	handle->stream = stream;
	return HANDLE_SUCCESS;
}

static inline int
handle_get_stream(const struct tn_library_handle *handle, void **stream)
{
	if (!handle || !stream)
		return handle ? HANDLE_INVALID_VALUE : HANDLE_NOT_INITIALIZED;
	*stream = handle->stream;
	return HANDLE_SUCCESS;
}

#define HANDLE_WORK_NS 20000 /* of virtual time, whatever the size: no document says more */

/* Work on the handle's stream; what it computes lies on the device. */
static inline int
handle_work(void *opaque, const char *name)
{
	const struct tn_library_handle *handle = opaque;
	if (!handle)
		return HANDLE_NOT_INITIALIZED;
	return tn__work((uintptr_t)handle->stream, HANDLE_WORK_NS, name) == TN_OK ? HANDLE_SUCCESS : HANDLE_INVALID_VALUE;
}

static inline int
handle_set_mode(struct tn_library_handle *handle, int mode)
{
	if (!handle)
		return HANDLE_NOT_INITIALIZED;
	handle->mode = mode;
	return HANDLE_SUCCESS;
}

static inline int
handle_get_mode(const struct tn_library_handle *handle, int *mode)
{
	if (!handle || !mode)
		return handle ? HANDLE_INVALID_VALUE : HANDLE_NOT_INITIALIZED;
	*mode = handle->mode;
	return HANDLE_SUCCESS;
}

#endif
