/* SPDX-License-Identifier: Apache-2.0
 *
 * The virtual GPU's core without a program: memory and its accounting, virtual memory management, the order of events on
 * the virtual clock, graphs, launches, notes and regions. It runs on the default card, in private memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vgpu/core/attributes.h"
#include "vgpu/core/memory_log.h"
#include "vgpu/core/runtime.h"

#define MIB (UINT64_C(1) << 20)
#define OK(call) assert_int_equal((call), TN_CUDA_OK)

static uint64_t
free_now(void)
{
	uint64_t free_bytes, total;
	tn__memory_info(0, &free_bytes, &total);
	return free_bytes;
}

static int
begin(void **state)
{
	OK(tn__enter());
	return 0;
}

/* ---- memory ---- */

static void
test_context_is_taken_once(void **state)
{
	const struct tn_gpu_figures *gpu = tn__gpu(0);
	OK(tn__enter());
	OK(tn__enter());
	assert_int_equal(free_now(), gpu->total_bytes - gpu->context_bytes);
	assert_null(tn__gpu(1));
}

static void
test_pages(void **state)
{
	uint64_t before = free_now(), a, b, c;
	OK(tn__malloc(2 * MIB + 1, &a));
	assert_int_equal(before - free_now(), 4 * MIB);
	OK(tn__malloc(100, &b)); /* small ones share a page */
	OK(tn__malloc(1000, &c));
	assert_int_equal(before - free_now(), 6 * MIB);
	assert_int_equal(b % 512, 0);
	assert_int_equal(c - b, 512);
	OK(tn__free(b));
	OK(tn__free(c));
	OK(tn__free(a));
	assert_int_equal(free_now(), before);
	assert_int_equal(tn__free(a), TN_CUDA_INVALID_VALUE); /* twice */
	OK(tn__free(0));
	OK(tn__malloc(0, &a));
	assert_int_equal(a, 0);
}

static void
test_full_to_the_last_page(void **state)
{
	uint64_t before = free_now(), address = 7, again;
	assert_int_equal(tn__malloc(before + 1, &address), TN_CUDA_OUT_OF_MEMORY);
	assert_int_equal(address, 7);
	uint64_t all = before / (2 * MIB) * (2 * MIB);
	OK(tn__malloc(all, &address));
	assert_int_equal(tn__malloc(2 * MIB, &again), TN_CUDA_OUT_OF_MEMORY);
	OK(tn__free(address));
	OK(tn__malloc(2 * MIB, &again));
	assert_int_equal(again, address); /* the lowest address again */
	OK(tn__free(again));
}

static void
test_pointers(void **state)
{
	struct tn_pointer_info info;
	uint64_t device;
	void *host;
	char ordinary[64];
	OK(tn__malloc(4 * MIB, &device));
	OK(tn__malloc_host(10000, &host));
	memset(host, 1, 10000); /* it is memory */
	tn__pointer_info(device + 5, &info);
	assert_int_equal(info.kind, TN_MEMORY_DEVICE);
	assert_int_equal(info.base, device);
	assert_int_equal(info.size, 4 * MIB);
	tn__pointer_info((uintptr_t)host + 9999, &info);
	assert_int_equal(info.kind, TN_MEMORY_HOST);
	tn__pointer_info((uintptr_t)ordinary, &info);
	assert_int_equal(info.kind, TN_MEMORY_UNKNOWN);
	OK(tn__register_host(ordinary, sizeof(ordinary)));
	assert_int_equal(tn__register_host(ordinary, 8), TN_CUDA_HOST_ALREADY_REGISTERED);
	tn__pointer_info((uintptr_t)ordinary, &info);
	assert_true(info.kind == TN_MEMORY_HOST && info.registered);
	OK(tn__unregister_host(ordinary));
	assert_int_equal(tn__unregister_host(ordinary), TN_CUDA_HOST_NOT_REGISTERED);
	OK(tn__free_host(host));
	OK(tn__free(device));
	tn__pointer_info(device, &info);
	assert_int_equal(info.kind, TN_MEMORY_UNKNOWN);
}

static void
test_virtual_memory(void **state)
{
	uint64_t before = free_now(), address;
	uintptr_t first, second, retained;
	OK(tn__vmm_reserve(64 * MIB, 0, 0, &address));
	assert_int_equal(free_now(), before); /* addresses cost nothing */
	assert_int_equal(tn__vmm_create(0, MIB, &first), TN_CUDA_INVALID_VALUE);
	OK(tn__vmm_create(0, 20 * MIB, &first));
	OK(tn__vmm_create(0, 20 * MIB, &second));
	assert_int_equal(before - free_now(), 40 * MIB);
	OK(tn__vmm_map(address, 20 * MIB, 0, first));
	assert_int_equal(tn__vmm_map(address + 2 * MIB, 20 * MIB, 0, second), TN_CUDA_INVALID_VALUE); /* overlaps */
	OK(tn__vmm_map(address + 20 * MIB, 20 * MIB, 0, second));
	assert_int_equal(tn__vmm_free(address, 64 * MIB), TN_CUDA_INVALID_VALUE); /* mapped */
	OK(tn__vmm_retain(address + 21 * MIB, &retained));
	assert_int_equal(retained, second);
	OK(tn__vmm_release(first));
	OK(tn__vmm_release(second));
	assert_int_equal(before - free_now(), 40 * MIB); /* mappings keep it */
	OK(tn__vmm_unmap(address, 40 * MIB));
	assert_int_equal(before - free_now(), 20 * MIB); /* one handle was retained */
	OK(tn__vmm_release(retained));
	assert_int_equal(free_now(), before);
	OK(tn__vmm_free(address, 64 * MIB));
	assert_int_equal(tn__vmm_unmap(address, 2 * MIB), TN_CUDA_INVALID_VALUE);
	assert_int_equal(tn__vmm_release(first), TN_CUDA_INVALID_VALUE);
}

/* ---- the clock ---- */

static void
long_work(uintptr_t stream, uint64_t milliseconds)
{
	assert_int_equal(tn__work(stream, milliseconds * 1000000, "test"), TN_OK);
}

static void
test_events_complete_in_order(void **state)
{
	uintptr_t stream, first, second;
	float milliseconds;
	OK(tn__stream_create(1, 0, &stream));
	OK(tn__event_create(0, &first));
	OK(tn__event_create(0, &second));
	OK(tn__event_query(first)); /* never recorded: done, as documented */
	OK(tn__event_record(first, stream));
	long_work(stream, 5);
	OK(tn__event_record(second, stream));
	assert_int_equal(tn__event_query(second), TN_CUDA_NOT_READY);
	assert_int_equal(tn__stream_query(stream), TN_CUDA_NOT_READY);
	OK(tn__event_query(first));
	OK(tn__event_synchronize(second));
	OK(tn__event_query(second));
	OK(tn__stream_query(stream));
	OK(tn__event_elapsed(first, second, &milliseconds));
	assert_true(milliseconds > 4.99f && milliseconds < 5.1f);
	OK(tn__event_destroy(first));
	OK(tn__event_destroy(second));
	OK(tn__stream_destroy(stream));
	assert_int_equal(tn__stream_query(stream), TN_CUDA_INVALID_HANDLE);
}

static void
test_polling_ends(void **state)
{
	uintptr_t stream, event;
	OK(tn__stream_create(1, 0, &stream));
	OK(tn__event_create(2, &event));
	long_work(stream, 10);
	OK(tn__event_record(event, stream));
	int asked = 0;
	while (tn__event_query(event) == TN_CUDA_NOT_READY)
		asked++;
	assert_in_range(asked, 100, 1000000);
	OK(tn__event_destroy(event));
	OK(tn__stream_destroy(stream));
}

static void
test_a_full_queue_waits_for_its_oldest(void **state)
{
	uintptr_t stream, event;
	OK(tn__stream_create(1, 0, &stream));
	OK(tn__event_create(2, &event));
	long_work(stream, 100);
	OK(tn__event_record(event, stream));
	for (int i = 1; i < 1024; i++)
		long_work(stream, 1);
	assert_int_equal(tn__event_query(event), TN_CUDA_NOT_READY);
	long_work(stream, 1);
	OK(tn__event_query(event));
	assert_int_equal(tn__stream_query(stream), TN_CUDA_NOT_READY);
	OK(tn__event_destroy(event));
	OK(tn__stream_destroy(stream));
}

static void
test_streams_wait_for_events(void **state)
{
	uintptr_t slow, quick, event;
	OK(tn__stream_create(1, 0, &slow));
	OK(tn__stream_create(1, -1, &quick));
	OK(tn__event_create(2, &event));
	long_work(slow, 5);
	OK(tn__event_record(event, slow));
	OK(tn__stream_query(quick));
	OK(tn__stream_wait_event(quick, event));
	assert_int_equal(tn__stream_query(quick), TN_CUDA_NOT_READY);
	/* the legacy default stream waits for blocking streams only */
	OK(tn__stream_synchronize(0));
	assert_int_equal(tn__stream_query(slow), TN_CUDA_NOT_READY);
	OK(tn__device_synchronize());
	OK(tn__stream_query(slow));
	OK(tn__stream_query(quick));
	OK(tn__event_destroy(event));
	OK(tn__stream_destroy(slow));
	OK(tn__stream_destroy(quick));
}

static void
test_handles_repeat(void **state)
{
	uintptr_t a, b, again;
	OK(tn__stream_create(0, 0, &a));
	OK(tn__stream_create(0, 0, &b));
	assert_true(a != b);
	OK(tn__stream_destroy(a));
	OK(tn__stream_create(0, 0, &again));
	assert_int_equal(again, a);
	OK(tn__stream_destroy(b));
	OK(tn__stream_destroy(again));
}

/* ---- kernels and graphs ---- */

static void
stub(void)
{
}

static struct tn_kernel *
kernel(void)
{
	struct tn_kernel *found = tn__kernel_find((const void *)(uintptr_t)stub);
	if (!found)
		OK(tn__kernel_register((const void *)(uintptr_t)stub, "_Z4stubv", false, &found));
	return found;
}

static int
launch(uint32_t blocks, uint32_t threads, uint64_t shared, uintptr_t stream)
{
	return tn__kernel_launch(
		kernel(), &(struct tn_launch){
					  .grid = { blocks, 1, 1 }, .block = { threads, 1, 1 }, .shared_bytes = shared, .stream = stream });
}

static void
test_launch_configurations(void **state)
{
	OK(launch(1, 1024, 0, 0));
	assert_int_equal(launch(1, 1025, 0, 0), 9);
	assert_int_equal(launch(0, 32, 0, 0), 9);
	assert_int_equal(launch(1, 32, 49153, 0), TN_CUDA_INVALID_VALUE); /* needs consent */
	kernel()->max_dynamic_shared = 65536;
	OK(launch(1, 32, 65536, 0));
	assert_int_equal(launch(1, 32, 65537, 0), TN_CUDA_INVALID_VALUE);
	kernel()->max_dynamic_shared = 0;
	assert_int_equal(launch(1, 32, 0, 0xdead), TN_CUDA_INVALID_HANDLE);
	assert_int_equal(tn__kernel_launch(NULL, &(struct tn_launch){ .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } }), 98);
	assert_ptr_equal(tn__kernel_find(kernel()), kernel()); /* by handle, too */
	assert_null(tn__kernel_find(&state));
}

static void
test_occupancy(void **state)
{
	/* the default card is of compute capability 8.6: 1536 threads, 16 blocks, 100 KiB a multiprocessor */
	assert_int_equal(tn__occupancy(1024, 0), 1);
	assert_int_equal(tn__occupancy(256, 0), 6);
	assert_int_equal(tn__occupancy(32, 0), 16);
	assert_int_equal(tn__occupancy(128, 48 * 1024), 2);
	assert_int_equal(tn__occupancy(1025, 0), 0);
}

static void
test_capture(void **state)
{
	uintptr_t main_stream, side, event, back, graph, executable;
	struct tn_capture_info info;
	size_t count = 0;
	uint64_t launches = kernel()->launches;
	OK(tn__stream_create(1, 0, &main_stream));
	OK(tn__stream_create(1, 0, &side));
	OK(tn__event_create(2, &event));
	OK(tn__event_create(2, &back));
	assert_int_equal(tn__capture_begin(0, TN_CAPTURE_GLOBAL), TN_CUDA_CAPTURE_UNSUPPORTED);
	OK(tn__capture_begin(main_stream, TN_CAPTURE_GLOBAL));
	assert_int_equal(tn__capture_begin(main_stream, TN_CAPTURE_GLOBAL), TN_CUDA_ILLEGAL_STATE);
	OK(launch(1, 32, 0, main_stream));
	OK(tn__event_record(event, main_stream));
	OK(tn__stream_wait_event(side, event)); /* the side joins */
	OK(launch(1, 32, 0, side));
	OK(tn__capture_info(side, &info));
	assert_int_equal(info.status, 1);
	assert_int_equal(tn__capture_end(side, &graph), TN_CUDA_CAPTURE_UNMATCHED);
	OK(tn__event_record(back, side));
	OK(tn__stream_wait_event(main_stream, back));
	assert_int_equal(tn__stream_synchronize(main_stream), TN_CUDA_CAPTURE_UNSUPPORTED);
	assert_int_equal(tn__event_query(event), TN_CUDA_CAPTURE_UNSUPPORTED);
	OK(tn__capture_end(main_stream, &graph));
	assert_int_equal(kernel()->launches, launches); /* nothing ran */
	OK(tn__graph_nodes(graph, NULL, &count));
	assert_int_equal(count, 3); /* two kernels and the join */
	OK(tn__graph_instantiate(graph, &executable));
	OK(tn__graph_destroy(graph));
	OK(tn__graph_launch(executable, main_stream));
	OK(tn__graph_launch(executable, main_stream));
	assert_int_equal(kernel()->launches, launches + 4);
	assert_int_equal(tn__stream_query(main_stream), TN_CUDA_NOT_READY);
	OK(tn__stream_synchronize(main_stream));
	OK(tn__graph_exec_destroy(executable));
	assert_int_equal(tn__graph_launch(executable, main_stream), TN_CUDA_INVALID_VALUE);
	assert_int_equal(tn__capture_end(main_stream, &graph), TN_CUDA_ILLEGAL_STATE);
	OK(tn__capture_info(side, &info));
	assert_int_equal(info.status, 0);
	OK(tn__event_destroy(event));
	OK(tn__event_destroy(back));
	OK(tn__stream_destroy(main_stream));
	OK(tn__stream_destroy(side));
}

static void
test_graph_by_hand(void **state)
{
	uintptr_t graph, clone, a, b, from[4], to[4], executable;
	size_t count = 4;
	bool same = false;
	const struct tn_node_description work = { .kind = TN_NODE_KERNEL, .duration = 1000, .kernel = kernel() };
	OK(tn__graph_create(&graph));
	OK(tn__graph_add(graph, NULL, 0, &work, &a));
	OK(tn__graph_add(graph, &a, 1, &work, &b));
	OK(tn__graph_edges(graph, from, to, &count));
	assert_int_equal(count, 1);
	assert_true(from[0] == a && to[0] == b);
	OK(tn__graph_clone(graph, &clone));
	count = 4;
	OK(tn__graph_edges(clone, from, to, &count));
	assert_int_equal(count, 1);
	OK(tn__graph_instantiate(graph, &executable));
	OK(tn__graph_update(executable, clone, &same));
	assert_true(same);
	OK(tn__node_destroy(a));
	count = 4;
	OK(tn__graph_edges(graph, from, to, &count));
	assert_int_equal(count, 0);
	OK(tn__graph_update(executable, graph, &same));
	assert_false(same);
	OK(tn__graph_exec_destroy(executable));
	OK(tn__graph_destroy(graph));
	OK(tn__graph_destroy(clone));
	assert_int_equal(tn__graph_destroy(clone), TN_CUDA_INVALID_VALUE);
}

static void
test_attributes(void **state)
{
	const struct tn_gpu_figures *gpu = tn__gpu(0);
	int value = -7;
	assert_true(tn__device_attribute(gpu, 0, 16, &value));
	assert_int_equal(value, gpu->sm_count);
	assert_true(tn__device_attribute(gpu, 0, 81, &value));
	assert_int_equal(value, 102400);
	assert_int_equal(tn__memory_bus_bits(gpu), 192);
	value = -7;
	assert_false(tn__device_attribute(gpu, 0, 99999, &value));
	assert_int_equal(value, -7);
}

/* ---- notes and regions ---- */

static void
test_notes_are_off_until_enabled(void **state)
{
	struct tn_log_entry note;
	tn__note_workspace(TN_LIBRARY_CUBLAS, (void *)4096, 100);
	assert_int_equal(tn_vgpu_memory_log_read(&note, 1), 0);
}

static void
test_notes(void **state)
{
	struct tn_log_entry notes[4];
	uint64_t device, small = 7;
	uintptr_t stream, graph;
	OK(tn__malloc(4 * MIB, &device));
	OK(tn__stream_create(1, 0, &stream));
	tn_vgpu_memory_log_enable(1);
	tn__note_workspace(TN_LIBRARY_CUDNN, (void *)(uintptr_t)device, 4096);
	tn__note_workspace(TN_LIBRARY_CUDNN, NULL, 4096);
	tn__note_workspace(TN_LIBRARY_CUDNN, (void *)(uintptr_t)device, 0);
	OK(tn__copy(device + 512, (uintptr_t)&small, 8, 0, false));
	OK(tn__copy(device + 1024, (uintptr_t)&small, 8, stream, true));
	OK(tn__copy(device + 2048, device, 8, 0, false));           /* not from the host */
	OK(tn__copy((uintptr_t)&small, device + 512, 8, 0, false)); /* not to the device */
	OK(tn__capture_begin(stream, TN_CAPTURE_RELAXED));
	OK(tn__copy(device + 512, (uintptr_t)&small, 8, stream, true)); /* a node */
	OK(tn__capture_end(stream, &graph));
	assert_int_equal(tn_vgpu_memory_log_read(notes, 4), 3);
	const struct tn_log_entry *n = notes;
	assert_true(n[0].kind == TN_LOG_WORKSPACE && n[0].address == device && n[0].bytes == 4096);
	assert_string_equal(tn_vgpu_library_name(n[0].library), "cudnn");
	assert_true(n[1].kind == TN_LOG_COPIED && n[1].address == device + 512 && n[1].bytes == 8);
	assert_string_equal(tn_vgpu_library_name(n[1].library), "");
	assert_int_equal(n[2].address, device + 1024);
	assert_true(n[0].time_ns > 0 && n[0].time_ns <= n[1].time_ns && n[1].time_ns <= n[2].time_ns);
	assert_int_equal(tn_vgpu_memory_log_read(notes, 2), 2); /* the newest */
	assert_int_equal(notes[0].address, device + 512);
	tn_vgpu_memory_log_enable(0);
	tn__note_workspace(TN_LIBRARY_CUDNN, (void *)(uintptr_t)device, 4096);
	assert_int_equal(tn_vgpu_memory_log_read(notes, 4), 3);
	tn_vgpu_memory_log_clear();
	assert_int_equal(tn_vgpu_memory_log_read(notes, 4), 0);
	assert_string_equal(tn_vgpu_library_name(99), "");
	OK(tn__graph_destroy(graph));
	OK(tn__stream_destroy(stream));
	OK(tn__free(device));
}

static void *
wanted_by_a_thread(void *argument)
{
	uint64_t bytes;
	(void)argument;
	return (void *)(uintptr_t)tn_vgpu_wanted_workspaces(&bytes, 1);
}

static void
test_wanted_workspaces(void **state)
{
	uint64_t bytes[TN_WANTED_MAX + 1];
	pthread_t thread;
	void *count;
	assert_int_equal(tn_vgpu_wanted_workspaces(bytes, 1), 0);
	tn__note_wanted(12345);
	tn__note_wanted(0); /* a plan that wants none */
	tn__note_wanted(678);
	assert_int_equal(tn_vgpu_wanted_workspaces(bytes, TN_WANTED_MAX), 2);
	assert_int_equal(bytes[0], 678);
	assert_int_equal(bytes[1], 12345);
	assert_int_equal(tn_vgpu_wanted_workspaces(bytes, 1), 1);
	assert_int_equal(pthread_create(&thread, NULL, wanted_by_a_thread, NULL), 0);
	pthread_join(thread, &count);
	assert_ptr_equal(count, NULL); /* each thread has its own */
	for (uint64_t i = 1; i <= TN_WANTED_MAX + 1; i++)
		tn__note_wanted(i);
	assert_int_equal(tn_vgpu_wanted_workspaces(bytes, TN_WANTED_MAX + 1), TN_WANTED_MAX);
	assert_int_equal(bytes[0], TN_WANTED_MAX + 1);
	assert_int_equal(bytes[TN_WANTED_MAX - 1], 2);
	tn__note_workspace(TN_LIBRARY_CUDNN, (void *)512, 12345); /* handed over: no longer wanted */
	assert_int_equal(tn_vgpu_wanted_workspaces(bytes, 1), 0);
}

static void
test_the_oldest_notes_go(void **state)
{
	struct tn_log_entry *notes = calloc(TN_MEMORY_LOG_MAX + 1, sizeof(*notes));
	assert_non_null(notes);
	tn_vgpu_memory_log_enable(1);
	for (uintptr_t i = 1; i <= TN_MEMORY_LOG_MAX + 10; i++)
		tn__note_workspace(TN_LIBRARY_CUBLAS, (void *)(i * 512), i);
	assert_int_equal(tn_vgpu_memory_log_read(notes, TN_MEMORY_LOG_MAX + 1), TN_MEMORY_LOG_MAX);
	for (uint64_t i = 0; i < TN_MEMORY_LOG_MAX; i++)
		assert_int_equal(notes[i].bytes, i + 11);
	tn_vgpu_memory_log_enable(0);
	tn_vgpu_memory_log_clear();
	free(notes);
}

static void
test_notes_of_a_forked_child(void **state)
{
	tn_vgpu_memory_log_enable(1);
	tn__note_workspace(TN_LIBRARY_CUBLAS, (void *)512, 1);
	pid_t child = fork();
	if (child == 0) {
		struct tn_log_entry note;
		bool none = tn_vgpu_memory_log_read(&note, 1) == 0;
		tn__note_workspace(TN_LIBRARY_CUBLAS, (void *)512, 2);
		none &= tn_vgpu_memory_log_read(&note, 1) == 0;
		tn_vgpu_memory_log_enable(1);
		tn__note_workspace(TN_LIBRARY_CUBLAS, (void *)512, 3);
		_exit(none && tn_vgpu_memory_log_read(&note, 1) == 1 && note.bytes == 3 ? 0 : 1);
	}
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	struct tn_log_entry note;
	assert_int_equal(tn_vgpu_memory_log_read(&note, 1), 1);
	assert_int_equal(note.bytes, 1);
	tn_vgpu_memory_log_enable(0);
	tn_vgpu_memory_log_clear();
}

static void
test_regions(void **state)
{
	char name[16];
	assert_int_equal(tn_vgpu_enter_region("forward"), 0);
	assert_int_equal(tn_vgpu_enter_region(NULL), 0);
	for (int i = 0; i < 63; i++) {
		snprintf(name, sizeof(name), "region %d", i);
		assert_int_equal(tn_vgpu_enter_region(name), 0);
	}
	assert_int_equal(tn_vgpu_enter_region("one more"), TN_LIMIT);
	pid_t child = fork();
	if (child == 0) /* holds nothing, so that it is in no region */
		_exit(tn_vgpu_enter_region("another") == 0 ? 0 : 1);
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

/* ---- a forked worker owns nothing ---- */

/* Whether this process is among those that hold memory of the first card. */
static bool
is_listed(void)
{
	struct tn_device_process processes[16];
	size_t count = tn__processes_of(0, processes, 16);
	for (size_t i = 0; i < count && i < 16; i++)
		if (processes[i].pid == getpid())
			return true;
	return false;
}

static void
test_fork(void **state)
{
	uint64_t before = free_now(), address;
	OK(tn__malloc(8 * MIB, &address));
	assert_true(is_listed());
	pid_t child = fork();
	if (child == 0) {
		uintptr_t handle;
		uint64_t library;
		bool refused = tn__enter() == TN_CUDA_NOT_INITIALIZED && !is_listed() &&
		               tn__vmm_create(0, 2 * MIB, &handle) != TN_CUDA_OK &&
		               tn__library_malloc(0, 100, "test", &library) != TN_OK;
		tn__free(address);
		_exit(refused ? 0 : 1);
	}
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(before - free_now(), 8 * MIB);
	OK(tn__free(address));
	assert_int_equal(free_now(), before);
}

int
main(void)
{
	unsetenv("TONNAGE_RUN");
	unsetenv("CUDA_VISIBLE_DEVICES");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_context_is_taken_once),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_full_to_the_last_page),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_virtual_memory),
		cmocka_unit_test(test_events_complete_in_order),
		cmocka_unit_test(test_polling_ends),
		cmocka_unit_test(test_a_full_queue_waits_for_its_oldest),
		cmocka_unit_test(test_streams_wait_for_events),
		cmocka_unit_test(test_handles_repeat),
		cmocka_unit_test(test_launch_configurations),
		cmocka_unit_test(test_occupancy),
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_graph_by_hand),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_notes_are_off_until_enabled),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_wanted_workspaces),
		cmocka_unit_test(test_the_oldest_notes_go),
		cmocka_unit_test(test_notes_of_a_forked_child),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_fork),
	};
	return cmocka_run_group_tests(tests, begin, NULL);
}
