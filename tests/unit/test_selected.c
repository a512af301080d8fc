/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches whose results programs read next (selected.c): what is exact, what is likely, and that what is likely agrees
 * with itself. Kernels have the names of torch 2.11.0's, and the arguments that it gives them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_no_run.h"
#include "vgpu/core/dtype.h"
#include "vgpu/core/likely.h"
#include "vgpu/core/runtime.h"

#define OK(call) assert_int_equal((call), TN_CUDA_OK)

#define LOGIC(type, kernel, number, function)                                                           \
	"_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpI" type "NS0_14func_wrapper_tIbZZZNS0_" kernel \
	"ERNS_14TensorIteratorEENKUlvE_clEvENKUlvE" number "_clEvEUl" function "E_EEjbLi4ELi4EEEEEvT1_"
#define ANY_OF_MASK LOGIC("b", "14or_kernel_cuda", "10", "bb")
#define ANY_OF_I32 LOGIC("i", "14or_kernel_cuda", "1", "ii")
#define ALL_OF_I32 LOGIC("i", "15and_kernel_cuda", "1", "ii")
#define ANY_OF_I64 LOGIC("l", "14or_kernel_cuda", "2", "ll")
#define SUM_OF_I64                                                                                        \
	"_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIlNS0_14func_wrapper_tIlZNS0_11sum_functorIlllE" \
	"clERNS_14TensorIteratorEEUlllE_EEjlLi4ELi4EEEEEvT1_"

static struct tn_value_read last;

static void
observe(struct tn_value_read *read)
{
	last = *read;
}

static int
begin(void **state)
{
	OK(tn__enter());
	tn_vgpu_set_read_observer(observe);
	return 0;
}

static void
launch(const char *name, void **arguments)
{
	struct tn_kernel *kernel;
	OK(tn__kernel_register(NULL, name, false, &kernel));
	OK(tn__kernel_launch(kernel,
	                     &(struct tn_launch){ .grid = { 1, 1, 1 }, .block = { 128, 1, 1 }, .arguments = arguments }));
}

/* struct ReduceOp as PyTorch passes it, with an operator of one byte and a start of `width` bytes: the fields that matter. */
struct reduction {
	unsigned char bytes[1096];
};

static void
reduce(const char *name, uint64_t from, uint64_t to, int32_t inputs, int32_t outputs, int32_t width)
{
	struct reduction r = { { 0 } };
	const int32_t config[3] = { width, inputs, outputs };
	const uint64_t addresses[2] = { from, to };
	size_t at = width < 4 ? 4 : 2 * (size_t)width, source = (at + 972 + 7) & ~(size_t)7;
	void *arguments[] = { &r };
	memcpy(r.bytes + at, config, sizeof(config));
	memcpy(r.bytes + source, addresses, sizeof(addresses));
	launch(name, arguments);
}

static int
truth_at(uint64_t address)
{
	unsigned char byte = 9;
	last.bytes = 0;
	OK(tn__copy((uintptr_t)&byte, address, 1, 0, false));
	return byte;
}

/* As PyTorch asks a batched solver's reports: whether any is not zero, and then which. */
static void
test_any_of_numbers_agrees_with_the_numbers(void **state)
{
	uint64_t device;
	int32_t numbers[8];
	OK(tn__malloc(1 << 21, &device));
	assert_int_equal(tn__work(0, 10, "test"), TN_OK);
	reduce(ANY_OF_I32, device, device + 1024, 8, 1, 4);
	assert_int_equal(truth_at(device + 1024), 0);
	assert_int_equal(last.kind, TN_LIKELY_TRUTH);
	memset(numbers, 0x77, sizeof(numbers));
	OK(tn__copy((uintptr_t)numbers, device, sizeof(numbers), 0, false));
	for (int i = 0; i < 8; i++)
		assert_int_equal(numbers[i], 0);
	reduce(ALL_OF_I32, device, device + 1024, 8, 1, 4);
	assert_int_equal(truth_at(device + 1024), 1);
	/* what is taken to be 1 each is not zero */
	reduce(SUM_OF_I64, device, device + 2048, 4, 8, 8);
	reduce(ANY_OF_I64, device + 2048, device + 1024, 8, 1, 8);
	assert_int_equal(truth_at(device + 1024), 1);
	/* a mask is another matter: programs wait for any */
	reduce(ANY_OF_MASK, device + 4096, device + 1024, 8, 1, 1);
	assert_int_equal(truth_at(device + 1024), 1);
	OK(tn__free(device));
}

/* ---- masks of which so many are set at most ---- */

#define INDEX_PUT                                                                                                       \
	"_ZN2at6native24index_elementwise_kernelILi128ELi4EZNS0_16gpu_index_kernelIZNS0_21index_put_kernel_implINS0_"       \
	"10OpaqueTypeILi1EEEEEvRNS_14TensorIteratorEN3c108ArrayRefIlEESA_EUlPcPKclE_EEvRNS_18TensorIteratorBaseESA_SA_RKT_" \
	"bEUliE_EEvlT1_"
#define OR_OF_BYTES \
	"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13BinaryFunctorIhhhNS0_16BitwiseOrFunctorIhEEEESt5arrayIPcLm3EEEEviT0_T1_"
#define COUNT_NOT_ZERO                                                                                                  \
	"_ZN14at_cuda_detail3cub6detail6reduce28DeviceReduceSingleTileKernelINS2_10policy_hubIiyN4cuda3std3__44plusIvEEE"   \
	"10Policy1000EN6thrust45THRUST_300001_SM_750_800_860_900_1000_1200_NS18transform_iteratorIN2at6native43_GLOBAL__N_" \
	"_e625f313_10_Nonzero_cu_cba1aaa09NonZeroOpIhEEPKhNSD_11use_defaultESM_EEPiyS9_iiNS7_10__identityEEEvT0_T1_"
#define TOPK                                                                                                          \
	"_ZN2at6native6sbtopk10gatherTopKIfjLi2ELb0EEEvNS_4cuda6detail10TensorInfoIKT_T0_EES8_S8_bS8_S8_NS5_IS6_S8_EES8_" \
	"NS5_IlS8_EES8_PS6_"

/* mask[indices] = value, of `count` indices that are not known. */
static void
put_at_indices(uint64_t mask, uint64_t value, uint64_t indices, int64_t count, int64_t size)
{
	struct {
		int32_t dims;
		uint32_t sizes[25][3], strides[25][3];
		uint64_t result, input;
		int32_t indices;
		uint64_t index[25];
		int64_t index_sizes[25], index_strides[25];
	} closure = { .dims = 1, .result = mask, .input = value, .indices = 1 };
	void *arguments[] = { &count, &closure };
	closure.sizes[0][0] = (uint32_t)count;
	closure.strides[0][2] = 8;
	closure.index[0] = indices;
	closure.index_sizes[0] = size;
	closure.index_strides[0] = 1;
	launch(INDEX_PUT, arguments);
}

/* How many of a mask are not zero, as PyTorch counts them before it allocates. */
static int32_t
count_of(uint64_t mask, int32_t items, uint64_t result)
{
	int32_t count = -1;
	uint64_t input[2] = { mask, 0 };
	void *arguments[] = { input, &result, &items };
	launch(COUNT_NOT_ZERO, arguments);
	last = (struct tn_value_read){ .bytes = 0 };
	OK(tn__copy((uintptr_t)&count, result, sizeof(count), 0, false));
	return count;
}

static void
test_a_sampler_selects_what_it_draws(void **state)
{
	uint64_t device;
	int32_t items = 3000;
	uint64_t functor = 0;
	OK(tn__malloc(1 << 21, &device));
	uint64_t one = device, other = device + 4096, both = device + 8192, indices = device + 16384,
			 result = device + 65536;
	uint64_t masks[3] = { both, one, other };
	OK(tn__set(one, 0, 1, 3000, 0, false));
	OK(tn__set(other, 0, 1, 3000, 0, false));
	assert_int_equal(count_of(one, items, result), 0);
	assert_int_equal(last.bytes, 0); /* which is known */
	put_at_indices(one, device + 131072, indices, 128, items);
	put_at_indices(other, device + 131072, indices, 384, items);
	assert_int_equal(count_of(one, items, result), 128);
	assert_int_equal(last.kind, TN_LIKELY_COUNT);
	void *arguments[] = { &items, &functor, masks };
	launch(OR_OF_BYTES, arguments);
	assert_int_equal(count_of(both, items, result), 512);
	assert_int_equal(last.bound, 512);
	put_at_indices(one, device + 131072, indices, 100, items); /* some more */
	assert_int_equal(count_of(one, items, result), 228);
	/* what nobody has bounded is all there is */
	assert_int_equal(count_of(device + 262144, items, result), 3000);
	OK(tn__free(device));
}

static void
test_no_two_indices_of_topk_are_the_same(void **state)
{
	uint64_t device;
	uint32_t size = 50, k = 3, slices = 2, stride = 1;
	bool largest = true;
	int64_t back[6], one = -1;
	OK(tn__malloc(1 << 21, &device));
	uint64_t input = device, values = device + 4096, indices = device + 8192;
	void *arguments[] = { &input, &size, &k, &largest, &slices, &stride, &values, &stride, &indices, &stride, &values };
	launch(TOPK, arguments);
	OK(tn__copy((uintptr_t)back, indices, sizeof(back), 0, false));
	for (int i = 0; i < 6; i++)
		assert_int_equal(back[i], i % 3);
	OK(tn__copy((uintptr_t)&one, indices + 16, sizeof(one), 0, false));
	assert_int_equal(one, 2);
	assert_true(last.kind == TN_LIKELY_INDEX && last.offered[0] == 2);
	OK(tn__free(device));
}

/* A kernel that is not known by name forgets what its arguments point at, and nothing else of what was read. */
static void
test_what_a_kernel_cannot_write_stays(void **state)
{
	uint64_t device;
	int64_t count = 0;
	OK(tn__malloc(1 << 21, &device));
	uint64_t here = device, there = device + 1024, read = device + 2048;
	OK(tn__set(device + 4096, 0, 1, 3000, 0, false));
	put_at_indices(device + 4096, device + 65536, device + 131072, 300, 3000);
	reduce(SUM_OF_I64, device + 4096, here, 4, 1, 8);
	reduce(SUM_OF_I64, device + 4096, there, 4, 1, 8);
	void *arguments[] = { &there, &read };
	launch("_Z9somebodysPlPKf", arguments); /* somebodys(long *, float const *) */
	OK(tn__copy((uintptr_t)&count, here, sizeof(count), 0, false));
	assert_int_equal(count, 1);
	assert_int_equal(last.kind, TN_LIKELY_WHOLE);
	last.kind = -1;
	OK(tn__copy((uintptr_t)&count, there, sizeof(count), 0, false));
	assert_int_equal(last.kind, TN_LIKELY_NONE);
	/* matrix products write real numbers: a count stays; a name that says nothing forgets it */
	assert_int_equal(tn__work(0, 10, "cublas"), TN_OK);
	OK(tn__copy((uintptr_t)&count, here, sizeof(count), 0, false));
	assert_int_equal(last.kind, TN_LIKELY_WHOLE);
	launch("somebody_s", arguments);
	OK(tn__copy((uintptr_t)&count, here, sizeof(count), 0, false));
	assert_int_equal(last.kind, TN_LIKELY_NONE);
	OK(tn__free(device));
}

int
main(void)
{
	leave_run();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_of_numbers_agrees_with_the_numbers),
		cmocka_unit_test(test_a_sampler_selects_what_it_draws),
		cmocka_unit_test(test_no_two_indices_of_topk_are_the_same),
		cmocka_unit_test(test_what_a_kernel_cannot_write_stays),
	};
	return cmocka_run_group_tests(tests, begin, NULL);
}
