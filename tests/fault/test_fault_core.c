/* SPDX-License-Identifier: Apache-2.0
 *
 * The Nth allocation of host memory fails: each scenario of the core is repeated with the 1st, 2nd, ... failing, until it
 * passes unfailed. Each time it must say so by a status, keep the device's sums, and work again afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "device/space.h"
#include "vgpu/core/runtime.h"

#define MIB (UINT64_C(1) << 20)

static int countdown; /* 0: nothing fails */
static bool failed;

static bool
must_fail(void)
{
	if (countdown == 0 || --countdown > 0)
		return false;
	failed = true;
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);

void *
__wrap_malloc(size_t size)
{
	return must_fail() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
	return must_fail() ? NULL : __real_calloc(count, size);
}

void *
__wrap_realloc(void *old, size_t size)
{
	return must_fail() ? NULL : __real_realloc(old, size);
}

static int
memory_scenario(void)
{
	uint64_t large = 0, small = 0, reserved = 0;
	uintptr_t handle = 0;
	int result = tn__malloc(4 * MIB, &large);
	if (!result)
		result = tn__malloc(100, &small);
	if (!result)
		result = tn__vmm_reserve(40 * MIB, 0, 0, &reserved);
	if (!result)
		result = tn__vmm_create(0, 20 * MIB, &handle);
	if (!result)
		result = tn__vmm_map(reserved, 20 * MIB, 0, handle);
	if (!result)
		tn__vmm_unmap(reserved, 20 * MIB);
	if (handle)
		tn__vmm_release(handle);
	if (reserved)
		tn__vmm_free(reserved, 40 * MIB);
	tn__free(small);
	tn__free(large);
	return result;
}

static int
graph_scenario(void)
{
	uintptr_t stream = 0, event = 0, graph = 0, executable = 0;
	int result = tn__stream_create(1, 0, &stream);
	if (!result)
		result = tn__event_create(2, &event);
	if (!result)
		result = tn__capture_begin(stream, TN_CAPTURE_GLOBAL);
	if (!result) {
		for (int i = 0; i < 8; i++)
			tn__work(stream, 100, "test");
		result = tn__event_record(event, stream);
		int ended = tn__capture_end(stream, &graph);
		result = result ? result : ended;
	}
	if (graph && !result)
		result = tn__graph_instantiate(graph, &executable);
	if (!result)
		result = tn__graph_launch(executable, stream);
	if (executable)
		tn__graph_exec_destroy(executable);
	if (graph)
		tn__graph_destroy(graph);
	if (event)
		tn__event_destroy(event);
	if (stream)
		tn__stream_destroy(stream);
	return result;
}

static int
kernel_scenario(void)
{
	static char names[3][8];
	static int used;
	struct tn_kernel *kernel = NULL;
	int result = tn__kernel_register(&names[used++ % 3], "kernel", true, &kernel);
	return result;
}

/* Values have no status: a copy that cannot be kept reads as zero. */
static int
values_scenario(void)
{
	uint64_t device;
	uint32_t number = 77, back = 1;
	countdown++; /* the device allocation below is another scenario's */
	int result = tn__malloc(4 * MIB, &device);
	if (result)
		return result;
	tn__copy(device, (uintptr_t)&number, 4, 0, false);
	tn__copy((uintptr_t)&back, device, 4, 0, false);
	tn__free(device);
	return back == 77 || (failed && back == 0) ? 0 : 1;
}

static void
repeat(int (*scenario)(void), bool tells)
{
	uint64_t before, after, total;
	tn__memory_info(0, &before, &total);
	int rounds = 0;
	do {
		assert_in_range(rounds, 0, 1000);
		countdown = ++rounds;
		failed = false;
		int result = scenario();
		countdown = 0;
		if (!failed || !tells)
			assert_int_equal(result, 0);
		tn__memory_info(0, &after, &total);
		assert_int_equal(before, after);
	} while (failed);
	assert_int_equal(scenario(), 0);
}

static void
test_memory(void **state)
{
	repeat(memory_scenario, true);
}

static void
test_graphs(void **state)
{
	/* A node that finds no memory is dropped from the capture by tn__work's status alone. */
	repeat(graph_scenario, true);
}

static void
test_kernels(void **state)
{
	repeat(kernel_scenario, true);
}

static void
test_values(void **state)
{
	repeat(values_scenario, false);
}

int
main(void)
{
	unsetenv("TONNAGE_RUN");
	unsetenv("CUDA_VISIBLE_DEVICES");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_graphs),
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_values),
	};
	if (tn__enter() != TN_CUDA_OK)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
