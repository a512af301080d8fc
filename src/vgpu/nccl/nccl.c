/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: communicators, memory, windows, version and errors. Communicators of one rank work; more ranks are refused with
 * words that ncclGetLastError gives. What the real library takes from the device for its channels is not modelled.
 * Thread-safe: a communicator belongs to one thread at a time, as in the real library; errors are the thread's own.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TN_SHELL_LIBRARY "nccl"
#define TN_SHELL_TABLE "vgpu/nccl/nccl.def"
#define TN_SHELL_REFUSAL 5 /* ncclInvalidUsage: there is no status for "not supported" */
#include "vgpu/core/stubs.h"

#include "vgpu/nccl/nccl_comm.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { VERSION = 23007, NO_COLOR = -1 };

struct window {
	void *memory;
	size_t bytes;
};

static _Thread_local const char *last_error = "";

int
tn__nccl_fail(int result, const char *text)
{
	last_error = text;
	return result;
}

/* ---- version and errors ---- */

TN_EXPORT int
ncclGetVersion(int *version)
{
	if (!version)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the version pointer is NULL");
	*version = VERSION;
	return NCCL_SUCCESS;
}

TN_EXPORT const char *
ncclGetErrorString(int result)
{
	static const char *const texts[] = {
		"no error",         "unhandled cuda error", "unhandled system error", "internal error",
		"invalid argument", "invalid usage",        "remote process error",   "operation in progress",
	};

	return result >= NCCL_SUCCESS && result <= NCCL_IN_PROGRESS ? texts[result] : "unknown result code";
}

TN_EXPORT const char *
ncclGetLastError(struct nccl_comm *comm)
{
	return last_error;
}

TN_EXPORT int
ncclCommGetAsyncError(struct nccl_comm *comm, int *result)
{
	if (!comm || !result)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the communicator or the result is NULL");
	*result = NCCL_SUCCESS;
	return NCCL_SUCCESS;
}

/* ---- making communicators ---- */

/* Unique among the processes of this machine: process, time and a count. */
TN_EXPORT int
ncclGetUniqueId(struct nccl_id *id)
{
	static atomic_ulong count;
	struct timespec now;

	if (!id)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the unique id is NULL");
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t words[] = {(uint64_t)getpid(), (uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, atomic_fetch_add(&count, 1)};
	memset(id, 0, sizeof(*id));
	memcpy(id->bytes, words, sizeof(words));
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclCommGetUniqueId(struct nccl_comm *comm, struct nccl_id *id)
{
	return ncclGetUniqueId(id);
}

static int
create(struct nccl_comm **out, int ranks, int rank, const struct nccl_id *id, const char *name)
{
	if (!out || ranks < 1 || rank < 0 || rank >= ranks)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the rank is not below the number of ranks");
	if (ranks > 1)
		return tn__nccl_fail(tn__refuse("nccl", name, NCCL_INVALID_USAGE),
		                     "several ranks are not supported yet on a virtual GPU: run with a world size of 1");
	int device = tn__current_device();
	if (tn__ensure_context(device) != TN_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the device has no room for a context");
	struct nccl_comm *comm = calloc(1, sizeof(*comm));
	if (!comm)
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	*comm = (struct nccl_comm){.rank = rank, .ranks = ranks, .device = device, .transport = &tn__nccl_self};
	int result = comm->transport->connect(comm, id);
	if (result == NCCL_SUCCESS)
		*out = comm;
	else
		free(comm);
	return result;
}

TN_EXPORT int
ncclCommInitRank(struct nccl_comm **comm, int ranks, struct nccl_id id, int rank)
{
	return create(comm, ranks, rank, &id, "ncclCommInitRank");
}

TN_EXPORT int
ncclCommInitRankConfig(struct nccl_comm **comm, int ranks, struct nccl_id id, int rank, void *config)
{
	return create(comm, ranks, rank, &id, "ncclCommInitRankConfig");
}

TN_EXPORT int
ncclCommInitRankScalable(struct nccl_comm **comm, int ranks, int rank, int id_count, struct nccl_id *ids, void *config)
{
	if (id_count < 1 || !ids)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "no unique id");
	return create(comm, ranks, rank, &ids[0], "ncclCommInitRankScalable");
}

/* One process with a communicator for each of its devices. */
TN_EXPORT int
ncclCommInitAll(struct nccl_comm **comms, int count, const int *list)
{
	struct nccl_id id;
	int before = tn__current_device(), device = list ? list[0] : 0, result;

	if (!comms || count < 1)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "no communicators are asked for");
	if (tn__set_device(device) != TN_OK)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "unknown device");
	ncclGetUniqueId(&id);
	result = create(comms, count, 0, &id, "ncclCommInitAll");
	tn__set_device(before);
	return result;
}

static int
clone(const struct nccl_comm *comm, struct nccl_comm **out, const char *name)
{
	struct nccl_id id;
	int before = tn__current_device(), result;

	if (tn__set_device(comm->device) != TN_OK)
		return tn__nccl_fail(NCCL_INTERNAL_ERROR, "the communicator's device is gone");
	ncclGetUniqueId(&id);
	result = create(out, comm->ranks, comm->rank, &id, name);
	tn__set_device(before);
	return result;
}

TN_EXPORT int
ncclCommSplit(struct nccl_comm *comm, int color, int key, struct nccl_comm **out, void *config)
{
	if (!comm || !out || color < NO_COLOR)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "nothing to split, or a negative color");
	if (color == NO_COLOR) {
		*out = NULL;
		return NCCL_SUCCESS;
	}
	return clone(comm, out, "ncclCommSplit");
}

TN_EXPORT int
ncclCommShrink(struct nccl_comm *comm, int *excluded, int excluded_count, struct nccl_comm **out, void *config,
               int flags)
{
	if (!comm || !out || excluded_count != 0)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the only rank cannot be excluded");
	return clone(comm, out, "ncclCommShrink");
}

/* ---- ending communicators ---- */

TN_EXPORT int
ncclCommFinalize(struct nccl_comm *comm)
{
	return comm ? NCCL_SUCCESS : tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the communicator is NULL");
}

TN_EXPORT int
ncclCommDestroy(struct nccl_comm *comm)
{
	if (comm)
		comm->transport->disconnect(comm);
	free(comm);
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclCommAbort(struct nccl_comm *comm)
{
	return ncclCommDestroy(comm);
}

TN_EXPORT int
ncclCommRevoke(struct nccl_comm *comm, int flags)
{
	return ncclCommFinalize(comm);
}

/* Giving memory back for a while: there is none to give. */
TN_EXPORT int
ncclCommSuspend(struct nccl_comm *comm, int flags)
{
	return ncclCommFinalize(comm);
}

TN_EXPORT int
ncclCommResume(struct nccl_comm *comm)
{
	return ncclCommFinalize(comm);
}

/* ---- what a communicator is ---- */

static int
tell(const struct nccl_comm *comm, int *out, int value)
{
	if (!comm || !out)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the communicator or the result is NULL");
	*out = value;
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclCommCount(const struct nccl_comm *comm, int *count)
{
	return tell(comm, count, comm ? comm->ranks : 0);
}

TN_EXPORT int
ncclCommCuDevice(const struct nccl_comm *comm, int *device)
{
	return tell(comm, device, comm ? comm->device : 0);
}

TN_EXPORT int
ncclCommUserRank(const struct nccl_comm *comm, int *rank)
{
	return tell(comm, rank, comm ? comm->rank : 0);
}

/* ---- memory ---- */

TN_EXPORT int
ncclMemAlloc(void **out, size_t bytes)
{
	uint64_t address;

	if (!out)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the pointer is NULL");
	if (tn__library_malloc(tn__current_device(), bytes, "nccl", &address) != TN_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "out of device memory");
	*out = (void *)(uintptr_t)address;
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclMemFree(void *pointer)
{
	if (pointer && tn__library_free((uint64_t)(uintptr_t)pointer) != TN_OK)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "not memory of ncclMemAlloc");
	return NCCL_SUCCESS;
}

/* Registered buffers and windows: remembered, never looked into. */
static int
remember(const struct nccl_comm *comm, void *memory, size_t bytes, void **handle)
{
	struct window *window;

	if (!comm || !handle)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the communicator or the handle is NULL");
	window = calloc(1, sizeof(*window));
	if (!window)
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	*window = (struct window){memory, bytes};
	*handle = window;
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclCommRegister(const struct nccl_comm *comm, void *memory, size_t bytes, void **handle)
{
	return remember(comm, memory, bytes, handle);
}

TN_EXPORT int
ncclCommDeregister(const struct nccl_comm *comm, void *handle)
{
	free(handle);
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclCommWindowRegister(struct nccl_comm *comm, void *memory, size_t bytes, void **window, int flags)
{
	return remember(comm, memory, bytes, window);
}

TN_EXPORT int
ncclCommWindowDeregister(struct nccl_comm *comm, void *window)
{
	free(window);
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclWinGetUserPtr(struct nccl_comm *comm, struct window *window, void **memory)
{
	if (!window || !memory)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the window or the result is NULL");
	*memory = window->memory;
	return NCCL_SUCCESS;
}

TN_NCCL_PROFILING(ncclGetVersion)
TN_NCCL_PROFILING(ncclGetErrorString)
TN_NCCL_PROFILING(ncclGetLastError)
TN_NCCL_PROFILING(ncclCommGetAsyncError)
TN_NCCL_PROFILING(ncclGetUniqueId)
TN_NCCL_PROFILING(ncclCommGetUniqueId)
TN_NCCL_PROFILING(ncclCommInitRank)
TN_NCCL_PROFILING(ncclCommInitRankConfig)
TN_NCCL_PROFILING(ncclCommInitRankScalable)
TN_NCCL_PROFILING(ncclCommInitAll)
TN_NCCL_PROFILING(ncclCommSplit)
TN_NCCL_PROFILING(ncclCommShrink)
TN_NCCL_PROFILING(ncclCommFinalize)
TN_NCCL_PROFILING(ncclCommDestroy)
TN_NCCL_PROFILING(ncclCommAbort)
TN_NCCL_PROFILING(ncclCommRevoke)
TN_NCCL_PROFILING(ncclCommSuspend)
TN_NCCL_PROFILING(ncclCommResume)
TN_NCCL_PROFILING(ncclCommCount)
TN_NCCL_PROFILING(ncclCommCuDevice)
TN_NCCL_PROFILING(ncclCommUserRank)
TN_NCCL_PROFILING(ncclMemAlloc)
TN_NCCL_PROFILING(ncclMemFree)
TN_NCCL_PROFILING(ncclCommRegister)
TN_NCCL_PROFILING(ncclCommDeregister)
TN_NCCL_PROFILING(ncclCommWindowRegister)
TN_NCCL_PROFILING(ncclCommWindowDeregister)
TN_NCCL_PROFILING(ncclWinGetUserPtr)
