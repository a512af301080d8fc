/* SPDX-License-Identifier: Apache-2.0
 *
 * Values: what a program gets back of what it copied and of kernels that are known by name, and random programs against
 * a plain model (an array of bytes and of "known").
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "test_no_run.h"
#include "vgpu/core/dtype.h"
#include "vgpu/core/likely.h"
#include "vgpu/core/runtime.h"

#define OK(call) assert_int_equal((call), TN_CUDA_OK)

static uint64_t observed;

static void
observe(struct tn_value_read *read)
{
	observed += read->bytes;
}

static int
begin(void **state)
{
	OK(tn__enter());
	tn_vgpu_set_read_observer(observe);
	return 0;
}

/* Reads bytes back; says whether they were known. */
static bool
back(uint64_t device, void *out, size_t bytes)
{
	observed = 0;
	OK(tn__copy((uintptr_t)out, device, bytes, 0, false));
	return observed == 0;
}

static void
test_round_trip(void **state)
{
	uint64_t device;
	char back[6] = { 0 };
	OK(tn__malloc(1 << 21, &device));
	observed = 0;
	OK(tn__copy(device + 100, (uintptr_t)"hello", 6, 0, false));
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

/* A checkpoint's small tensors are asked for after all of it was copied. */
static void
test_small_copies_outlast_large_ones(void **state)
{
	enum { PIECES = 200, SMALL = 180, LARGE = 1 << 20, STRIDE = 2 << 20 };
	uint64_t device;
	char *large = malloc(LARGE), small[SMALL], back[SMALL];
	assert_non_null(large);
	memset(large, 7, LARGE);
	OK(tn__malloc((uint64_t)PIECES * STRIDE, &device));
	for (int i = 0; i < PIECES; i++) {
		memset(small, i, SMALL);
		OK(tn__copy(device + (uint64_t)i * STRIDE, (uintptr_t)small, SMALL, 0, false));
		OK(tn__copy(device + (uint64_t)i * STRIDE + LARGE, (uintptr_t)large, LARGE, 0, false));
	}
	observed = 0;
	for (int i = 0; i < PIECES; i++) {
		memset(small, i, SMALL);
		OK(tn__copy((uintptr_t)back, device + (uint64_t)i * STRIDE, SMALL, 0, false));
		assert_memory_equal(back, small, SMALL);
	}
	assert_int_equal(observed, 0);
	/* that all are kept is not wanted: the first large one has gone */
	OK(tn__copy((uintptr_t)large, device + LARGE, LARGE, 0, false));
	assert_int_equal(observed, LARGE);
	OK(tn__free(device));
	free(large);
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
test_large_copies_to_the_device_touch_nothing(void **state)
{
	uint64_t device;
	const void *nowhere = (const void *)16; /* reading it would be a crash */
	OK(tn__malloc(8 << 20, &device));
	OK(tn__copy(device, (uintptr_t)nowhere, (1 << 20) + 1, 0, false));
	OK(tn__free(device));
}

/* ---- large reads: the host's bytes are zero whatever memory they lie in, and no page is touched for it ---- */

#define LARGE ((size_t)4 << 20)
#define PAGE ((size_t)4096)

static bool
all_are(const unsigned char *bytes, size_t count, unsigned char value)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static size_t
resident_pages(void *from, size_t bytes)
{
	static unsigned char pages[LARGE / PAGE + 8];
	size_t count = 0;
	assert_int_equal(mincore(from, bytes, pages), 0);
	for (size_t i = 0; i < bytes / PAGE; i++)
		count += pages[i] & 1;
	return count;
}

/* Reads LARGE bytes to 100 bytes past the start of `room`, which holds 0x77 up to LARGE + 1000. */
static void
assert_reads_zero(uint64_t device, unsigned char *room)
{
	memset(room, 0x77, LARGE + 1000);
	observed = 0;
	OK(tn__copy((uintptr_t)room + 100, device, LARGE, 0, false));
	assert_int_equal(observed, LARGE);
	assert_true(all_are(room, 100, 0x77));
	assert_true(all_are(room + 100, LARGE, 0));
	assert_true(all_are(room + 100 + LARGE, 900, 0x77));
}

static unsigned char *
map_room(int flags, int fd)
{
	unsigned char *room = mmap(NULL, 2 * LARGE, PROT_READ | PROT_WRITE, flags, fd, 0);
	assert_true(room != MAP_FAILED);
	return room;
}

static void
test_large_reads_are_zero_in_anonymous_memory(void **state)
{
	uint64_t device;
	OK(tn__malloc(2 * LARGE, &device));
	unsigned char *room = map_room(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	assert_int_equal(resident_pages(room, LARGE), 0);
	OK(tn__copy((uintptr_t)room + 100, device, LARGE, 0, false));
	assert_true(resident_pages(room, LARGE) <= 1); /* the edges' */
	assert_reads_zero(device, room);
	memset(room, 0x77, LARGE);
	OK(tn__copy((uintptr_t)room + 100, device, LARGE, 0, false));
	assert_true(resident_pages(room, LARGE) <= 2);
	assert_true(all_are(room + 100, LARGE, 0));
	/* locked, and in huge pages */
	if (mlock(room + 8 * PAGE, 2 * PAGE) == 0)
		assert_reads_zero(device, room);
	munlock(room, 2 * LARGE);
	madvise(room, 2 * LARGE, MADV_HUGEPAGE);
	assert_reads_zero(device, room);
	munmap(room, 2 * LARGE);
	OK(tn__free(device));
}

static void
test_large_reads_are_zero_in_mallocs_memory(void **state)
{
	uint64_t device;
	OK(tn__malloc(2 * LARGE, &device));
	unsigned char *room = malloc(2 * LARGE), *after = malloc(64);
	assert_true(room && after);
	memset(after, 0x55, 64);
	assert_reads_zero(device, room);
	assert_true(all_are(after, 64, 0x55));
	free(after);
	free(room); /* malloc's own notes beside the block are as they were */
	free(malloc(2 * LARGE));
	unsigned char stack[LARGE + 1000];
	assert_reads_zero(device, stack);
	OK(tn__free(device));
}

/* A private mapping shows the file's bytes again where its own are dropped; the file itself must not change. */
static void
test_large_reads_are_zero_in_files(void **state)
{
	unsigned char byte = 0;
	uint64_t device;
	OK(tn__malloc(2 * LARGE, &device));
	FILE *file = tmpfile();
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)(2 * LARGE)), 0);
	unsigned char *shared = map_room(MAP_SHARED, fileno(file));
	memset(shared, 0x66, 2 * LARGE);
	unsigned char *private = map_room(MAP_PRIVATE, fileno(file));
	assert_reads_zero(device, private);
	assert_true(all_are(shared, 2 * LARGE, 0x66));
	/* half anonymous, half a file's */
	unsigned char *second = private + LARGE / 2;
	assert_true(mmap(private, LARGE / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	            private);
	assert_reads_zero(device, private);
	assert_true(second[LARGE - 1] == 0x66 && all_are(shared, 2 * LARGE, 0x66));
	assert_reads_zero(device, shared);
	assert_int_equal(pread(fileno(file), &byte, 1, (off_t)(100 + LARGE / 2)), 1);
	assert_int_equal(byte, 0); /* the file itself, for whoever else has it */
	munmap(private, 2 * LARGE);
	munmap(shared, 2 * LARGE);
	fclose(file);
	unsigned char *memory = map_room(MAP_SHARED | MAP_ANONYMOUS, -1);
	assert_reads_zero(device, memory);
	munmap(memory, 2 * LARGE);
	OK(tn__free(device));
}

/* What a child drops stays with its parent. */
static void
test_large_reads_of_a_child_are_its_own(void **state)
{
	uint64_t device;
	int status;
	OK(tn__malloc(2 * LARGE, &device));
	unsigned char *room = map_room(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	memset(room, 0x77, LARGE);
	pid_t child = fork();
	if (child == 0) {
		tn__values_read(device, room, LARGE);
		_exit(all_are(room, LARGE, 0) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(all_are(room, LARGE, 0x77));
	munmap(room, 2 * LARGE);
	OK(tn__free(device));
}

/* Zeros are known at any size; of the rest, as much as a small copy brings. */
static void
test_large_reads_of_what_is_known(void **state)
{
	uint64_t device;
	unsigned char *room = malloc(LARGE);
	assert_non_null(room);
	OK(tn__malloc(2 * LARGE, &device));
	OK(tn__set(device, 0, 1, LARGE, 0, false));
	assert_true(back(device, room, LARGE));
	assert_true(all_are(room, LARGE, 0));
	OK(tn__copy(device + 5000, (uintptr_t)"hello", 5, 0, false));
	OK(tn__set(device + 9000, 7, 1, 1000, 0, false));
	memset(room, 0x77, LARGE);
	assert_true(back(device, room, LARGE));
	assert_memory_equal(room + 5000, "hello", 5);
	assert_true(all_are(room + 9000, 1000, 7) && all_are(room, 5000, 0) && all_are(room + 10000, LARGE - 10000, 0));
	assert_true(back(device + 9500, room, LARGE - 9500)); /* from the middle of a pattern */
	assert_true(all_are(room, 500, 7) && room[500] == 0);
	OK(tn__set(device, 7, 1, LARGE / 2, 0, false)); /* too much of it */
	assert_false(back(device, room, LARGE));
	assert_true(all_are(room, LARGE, 0));
	free(room);
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
	float value = 1.5f, back[10] = { 0 };
	OK(tn__malloc(1 << 21, &device));
	OK(tn__kernel_register(name, name, false, &kernel));
	void *arguments[] = { &count, &value, &device };
	OK(tn__kernel_launch(kernel,
	                     &(struct tn_launch){ .grid = { 1, 1, 1 }, .block = { 128, 1, 1 }, .arguments = arguments }));
	OK(tn__copy((uintptr_t)back, device, sizeof(back), 0, false));
	for (int i = 0; i < 10; i++)
		assert_true(back[i] == 1.5f);
	OK(tn__free(device));
}

/* ---- more kernels that are known by name: launches as PyTorch makes them ---- */

#define MAP "_ZN2at6native29vectorized_elementwise_kernelILi4E"
#define MAP_NEWER "_ZN2at6native29vectorized_elementwise_kernelILi8E" /* 2.15 */
#define MAP_UNALIGNED "_ZN2at6native27unrolled_elementwise_kernelI"
#define LOADS(loads) "Li4E23TrivialOffsetCalculatorILi1EjESD_NS0_6memory" loads "EEEviS7_T0_T2_T3_T4_T5_"
#define PLAIN_LOADS LOADS("15LoadWithoutCastENSE_16StoreWithoutCast")
#define CASTING_LOADS LOADS("12LoadWithCastILi1EEENSE_13StoreWithCastILi1EE")
#define COMPARE(type) \
	"NS0_50_GLOBAL__N__e50ef81d_17_CompareKernels_cu_8f1b29aa14CompareFunctorI" type "EESt5arrayIPcLm3EE"
#define COMPARE_SCALAR(type)                                                                                         \
	"ZNS0_21compare_scalar_kernelI" type "EEvRNS_18TensorIteratorBaseENS0_50_GLOBAL__N__e50ef81d_17_CompareKernels_" \
	"cu_8f1b29aa6OpTypeET_EUl" type "E_St5arrayIPcLm2EE"
#define EQUAL_SCALAR(type)           \
	"NS0_13AUnaryFunctorI" type type \
	"bNS0_51_GLOBAL__N__28ce311f_18_CompareEQKernel_cu_d8008c9616CompareEqFunctorI" type "EEEESt5arrayIPcLm2EE"
#define EQUAL(type)                  \
	"NS0_13BinaryFunctorI" type type \
	"bNS0_51_GLOBAL__N__28ce311f_18_CompareEQKernel_cu_d8008c9616CompareEqFunctorI" type "EEEESt5arrayIPcLm3EE"
#define REDUCE(name)                                                                           \
	"_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIbNS0_14func_wrapper_tIbZZZNS0_" name \
	"ERNS_14TensorIteratorEENKUlvE_clEvENKUlvE10_clEvEUlbbE_EEjbLi4ELi4EEEEEvT1_"
#define ARANGE(number)                                                                                                \
	"_ZN50_GLOBAL__N__fa15d16e_17_RangeFactories_cu_38772b0829elementwise_kernel_with_indexIiZZZN2at6native15arange_" \
	"cuda_outERKN3c106ScalarES6_S6_RNS1_6TensorEENKUlvE_clEvENKUlvE" number                                           \
	"_clEvEUllE_EEvT_T0_PN15function_traitsISD_"                                                                      \
	"E11result_typeE"

static void
launch(const char *name, void *first, const void *second, void *third)
{
	struct tn_kernel *kernel;
	void *arguments[] = { first, (void *)(uintptr_t)second, third };
	OK(tn__kernel_register(NULL, name, false, &kernel));
	OK(tn__kernel_launch(kernel,
	                     &(struct tn_launch){ .grid = { 1, 1, 1 }, .block = { 128, 1, 1 }, .arguments = arguments }));
}

static void
test_arange(void **state)
{
	uint64_t device;
	int32_t count = 5;
	const int64_t whole[2] = { 3, -2 };
	const float real[2] = { 0.5f, 0.25f };
	const double wide[2] = { 1, 0.1 };
	int64_t longs[5];
	unsigned char bytes[5];
	float floats[5];
	double doubles[5];
	uint16_t narrow[5];
	OK(tn__malloc(1 << 21, &device));
	launch(ARANGE("2"), &count, whole, &device);
	assert_true(back(device, longs, sizeof(longs)));
	for (int i = 0; i < 5; i++)
		assert_int_equal(longs[i], 3 - 2 * i);
	launch(ARANGE(""), &count, whole, &device);
	assert_true(back(device, bytes, sizeof(bytes)));
	assert_memory_equal(bytes, "\x03\x01\xff\xfd\xfb", 5);
	launch(ARANGE("5"), &count, real, &device);
	assert_true(back(device, floats, sizeof(floats)));
	assert_true(floats[0] == 0.5f && floats[4] == 1.5f);
	launch(ARANGE("4"), &count, wide, &device);
	assert_true(back(device, doubles, sizeof(doubles)));
	assert_true(doubles[0] == 1 && doubles[3] > 1.29 && doubles[3] < 1.31);
	launch(ARANGE("6"), &count, real, &device); /* half */
	assert_true(back(device, narrow, sizeof(narrow)));
	assert_true(narrow[0] == 0x3800 && narrow[2] == 0x3c00 && narrow[4] == 0x3e00);
	launch(ARANGE("7"), &count, real, &device); /* bfloat16 */
	assert_true(back(device, narrow, sizeof(narrow)));
	assert_true(narrow[0] == 0x3f00 && narrow[2] == 0x3f80 && narrow[4] == 0x3fc0);
	launch(ARANGE("8"), &count, real, &device); /* a type that there is not */
	assert_false(back(device, narrow, sizeof(narrow)));
	count = (1 << 20) / 8 + 1; /* more than direct copies keep */
	launch(ARANGE("2"), &count, whole, &device);
	assert_false(back(device, longs, sizeof(longs)));
	OK(tn__free(device));
}

static void
test_halves_are_rounded(void **state)
{
	for (uint32_t bits = 0; bits < 0x10000; bits++) {
		float value = tn__float_of_half((uint16_t)bits);
		if (value == value)
			assert_int_equal(tn__half_of_float(value), bits);
		value = tn__float_of_bfloat16((uint16_t)bits);
		if (value == value)
			assert_int_equal(tn__bfloat16_of_float(value), bits);
	}
	assert_int_equal(tn__half_of_float(1.0f + 0x1p-11f), 0x3c00); /* a tie goes to the even one */
	assert_int_equal(tn__half_of_float(1.0f + 3 * 0x1p-11f), 0x3c02);
	assert_int_equal(tn__half_of_float(65519.0f), 0x7bff);
	assert_int_equal(tn__half_of_float(65520.0f), 0x7c00);
	assert_int_equal(tn__half_of_float(-0x1p-25f), 0x8000);
	assert_int_equal(tn__half_of_float(3 * 0x1p-25f), 2);
	assert_int_equal(tn__bfloat16_of_float(1.0f + 0x1p-8f), 0x3f80);
	assert_int_equal(tn__bfloat16_of_float(1.0f + 3 * 0x1p-8f), 0x3f82);
}

/* Four floats in two tensors; the results of each comparison, in the order of PyTorch's numbers. */
static void
test_comparisons(void **state)
{
	const float a[4] = { 1, 2, 3, __builtin_nanf("") }, b[4] = { 2, 2, 2, 2 };
	static const unsigned char order[4][4] = { { 0, 1, 1, 0 }, { 0, 0, 1, 0 }, { 1, 1, 0, 0 }, { 1, 0, 0, 0 } };
	static const unsigned char equality[2][4] = { { 0, 1, 0, 0 }, { 1, 0, 1, 1 } };
	uint64_t device;
	int32_t count = 4;
	unsigned char mask[4];
	OK(tn__malloc(1 << 21, &device));
	uint64_t data[3] = { device + 1024, device, device + 512 };
	OK(tn__copy(device, (uintptr_t)a, sizeof(a), 0, false));
	OK(tn__copy(device + 512, (uintptr_t)b, sizeof(b), 0, false));
	for (int32_t op = 0; op < 4; op++) {
		const struct {
			int32_t op;
			float value;
		} scalar = { op, 2 };
		launch(MAP COMPARE("f") "EEviT0_T1_", &count, &op, data);
		assert_true(back(data[0], mask, 4));
		assert_memory_equal(mask, order[op], 4);
		OK(tn__set(data[0], 7, 1, 4, 0, false));
		launch(MAP_NEWER COMPARE_SCALAR("f") "Lb0EEEviT0_T1_", &count, &scalar, data);
		assert_true(back(data[0], mask, 4));
		assert_memory_equal(mask, order[op], 4);
		if (op > 1)
			continue;
		launch(MAP EQUAL("f") "EEviT0_T1_", &count, &op, data);
		assert_true(back(data[0], mask, 4));
		assert_memory_equal(mask, equality[op], 4);
		OK(tn__set(data[0], 7, 1, 4, 0, false));
		launch(MAP_UNALIGNED EQUAL_SCALAR("f") PLAIN_LOADS, &count, &scalar, data);
		assert_true(back(data[0], mask, 4));
		assert_memory_equal(mask, equality[op], 4);
	}
	OK(tn__free(device));
}

static void
test_scalars_of_comparisons_are_aligned(void **state)
{
	const int64_t longs[2] = { INT64_MAX, INT64_MAX - 1 };
	const unsigned char bytes[2] = { 200, 3 };
	const struct {
		int32_t op;
		int64_t value;
	} of_long = { 0, INT64_MAX };
	const struct {
		int32_t op;
		unsigned char value;
	} of_byte = { 1, 199 };
	uint64_t device;
	int32_t count = 2;
	unsigned char mask[2];
	OK(tn__malloc(1 << 21, &device));
	uint64_t data[3] = { device + 1024, device, 0 };
	OK(tn__copy(device, (uintptr_t)longs, sizeof(longs), 0, false));
	launch(MAP EQUAL_SCALAR("l") "EEviT0_T1_", &count, &of_long, data);
	assert_true(back(data[0], mask, 2));
	assert_memory_equal(mask, "\1\0", 2);
	OK(tn__copy(device, (uintptr_t)bytes, sizeof(bytes), 0, false));
	launch(MAP COMPARE_SCALAR("h") "EEviT0_T1_", &count, &of_byte, data);
	assert_true(back(data[0], mask, 2));
	assert_memory_equal(mask, "\1\0", 2);
	OK(tn__free(device));
}

/* What was computed stays unknown, whoever compares it; and what else is known stays known. */
static void
test_comparing_what_is_not_known(void **state)
{
	const float number = 4;
	float same;
	uint64_t device;
	int32_t count = 4, op = 1;
	unsigned char mask[4];
	OK(tn__malloc(1 << 21, &device));
	uint64_t data[3] = { device + 1024, device, device };
	OK(tn__copy(device + 4096, (uintptr_t)&number, sizeof(number), 0, false));
	OK(tn__set(data[0], 1, 1, 4, 0, false));
	launch(MAP COMPARE("f") "EEviT0_T1_", &count, &op, data);
	assert_false(back(data[0], mask, 4));
	assert_true(back(device + 4096, &same, sizeof(same)));
	/* one operand is known but for its last element */
	OK(tn__copy(device, (uintptr_t)"0123456789ab", 12, 0, false));
	launch(MAP EQUAL("f") "EEviT0_T1_", &count, &op, data);
	assert_false(back(data[0], mask, 4));
	/* numbers that no comparison has: only its result is forgotten */
	OK(tn__set(data[0], 1, 1, 4, 0, false));
	op = 4;
	launch(MAP COMPARE("f") "EEviT0_T1_", &count, &op, data);
	assert_false(back(data[0], mask, 4));
	assert_true(back(device + 4096, &same, sizeof(same)));
	/* a kernel whose name says nothing can write anywhere */
	launch("somebody_s_kernel", &count, &op, data);
	assert_false(back(device + 4096, &same, sizeof(same)));
	OK(tn__free(device));
}

static void
test_logic_of_masks(void **state)
{
	static const struct {
		const char *name;
		unsigned char result[4];
	} cases[] = {
		{ MAP "NS0_13BinaryFunctorIbbbNS0_17BitwiseAndFunctorIbEEEESt5arrayIPcLm3EEEEviT0_T1_", { 0, 0, 0, 1 } },
		{ MAP "NS0_13BinaryFunctorIbbbNS0_16BitwiseOrFunctorIbEEEESt5arrayIPcLm3EEEEviT0_T1_", { 0, 1, 1, 1 } },
		{ MAP "NS0_13BinaryFunctorIbbbNS0_17BitwiseXorFunctorIbEEEESt5arrayIPcLm3EEEEviT0_T1_", { 0, 1, 1, 0 } },
		{ MAP "ZNS0_23bitwise_not_kernel_cudaERNS_18TensorIteratorBaseEEUlbE_St5arrayIPcLm2EEEEviT0_T1_",
		  { 1, 1, 0, 0 } },
	};
	uint64_t device;
	int32_t count = 4, functor = 0;
	unsigned char mask[4];
	OK(tn__malloc(1 << 21, &device));
	uint64_t data[3] = { device + 1024, device, device + 512 };
	OK(tn__copy(device, (uintptr_t)"\0\0\1\1", 4, 0, false));
	OK(tn__copy(device + 512, (uintptr_t)"\0\1\0\1", 4, 0, false));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		launch(cases[i].name, &count, &functor, data);
		assert_true(back(data[0], mask, 4));
		assert_memory_equal(mask, cases[i].result, 4);
	}
	OK(tn__free(device));
}

/* struct ReduceOp as PyTorch passes it: the fields that matter, at their offsets. */
struct reduction {
	unsigned char bytes[1048];
};

static void
put32(struct reduction *r, size_t offset, int32_t value)
{
	memcpy(r->bytes + offset, &value, sizeof(value));
}

static struct reduction
make_reduction(uint64_t from, uint64_t to, int32_t count, bool all)
{
	struct reduction r = { { 0 } };
	r.bytes[1] = all;
	put32(&r, 4, 1);      /* bytes an element */
	put32(&r, 8, count);  /* inputs */
	put32(&r, 12, 1);     /* outputs */
	put32(&r, 24, 1);     /* blocks an output */
	put32(&r, 68, 1);     /* dimensions of the input */
	put32(&r, 72, count); /* its size */
	put32(&r, 372, 1);    /* its stride */
	memcpy(r.bytes + 976, &from, sizeof(from));
	memcpy(r.bytes + 984, &to, sizeof(to));
	r.bytes[1033] = 1; /* final */
	put32(&r, 1036, 1);
	return r;
}

static void
assert_reduces(const char *name, struct reduction r, uint64_t to, bool known, int result)
{
	unsigned char byte = 9;
	launch(name, &r, NULL, NULL);
	assert_int_equal(back(to, &byte, 1), known);
	assert_int_equal(byte, result);
}

static void
test_all_and_any(void **state)
{
	uint64_t device;
	OK(tn__malloc(1 << 21, &device));
	uint64_t to = device + 1024;
	OK(tn__copy(device, (uintptr_t)"\1\1\0\0", 4, 0, false));
	assert_reduces(REDUCE("15and_kernel_cuda"), make_reduction(device, to, 2, true), to, true, 1);
	assert_reduces(REDUCE("15and_kernel_cuda"), make_reduction(device, to, 4, true), to, true, 0);
	assert_reduces(REDUCE("14or_kernel_cuda"), make_reduction(device + 1, to, 3, false), to, true, 1);
	assert_reduces(REDUCE("14or_kernel_cuda"), make_reduction(device + 2, to, 2, false), to, true, 0);
	/* What is not known is taken to hold. */
	assert_reduces(REDUCE("14or_kernel_cuda"), make_reduction(device + 2, to, 3, false), to, false, 1);
	/* Several blocks write to memory of their own: nothing is known any more. */
	struct reduction blocks = make_reduction(device, to, 2, true);
	put32(&blocks, 24, 2);
	assert_reduces(REDUCE("15and_kernel_cuda"), blocks, to, false, 1);
	OK(tn__copy(device, (uintptr_t)"\1\1\1\1", 4, 0, false));
	struct reduction strided = make_reduction(device, to, 2, true);
	put32(&strided, 372, 2);
	assert_reduces(REDUCE("15and_kernel_cuda"), strided, to, false, 1);
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
	leave_run();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_small_copies_outlast_large_ones),
		cmocka_unit_test(test_freed_memory_is_forgotten),
		cmocka_unit_test(test_large_copies_to_the_device_touch_nothing),
		cmocka_unit_test(test_large_reads_are_zero_in_anonymous_memory),
		cmocka_unit_test(test_large_reads_are_zero_in_mallocs_memory),
		cmocka_unit_test(test_large_reads_are_zero_in_files),
		cmocka_unit_test(test_large_reads_of_a_child_are_its_own),
		cmocka_unit_test(test_large_reads_of_what_is_known),
		cmocka_unit_test(test_sets_and_device_copies),
		cmocka_unit_test(test_pinned_values_survive_kernels),
		cmocka_unit_test(test_fill_kernel),
		cmocka_unit_test(test_arange),
		cmocka_unit_test(test_halves_are_rounded),
		cmocka_unit_test(test_comparisons),
		cmocka_unit_test(test_scalars_of_comparisons_are_aligned),
		cmocka_unit_test(test_comparing_what_is_not_known),
		cmocka_unit_test(test_logic_of_masks),
		cmocka_unit_test(test_all_and_any),
		cmocka_unit_test(test_random_programs),
	};
	return cmocka_run_group_tests(tests, begin, NULL);
}
