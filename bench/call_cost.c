/* SPDX-License-Identifier: Apache-2.0
 *
 * What one call of the virtual GPU costs: a kernel launch, a pair of cudaMalloc and cudaFree, and an all-reduce of 4 MiB, alone and
 * of two processes that call it at the same time, in nanoseconds. The libraries are opened at run time, as PyTorch's own
 * loader would, so nothing here is linked against them.
 *
 *     call_cost LIBCUDART LIBNCCL [ROUNDS]
 *
 * Prints the best of ROUNDS rounds (default 9): what the call costs when nothing disturbs it; first an uncontended lock,
 * to compare machines, or one machine on two days, by.
 * The prototypes are those of NVIDIA's documented runtime API, with its types written out.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct nccl_id { /* ncclUniqueId */
	char bytes[128];
};

struct dim {
	unsigned x, y, z;
};

static int (*cuda_malloc)(void **, size_t);
static int (*cuda_free)(void *);
static int (*cuda_launch)(const void *, struct dim, struct dim, void **, size_t, void *);
static int (*cuda_synchronize)(void);
static int (*cuda_set_device)(int);
static int (*nccl_get_id)(struct nccl_id *);
static int (*nccl_init)(void **, int, struct nccl_id, int);
static int (*nccl_all_reduce)(const void *, void *, size_t, int, int, void *, void *);
static int (*nccl_destroy)(void *);
static void *communicator, *payload;
static void **(*register_fat_binary)(void *);
static void (*register_function)(void **, const char *, char *, const char *, int, void *, void *, void *, void *,
                                 int *);

/* The host side of a kernel: nvcc makes such a function for each, and its address is the kernel's name. */
static void
a_kernel(void)
{
}

static int64_t
nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *
find(void *library, const char *name)
{
	void *address = dlsym(library, name);

	if (!address) {
		fprintf(stderr, "call_cost: %s: %s\n", name, dlerror());
		exit(1);
	}
	return address;
}

static void
require(int status, const char *what)
{
	if (status != 0) {
		fprintf(stderr, "call_cost: %s failed with %d\n", what, status);
		exit(1);
	}
}

static void *
open_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!library) {
		fprintf(stderr, "call_cost: %s\n", dlerror());
		exit(1);
	}
	return library;
}

static void
open_nccl(const char *path)
{
	void *library = open_library(path);

	*(void **)&nccl_get_id = find(library, "ncclGetUniqueId");
	*(void **)&nccl_init = find(library, "ncclCommInitRank");
	*(void **)&nccl_all_reduce = find(library, "ncclAllReduce");
	*(void **)&nccl_destroy = find(library, "ncclCommDestroy");
}

static void
open_runtime(const char *path)
{
	/* What nvcc embeds: a wrapper with a magic number around the (here empty) device code. */
	static struct {
		int magic, version;
		const void *data;
		void *unused;
	} wrapper = { 0x466243b1, 1, &wrapper, NULL };
	void *library = open_library(path);
	void **handle;

	*(void **)&cuda_malloc = find(library, "cudaMalloc");
	*(void **)&cuda_free = find(library, "cudaFree");
	*(void **)&cuda_launch = find(library, "cudaLaunchKernel");
	*(void **)&cuda_synchronize = find(library, "cudaDeviceSynchronize");
	*(void **)&cuda_set_device = find(library, "cudaSetDevice");
	*(void **)&register_fat_binary = find(library, "__cudaRegisterFatBinary");
	*(void **)&register_function = find(library, "__cudaRegisterFunction");
	handle = register_fat_binary(&wrapper);
	register_function(handle, (const char *)a_kernel, "a_kernel", "a_kernel", -1, NULL, NULL, NULL, NULL, NULL);
}

/* What a machine that is slower today is slower by: an uncontended lock, taken and given back. */
static double
lock_round(int calls)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int64_t start = nanoseconds();

	for (int i = 0; i < calls; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	return (double)(nanoseconds() - start) / calls;
}

static double
launch_round(int calls)
{
	struct dim grid = { 64, 1, 1 }, block = { 256, 1, 1 };
	int argument = 1;
	void *arguments[] = { &argument };
	int64_t start = nanoseconds();

	for (int i = 0; i < calls; i++)
		require(cuda_launch((const void *)a_kernel, grid, block, arguments, 0, NULL), "cudaLaunchKernel");
	return (double)(nanoseconds() - start) / calls;
}

static double
malloc_round(int calls)
{
	int64_t start = nanoseconds();

	for (int i = 0; i < calls; i++) {
		void *address;

		require(cuda_malloc(&address, 20 << 20), "cudaMalloc");
		require(cuda_free(address), "cudaFree");
	}
	return (double)(nanoseconds() - start) / calls;
}

/* The same pair while a thousand other allocations live, as in a program that trains. */
static double
crowded_malloc_round(int calls)
{
	enum { CROWD = 1000 };
	static void *crowd[CROWD];
	double answer;

	for (int i = 0; i < CROWD; i++)
		require(cuda_malloc(&crowd[i], 2 << 20), "cudaMalloc");
	answer = malloc_round(calls);
	for (int i = 0; i < CROWD; i++)
		require(cuda_free(crowd[i]), "cudaFree");
	return answer;
}

enum {
	COLLECTIVES = 900,
	FLOATS = 1 << 20
}; /* fewer than a rank may be ahead of another, which would wait otherwise */

static double
collective_round(int calls)
{
	const int float32 = 7, sum = 0;
	int64_t start = nanoseconds();

	for (int i = 0; i < calls; i++)
		require(nccl_all_reduce(payload, payload, FLOATS, float32, sum, communicator, NULL), "ncclAllReduce");
	return (double)(nanoseconds() - start) / calls;
}

static double
best_of(double (*round)(int), int rounds, int calls)
{
	double least = round(calls / 100); /* warms up, and counts only if nothing is better */

	for (int i = 0; i < rounds; i++) {
		double answer = round(calls);

		require(cuda_synchronize(), "cudaDeviceSynchronize");
		least = answer < least ? answer : least;
	}
	return least;
}

static double
best(double (*round)(int), int rounds)
{
	return best_of(round, rounds, 100000);
}

static double
best_collective(int rank, int ranks, struct nccl_id id, int rounds)
{
	require(nccl_init(&communicator, ranks, id, rank), "ncclCommInitRank");
	double answer = best_of(collective_round, 100 * rounds, COLLECTIVES);
	require(nccl_destroy(communicator), "ncclCommDestroy");
	return answer;
}

int
main(int count, char **words)
{
	int rounds = count > 3 ? atoi(words[3]) : 9, ids[2];
	struct nccl_id alone, together;

	if (count < 3) {
		fprintf(stderr, "usage: call_cost LIBCUDART LIBNCCL [ROUNDS]\n");
		return 2;
	}
	require(pipe(ids), "pipe");
	int rank = fork() == 0; /* the second rank waits for the id of its communicator with the first */
	open_runtime(words[1]);
	open_nccl(words[2]);
	require(cuda_set_device(rank), "cudaSetDevice");
	require(cuda_malloc(&payload, FLOATS * sizeof(float)), "cudaMalloc");
	if (rank == 1) {
		require(read(ids[0], &together, sizeof(together)) != (ssize_t)sizeof(together), "read");
		(void)best_collective(1, 2, together, rounds);
		return 0;
	}
	printf("lock_pair,%.1f\n", best(lock_round, rounds));
	printf("launch,%.1f\n", best(launch_round, rounds));
	printf("malloc_free_pair,%.1f\n", best(malloc_round, rounds));
	printf("malloc_free_pair_among_1000,%.1f\n", best(crowded_malloc_round, rounds));
	require(nccl_get_id(&alone) | nccl_get_id(&together), "ncclGetUniqueId");
	printf("collective_of_1_rank,%.1f\n", best_collective(0, 1, alone, rounds));
	require(write(ids[1], &together, sizeof(together)) != (ssize_t)sizeof(together), "write");
	printf("collective_of_2_ranks,%.1f\n", best_collective(0, 2, together, rounds));
	return 0;
}
