/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel that nobody knows makes the core forget: what its arguments point at, whose sizes its code tells, and no more;
 * and that a mask keeps its count over such a kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_code_writer.h"
#include "test_no_run.h"
#include "vgpu/core/runtime.h"

#define OK(call) assert_int_equal((call), TN_CUDA_OK)
#define COUNT_OF_MASK                                                                                                   \
	"_ZN14at_cuda_detail3cub6detail6reduce28DeviceReduceSingleTileKernelIN2at6native43_GLOBAL__N__e625f313_10_Nonzero_" \
	"cu_cba1aaa09NonZeroOpIbEEEEvT0_T1_T2_T3_T4_T6_"
#define MASK_BYTES 64

static int
begin(void **state)
{
	OK(tn__enter());
	return 0;
}

static struct tn_kernel *
kernel_of(const char *name)
{
	struct tn_kernel *kernel;
	OK(tn__kernel_register(NULL, name, false, &kernel));
	return kernel;
}

static void
launch(struct tn_kernel *kernel, void **arguments)
{
	OK(tn__kernel_launch(kernel,
	                     &(struct tn_launch){ .grid = { 1, 1, 1 }, .block = { 128, 1, 1 }, .arguments = arguments }));
}

/* Gives a kernel code that says which sizes its parameters have. */
static void
give_code(struct tn_kernel *kernel, const uint16_t *sizes, unsigned count)
{
	struct cubin cubin;
	cubin_begin(&cubin);
	cubin_kernel(&cubin, kernel->name, sizes, count);
	cubin_end(&cubin);
	struct tn_code *code = tn__module_code_open(cubin.bytes);
	assert_non_null(code);
	tn__kernel_learn(kernel, code);
	tn__module_code_close(code);
}

static void
put(uint64_t address, uint32_t value)
{
	OK(tn__copy(address, (uintptr_t)&value, sizeof(value), 0, false));
}

static bool
is_known(uint64_t address)
{
	return tn__values_known(address, NULL, sizeof(uint32_t));
}

/* A structure of 16 bytes, and what happens to lie behind it on the stack. */
struct frame {
	uint64_t structure[2], behind;
};

static void
test_a_structure_ends_where_its_code_says(void **state)
{
	static const uint16_t size = sizeof(uint64_t[2]);
	uint64_t device;
	OK(tn__malloc(1 << 21, &device));
	struct frame frame = { { 0, device }, device + 4096 };
	void *arguments[] = { &frame };
	put(device, 7);
	put(device + 4096, 7);
	struct tn_kernel *kernel = kernel_of("_Z4sizeN1a5ThingE");
	give_code(kernel, &size, 1);
	launch(kernel, arguments);
	assert_false(is_known(device));
	assert_true(is_known(device + 4096));
	launch(kernel_of("_Z4openN1a5ThingE"), arguments); /* without code: anything behind it may belong to it */
	assert_false(is_known(device + 4096));
	OK(tn__free(device));
}

/* As Triton's: the name says nothing, the code how large each parameter is. Arguments may lie anywhere. */
static void
test_a_kernel_without_signature(void **state)
{
	static const uint16_t sizes[] = { 8, 4, 8 };
	uint64_t device, *words = malloc(3 * sizeof(*words));
	OK(tn__malloc(1 << 21, &device));
	words[0] = device;
	words[1] = device + 4096; /* a number of 4 bytes, whose other half is not looked at */
	words[2] = 3;
	void *arguments[] = { &words[0], &words[1], &words[2] };
	put(device, 7);
	put(device + 4096, 7);
	struct tn_kernel *kernel = kernel_of("triton_poi_fused_add_0");
	give_code(kernel, sizes, 3);
	launch(kernel, arguments);
	assert_false(is_known(device));
	assert_true(is_known(device + 4096));
	launch(kernel_of("triton_poi_fused_add_1"), arguments);
	assert_false(is_known(device + 4096));
	free(words);
	OK(tn__free(device));
}

/* Code that knows another number of parameters than the name is another kernel's: not believed. */
static void
test_code_that_disagrees_with_the_name(void **state)
{
	static const uint16_t sizes[] = { 16, 8 };
	uint64_t device;
	OK(tn__malloc(1 << 21, &device));
	struct frame frame = { { 0, 0 }, device };
	void *arguments[] = { &frame, &frame };
	put(device, 7);
	struct tn_kernel *kernel = kernel_of("_Z8disagreeN1a5ThingE");
	give_code(kernel, sizes, 2);
	launch(kernel, arguments);
	assert_false(is_known(device));
	OK(tn__free(device));
}

/* ---- counts of masks ---- */

static int32_t
count_of(uint64_t mask, uint64_t result)
{
	struct {
		uint64_t mask, unused;
	} iterator = { mask, 0 };
	int32_t bytes = MASK_BYTES, out = -1;
	void *arguments[] = { &iterator, &result, &bytes, &bytes, &bytes, &bytes };
	launch(kernel_of(COUNT_OF_MASK), arguments);
	OK(tn__copy((uintptr_t)&out, result, sizeof(out), 0, false));
	return out;
}

static void
put_mask(uint64_t mask, int ones)
{
	unsigned char bytes[MASK_BYTES] = { 0 };
	memset(bytes, 1, (size_t)ones);
	OK(tn__copy(mask, (uintptr_t)bytes, sizeof(bytes), 0, false));
}

static void
test_a_count_outlives_what_forgets_the_mask(void **state)
{
	uint64_t device;
	OK(tn__malloc(1 << 21, &device));
	put_mask(device, 5);
	assert_int_equal(count_of(device, device + 4096), 5);
	launch(kernel_of("who_knows"), NULL); /* may write anything */
	assert_int_equal(count_of(device, device + 4096), 5);
	put_mask(device, 9); /* another mask in the same memory */
	assert_int_equal(count_of(device, device + 4096), 9);
	/* a mask that was never counted may be full */
	launch(kernel_of("who_knows"), NULL);
	assert_int_equal(count_of(device + 8192, device + 4096), MASK_BYTES);
	OK(tn__free(device));
}

static void
test_a_count_ends_with_a_write_to_the_mask(void **state)
{
	uint64_t device;
	OK(tn__malloc(1 << 21, &device));
	void *arguments[] = { &device };
	put_mask(device, 5);
	assert_int_equal(count_of(device, device + 4096), 5);
	launch(kernel_of("_Z5writePb"), arguments);
	assert_int_equal(count_of(device, device + 4096), MASK_BYTES);
	put_mask(device, 5);
	assert_int_equal(count_of(device, device + 4096), 5);
	launch(kernel_of("_Z4readPKb"), arguments);
	assert_int_equal(count_of(device, device + 4096), 5);
	OK(tn__free(device));
	OK(tn__malloc(1 << 21, &device));
	assert_int_equal(count_of(device, device + 4096), MASK_BYTES); /* the same address again */
	OK(tn__free(device));
}

int
main(void)
{
	leave_run();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_structure_ends_where_its_code_says),
		cmocka_unit_test(test_a_kernel_without_signature),
		cmocka_unit_test(test_code_that_disagrees_with_the_name),
		cmocka_unit_test(test_a_count_outlives_what_forgets_the_mask),
		cmocka_unit_test(test_a_count_ends_with_a_write_to_the_mask),
	};
	return cmocka_run_group_tests(tests, begin, NULL);
}
