/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: communicators, memory, windows and version. Ranks meet in the run's folder (nccl_ranks.c); what the real
 * library takes from the device for them is a model (nccl_memory.c).
 * Thread-safe: a communicator belongs to one thread at a time, as in the real library.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TN_SHELL_LIBRARY "nccl"
#define TN_SHELL_TABLE "vgpu/nccl/table.def"
#define TN_SHELL_REFUSAL 5 /* ncclInvalidUsage: there is no status for "not supported" */
#include "vgpu/core/stubs.h"

#include "vgpu/nccl/nccl_members.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { VERSION = 23007, NO_COLOR = -1 };

struct window {
	void *memory;
	size_t bytes;
};

TN_EXPORT int
ncclGetVersion(int *version)
{
	if (!version)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the version pointer is NULL");
	*version = VERSION;
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclCommGetAsyncError(struct nccl_comm *comm, int *result)
{
	if (!comm || !result)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the communicator or the result is NULL");
	*result = comm->transport->error(comm);
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
	uint64_t words[] = { (uint64_t)getpid(), (uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, atomic_fetch_add(&count, 1) };
	memset(id, 0, sizeof(*id));
	memcpy(id->bytes, words, sizeof(words));
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclCommGetUniqueId(struct nccl_comm *comm, struct nccl_id *id)
{
	return ncclGetUniqueId(id);
}

static bool
has(const struct nccl_config *config, size_t end)
{
	return config && config->size >= end;
}

/* NCCL_CONFIG_UNDEF_INT, or a field that the program's header does not have, is 0 here. */
static int
max_channels_of(const struct nccl_config *config)
{
	bool there = has(config, offsetof(struct nccl_config, net_name)) && config->max_ctas > 0;
	return there ? config->max_ctas : 0;
}

static const char *
network_of(const struct nccl_config *config)
{
	return has(config, offsetof(struct nccl_config, split_share)) ? config->net_name : NULL;
}

static bool
shares(const struct nccl_config *config)
{
	return has(config, sizeof(struct nccl_config)) && config->split_share == 1;
}

static int
finish_joining(void *what)
{
	struct nccl_comm *comm = what;
	return comm->transport->meet(comm);
}

/* Makes the calling thread's device a rank of the communicator that an id names. */
static int
create(struct nccl_comm **out, int ranks, int rank, const struct nccl_id *id, const struct nccl_comm *model,
       const char *network)
{
	if (!out || ranks < 1 || rank < 0 || rank >= ranks)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the rank is not below the number of ranks");
	int device = tn__current_device();
	if (tn__ensure_context(device) != TN_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the device has no room for a context");
	struct nccl_comm *comm = calloc(1, sizeof(*comm));
	if (!comm)
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	*comm = (struct nccl_comm){ .rank = rank,
		                        .ranks = ranks,
		                        .device = device,
		                        .id = *id,
		                        .transport = ranks > 1 ? &tn__nccl_ranks : &tn__nccl_self,
		                        .max_channels = model->max_channels,
		                        .together = model->together,
		                        .shares = model->shares };
	int result = tn__nccl_read_members(comm, network);
	if (result == NCCL_SUCCESS)
		result = comm->transport->connect(comm);
	if (result != NCCL_SUCCESS) {
		tn__nccl_free_members(comm);
		free(comm);
		return result;
	}
	*out = comm;
	return tn__nccl_later(finish_joining, comm);
}

TN_EXPORT int
ncclCommInitRank(struct nccl_comm **comm, int ranks, struct nccl_id id, int rank)
{
	return create(comm, ranks, rank, &id, &(struct nccl_comm){ 0 }, NULL);
}

TN_EXPORT int
ncclCommInitRankConfig(struct nccl_comm **comm, int ranks, struct nccl_id id, int rank, struct nccl_config *config)
{
	return create(comm, ranks, rank, &id, &(struct nccl_comm){ .max_channels = max_channels_of(config) },
	              network_of(config));
}

TN_EXPORT int
ncclCommInitRankScalable(struct nccl_comm **comm, int ranks, int rank, int id_count, struct nccl_id *ids,
                         struct nccl_config *config)
{
	if (id_count < 1 || !ids)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "no unique id");
	return create(comm, ranks, rank, &ids[0], &(struct nccl_comm){ .max_channels = max_channels_of(config) },
	              network_of(config));
}

TN_EXPORT int ncclGroupStart(void);
TN_EXPORT int ncclGroupEnd(void);

/* One process with a communicator for each of its devices. */
TN_EXPORT int
ncclCommInitAll(struct nccl_comm **comms, int count, const int *list)
{
	struct nccl_id id;
	int before = tn__current_device(), result = NCCL_SUCCESS;

	if (!comms || count < 1)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "no communicators are asked for");
	ncclGetUniqueId(&id);
	ncclGroupStart();
	for (int rank = 0; rank < count && result == NCCL_SUCCESS; rank++) {
		if (tn__set_device(list ? list[rank] : rank) != TN_OK)
			result = tn__nccl_fail(NCCL_INVALID_ARGUMENT, "unknown device");
		else
			result = create(&comms[rank], count, rank, &id, &(struct nccl_comm){ .together = true }, NULL);
	}
	int ended = ncclGroupEnd();
	tn__set_device(before);
	return result != NCCL_SUCCESS ? result : ended;
}

/* The id of what is made of a communicator: the same on all its ranks, and no other's. */
static struct nccl_id
id_of_child(struct nccl_comm *comm, uint64_t what)
{
	struct nccl_id id = comm->id;
	uint64_t words[4];
	memcpy(words, id.bytes, sizeof(words));
	const uint64_t more[] = { ++comm->splits, what };
	for (size_t i = 0; i < sizeof(more); i++) { /* FNV-1a */
		words[2] = (words[2] ^ ((const unsigned char *)more)[i]) * UINT64_C(0x100000001b3);
		words[3] = (words[3] ^ (words[2] >> 29)) * UINT64_C(0x100000001b3);
	}
	memcpy(id.bytes, words, sizeof(words));
	return id;
}

/* As create, on the device of the communicator that it is made of. */
static int
create_child(const struct nccl_comm *comm, struct nccl_comm **out, int ranks, int rank, const struct nccl_id *id,
             const struct nccl_config *config)
{
	int before = tn__current_device(), result;
	const struct nccl_comm model = { .max_channels = config ? max_channels_of(config) : comm->max_channels,
		                             .together = comm->together,
		                             .shares = shares(config) };

	if (tn__set_device(comm->device) != TN_OK)
		return tn__nccl_fail(NCCL_INTERNAL_ERROR, "the communicator's device is gone");
	result = create(out, ranks, rank, id, &model, network_of(config));
	tn__set_device(before);
	return result;
}

struct splitting {
	struct nccl_comm *comm, **out;
	struct nccl_split own;
	struct nccl_config config;
	bool configured;
};

/* The same where not all ranks of the communicator are run: what they want is known of the caller's own color only. */
static int
split_listed(const struct splitting *what)
{
	struct nccl_comm *comm = what->comm;
	const struct nccl_config *config = what->configured ? &what->config : NULL;
	struct nccl_id id = id_of_child(comm, (uint64_t)(uint32_t)what->own.color);
	int rank, ranks = tn__nccl_listed(network_of(config), &rank);
	*what->out = NULL;
	if (what->own.color == NO_COLOR)
		return NCCL_SUCCESS;
	if (ranks < 1 || rank < 0)
		return tn__nccl_fail(NCCL_INVALID_USAGE,
		                     "some ranks of the job are not run, and nobody has said which ones are in "
		                     "this part of a communicator");
	return create_child(comm, what->out, ranks, rank, &id, config);
}

/* Members of a color are ordered by key, and by their old rank among equals (NCCL documentation, ncclCommSplit). */
static int
split(const struct splitting *what)
{
	struct nccl_comm *comm = what->comm;
	struct nccl_split *all = calloc((size_t)comm->ranks, sizeof(*all));
	int ranks = 0, rank = 0;
	if (!all)
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	all[0] = what->own;
	int result = comm->transport->hear ? comm->transport->hear(comm, all) : NCCL_SUCCESS;
	for (int i = 0; i < comm->ranks; i++) {
		bool member = all[i].color == what->own.color;
		bool before = all[i].key < what->own.key || (all[i].key == what->own.key && i < comm->rank);
		ranks += member;
		rank += member && before;
	}
	free(all);
	struct nccl_id id = id_of_child(comm, (uint64_t)(uint32_t)what->own.color);
	*what->out = NULL;
	if (result != NCCL_SUCCESS || what->own.color == NO_COLOR)
		return result;
	return create_child(comm, what->out, ranks, rank, &id, what->configured ? &what->config : NULL);
}

static int
finish_splitting(void *what)
{
	const struct splitting *splitting = what;
	int result = splitting->comm->slots ? split_listed(splitting) : split(splitting);
	free(what);
	return result;
}

TN_EXPORT int
ncclCommSplit(struct nccl_comm *comm, int color, int key, struct nccl_comm **out, struct nccl_config *config)
{
	if (!comm || !out || color < NO_COLOR)
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "nothing to split, or a negative color");
	struct splitting *what = calloc(1, sizeof(*what));
	if (!what)
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	*what = (struct splitting){ .comm = comm, .out = out, .own = { color, key } };
	if (has(config, sizeof(what->config))) {
		what->config = *config;
		what->configured = true;
	}
	int result = comm->transport->say(comm, &what->own);
	return result == NCCL_SUCCESS ? tn__nccl_later(finish_splitting, what) : result;
}

TN_EXPORT int
ncclCommShrink(struct nccl_comm *comm, int *excluded, int excluded_count, struct nccl_comm **out,
               struct nccl_config *config, int flags)
{
	int before = 0;
	uint64_t what = UINT64_C(1) << 63;
	if (!comm || !out || excluded_count < 0 || excluded_count >= comm->ranks || (excluded_count > 0 && !excluded))
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "no rank would be left, or the list is NULL");
	for (int i = 0; i < excluded_count; i++) {
		if (excluded[i] < 0 || excluded[i] >= comm->ranks || excluded[i] == comm->rank)
			return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "an excluded rank calls, or is none of the communicator");
		before += excluded[i] < comm->rank;
		what += ((uint64_t)excluded[i] + 1) * ((uint64_t)excluded[i] + 1); /* in any order */
	}
	if (comm->slots)
		return tn__nccl_fail(NCCL_INVALID_USAGE, "a communicator of which not all ranks are run cannot shrink");
	struct nccl_id id = id_of_child(comm, what);
	return create_child(comm, out, comm->ranks - excluded_count, comm->rank - before, &id, config);
}

/* ---- ending communicators ---- */

TN_EXPORT int
ncclCommFinalize(struct nccl_comm *comm)
{
	return comm ? NCCL_SUCCESS : tn__nccl_fail(NCCL_INVALID_ARGUMENT, "the communicator is NULL");
}

static int
end(struct nccl_comm *comm, bool abort)
{
	if (comm)
		comm->transport->disconnect(comm, abort);
	if (comm)
		tn__nccl_free_members(comm);
	free(comm);
	return NCCL_SUCCESS;
}

TN_EXPORT int
ncclCommDestroy(struct nccl_comm *comm)
{
	return end(comm, false);
}

TN_EXPORT int
ncclCommAbort(struct nccl_comm *comm)
{
	return end(comm, true);
}

TN_EXPORT int
ncclCommRevoke(struct nccl_comm *comm, int flags)
{
	return ncclCommFinalize(comm);
}

TN_EXPORT int
ncclCommSuspend(struct nccl_comm *comm, int flags)
{
	int result = ncclCommFinalize(comm);
	return result == NCCL_SUCCESS ? comm->transport->suspend(comm, false) : result;
}

TN_EXPORT int
ncclCommResume(struct nccl_comm *comm)
{
	int result = ncclCommFinalize(comm);
	return result == NCCL_SUCCESS ? comm->transport->suspend(comm, true) : result;
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
	*window = (struct window){ memory, bytes };
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
