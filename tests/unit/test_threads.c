/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads on one device and one ledger: nothing is lost, nothing is given twice. Run under ThreadSanitizer, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "vgpu/core/memory_log.h"
#include "vgpu/core/runtime.h"

#define THREADS 6
#define ROUNDS 400
#define MIB (UINT64_C(1) << 20)

static void
stub(void)
{
}

static void *
work(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;
	uint64_t failures = 0;
	uintptr_t stream, event;
	failures += tn__enter() != 0;
	failures += tn__stream_create(1, 0, &stream) != 0;
	failures += tn__event_create(2, &event) != 0;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t address, small;
		uint32_t out = seed + (unsigned)i, in = 0;
		failures += tn__malloc((1 + (uint64_t)rand_r(&seed) % 8) * MIB, &address) != 0;
		failures += tn__malloc(1 + (uint64_t)rand_r(&seed) % 4096, &small) != 0;
		failures += tn__copy(address, (uintptr_t)&out, 4, stream, true) != 0;
		failures += tn__kernel_launch(
						tn__kernel_find((const void *)(uintptr_t)stub),
						&(struct tn_launch){ .grid = { 8, 1, 1 }, .block = { 128, 1, 1 }, .stream = stream }) != 0;
		failures += tn__event_record(event, stream) != 0;
		while (tn__event_query(event) != 0)
			;
		failures += tn__copy((uintptr_t)&in, address, 4, stream, false) != 0;
		tn__refuse("test", "nothing", 0);
		tn__note_workspace(TN_LIBRARY_CUBLAS, (void *)(uintptr_t)address, small);
		failures += tn_vgpu_enter_region(i & 1 ? "odd" : "even") != 0;
		struct tn_log_entry note;
		failures += tn_vgpu_memory_log_read(&note, 1) != 1;
		failures += tn__free(small) != 0;
		failures += tn__free(address) != 0;
	}
	failures += tn__event_destroy(event) != 0;
	failures += tn__stream_destroy(stream) != 0;
	return (void *)(uintptr_t)failures;
}

static void
test_many_threads(void **state)
{
	pthread_t threads[THREADS];
	uint64_t before, after, total;
	assert_int_equal(tn__enter(), 0);
	assert_int_equal(tn__kernel_register((const void *)(uintptr_t)stub, "stub", false, NULL), 0);
	tn__memory_info(0, &before, &total);
	tn_vgpu_memory_log_enable(1);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failures;
		pthread_join(threads[i], &failures);
		assert_ptr_equal(failures, NULL);
	}
	tn__memory_info(0, &after, &total);
	assert_int_equal(before, after);
	struct tn_log_entry *notes = calloc(TN_MEMORY_LOG_MAX, sizeof(*notes));
	assert_non_null(notes);
	assert_int_equal(tn_vgpu_memory_log_read(notes, TN_MEMORY_LOG_MAX),
	                 2 * THREADS * ROUNDS); /* a workspace and a copy each */
	for (int i = 1; i < 2 * THREADS * ROUNDS; i++)
		assert_true(notes[i - 1].time_ns <= notes[i].time_ns);
	free(notes);
	assert_int_equal(tn__kernel_find((const void *)(uintptr_t)stub)->launches, THREADS * ROUNDS);
}

int
main(void)
{
	unsetenv("TONNAGE_RUN");
	unsetenv("CUDA_VISIBLE_DEVICES");
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_many_threads) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
