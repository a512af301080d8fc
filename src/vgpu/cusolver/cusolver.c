/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSOLVER: handles can be made, bound to a stream and destroyed, and the version asked for; solvers are launches that take
 * no memory but the workspace that they are given (size.c). Dense, sparse and refactorization handles are the same
 * object here.
 */
#include "vgpu/core/library_handle.h"

#define TN_SHELL_COMPUTE handle_work

#define TN_SHELL_LIBRARY "cusolver"
#define TN_SHELL_TABLE "vgpu/cusolver/table.def"
#define TN_SHELL_REFUSAL 9 /* CUSOLVER_STATUS_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#if TN_CUDA_MAJOR == 12
enum { VERSION_MAJOR = 11, VERSION_MINOR = 6, VERSION_PATCH = 1 };
#else
enum { VERSION_MAJOR = 12, VERSION_MINOR = 2, VERSION_PATCH = 0 };
#endif

TN_EXPORT int
cusolverDnCreate(struct tn_library_handle **out)
{
	return handle_create(out);
}

TN_EXPORT int
cusolverDnDestroy(struct tn_library_handle *handle)
{
	return handle_destroy(handle);
}

TN_EXPORT int
cusolverDnSetStream(struct tn_library_handle *handle, void *stream)
{
	return handle_set_stream(handle, stream);
}

TN_EXPORT int
cusolverDnGetStream(const struct tn_library_handle *handle, void **stream)
{
	return handle_get_stream(handle, stream);
}

TN_EXPORT int
cusolverDnSetDeterministicMode(struct tn_library_handle *handle, int mode)
{
	return handle_set_mode(handle, mode);
}

TN_EXPORT int
cusolverDnGetDeterministicMode(const struct tn_library_handle *handle, int *mode)
{
	return handle_get_mode(handle, mode);
}

TN_EXPORT int
cusolverDnCreateParams(struct tn_library_handle **out)
{
	return handle_create(out);
}

TN_EXPORT int
cusolverDnDestroyParams(struct tn_library_handle *parameters)
{
	return handle_destroy(parameters);
}

TN_EXPORT int
cusolverSpCreate(struct tn_library_handle **out)
{
	return handle_create(out);
}

TN_EXPORT int
cusolverSpDestroy(struct tn_library_handle *handle)
{
	return handle_destroy(handle);
}

TN_EXPORT int
cusolverSpSetStream(struct tn_library_handle *handle, void *stream)
{
	return handle_set_stream(handle, stream);
}

TN_EXPORT int
cusolverSpGetStream(const struct tn_library_handle *handle, void **stream)
{
	return handle_get_stream(handle, stream);
}

TN_EXPORT int
cusolverGetVersion(int *version)
{
	if (!version)
		return HANDLE_INVALID_VALUE;
	*version = VERSION_MAJOR * 1000 + VERSION_MINOR * 100 + VERSION_PATCH;
	return HANDLE_SUCCESS;
}

TN_EXPORT int
cusolverGetProperty(int which, int *value)
{
	static const int parts[] = { VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH };

	if (!value || which < 0 || which > 2)
		return HANDLE_INVALID_VALUE;
	*value = parts[which];
	return HANDLE_SUCCESS;
}

/* ---- parameters: objects of the host ---- */

#define PARAMETERS(name)                                                  \
	TN_EXPORT int cusolverDnCreate##name(struct tn_library_handle **out)  \
	{                                                                     \
		return handle_create(out);                                        \
	}                                                                     \
                                                                          \
	TN_EXPORT int cusolverDnDestroy##name(struct tn_library_handle *made) \
	{                                                                     \
		return handle_destroy(made);                                      \
	}

#define PARAMETER(name)                                                  \
	TN_EXPORT int cusolverDn##name(const struct tn_library_handle *made) \
	{                                                                    \
		return made ? HANDLE_SUCCESS : HANDLE_INVALID_VALUE;             \
	}

PARAMETERS(GesvdjInfo)
PARAMETERS(SyevjInfo)
PARAMETER(XgesvdjSetMaxSweeps)
PARAMETER(XgesvdjSetSortEig)
PARAMETER(XgesvdjSetTolerance)
PARAMETER(XsyevjSetMaxSweeps)
PARAMETER(XsyevjSetSortEig)
PARAMETER(XsyevjSetTolerance)

/* ---- solvers whose prototypes have no buffer (cuSOLVER API, dense LAPACK functions) ----
 *
 * What else they are given are pointers and sizes that nothing here looks at.
 */

#define SOLVER(name)                                                       \
	TN_EXPORT int cusolverDn##name(const struct tn_library_handle *handle) \
	{                                                                      \
		return handle_work((void *)(uintptr_t)handle, "cusolver");         \
	}

#define SOLVERS(name) SOLVER(S##name) SOLVER(D##name) SOLVER(C##name) SOLVER(Z##name)

SOLVERS(getrs)
SOLVERS(potrs)
SOLVERS(potrsBatched)
SOLVERS(potrfBatched)
SOLVER(Xgetrs)
SOLVER(Xpotrs)
