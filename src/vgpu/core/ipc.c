/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory and events that processes of a run share, by tokens; what is open here is in share.c. A token is good in every process of the run and in no other
 * run. Lock: the core's. Knows no API of CUDA's.
 *
 * Values do not travel: what a process reads of another's memory is not known to it, reads zero and is counted.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "vgpu/core/state.h"

#define MAGIC 0x43504954u /* "TIPC" */

enum { FLAG_NO_TIMING = 2, FLAG_INTERPROCESS = 4 }; /* of events, CUDA's own */
enum { ALREADY_OPEN_HERE = 201 };                   /* cudaErrorDeviceUninitialized: the process's own handle */

_Static_assert(sizeof(struct tn_ipc_token) == TN_IPC_BYTES, "CUDA's handles have this size");

static struct tn_ipc_token
make_token(enum tn_ipc_kind kind)
{
	return (struct tn_ipc_token){ .magic = MAGIC, .kind = kind, .pid = (int32_t)getpid() };
}

static bool
is_token(const struct tn_ipc_token *token, enum tn_ipc_kind kind)
{
	return token->magic == MAGIC && token->kind == (uint32_t)kind;
}

/* ---- memory ---- */

int
tn__ipc_memory_token(uint64_t address, struct tn_ipc_token *token)
{
	uint64_t base;
	tn__lock();
	struct tn_share *share = tn__share_of_locked(address, &base);
	if (share) {
		*token = make_token(TN_IPC_MEMORY);
		token->row = share->row;
		token->id = share->id;
		token->offset = address - base;
	}
	tn__unlock();
	return share ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

int
tn__ipc_memory_open(const struct tn_ipc_token *token, uint64_t *address)
{
	if (!is_token(token, TN_IPC_MEMORY))
		return TN_CUDA_INVALID_VALUE;
	if (token->pid == (int32_t)getpid())
		return ALREADY_OPEN_HERE;
	tn__lock();
	struct tn_share *share = tn__share_open_locked(token->row, token->id);
	if (share)
		*address = share->address + token->offset;
	tn__unlock();
	return share ? TN_CUDA_OK : TN_CUDA_INVALID_HANDLE;
}

int
tn__ipc_memory_close(uint64_t address)
{
	tn__lock();
	struct tn_share *share = tn__share_at_locked(address);
	if (share && --share->openings == 0) {
		tn__values_forget_range(share->address, share->size);
		tn__share_unmap_locked(share);
	}
	tn__unlock();
	return share ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

/* ---- physical memory ---- */

/* A file that holds nothing but the token: descriptors are what CUDA hands out, and what programs send. */
static int
write_token(const struct tn_ipc_token *token)
{
	int fd = memfd_create("tonnage-share", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, token, sizeof(*token)) != (ssize_t)sizeof(*token)) {
		close(fd);
		return -1;
	}
	return fd;
}

int
tn__vmm_export(uintptr_t handle, int *descriptor)
{
	struct tn_ipc_token token = make_token(TN_IPC_PHYSICAL);
	tn__lock();
	const struct tn_share *share = tn__vmm_share_locked(handle);
	if (share) {
		token.row = share->row;
		token.id = share->id;
	}
	tn__unlock();
	if (!share)
		return TN_CUDA_INVALID_VALUE;
	int fd = write_token(&token);
	if (fd < 0)
		return TN_CUDA_OUT_OF_MEMORY;
	*descriptor = fd;
	return TN_CUDA_OK;
}

int
tn__vmm_import(int descriptor, uintptr_t *handle)
{
	struct tn_ipc_token token;
	if (pread(descriptor, &token, sizeof(token), 0) != (ssize_t)sizeof(token) || !is_token(&token, TN_IPC_PHYSICAL))
		return TN_CUDA_INVALID_VALUE;
	tn__lock();
	struct tn_share *share = tn__share_join_locked(token.row, token.id);
	uintptr_t made = share ? tn__vmm_adopt_locked(share) : 0;
	if (share && !made)
		tn__share_close(share);
	tn__unlock();
	if (!made)
		return TN_CUDA_INVALID_HANDLE;
	*handle = made;
	return TN_CUDA_OK;
}

/* ---- events ---- */

int
tn__ipc_event_token(uintptr_t handle, struct tn_ipc_token *token)
{
	const unsigned wanted = FLAG_NO_TIMING | FLAG_INTERPROCESS;
	tn__lock();
	const struct tn_event *event = tn__table_get(&tn__core.events, handle);
	bool fits = event && (event->flags & wanted) == wanted;
	tn__unlock();
	if (!fits)
		return TN_CUDA_INVALID_HANDLE;
	*token = make_token(TN_IPC_EVENT);
	token->id = handle;
	return TN_CUDA_OK;
}

int
tn__ipc_event_open(const struct tn_ipc_token *token, uintptr_t *event)
{
	if (!is_token(token, TN_IPC_EVENT))
		return TN_CUDA_INVALID_VALUE;
	return tn__event_create(FLAG_NO_TIMING | FLAG_INTERPROCESS, event);
}
