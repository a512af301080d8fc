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
