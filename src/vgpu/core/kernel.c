/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of kernels and library work: checked, counted, timed; never run. The kernels themselves stand in kernels.c.
 */
#include "vgpu/core/state.h"
#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What libraries put on streams, by literal; and matrix products by shape. */
struct work_count {
	const char *what;
	uint64_t count;
};
static struct work_count works[64];
static size_t work_count;

struct product_count {
	struct tn_matmul product;
	uint64_t count;
};
static struct product_count *products;
static size_t product_count, product_capacity;
#define PRODUCTS_MAX 65536

/* ---- time ---- */

uint64_t
tn__time_of_bytes(uint64_t bytes)
{
	const struct tn_gpu_figures *gpu = tn__gpu(tn__current_device());
	double nanoseconds = gpu && gpu->memory_gbps > 0 ? (double)bytes / gpu->memory_gbps : 0;
	return TN_CLOCK_KERNEL_NS + (uint64_t)nanoseconds;
}

uint64_t
tn__time_of_flops(double flops, enum tn_math math)
{
	const struct tn_gpu_figures *gpu = tn__gpu(tn__current_device());
	if (!gpu)
		return TN_CLOCK_KERNEL_NS;
	double tera = tn__gpu_tflops(gpu, math);
	return TN_CLOCK_KERNEL_NS + (uint64_t)(tera > 0 ? flops / (tera * 1e3) : 0);
}

/* ---- launching ---- */

/* Limits of every compute capability since 3.0: CUDA programming guide, "Technical Specifications per Compute
 * Capability". */
static bool
shape_is_valid(const struct tn_launch *launch)
{
	uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
	uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
	return threads > 0 && threads <= 1024 && launch->block[2] <= 64 && blocks > 0 && launch->grid[0] <= INT32_MAX &&
	       launch->grid[1] <= 65535 && launch->grid[2] <= 65535;
}

static bool
shared_fits(const struct tn_kernel *kernel, uint64_t shared_bytes)
{
	if (shared_bytes == 0)
		return true;
	const struct tn_gpu_figures *gpu = tn__gpu(tn__current_device());
	uint64_t limit = kernel->max_dynamic_shared > 48 * 1024 ? (uint64_t)kernel->max_dynamic_shared : 48 * 1024;
	return shared_bytes <= limit && gpu && shared_bytes <= (uint64_t)gpu->shared_memory_optin_bytes;
}

/* What a kernel takes, for want of its code: the time of moving 16 bytes a thread. */
static uint64_t
duration_of(const struct tn_launch *launch)
{
	uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
	return tn__time_of_bytes(blocks * launch->block[0] * launch->block[1] * launch->block[2] * 16);
}

static int
launch_locked(struct tn_kernel *kernel, const struct tn_launch *launch)
{
	if (!kernel)
		return 98; /* cudaErrorInvalidDeviceFunction */
	if (!shape_is_valid(launch))
		return 9; /* cudaErrorInvalidConfiguration */
	if (!shared_fits(kernel, launch->shared_bytes))
		return TN_CUDA_INVALID_VALUE;
	struct tn_stream *stream = tn__stream_locked(launch->stream);
	if (!stream)
		return TN_CUDA_INVALID_HANDLE;
	uint64_t duration = duration_of(launch);
	struct tn_effort effort = tn__kernel_cost_of(kernel, launch);
	if (stream->capture)
		return tn__enqueue_locked(
			stream, &(struct tn_node_description){
						.kind = TN_NODE_KERNEL, .duration = duration, .kernel = kernel, .effort = effort });
	tn__run_locked(stream, duration, &effort);
	kernel->launches++;
	atomic_fetch_add_explicit(&tn__core.ledger->launches, 1, memory_order_relaxed);
	tn__values_launch(kernel, launch);
	return TN_CUDA_OK;
}

int
tn__kernel_launch(const void *key, const struct tn_launch *launch)
{
	tn__lock();
	struct tn_kernel *kernel = tn__kernel_find_locked(key);
	if (__builtin_expect(tn__pending_any(), 0) && kernel && tn__kernel_reads_values_locked(kernel)) {
		tn__unlock();
		tn__pending_settle_collectives();
		tn__lock();
	}
	int result = launch_locked(kernel, launch);
	tn__unlock();
	return result;
}

static void
count_work(const char *what)
{
	size_t i = 0;
	while (i < work_count && strcmp(works[i].what, what) != 0)
		i++;
	if (i == sizeof(works) / sizeof(*works))
		return;
	if (i == work_count)
		works[work_count++].what = what;
	works[i].count++;
}

tn_status
tn__work(uintptr_t stream, uint64_t nanoseconds, const char *what)
{
	const struct tn_effort unknown = { .kind = TN_EFFORT_KERNEL, .math = TN_MATH_FP32 };
	return tn__work_effort(stream, nanoseconds, what, &unknown);
}

static void
forget_written(const char *what, const struct tn_written *written)
{
	bool seen = written && written->count > 0;
	for (size_t i = 0; seen && i < written->count; i++)
		seen = tn__on_device(written->addresses[i]);
	if (seen) {
		if (written->bytes)
			tn__values_forget_range(written->addresses[0], written->bytes);
		tn__values_forget_reached(written->addresses, written->count);
	} else if (strcmp(what, "nccl") == 0) { /* writes what ranks give each other, of any type */
		tn__values_forget();
	} else {
		tn__values_forget_reals();
	}
}

tn_status
tn__work_effort(uintptr_t stream, uint64_t nanoseconds, const char *what, const struct tn_effort *effort)
{
	return tn__work_written(stream, nanoseconds, what, effort, NULL);
}

tn_status
tn__work_written(uintptr_t stream_handle, uint64_t nanoseconds, const char *what, const struct tn_effort *effort,
                 const struct tn_written *written)
{
	if (tn__enter() != TN_CUDA_OK)
		return TN_STATE;
	tn__lock();
	struct tn_stream *stream = tn__stream_locked(stream_handle);
	if (stream) {
		count_work(what);
		if (!stream->capture)
			forget_written(what, written);
		tn__enqueue_locked(stream, &(struct tn_node_description){
									   .kind = TN_NODE_KERNEL, .duration = nanoseconds, .effort = *effort });
	}
	tn__unlock();
	return stream ? TN_OK : TN_INVALID;
}

static bool
same_product(const struct tn_matmul *a, const struct tn_matmul *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k && a->batch == b->batch && a->a_type == b->a_type &&
	       a->b_type == b->b_type && a->c_type == b->c_type && a->compute_type == b->compute_type &&
	       strcmp(a->library, b->library) == 0;
}

/* A network has some dozens of shapes, and the same come again in the same order: the search starts behind the last. */
static void
count_product(const struct tn_matmul *product)
{
	static size_t last;
	for (size_t step = 0; step < product_count; step++) {
		size_t i = (last + 1 + step) % product_count;
		if (same_product(&products[i].product, product)) {
			products[i].count++;
			last = i;
			return;
		}
	}
	if (!tn__array_room(&products, &product_capacity, product_count + 1, sizeof(*products), PRODUCTS_MAX))
		return;
	last = product_count;
	products[product_count++] = (struct product_count){ .product = *product, .count = 1 };
}

/* Bytes of an element of a cudaDataType_t; of types that PyTorch never multiplies, a guess. */
static double
bytes_of_type(int type)
{
	static const unsigned char bytes[] = {
		[0] = 4, [1] = 8, [2] = 2, [3] = 1, [4] = 8, [5] = 16, [10] = 4, [14] = 2, [28] = 1, [29] = 1
	}; /* the last two: 8-bit floating point */
	bool known = type >= 0 && (size_t)type < sizeof(bytes) && bytes[type] > 0;
	return known ? bytes[type] : 2;
}

bool
tn__matmul_aligned(int type, int64_t lead)
{
	return (uint64_t)((double)lead * bytes_of_type(type)) % 16 == 0;
}

/* On tensor cores, a product of unaligned matrices takes longer (NVIDIA, "Matrix Multiplication Background User's Guide":
 * performance is better where sizes are multiples of 16 bytes). How much is not published as one figure; twice decides
 * as an H200 did where programs ask: Inductor pads the 50,257 words of GPT-2 when that is faster by a tenth, and a copy of
 * the padded weights and results is what it costs in memory (bench/results/real_card.csv, gpt2-medium compiled). */
static uint64_t
time_of(const struct tn_matmul *product, double flops, enum tn_math math)
{
	bool slower = product->unaligned && (math == TN_MATH_HALF || math == TN_MATH_TF32);
	return tn__time_of_flops(slower ? 2 * flops : flops, math);
}

static struct tn_effort
effort_of(const struct tn_matmul *product, enum tn_math math)
{
	double m = (double)product->m, n = (double)product->n, k = (double)product->k, batch = (double)product->batch;
	return (struct tn_effort){ .kind = TN_EFFORT_KERNEL,
		                       .math = math,
		                       .flops = 2.0 * m * n * k * batch,
		                       .bytes = batch * (m * k * bytes_of_type(product->a_type) +
		                                         k * n * bytes_of_type(product->b_type) +
		                                         m * n * bytes_of_type(product->c_type)) };
}

tn_status
tn__work_matmul(uintptr_t stream, const struct tn_matmul *product, enum tn_math math)
{
	struct tn_effort effort = effort_of(product, math);
	uint64_t result = (uint64_t)(uintptr_t)product->result;
	double bytes = (double)product->result_elements * bytes_of_type(product->c_type);
	const struct tn_written written = { &result, 1, bytes > 0 ? (uint64_t)bytes : 0 };
	tn_status status = tn__work_written(stream, time_of(product, effort.flops, math), product->library, &effort,
	                                    result ? &written : NULL);
	if (status == TN_OK) {
		tn__lock();
		count_product(product);
		tn__unlock();
	}
	return status;
}

int
tn__occupancy(int block_threads, uint64_t shared_bytes)
{
	const struct tn_gpu_figures *gpu = tn__gpu(tn__current_device());
	if (!gpu || block_threads <= 0 || block_threads > 1024)
		return 0;
	int warps = (block_threads + 31) / 32;
	int blocks = gpu->max_threads_per_sm / (warps * 32);
	if (blocks > gpu->max_blocks_per_sm)
		blocks = gpu->max_blocks_per_sm;
	if (shared_bytes > 0) {
		/* each block also costs 1 KiB that the system reserves (compute capability 8.0 and later) */
		uint64_t per_block = shared_bytes + 1024;
		uint64_t per_sm = (uint64_t)gpu->shared_memory_optin_bytes + 1024;
		uint64_t by_shared = per_sm / per_block;
		if (by_shared < (uint64_t)blocks)
			blocks = (int)by_shared;
	}
	return blocks;
}

/* ---- what ran ---- */

int
tn_vgpu_kernels_write(const char *path)
{
	FILE *file = fopen(path, "we");
	if (!file)
		return errno;
	fputs("kind\tcount\tname\tm\tn\tk\tbatch\ta_type\tb_type\tc_type\tcompute_type\n", file);
	tn__lock();
	const struct tn_kernel *kernel;
	for (size_t i = 0; (kernel = tn__kernel_at_locked(i)) != NULL; i++)
		if (kernel->launches)
			fprintf(file, "kernel\t%llu\t%s\n", (unsigned long long)kernel->launches, kernel->name);
	for (size_t i = 0; i < work_count; i++)
		fprintf(file, "library\t%llu\t%s\n", (unsigned long long)works[i].count, works[i].what);
	for (size_t i = 0; i < product_count; i++) {
		const struct tn_matmul *p = &products[i].product;
		fprintf(file, "matmul\t%llu\t%s\t%lld\t%lld\t%lld\t%lld\t%d\t%d\t%d\t%d\n",
		        (unsigned long long)products[i].count, p->library, (long long)p->m, (long long)p->n, (long long)p->k,
		        (long long)p->batch, p->a_type, p->b_type, p->c_type, p->compute_type);
	}
	tn__unlock();
	return fclose(file) == 0 ? 0 : errno;
}
