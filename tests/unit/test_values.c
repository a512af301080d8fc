/* SPDX-License-Identifier: Apache-2.0
 *
 * Values: what a program gets back of what it copied, and random programs against a plain model (an array of bytes and of
 * "known").
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vgpu/core/runtime.h"

#define OK(call) assert_int_equal((call), TN_CUDA_OK)

static uint64_t observed;

static void
observe(uint64_t bytes)
{
	observed += bytes;
}

static int
begin(void **state)
{
	OK(tn__enter());
	tn_vgpu_set_read_observer(observe);
	return 0;
}

static void
test_round_trip(void **state)
{
	uint64_t device;
	char back[6] = {0};
	OK(tn__malloc(1 << 21, &device));
	observed = 0;
	OK(tn__copy(device + 100, (uintptr_t) "hello", 6, 0, false));
	OK(tn__copy((uintptr_t)back, device + 100, 6, 0, false));
	assert_string_equal(back, "hello");
	assert_int_equal(observed, 0);
	/* a kernel that nobody knows */
	assert_int_equal(tn__work(0, 10, "test"), TN_OK);
	OK(tn__copy((uintptr_t)back, device + 100, 6, 0, false));
	assert_memory_equal(back, "\0\0\0\0\0\0", 6);
	assert_int_equal(observed, 6);
	OK(tn__free(device));
}

static void
test_freed_memory_is_forgotten(void **state)
{
	uint64_t device, again;
	uint32_t number = 12345;
	OK(tn__malloc(1 << 21, &device));
	OK(tn__copy(device, (uintptr_t)&number, 4, 0, false));
	OK(tn__free(device));
	OK(tn__malloc(1 << 21, &again));
	assert_int_equal(again, device);
	OK(tn__copy((uintptr_t)&number, again, 4, 0, false));
	assert_int_equal(number, 0);
	OK(tn__free(again));
}

static void
test_large_copies_touch_nothing(void **state)
{
	uint64_t device;
	const void *nowhere = (const void *)16; /* reading it would be a crash */
	OK(tn__malloc(8 << 20, &device));
	OK(tn__copy(device, (uintptr_t)nowhere, (1 << 20) + 1, 0, false));
	OK(tn__copy((uintptr_t)nowhere, device, (1 << 20) + 1, 0, false));
	OK(tn__free(device));
}

static void
test_sets_and_device_copies(void **state)
{
	uint64_t device;
	unsigned char back[8];
	OK(tn__malloc(1 << 21, &device));
	OK(tn__set(device, 0xab, 1, 64, 0, false));
	OK(tn__copy(device + 1024, device, 8, 0, false));
	OK(tn__copy((uintptr_t)back, device + 1024, 8, 0, false));
	assert_memory_equal(back, "\xab\xab\xab\xab\xab\xab\xab\xab", 8);
	OK(tn__free(device));
}

static void
test_pinned_values_survive_kernels(void **state)
{
	uint64_t device;
	float scale = 65536.0f, back = 0;
	OK(tn__malloc(1 << 21, &device));
	OK(tn_vgpu_pin_value(device, &scale, sizeof(scale)));
	assert_int_equal(tn__work(0, 10, "test"), TN_OK);
	OK(tn__copy((uintptr_t)&back, device, sizeof(back), 0, false));
	assert_true(back == scale);
	scale = 2;
	OK(tn__copy(device, (uintptr_t)&scale, sizeof(scale), 0, false)); /* written directly */
	OK(tn__copy((uintptr_t)&back, device, sizeof(back), 0, false));
	assert_true(back == 2);
	assert_int_equal(tn_vgpu_pin_value(device, &scale, 17), TN_CUDA_INVALID_VALUE);
	OK(tn__free(device));
}

/* PyTorch's fill_ is known by its name. */
static void
test_fill_kernel(void **state)
{
	static const char name[] =
		"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_";
	struct tn_kernel *kernel;
	uint64_t device;
	int32_t count = 10;
	float value = 1.5f, back[10] = {0};
	OK(tn__malloc(1 << 21, &device));
	OK(tn__kernel_register(name, name, false, &kernel));
	void *arguments[] = {&count, &value, &device};
	OK(tn__kernel_launch(kernel, &(struct tn_launch){.grid = {1, 1, 1}, .block = {128, 1, 1}, .arguments = arguments}));
	OK(tn__copy((uintptr_t)back, device, sizeof(back), 0, false));
	for (int i = 0; i < 10; i++)
		assert_true(back[i] == 1.5f);
	OK(tn__free(device));
}

#define ROOM 512
static unsigned char model[ROOM];

static void
random_step(uint64_t device)
{
	unsigned char bytes[ROOM], back[ROOM];
	unsigned from = (unsigned)rand() % ROOM, size = 1 + (unsigned)rand() % (ROOM - from);
	switch (rand() % 5) {
	case 0:
		for (unsigned i = 0; i < size; i++)
			bytes[i] = (unsigned char)rand();
		OK(tn__copy(device + from, (uintptr_t)bytes, size, 0, false));
		memcpy(model + from, bytes, size);
		break;
	case 1:
		memset(model + from, rand() % 256, size);
		OK(tn__set(device + from, model[from], 1, size, 0, false));
		break;
	case 2: {
		unsigned to = (unsigned)rand() % (ROOM - size + 1);
		OK(tn__copy(device + to, device + from, size, 0, false));
		memmove(model + to, model + from, size);
		break;
	}
	case 3:
		if (rand() % 20)
			break;
		assert_int_equal(tn__work(0, 1, "test"), TN_OK);
		memset(model, 0, sizeof(model));
		break;
	default:
		OK(tn__copy((uintptr_t)back, device + from, size, 0, false));
		assert_memory_equal(back, model + from, size);
	}
}

static void
test_random_programs(void **state)
{
	uint64_t device;
	for (unsigned seed = 1; seed <= 40; seed++) {
		OK(tn__malloc(1 << 21, &device));
		OK(tn__set(device, 0, 1, ROOM, 0, false));
		memset(model, 0, sizeof(model));
		srand(seed);
		for (int step = 0; step < 500; step++)
			random_step(device);
		OK(tn__free(device));
	}
}

int
main(void)
{
	unsetenv("TONNAGE_RUN");
	unsetenv("TONNAGE_VALUES");
	unsetenv("CUDA_VISIBLE_DEVICES");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_freed_memory_is_forgotten),
		cmocka_unit_test(test_large_copies_touch_nothing),
		cmocka_unit_test(test_sets_and_device_copies),
		cmocka_unit_test(test_pinned_values_survive_kernels),
		cmocka_unit_test(test_fill_kernel),
		cmocka_unit_test(test_random_programs),
	};
	return cmocka_run_group_tests(tests, begin, NULL);
}
