/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step is counted to compute and move: products, copies, kernels by their names as PyTorch's wheels have them, and
 * graphs. On the default card, in private memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "vgpu/core/runtime.h"

#define OK(call) assert_int_equal((call), TN_CUDA_OK)

struct row {
	int step, bin;
	char what[16];
	double count, flops, bytes;
};

/* The row of the written file for a step and a name, summed over bins. */
static struct row
counted(int step, const char *what)
{
	char path[] = "/tmp/test_work_XXXXXX", line[256];
	struct row read, sum = { 0 };
	int handle = mkstemp(path);
	assert_true(handle >= 0);
	assert_int_equal(tn_vgpu_work_write(path), 0);
	FILE *file = fdopen(handle, "r");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%d\t%15s\t%d\t%lf\t%lf\t%lf", &read.step, read.what, &read.bin, &read.count, &read.flops,
		           &read.bytes) == 6 &&
		    read.step == step && strcmp(read.what, what) == 0) {
			sum.bin = read.bin;
			sum.count += read.count;
			sum.flops += read.flops;
			sum.bytes += read.bytes;
		}
	fclose(file);
	unlink(path);
	return sum;
}

static int
begin(void **state)
{
	OK(tn__enter());
	tn_vgpu_work_step(1); /* forgets what was there */
	return 0;
}

static void
launch(const char *name, uint32_t blocks_x, uint32_t blocks_y, uint32_t threads, void **arguments)
{
	struct tn_kernel *kernel;
	OK(tn__kernel_register(NULL, name, true, &kernel));
	OK(tn__kernel_launch(
		kernel,
		&(struct tn_launch){ .grid = { blocks_x, blocks_y, 1 }, .block = { threads, 1, 1 }, .arguments = arguments }));
}

static void
test_a_product_counts_its_operations_and_matrices(void **state)
{
	const struct tn_matmul product = { .m = 100,
		                               .n = 20,
		                               .k = 3,
		                               .batch = 2,
		                               .a_type = 14,
		                               .b_type = 14,
		                               .c_type = 0,
		                               .compute_type = 68,
		                               .library = "cublas" };
	assert_int_equal(tn__work_matmul(0, &product, TN_MATH_HALF), TN_OK);
	tn_vgpu_work_step(2);
	struct row row = counted(2, "half");
	assert_true(row.count == 1 && row.flops == 2.0 * 100 * 20 * 3 * 2);
	assert_true(row.bytes == 2 * (100 * 3 * 2 + 3 * 20 * 2 + 100 * 20 * 4));
	assert_true(counted(2, "launches").count == 1);
}

static void
test_elementwise_kernels_say_their_bytes(void **state)
{
	int32_t count = 1000;
	uint64_t addresses[3] = { 0 }, functor = 0; /* of no device: nothing is followed */
	void *arguments[] = { &count, &functor, addresses };
	launch("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_", 4, 1,
	       128, arguments);
	tn_vgpu_work_step(2);
	assert_true(counted(2, "fp32").bytes == 1000 * 3 * 4);
	launch(
		"_ZN2at6native29vectorized_elementwise_kernelILi8EZNS0_10gelu_kernelN3c108BFloat16EESt5arrayIPcLm2EEEEviT0_T1_",
		4, 1, 128, arguments);
	tn_vgpu_work_step(3);
	assert_true(counted(3, "fp32").bytes == 1000 * 2 * 2 && counted(3, "guessed").count == 0);
}

static void
test_rows_and_lists(void **state)
{
	int32_t width = 768;
	void *arguments[] = { &width, NULL, NULL };
	launch("_ZN2at6native51_GLOBAL__N__x28vectorized_layer_norm_kernelIffLb0EEEviT0_PKT_", 50, 1, 128, arguments);
	tn_vgpu_work_step(2);
	assert_true(counted(2, "fp32").bytes == 768 * 50 * 2 * 4);
	launch("_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_28FusedOptimizerTensorListMetadataILi4EEE"
	       "NS1_20FusedAdamMathFunctorIfLi4E",
	       10, 1, 512, arguments);
	tn_vgpu_work_step(3);
	assert_true(counted(3, "fp32").bytes == 10.0 * 65536 * 7 * 4);
}

static void
test_what_is_not_known_is_a_guess(void **state)
{
	int32_t nonsense = -5;
	uint64_t addresses[3] = { 0 }, functor = 0; /* of no device: nothing is followed */
	void *arguments[] = { &nonsense, &functor, addresses };
	launch("a_kernel_of_somebody", 10, 2, 64, NULL);
	launch("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_", 10,
	       2, 64, arguments);
	tn_vgpu_work_step(2);
	assert_true(counted(2, "guessed").count == 2 && counted(2, "guessed").bytes == 2 * 10 * 2 * 64 * 16);
}

static void
test_attention_follows_from_its_grid(void **state)
{
	void *arguments[] = { NULL };
	launch(
		"_ZN13pytorch_flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi64ELi128ELi128ELi4ELb0ELb0EN7cutlass10bfloat16_tE"
		"19Flash_kernel_traitsILi64ELi128ELi128ELi4ES3_EEELb0ELb1ELb0E",
		4, 24, 128, arguments);
	tn_vgpu_work_step(2);
	double flops = 4.0 * 24 * 512 * 512 * 64 / 2; /* causal */
	assert_true(counted(2, "half").flops == flops);
	launch("_ZN13pytorch_flash44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI", 4, 24, 256, arguments);
	tn_vgpu_work_step(3);
	assert_true(counted(3, "half").flops == 2.5 * flops);
	launch("_ZN23fmha_cutlassF_f32_aligned_64x64_rf_sm80E", 8, 12, 128, arguments);
	tn_vgpu_work_step(4);
	assert_true(counted(4, "fp32").flops == 4.0 * 12 * 512 * 512 * 64);
}

/* As a net with a text does it: long sequences, then short keys; the backward pass goes the other way round. */
static void
test_each_backward_pass_of_attention_is_that_of_its_forward(void **state)
{
	static const char name[] = "_ZN23fmha_cutlassF_f32_aligned_64x64_rf_sm80E";
	struct {
		void *pointers[11];
		float scale;
		int32_t head, values, queries, keys, rest[32];
	} own = { .scale = 1, .head = 40, .values = 40, .queries = 500, .keys = 500 }, text = own;
	text.keys = 77;
	void *of_own[] = { &own }, *of_text[] = { &text };
	launch(name, 8, 12, 128, of_own);
	launch(name, 8, 12, 128, of_text);
	tn_vgpu_work_step(2);
	double long_flops = 4.0 * 12 * 500 * 500 * 40, short_flops = 4.0 * 12 * 500 * 77 * 40;
	assert_true(counted(2, "fp32").flops == long_flops + short_flops);
	launch("_ZN23fmha_cutlassB_f32_aligned_64x64_k64_sm80E", 1, 12, 128, of_text);
	tn_vgpu_work_step(3);
	assert_true(counted(3, "fp32").flops == 2.5 * short_flops);
	launch("_ZN23fmha_cutlassB_f32_aligned_64x64_k64_sm80E", 1, 12, 128, of_own);
	tn_vgpu_work_step(4);
	assert_true(counted(4, "fp32").flops == 2.5 * long_flops);
}

static void
test_copies_go_where_they_go(void **state)
{
	static char host[4096];
	uint64_t device;
	OK(tn__malloc(1 << 20, &device));
	OK(tn__copy(device, (uintptr_t)host, 4096, 0, true));
	OK(tn__copy((uintptr_t)host, device, 1024, 0, true));
	OK(tn__copy(device, device + 8192, 512, 0, true));
	OK(tn__set(device, 0, 1, 256, 0, true));
	tn_vgpu_work_left_out(10, 20, 30);
	tn_vgpu_work_step(2);
	assert_true(counted(2, "to_device").bytes == 4096 + 10 && counted(2, "to_host").bytes == 1024 + 20);
	assert_true(counted(2, "host").bytes == 30);
	assert_true(counted(2, "fp32").bytes == 2 * 512 + 256);
	OK(tn__free(device));
}

static void
test_a_graph_counts_each_time_that_it_is_launched(void **state)
{
	const struct tn_matmul product = { .m = 10, .n = 10, .k = 10, .batch = 1, .compute_type = 68, .library = "cublas" };
	uintptr_t stream, graph, executable;
	OK(tn__stream_create(1, 0, &stream));
	OK(tn__capture_begin(stream, TN_CAPTURE_RELAXED));
	assert_int_equal(tn__work_matmul(stream, &product, TN_MATH_FP32), TN_OK);
	assert_int_equal(tn__work_matmul(stream, &product, TN_MATH_FP32), TN_OK);
	OK(tn__capture_end(stream, &graph));
	tn_vgpu_work_step(2);
	assert_true(counted(2, "fp32").count == 0); /* nothing ran */
	OK(tn__graph_instantiate(graph, &executable));
	OK(tn__graph_launch(executable, stream));
	OK(tn__graph_launch(executable, stream));
	tn_vgpu_work_step(3);
	assert_true(counted(3, "fp32").flops == 4 * 2000 && counted(3, "launches").count == 2);
	OK(tn__graph_exec_destroy(executable));
	OK(tn__graph_destroy(graph));
	OK(tn__stream_destroy(stream));
}

static void
test_steps_are_kept_from_the_first_and_begin_again(void **state)
{
	for (uint64_t step = 2; step <= TN_WORK_STEPS + 5; step++) {
		launch("a_kernel_of_somebody", 1, 1, 32, NULL);
		tn_vgpu_work_step(step);
	}
	assert_true(counted(TN_WORK_STEPS, "guessed").count == 1 && counted(TN_WORK_STEPS + 1, "guessed").count == 0);
	launch("a_kernel_of_somebody", 1, 1, 32, NULL);
	tn_vgpu_work_step(1);
	assert_true(counted(1, "guessed").count == 1 && counted(2, "guessed").count == 0);
	assert_int_not_equal(tn_vgpu_work_write("/nonexistent/folder/file"), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_product_counts_its_operations_and_matrices, begin),
		cmocka_unit_test_setup(test_elementwise_kernels_say_their_bytes, begin),
		cmocka_unit_test_setup(test_rows_and_lists, begin),
		cmocka_unit_test_setup(test_what_is_not_known_is_a_guess, begin),
		cmocka_unit_test_setup(test_attention_follows_from_its_grid, begin),
		cmocka_unit_test_setup(test_each_backward_pass_of_attention_is_that_of_its_forward, begin),
		cmocka_unit_test_setup(test_copies_go_where_they_go, begin),
		cmocka_unit_test_setup(test_a_graph_counts_each_time_that_it_is_launched, begin),
		cmocka_unit_test_setup(test_steps_are_kept_from_the_first_and_begin_again, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
