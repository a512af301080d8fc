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
/* What threads have been told, number n at n % TN_WANTED_MAX. Not in the threads' own storage: of that, glibc sets aside 1,664 bytes for all
 * libraries that a program opens (tests/vgpu/test_recording.py). */
static struct {
	pthread_t thread;
	uint64_t bytes; /* 0: handed over */
} wanted[TN_WANTED_MAX];
static _Atomic uint64_t wanted_noted;

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
	if (bytes == 0)
		return;
	pthread_mutex_lock(&memory_log_lock);
	uint64_t number = atomic_fetch_add_explicit(&wanted_noted, 1, memory_order_relaxed);
	wanted[number % TN_WANTED_MAX].thread = pthread_self();
	wanted[number % TN_WANTED_MAX].bytes = bytes;
	pthread_mutex_unlock(&memory_log_lock);
}

uint64_t
tn_vgpu_wanted_workspaces(uint64_t *bytes, uint64_t most)
{
	uint64_t count = 0;
	pthread_mutex_lock(&memory_log_lock);
	uint64_t told = atomic_load_explicit(&wanted_noted, memory_order_relaxed);
	for (uint64_t back = 1; back <= told && back <= TN_WANTED_MAX && count < most; back++) {
		uint64_t place = (told - back) % TN_WANTED_MAX;
		if (wanted[place].bytes && pthread_equal(wanted[place].thread, pthread_self()))
			bytes[count++] = wanted[place].bytes;
	}
	pthread_mutex_unlock(&memory_log_lock);
	return count;
}

/* The calling thread has handed a workspace over: what it was told is no longer wanted. */
static void
forget_wanted(void)
{
	bool others = false;
	if (__builtin_expect(atomic_load_explicit(&wanted_noted, memory_order_relaxed) == 0, 1))
		return;
	pthread_mutex_lock(&memory_log_lock);
	for (uint64_t i = 0; i < TN_WANTED_MAX; i++) {
		if (pthread_equal(wanted[i].thread, pthread_self()))
			wanted[i].bytes = 0;
		others = others || wanted[i].bytes;
	}
	if (!others)
		atomic_store_explicit(&wanted_noted, 0, memory_order_relaxed);
	pthread_mutex_unlock(&memory_log_lock);
}

void
tn__note_workspace(enum tn_library library, const void *address, uint64_t bytes)
{
	forget_wanted();
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
	atomic_store(&wanted_noted, 0);
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
