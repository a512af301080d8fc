/* SPDX-License-Identifier: Apache-2.0
 *
 * A core for tests of the shells: two cards with fixed figures, no streams, copies done at once in host memory.
 * Refused calls are remembered by name.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/core/runtime.h"

static const struct tn_gpu_figures card = {
	.name = "NVIDIA GeForce RTX 3060",
	.compute_major = 8,
	.compute_minor = 6,
	.sm_clock_khz = 1777000,
	.memory_clock_khz = 7501000,
	.memory_gbps = 360,
	.total_bytes = 12000,
};

static char refused[80];
static int works;

/* For the tests themselves. */
TN_EXPORT const char *fake_refused(void);
TN_EXPORT int fake_works(void);

const char *
fake_refused(void)
{
	return refused;
}

int
fake_works(void)
{
	return works;
}

TN_EXPORT int
tn__refuse(const char *library, const char *name, int status)
{
	snprintf(refused, sizeof(refused), "%s", name);
	return status;
}

TN_EXPORT int
tn__device_count(void)
{
	return 1; /* the second card only */
}

TN_EXPORT int
tn__physical_device(int device)
{
	return 1;
}

TN_EXPORT int
tn__current_device(void)
{
	return 0;
}

TN_EXPORT tn_status
tn__set_device(int device)
{
	return device == 0 ? TN_OK : TN_INVALID;
}

TN_EXPORT size_t
tn__processes_of(int physical, struct tn_device_process *out, size_t room)
{
	if (physical != 1)
		return 0;
	if (room > 0)
		out[0] = (struct tn_device_process){ getpid(), 2000 };
	return 1;
}

TN_EXPORT int
tn__physical_device_count(void)
{
	return 2;
}

TN_EXPORT const struct tn_gpu_figures *
tn__physical_gpu(int physical)
{
	return &card;
}

TN_EXPORT void
tn__physical_memory_info(int physical, uint64_t *free_bytes, uint64_t *total_bytes)
{
	*total_bytes = card.total_bytes;
	*free_bytes = card.total_bytes - (physical == 1 ? 3000 : 0);
}

TN_EXPORT tn_status
tn__ensure_context(int device)
{
	return TN_OK;
}

TN_EXPORT tn_status
tn__work(uintptr_t stream, uint64_t nanoseconds, const char *what)
{
	works++;
	return TN_OK;
}

TN_EXPORT uint64_t
tn__time_of_bytes(uint64_t bytes)
{
	return bytes;
}

TN_EXPORT int
tn__copy(uint64_t to, uint64_t from, uint64_t bytes, uintptr_t stream, bool asynchronous)
{
	memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
	return 0;
}

TN_EXPORT tn_status
tn__library_malloc(int device, uint64_t bytes, const char *library, uint64_t *address)
{
	*address = 4096;
	return TN_OK;
}

TN_EXPORT tn_status
tn__library_free(uint64_t address)
{
	return address == 4096 ? TN_OK : TN_INVALID;
}

/* ---- other ranks: there are none ---- */

TN_EXPORT const char *
tn__run_folder(void)
{
	return NULL;
}

TN_EXPORT void
tn__set_gatekeeper(tn_gate_wait wait)
{
}

TN_EXPORT int
tn__transfer(uintptr_t stream, uint64_t nanoseconds, uint64_t gate, uint64_t number, bool *captured)
{
	*captured = false;
	return TN_CUDA_OK;
}

TN_EXPORT void
tn__pending_add(uint64_t address, uint64_t bytes, uint64_t gate, uint64_t number, bool collective)
{
}

TN_EXPORT bool
tn__pending_take(uint64_t address, uint64_t gate, uint64_t number)
{
	return false;
}

TN_EXPORT void
tn__pending_settle(uint64_t address, uint64_t bytes)
{
}

TN_EXPORT uint64_t
tn__process_started(int pid)
{
	return 1;
}

TN_EXPORT void
tn__rank_join(int rank, int ranks, int device)
{
}

TN_EXPORT void
tn__rank_is_in_group(int ranks, int stride)
{
}

TN_EXPORT void
tn__rank_count(int operation, uint64_t bytes)
{
}

TN_EXPORT void
tn__rank_waits(const struct tn_ledger_wait *wait)
{
}

TN_EXPORT void
tn__rank_goes_on(void)
{
}

TN_EXPORT void
tn__rank_hears_abort(void)
{
}

TN_EXPORT int
tn__ranks_run(const int **ranks)
{
	*ranks = NULL;
	return 0;
}

TN_EXPORT bool
tn__next_peer_is_absent(void)
{
	return false;
}

TN_EXPORT tn_status
tn__communication_malloc(int device, uint64_t bytes, uint64_t *address)
{
	return TN_OUT_OF_DEVICE_MEMORY;
}

TN_EXPORT bool
tn__values_known(uint64_t address, void *host, uint64_t bytes)
{
	return false;
}

TN_EXPORT size_t
tn__values_runs(uint64_t address, void *host, uint64_t bytes, struct tn_run *out, size_t room)
{
	return 0;
}

TN_EXPORT void
tn__values_put(uint64_t address, const void *bytes_or_null, uint64_t bytes)
{
}

TN_EXPORT const struct tn_gpu_figures *
tn__gpu(int device)
{
	return &card;
}

TN_EXPORT void
tn__values_move(uint64_t to, uint64_t from, uint64_t bytes)
{
}
