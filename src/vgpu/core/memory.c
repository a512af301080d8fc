/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: device allocations, and host memory that the device knows. Virtual memory management stands in vmm.c.
 *
 * Rules of accounting: a device gives memory out in pages of 2 MiB. Allocations of less than 1 MiB share a page, larger
 * ones are rounded up to whole pages (NVIDIA documents 2 MiB as the minimum granularity of cuMemCreate; that cudaMalloc
 * packs small requests is observed behaviour).
 */
#include "vgpu/core/state.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SHARED_PAGE_LIMIT (UINT64_C(1) << 20)

/* Tag of a range in a device's address space. */
enum { TAG_PROGRAM = TN_BYTES_PROGRAM, TAG_LIBRARY = TN_BYTES_LIBRARY, TAG_SHARED = 16 };

/* A page that small allocations share. */
struct shared_page {
	struct tn_space space;
	struct shared_page *next;
	struct tn_share *share; /* with other processes, or NULL */
	enum tn_bytes_class class;
};

static struct shared_page *shared_pages[TN_NODE_DEVICES];

static uint64_t
round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* Takes whole pages: bytes first, then an address. */
static tn_status
take_pages(int device, enum tn_bytes_class class, uint64_t bytes, uint64_t tag, void *object, uint64_t *address)
{
	struct tn_range range;
	tn_status status = tn__memory_take(device, class, bytes);
	if (status != TN_OK)
		return status;
	status = tn__space_take(&tn__core.devices[device].space, bytes, TN_GRANULARITY, 0, tag, object, &range);
	if (status == TN_OK)
		*address = range.address;
	else
		tn__memory_give(device, class, bytes);
	return status;
}

static tn_status
add_shared_page(int device, enum tn_bytes_class class, struct shared_page **out)
{
	struct shared_page *page = calloc(1, sizeof(*page));
	uint64_t address;
	if (!page)
		return TN_NO_MEMORY;
	tn_status status = take_pages(device, class, TN_GRANULARITY, TAG_SHARED, page, &address);
	if (status != TN_OK) {
		free(page);
		return status;
	}
	tn__space_init(&page->space, address, TN_GRANULARITY);
	page->class = class;
	page->next = shared_pages[device];
	shared_pages[device] = page;
	*out = page;
	return TN_OK;
}

static void
give_shared_page(int device, struct shared_page *page)
{
	struct shared_page **link = &shared_pages[device];
	while (*link != page)
		link = &(*link)->next;
	*link = page->next;
	tn__space_give(&tn__core.devices[device].space, page->space.base, NULL);
	tn__memory_give_back(device, page->class, TN_GRANULARITY, page->share);
	tn__space_destroy(&page->space);
	free(page);
}

static tn_status
take_shared(int device, enum tn_bytes_class class, uint64_t bytes, uint64_t *address)
{
	struct tn_range range;
	for (struct shared_page *page = shared_pages[device]; page; page = page->next)
		if (page->class == class &&
		    tn__space_take(&page->space, bytes, TN_SMALL_ALIGNMENT, 0, class, NULL, &range) == TN_OK) {
			*address = range.address;
			return TN_OK;
		}
	struct shared_page *page;
	tn_status status = add_shared_page(device, class, &page);
	if (status != TN_OK)
		return status;
	status = tn__space_take(&page->space, bytes, TN_SMALL_ALIGNMENT, 0, class, NULL, &range);
	if (status == TN_OK)
		*address = range.address;
	else
		give_shared_page(device, page);
	return status;
}

static tn_status
malloc_locked(int device, enum tn_bytes_class class, uint64_t bytes, uint64_t *address)
{
	if (bytes > TN_MALLOC_SIZE)
		return TN_OUT_OF_DEVICE_MEMORY;
	if (bytes < SHARED_PAGE_LIMIT)
		return take_shared(device, class, round_up(bytes, TN_SMALL_ALIGNMENT), address);
	return take_pages(device, class, round_up(bytes, TN_GRANULARITY), class, NULL, address);
}

static int
device_of_address(uint64_t address)
{
	if (address < TN_MALLOC_BASE || address >= TN_MALLOC_BASE + TN_NODE_DEVICES * TN_MALLOC_SIZE)
		return -1;
	int physical = (int)((address - TN_MALLOC_BASE) / TN_MALLOC_SIZE);
	for (int device = 0; device < tn__core.count; device++)
		if (tn__core.devices[device].physical == physical)
			return device;
	return -1;
}

static tn_status
free_locked(uint64_t address)
{
	int device = device_of_address(address);
	struct tn_range *range = device < 0 ? NULL : tn__space_find(&tn__core.devices[device].space, address);
	if (!range)
		return TN_NOT_FOUND;
	tn__values_forget_range(address, range->size);
	if (range->tag == TAG_SHARED) {
		struct shared_page *page = range->object;
		tn_status status = tn__space_give(&page->space, address, NULL);
		if (status == TN_OK && page->space.count == 0)
			give_shared_page(device, page);
		return status;
	}
	if (range->address != address)
		return TN_NOT_FOUND;
	tn__memory_give_back(device, (enum tn_bytes_class)range->tag, range->size, range->object);
	tn__space_remove(&tn__core.devices[device].space, range);
	return TN_OK;
}

struct tn_share *
tn__share_of_locked(uint64_t address, uint64_t *base)
{
	int device = device_of_address(address);
	struct tn_range *range = device < 0 ? NULL : tn__space_find(&tn__core.devices[device].space, address);
	if (!range)
		return NULL;
	struct shared_page *page = range->tag == TAG_SHARED ? range->object : NULL;
	struct tn_share *share = page ? page->share : range->object;
	if (!share)
		share = tn__share_make(device, page ? page->class : (enum tn_bytes_class)range->tag, range->size);
	if (page)
		page->share = share;
	else
		range->object = share;
	*base = range->address;
	return share;
}

void
tn__device_reset(int device)
{
	struct tn_device_state *state = &tn__core.devices[device];
	tn__lock();
	while (state->space.count > 0) {
		struct tn_range range = state->space.ranges[0];
		tn__values_forget_range(range.address, range.size);
		if (range.tag == TAG_SHARED) {
			give_shared_page(device, range.object);
			continue;
		}
		tn__memory_give_back(device, (enum tn_bytes_class)range.tag, range.size, range.object);
		tn__space_give(&state->space, range.address, NULL);
	}
	if (state->has_context)
		tn__memory_give(device, TN_BYTES_CONTEXT, tn__gpu(device)->context_bytes);
	state->has_context = false;
	tn__unlock();
}

int
tn__malloc(uint64_t bytes, uint64_t *address)
{
	if (bytes == 0) {
		*address = 0;
		return TN_CUDA_OK;
	}
	int device = tn__current_device();
	tn__lock();
	tn_clock_advance(&tn__core.devices[device].clock, TN_CLOCK_CALL_NS);
	tn_status status = malloc_locked(device, TN_BYTES_PROGRAM, bytes, address);
	tn__unlock();
	return tn__memory_status(status);
}

static void free_managed(uint64_t address, tn_status *status);

/* cudaFree waits for the whole device (CUDA runtime documentation: it may synchronise), which PyTorch relies on. */
int
tn__free(uint64_t address)
{
	if (address == 0)
		return TN_CUDA_OK;
	struct tn_gates gates;
	gates.count = 0;
	tn__lock();
	(void)tn__synchronize_locked(&gates);
	if (gates.count > 0) {
		tn__unlock();
		tn__gates_wait(&gates);
		tn__lock();
	}
	tn_status status = free_locked(address);
	if (status == TN_NOT_FOUND)
		free_managed(address, &status);
	tn__unlock();
	return tn__memory_status(status);
}

tn_status
tn__library_malloc(int device, uint64_t bytes, const char *library, uint64_t *address)
{
	(void)library;
	return tn__class_malloc(device, TN_BYTES_LIBRARY, bytes, address);
}

tn_status
tn__class_malloc(int device, enum tn_bytes_class class, uint64_t bytes, uint64_t *address)
{
	tn_status status = tn__ensure_context(device);
	if (status != TN_OK)
		return status;
	tn__lock();
	status = malloc_locked(device, class, bytes ? bytes : 1, address);
	tn__unlock();
	return status;
}

tn_status
tn__library_free(uint64_t address)
{
	tn__lock();
	tn_status status = free_locked(address);
	tn__unlock();
	return status;
}

/* ---- host memory that the device knows ---- */

enum { TAG_HOST_ALLOCATED, TAG_HOST_REGISTERED, TAG_MANAGED };

/* Ranges of real host memory; the "space" is only used as a sorted table here. */
static struct tn_space host_ranges = { .base = 1, .size = UINT64_MAX / 2 };
static uint64_t pinned_bytes; /* of host_ranges, what no card could have moved away; guarded by the core's lock */

static void *
map_host(uint64_t bytes, int flags)
{
	void *pointer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1,
	                     0);
	return pointer == MAP_FAILED ? NULL : pointer;
}

/* A real driver has every page of pinned memory there as it hands it out. Where the computer's memory is measured, so have we, as
 * long as all that is pinned stays below what the computer is to have (doc/design/0036-hosts.md). */
static bool
is_there_at_once(uint64_t bytes)
{
	const char *limit = getenv("TONNAGE_HOST_MEMORY");
	uint64_t most = limit ? strtoull(limit, NULL, 10) : 0;
	tn__lock();
	uint64_t before = pinned_bytes;
	tn__unlock();
	return bytes <= most && before <= most - bytes;
}

static void
raise_to(_Atomic uint64_t *peak, uint64_t now)
{
	uint64_t before = atomic_load_explicit(peak, memory_order_relaxed);
	while (now > before &&
	       !atomic_compare_exchange_weak_explicit(peak, &before, now, memory_order_relaxed, memory_order_relaxed))
		;
}

/* The core's lock is held. */
static void
count_pinned(uint64_t tag, int64_t change)
{
	if (tag == TAG_MANAGED)
		return;
	pinned_bytes += (uint64_t)change;
	if (tn__core.slot < 0)
		return;
	struct tn_ledger *ledger = tn__core.ledger;
	uint64_t all = 0;
	atomic_store_explicit(&ledger->processes[tn__core.slot].pinned_bytes, pinned_bytes, memory_order_relaxed);
	for (int i = 0; change > 0 && i < TN_LEDGER_PROCESSES; i++)
		all += atomic_load_explicit(&ledger->processes[i].pinned_bytes, memory_order_relaxed);
	raise_to(&ledger->pinned_peak, all);
}

static int
note_host(void *pointer, uint64_t bytes, uint64_t tag)
{
	struct tn_range range;
	uint64_t address = (uintptr_t)pointer;
	tn__lock();
	struct tn_range *there = tn__space_find(&host_ranges, address);
	tn_status status = there ? TN_STATE : tn__space_take(&host_ranges, bytes, 1, address, tag, NULL, &range);
	if (status == TN_OK && range.address != address) {
		tn__space_give(&host_ranges, range.address, NULL);
		status = TN_STATE;
	}
	if (status == TN_OK)
		count_pinned(tag, (int64_t)bytes);
	tn__unlock();
	if (status == TN_STATE)
		return TN_CUDA_HOST_ALREADY_REGISTERED;
	return tn__memory_status(status);
}

int
tn__malloc_host(uint64_t bytes, void **pointer)
{
	if (bytes == 0) {
		*pointer = NULL;
		return TN_CUDA_OK;
	}
	uint64_t size = round_up(bytes, 4096);
	void *mapping = map_host(size, is_there_at_once(size) ? MAP_POPULATE : 0);
	if (!mapping)
		return TN_CUDA_OUT_OF_MEMORY;
	int result = note_host(mapping, size, TAG_HOST_ALLOCATED);
	if (result != TN_CUDA_OK)
		munmap(mapping, size);
	else
		*pointer = mapping;
	return result;
}

static tn_status
take_back(uint64_t address, uint64_t tag, struct tn_range *range)
{
	struct tn_range *found = tn__space_find(&host_ranges, address);
	if (!found || found->address != address || found->tag != tag)
		return TN_NOT_FOUND;
	count_pinned(tag, -(int64_t)found->size);
	return tn__space_give(&host_ranges, address, range);
}

int
tn__free_host(void *pointer)
{
	struct tn_range range;
	if (!pointer)
		return TN_CUDA_OK;
	tn__device_synchronize();
	tn__lock();
	tn_status status = take_back((uintptr_t)pointer, TAG_HOST_ALLOCATED, &range);
	tn__unlock();
	if (status == TN_OK)
		munmap(pointer, range.size);
	return tn__memory_status(status);
}

/* Managed memory lies where it was touched last, and the driver moves pages to the host when the card is full (CUDA
 * programming guide, unified memory): it takes no room that an allocation could not have. So none of it is counted on the
 * card; how much there was is told beside it. */
static void
note_managed(int64_t change)
{
	struct tn_ledger *ledger = tn__core.ledger;
	uint64_t now = atomic_fetch_add_explicit(&ledger->managed_bytes, (uint64_t)change, memory_order_relaxed) +
	               (uint64_t)change;
	if (change > 0)
		raise_to(&ledger->managed_peak, now);
}

int
tn__malloc_managed(uint64_t bytes, uint64_t *address)
{
	if (bytes == 0)
		return TN_CUDA_INVALID_VALUE;
	uint64_t size = round_up(bytes, 4096);
	void *mapping = map_host(size, 0);
	if (!mapping)
		return TN_CUDA_OUT_OF_MEMORY;
	int result = note_host(mapping, size, TAG_MANAGED);
	if (result != TN_CUDA_OK) {
		munmap(mapping, size);
		return result;
	}
	note_managed((int64_t)size);
	*address = (uintptr_t)mapping;
	return TN_CUDA_OK;
}

static void
free_managed(uint64_t address, tn_status *status)
{
	struct tn_range range;
	*status = take_back(address, TAG_MANAGED, &range);
	if (*status != TN_OK)
		return;
	note_managed(-(int64_t)range.size);
	munmap((void *)(uintptr_t)address, range.size);
}

int
tn__register_host(void *pointer, uint64_t bytes)
{
	if (!pointer || bytes == 0)
		return TN_CUDA_INVALID_VALUE;
	return note_host(pointer, bytes, TAG_HOST_REGISTERED);
}

int
tn__unregister_host(void *pointer)
{
	tn__lock();
	tn_status status = take_back((uintptr_t)pointer, TAG_HOST_REGISTERED, NULL);
	tn__unlock();
	return status == TN_OK ? TN_CUDA_OK : TN_CUDA_HOST_NOT_REGISTERED;
}

/* ---- what is this address? ---- */

static bool
device_pointer(uint64_t address, struct tn_pointer_info *info)
{
	int device = device_of_address(address);
	struct tn_range *range = device < 0 ? NULL : tn__space_find(&tn__core.devices[device].space, address);
	if (range && range->tag == TAG_SHARED)
		range = tn__space_find(&((struct shared_page *)range->object)->space, address);
	if (!range)
		return false;
	*info = (struct tn_pointer_info){
		.kind = TN_MEMORY_DEVICE, .device = device, .base = range->address, .size = range->size, .exportable = true
	};
	return true;
}

static bool
host_pointer(uint64_t address, struct tn_pointer_info *info)
{
	struct tn_range *range = tn__space_find(&host_ranges, address);
	if (!range)
		return false;
	*info = (struct tn_pointer_info){ .kind = range->tag == TAG_MANAGED ? TN_MEMORY_MANAGED : TN_MEMORY_HOST,
		                              .device = tn__current_device(),
		                              .base = range->address,
		                              .size = range->size,
		                              .registered = range->tag == TAG_HOST_REGISTERED };
	return true;
}

void
tn__pointer_info(uint64_t address, struct tn_pointer_info *info)
{
	*info = (struct tn_pointer_info){ .kind = TN_MEMORY_UNKNOWN };
	tn__lock();
	if (!device_pointer(address, info) && !tn__vmm_pointer_locked(address, info) && !tn__imported_locked(address, info))
		host_pointer(address, info);
	tn__unlock();
}
