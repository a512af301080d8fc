/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack of contexts that each thread has: what the driver's documentation says of setting, pushing and popping.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "vgpu/core/runtime.h"

static void
test_setting_on_an_empty_stack_leaves_one_to_pop(void **state)
{
	uintptr_t popped = 0, primary = tn__context_primary(0);
	assert_int_equal(tn__context_current(), 0);
	assert_int_equal(tn__context_pop(NULL), TN_CUDA_INVALID_CONTEXT);
	assert_int_equal(tn__context_set(primary), TN_CUDA_OK);
	assert_int_equal(tn__context_current(), primary);
	assert_int_equal(tn__context_pop(&popped), TN_CUDA_OK);
	assert_int_equal(popped, primary);
	assert_int_equal(tn__context_pop(NULL), TN_CUDA_INVALID_CONTEXT);
}

static void
test_setting_replaces_the_top_and_null_pops_it(void **state)
{
	uintptr_t own, primary = tn__context_primary(0);
	assert_int_equal(tn__context_push(primary), TN_CUDA_OK);
	assert_int_equal(tn__context_create(0, &own), TN_CUDA_OK);
	assert_int_equal(tn__context_current(), own);
	assert_int_equal(tn__context_set(primary), TN_CUDA_OK); /* primary, primary */
	assert_int_equal(tn__context_set(0), TN_CUDA_OK);
	assert_int_equal(tn__context_current(), primary);
	assert_int_equal(tn__context_set(0), TN_CUDA_OK);
	assert_int_equal(tn__context_set(0), TN_CUDA_OK); /* nothing to pop is no error here */
	assert_int_equal(tn__context_current(), 0);
	assert_int_equal(tn__context_destroy(own), TN_CUDA_OK);
}

/* Runtime calls put the primary context on an empty stack. */
static void
test_the_runtime_binds_the_primary_context(void **state)
{
	assert_int_equal(tn__enter(), TN_CUDA_OK);
	assert_int_equal(tn__context_current(), tn__context_primary(0));
	assert_int_equal(tn__enter(), TN_CUDA_OK);
	assert_int_equal(tn__context_pop(NULL), TN_CUDA_OK);
	assert_int_equal(tn__context_current(), 0);
}

static uint64_t
held(void)
{
	uint64_t free_bytes, total;
	tn__memory_info(0, &free_bytes, &total);
	return total - free_bytes;
}

static void *
look_at(void *context)
{
	int device;
	assert_int_equal(tn__context_current(), 0); /* stacks are the thread's own */
	assert_int_equal(tn__context_push(*(uintptr_t *)context), TN_CUDA_INVALID_CONTEXT);
	assert_int_equal(tn__context_device(&device), TN_CUDA_INVALID_CONTEXT);
	return NULL;
}

/* A destroyed context leaves the stack of the thread that destroys it, gives its bytes back, and is none any more. */
static void
test_destroyed_contexts(void **state)
{
	uintptr_t one, two;
	int device = -1;
	pthread_t thread;
	assert_int_equal(tn__context_retain(0), TN_CUDA_OK);
	uint64_t before = held();
	assert_int_equal(tn__context_create(0, &one), TN_CUDA_OK);
	assert_int_equal(held() - before, tn__gpu(0)->context_bytes);
	assert_int_equal(tn__context_create(0, &two), TN_CUDA_OK);
	assert_int_equal(tn__context_device(&device), TN_CUDA_OK);
	assert_int_equal(device, 0);
	assert_int_equal(tn__context_destroy(one), TN_CUDA_OK); /* not on top: stays below */
	assert_int_equal(tn__context_destroy(one), TN_CUDA_INVALID_CONTEXT);
	assert_int_equal(tn__context_destroy(two), TN_CUDA_OK);
	assert_int_equal(tn__context_current(), one);
	assert_int_equal(tn__context_device(&device), TN_CUDA_CONTEXT_IS_DESTROYED);
	assert_int_equal(held(), before);
	assert_int_equal(pthread_create(&thread, NULL, look_at, &one), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(tn__context_pop(NULL), TN_CUDA_OK);
	assert_int_equal(tn__context_destroy(tn__context_primary(0)), TN_CUDA_INVALID_CONTEXT);
	assert_int_equal(tn__context_release(0), TN_CUDA_OK);
	assert_int_equal(tn__context_release(0), TN_CUDA_INVALID_CONTEXT);
}

/* A reset gives back the context and what was allocated, small and large; the next call begins anew. */
static void
test_a_reset_leaves_nothing(void **state)
{
	uint64_t small, large;
	uint64_t before = held() - tn__gpu(0)->context_bytes;
	assert_int_equal(tn__malloc(100, &small), TN_CUDA_OK);
	assert_int_equal(tn__malloc(UINT64_C(64) << 20, &large), TN_CUDA_OK);
	tn__device_reset(0);
	assert_int_equal(held(), before);
	assert_false(tn__has_context(0));
	assert_int_equal(tn__free(large), TN_CUDA_INVALID_VALUE);
	assert_int_equal(tn__enter(), TN_CUDA_OK);
	assert_int_equal(held(), before + tn__gpu(0)->context_bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_setting_on_an_empty_stack_leaves_one_to_pop),
		cmocka_unit_test(test_setting_replaces_the_top_and_null_pops_it),
		cmocka_unit_test(test_the_runtime_binds_the_primary_context),
		cmocka_unit_test(test_destroyed_contexts),
		cmocka_unit_test(test_a_reset_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
