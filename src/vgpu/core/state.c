/* SPDX-License-Identifier: Apache-2.0
 *
 * Attaching to a run, devices and their primary contexts, handles, and refusing.
 */
#include "vgpu/core/marks.h"
#include "vgpu/core/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/ranges.h"

struct tn_core tn__core;
pthread_mutex_t tn__core_lock = PTHREAD_MUTEX_INITIALIZER;

/* Read at every call: its library is preloaded, so that its storage can be reached without a call. */
static _Thread_local __attribute__((tls_model("initial-exec"))) int current_device;

/* What a program without a run sees: an RTX 3060, as in the catalogue. Kept here, since a preloaded library that cannot
 * find its run must still answer. */
static const struct tn_gpu_figures fallback_gpu = {
	.name = "NVIDIA GeForce RTX 3060",
	.alias = "rtx3060",
	.compute_major = 8,
	.compute_minor = 6,
	.sm_count = 28,
	.shared_memory_optin_bytes = 101376,
	.max_threads_per_sm = 1536,
	.max_blocks_per_sm = 16,
	.sm_clock_khz = 1777000,
	.memory_clock_khz = 7501000,
	.total_bytes = UINT64_C(12036) << 20,
	.context_bytes = UINT64_C(130) << 20,
	.l2_bytes = 2359296,
	.memory_gbps = 360,
	.bf16_tflops = 25.5,
	.tf32_tflops = 12.7,
	.fp32_tflops = 12.7,
};

/* ---- tables of handles ---- */

#define HANDLE_STEP 64

uintptr_t
tn__table_add(struct tn_table *table, void *item)
{
	if (table->free_count > 0) {
		uint32_t index = table->free_list[--table->free_count];
		table->items[index] = item;
		return table->base + (uintptr_t)index * HANDLE_STEP;
	}
	if (table->count == table->capacity) {
		size_t items = table->capacity, free_list = table->capacity;
		if (!tn__array_room(&table->items, &items, table->count + 1, sizeof(*table->items), SIZE_MAX) ||
		    !tn__array_room(&table->free_list, &free_list, table->count + 1, sizeof(*table->free_list), SIZE_MAX))
			return 0;
		table->capacity = items;
	}
	table->items[table->count] = item;
	return table->base + (uintptr_t)table->count++ * HANDLE_STEP;
}

static bool
index_of(const struct tn_table *table, uintptr_t handle, size_t *index)
{
	*index = (handle - table->base) / HANDLE_STEP;
	return handle >= table->base && (handle - table->base) % HANDLE_STEP == 0 && *index < table->count;
}

void *
tn__table_get(const struct tn_table *table, uintptr_t handle)
{
	size_t index;
	return index_of(table, handle, &index) ? table->items[index] : NULL;
}

void *
tn__table_remove(struct tn_table *table, uintptr_t handle)
{
	size_t index;
	if (!index_of(table, handle, &index) || !table->items[index])
		return NULL;
	void *item = table->items[index];
	table->items[index] = NULL;
	table->free_list[table->free_count++] = (uint32_t)index;
	return item;
}

static void
init_tables(void)
{
	struct tn_table *tables[] = { &tn__core.streams, &tn__core.events,      &tn__core.graphs,
		                          &tn__core.nodes,   &tn__core.executables, &tn__core.memory_handles };
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		tables[i]->base = (uintptr_t)UINT64_C(0x510000000000) + ((uintptr_t)i << 36);
}

/* ---- attaching ---- */

static struct tn_ledger *
open_ledger_of_run(void)
{
	const char *run = getenv("TONNAGE_RUN");
	char path[4096];
	struct tn_ledger *ledger = NULL;
	if (!run || snprintf(path, sizeof(path), "%s/ledger", run) >= (int)sizeof(path))
		return NULL;
	return tn__ledger_open(path, &ledger) == TN_OK ? ledger : NULL;
}

static struct tn_ledger *
make_private_ledger(void)
{
	struct tn_ledger *ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ledger == MAP_FAILED)
		return NULL;
	pthread_mutex_init(&ledger->lock, NULL);
	ledger->magic = TN_LEDGER_MAGIC;
	ledger->version = TN_LEDGER_VERSION;
	ledger->size = sizeof(*ledger);
	ledger->device_count = 1;
	ledger->devices[0].gpu = fallback_gpu;
	return ledger;
}

static void
init_device(int index, int physical)
{
	struct tn_device_state *device = &tn__core.devices[index];
	device->physical = physical;
	device->default_stream = (struct tn_stream){ .device = index };
	tn__space_init(&device->space, TN_MALLOC_BASE + TN_MALLOC_SIZE * (uint64_t)physical, TN_MALLOC_SIZE);
}

/* CUDA_VISIBLE_DEVICES as documented in the CUDA programming guide: numbers in the order wanted; the first that is no
 * device ends the list. UUIDs name devices by the number that our NVML puts into them ("GPU-...-<12 hex digits>"). */
static int
parse_visible(const char *text, int physical_count, int out[TN_NODE_DEVICES])
{
	int count = 0;
	for (const char *cursor = text; *cursor && count < TN_NODE_DEVICES;) {
		char *end;
		long number;
		if (strncmp(cursor, "GPU-", 4) == 0) {
			const char *dash = strrchr(cursor, '-');
			number = strtol(dash + 1, &end, 16);
		} else {
			number = strtol(cursor, &end, 10);
		}
		if (end == cursor || number < 0 || number >= physical_count)
			break;
		for (int i = 0; i < count; i++)
			if (out[i] == number)
				return 0;
		out[count++] = (int)number;
		cursor = *end == ',' ? end + 1 : "";
	}
	return count;
}

/* Where only some ranks of a job over several nodes are run, the ledger has the cards of these ranks' nodes, one node after the
 * other; this process sees those of its own (doc/design/0031-absent-ranks.md). */
static void
find_node(void)
{
	int ranks[TN_LEDGER_RANKS], all = (int)tn__core.ledger->device_count, before = 0, last = -1;
	const char *text = getenv("TONNAGE_RANKS"), *own = getenv("RANK"), *gpus = getenv("TONNAGE_GPUS");
	int each = gpus ? atoi(gpus) : 0, count = text ? tn__ranges_read(text, ranks, TN_LEDGER_RANKS) : -1;
	tn__core.node_first = 0;
	tn__core.node_count = each > 0 && each < all && count > 0 ? each : all;
	if (tn__core.node_count == all || !own)
		return;
	for (int i = 0; i < count && ranks[i] / each < atoi(own) / each; i++) {
		before += ranks[i] / each != last;
		last = ranks[i] / each;
	}
	if ((before + 1) * each <= all)
		tn__core.node_first = before * each;
}

static void
init_devices(void)
{
	find_node();
	int physical_count = tn__core.node_count;
	int visible[TN_NODE_DEVICES];
	const char *text = getenv("CUDA_VISIBLE_DEVICES");
	int count = physical_count;
	if (text)
		count = parse_visible(text, physical_count, visible);
	for (int i = 0; i < count; i++)
		init_device(i, text ? visible[i] : i);
	tn__core.count = count;
}

static void
after_fork_in_child(void)
{
	pthread_mutex_init(&tn__core_lock, NULL);
	bool used = false;
	for (int i = 0; i < tn__core.count; i++)
		used |= tn__core.devices[i].has_context;
	tn__core.used_before_fork |= used;
	if (tn__core.private_ledger)
		pthread_mutex_init(&tn__core.ledger->lock, NULL);
	tn__core.slot = -1; /* the bytes are the parent's */
}

/* --assume full, none or a share from 0 to 1; anything else is full. */
static double
share_of(const char *text)
{
	char *end;
	if (!text || strcmp(text, "full") == 0)
		return 1;
	if (strcmp(text, "none") == 0)
		return 0;
	double share = strtod(text, &end);
	return end != text && *end == '\0' && share >= 0 && share <= 1 ? share : 1;
}

static void
attach_locked(void)
{
	if (tn__core.attached)
		return;
	tn__core.ledger = open_ledger_of_run();
	if (!tn__core.ledger) {
		tn__core.ledger = make_private_ledger();
		tn__core.private_ledger = true;
	}
	const char *values = getenv("TONNAGE_VALUES");
	tn__core.assumed_share = share_of(getenv("TONNAGE_ASSUME"));
	tn__core.values_bound = values && strcmp(values, "all") == 0 ? UINT64_MAX : UINT64_C(1) << 20;
	tn__core.slot = -1;
	init_tables();
	tn__space_init(&tn__core.vmm, TN_VMM_BASE, TN_VMM_SIZE);
	if (tn__core.ledger)
		init_devices();
	pthread_atfork(NULL, NULL, after_fork_in_child);
	atomic_store_explicit(&tn__core.attached, true, memory_order_release);
}

int
tn_vgpu_renew(void)
{
	tn__lock();
	bool used = tn__core.used_before_fork;
	for (int i = 0; i < tn__core.count; i++)
		used |= tn__core.devices[i].has_context;
	if (!used) /* the old ledger stays mapped: figures of it may have been handed out */
		tn__core = (struct tn_core){ .slot = -1 };
	tn__unlock();
	return used ? TN_STATE : TN_OK;
}

int
tn__device_count(void)
{
	if (__builtin_expect(atomic_load_explicit(&tn__core.attached, memory_order_acquire), 1))
		return tn__core.count;
	tn__lock();
	attach_locked();
	int count = tn__core.count;
	tn__unlock();
	return count;
}

/* ---- devices ---- */

int
tn__physical_device_count(void)
{
	tn__device_count();
	return tn__core.ledger ? tn__core.node_count : 0;
}

const struct tn_gpu_figures *
tn__physical_gpu(int physical)
{
	if (physical < 0 || physical >= tn__physical_device_count())
		return NULL;
	return &tn__core.ledger->devices[tn__ledger_device(physical)].gpu;
}

int
tn__physical_device(int device)
{
	return device >= 0 && device < tn__device_count() ? tn__core.devices[device].physical : -1;
}

const struct tn_gpu_figures *
tn__gpu(int device)
{
	int physical = tn__physical_device(device);
	return physical < 0 ? NULL : tn__physical_gpu(physical);
}

/* What dead processes held is free on a card at once; alone, nobody can have died. */
static void
sweep_others(void)
{
	int processes = 0;
	for (int slot = 0; slot < TN_LEDGER_PROCESSES; slot++)
		processes += tn__core.ledger->processes[slot].state == TN_PROCESS_ALIVE;
	if (processes > 1)
		tn__ledger_sweep(tn__core.ledger);
}

void
tn__physical_memory_info(int physical, uint64_t *free_bytes, uint64_t *total_bytes)
{
	sweep_others();
	*free_bytes = tn__ledger_free_bytes(tn__core.ledger, tn__ledger_device(physical));
	*total_bytes = tn__core.ledger->devices[tn__ledger_device(physical)].gpu.total_bytes;
}

void
tn__memory_info(int device, uint64_t *free_bytes, uint64_t *total_bytes)
{
	tn__physical_memory_info(tn__core.devices[device].physical, free_bytes, total_bytes);
}

size_t
tn__processes_of(int physical, struct tn_device_process *out, size_t room)
{
	size_t count = 0;
	if (tn__core.ledger == NULL || physical < 0 || physical >= tn__core.node_count)
		return 0;
	for (int slot = 0; slot < TN_LEDGER_PROCESSES; slot++) {
		const struct tn_ledger_process *process = &tn__core.ledger->processes[slot];
		uint64_t bytes = 0;
		for (int class = 0; class < TN_BYTES_CLASSES; class++)
			bytes += process->bytes[tn__ledger_device(physical)][class];
		if (process->state != TN_PROCESS_ALIVE || bytes == 0)
			continue;
		if (count < room)
			out[count] = (struct tn_device_process){ process->pid, bytes };
		count++;
	}
	return count;
}

int
tn__current_device(void)
{
	return current_device;
}

struct tn_stream *
tn__stream_locked(uintptr_t stream)
{
	if (stream <= 2) {
		int device = tn__current_device();
		return device < tn__core.count ? &tn__core.devices[device].default_stream : NULL;
	}
	return tn__table_get(&tn__core.streams, stream);
}

tn_status
tn__set_device(int device)
{
	if (device < 0 || device >= tn__device_count())
		return TN_INVALID;
	current_device = device;
	return TN_OK;
}

tn_status
tn__memory_take(int device, enum tn_bytes_class class, uint64_t bytes)
{
	if (tn__core.slot < 0) /* a forked child of a process that used CUDA */
		return TN_STATE;
	if (class == TN_BYTES_PROGRAM)
		tn__mark_size(bytes);
	return tn__ledger_take(tn__core.ledger, tn__ledger_device(tn__core.devices[device].physical), tn__core.slot, class,
	                       bytes, NULL);
}

void
tn__memory_give(int device, enum tn_bytes_class class, uint64_t bytes)
{
	if (tn__core.slot >= 0)
		tn__ledger_give(tn__core.ledger, tn__ledger_device(tn__core.devices[device].physical), tn__core.slot, class,
		                bytes);
}

int
tn__memory_status(tn_status status)
{
	switch (status) {
	case TN_OK:
		return TN_CUDA_OK;
	case TN_OUT_OF_DEVICE_MEMORY:
	case TN_NO_MEMORY:
	case TN_LIMIT:
		return TN_CUDA_OUT_OF_MEMORY;
	default:
		return TN_CUDA_INVALID_VALUE;
	}
}

int
tn_vgpu_enter_region(const char *name)
{
	if (!atomic_load_explicit(&tn__core.attached, memory_order_acquire))
		return TN_OK;
	tn_status status = TN_OK;
	tn__lock();
	if (tn__core.slot >= 0)
		status = tn__ledger_enter_region(tn__core.ledger, tn__core.slot, name);
	else /* the slot comes with the first context */
		snprintf(tn__core.region, sizeof(tn__core.region), "%s", name != NULL ? name : "");
	tn__unlock();
	return (int)status;
}

int
tn__program_number(void)
{
	const char *text = getenv("TONNAGE_PROGRAM");
	return text != NULL ? atoi(text) : 0;
}

static tn_status
ensure_context_locked(int device)
{
	struct tn_device_state *state = &tn__core.devices[device];
	if (state->has_context)
		return TN_OK;
	if (tn__core.slot < 0) {
		tn_status entered = tn__ledger_enter(tn__core.ledger, getpid(), &tn__core.slot);
		if (entered != TN_OK)
			return entered;
		tn__ledger_set_program(tn__core.ledger, tn__core.slot, tn__program_number());
		(void)tn__ledger_enter_region(tn__core.ledger, tn__core.slot, tn__core.region);
	}
	const struct tn_gpu_figures *gpu = &tn__core.ledger->devices[tn__ledger_device(state->physical)].gpu;
	tn_status status = tn__memory_take(device, TN_BYTES_CONTEXT, gpu->context_bytes);
	state->has_context = status == TN_OK;
	return status;
}

tn_status
tn__ensure_context(int device)
{
	if (device < 0 || device >= tn__device_count())
		return TN_INVALID;
	if (tn__core.devices[device].has_context)
		return TN_OK;
	tn__lock();
	tn_status status = ensure_context_locked(device);
	tn__unlock();
	return status;
}

bool
tn__has_context(int device)
{
	return device >= 0 && device < tn__device_count() && tn__core.devices[device].has_context;
}

/* ---- refusing ---- */

int
tn__refuse(const char *library, const char *name, int status)
{
	tn__device_count();
	if (tn__core.ledger)
		tn__ledger_count_call(tn__core.ledger, library, name);
	return status;
}

void
tn__count_answer(bool real, const char *words)
{
	tn__device_count();
	if (tn__core.ledger)
		tn__ledger_count_answer(tn__core.ledger, real, words);
}
