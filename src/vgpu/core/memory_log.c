/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory log: a ring of the newest TN_MEMORY_LOG_MAX.
 *
 * Invariant: entry number n (counted from the last clearing) stands at ring[n % TN_MEMORY_LOG_MAX]; times never go back unless
 * the system's clock does. memory_log_lock guards ring and count; `enabled` alone is read without it. It is the innermost
 * lock.
 */
#include "vgpu/core/memory_log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t memory_log_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool enabled;
static struct tn_log_entry *ring;
static uint64_t noted;
static _Thread_local struct {
	uint64_t bytes[TN_WANTED_MAX], noted; /* number n at n % TN_WANTED_MAX */
} wanted;

static void
note(enum tn_log_kind kind, enum tn_library library, uint64_t address, uint64_t bytes)
{
	struct timespec now;
	if (address == 0 || bytes == 0)
		return;
	pthread_mutex_lock(&memory_log_lock);
	clock_gettime(CLOCK_REALTIME, &now);
	if (ring)
		ring[noted++ % TN_MEMORY_LOG_MAX] = (struct tn_log_entry){
			.time_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec,
			.address = address,
			.bytes = bytes,
			.kind = kind,
			.library = library,
		};
	pthread_mutex_unlock(&memory_log_lock);
}

void
tn__note_wanted(uint64_t bytes)
{
	if (bytes)
		wanted.bytes[wanted.noted++ % TN_WANTED_MAX] = bytes;
}

uint64_t
tn_vgpu_wanted_workspaces(uint64_t *bytes, uint64_t most)
{
	uint64_t count = wanted.noted < TN_WANTED_MAX ? wanted.noted : TN_WANTED_MAX;
	if (count > most)
		count = most;
	for (uint64_t i = 0; i < count; i++)
		bytes[i] = wanted.bytes[(wanted.noted - 1 - i) % TN_WANTED_MAX];
	return count;
}

void
tn__note_workspace(enum tn_library library, const void *address, uint64_t bytes)
{
	wanted.noted = 0;
	if (__builtin_expect(atomic_load_explicit(&enabled, memory_order_relaxed), 0))
		note(TN_LOG_WORKSPACE, library, (uintptr_t)address, bytes);
}

void
tn__note_copied(uint64_t address, uint64_t bytes)
{
	if (__builtin_expect(atomic_load_explicit(&enabled, memory_order_relaxed), 0))
		note(TN_LOG_COPIED, TN_LIBRARY_NONE, address, bytes);
}

/* A forked child starts with the log off and empty. */
static void
forget(void)
{
	pthread_mutex_init(&memory_log_lock, NULL);
	atomic_store(&enabled, false);
	noted = 0;
}

__attribute__((constructor)) static void
start(void)
{
	pthread_atfork(NULL, NULL, forget);
}

void
tn_vgpu_memory_log_enable(int on)
{
	pthread_mutex_lock(&memory_log_lock);
	if (on && !ring)
		ring = calloc(TN_MEMORY_LOG_MAX, sizeof(*ring));
	atomic_store(&enabled, on && ring);
	pthread_mutex_unlock(&memory_log_lock);
}

uint64_t
tn_vgpu_memory_log_read(void *out, uint64_t most)
{
	struct tn_log_entry *to = out;
	pthread_mutex_lock(&memory_log_lock);
	uint64_t kept = noted < TN_MEMORY_LOG_MAX ? noted : TN_MEMORY_LOG_MAX;
	uint64_t count = kept < most ? kept : most;
	for (uint64_t i = 0; i < count; i++)
		to[i] = ring[(noted - count + i) % TN_MEMORY_LOG_MAX];
	pthread_mutex_unlock(&memory_log_lock);
	return count;
}

void
tn_vgpu_memory_log_clear(void)
{
	pthread_mutex_lock(&memory_log_lock);
	noted = 0;
	pthread_mutex_unlock(&memory_log_lock);
}

const char *
tn_vgpu_library_name(uint32_t library)
{
	static const char *const names[TN_LIBRARIES] = { [TN_LIBRARY_NONE] = "",
		                                             [TN_LIBRARY_CUBLAS] = "cublas",
		                                             [TN_LIBRARY_CUBLASLT] = "cublasLt",
		                                             [TN_LIBRARY_CUDNN] = "cudnn",
		                                             [TN_LIBRARY_CUFFT] = "cufft" };
	return library < TN_LIBRARIES ? names[library] : "";
}
