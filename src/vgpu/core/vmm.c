/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management: reservations of addresses, physical memory behind handles, mappings of one into the other.
 * Physical memory is accounted when it is created and given back when its last handle and last mapping are gone, as
 * cuMemRelease documents.
 */
#include "vgpu/core/state.h"

#include <stdlib.h>

struct physical {
	int device;
	uint64_t size;
	uint32_t handles, mappings;
	uintptr_t handle;
	struct tn_share *share; /* with other processes, or NULL */
};

/* A reservation is a range of tn__core.vmm whose object is a space of the mappings inside it. */
int
tn__vmm_reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *address)
{
	if (bytes == 0 || bytes % TN_GRANULARITY || (alignment & (alignment - 1)))
		return TN_CUDA_INVALID_VALUE;
	struct tn_space *mappings = calloc(1, sizeof(*mappings));
	if (!mappings)
		return TN_CUDA_OUT_OF_MEMORY;
	struct tn_range range;
	uint64_t step = alignment > TN_GRANULARITY ? alignment : TN_GRANULARITY;
	tn__lock();
	tn_status status = tn__space_take(&tn__core.vmm, bytes, step, wanted, 0, mappings, &range);
	if (status == TN_OK)
		tn__space_init(mappings, range.address, bytes);
	tn__unlock();
	if (status != TN_OK) {
		free(mappings);
		return tn__memory_status(status);
	}
	*address = range.address;
	return TN_CUDA_OK;
}

int
tn__vmm_free(uint64_t address, uint64_t bytes)
{
	int result = TN_CUDA_INVALID_VALUE;
	struct tn_space *mappings = NULL;
	tn__lock();
	struct tn_range *range = tn__space_find(&tn__core.vmm, address);
	if (range && range->address == address && range->size == bytes) {
		mappings = range->object;
		if (mappings->count == 0)
			result = tn__memory_status(tn__space_give(&tn__core.vmm, address, NULL));
	}
	if (result == TN_CUDA_OK) {
		tn__space_destroy(mappings);
		free(mappings);
	}
	tn__unlock();
	return result;
}

int
tn__vmm_create(int device, uint64_t bytes, uintptr_t *handle)
{
	if (bytes == 0 || bytes % TN_GRANULARITY)
		return TN_CUDA_INVALID_VALUE;
	tn_status there = tn__ensure_context(device);
	if (there != TN_OK)
		return there == TN_OUT_OF_DEVICE_MEMORY ? TN_CUDA_OUT_OF_MEMORY : TN_CUDA_INVALID_DEVICE;
	struct physical *memory = calloc(1, sizeof(*memory));
	if (!memory)
		return TN_CUDA_OUT_OF_MEMORY;
	tn__lock();
	tn_clock_advance(&tn__core.devices[device].clock, TN_CLOCK_CALL_NS);
	tn_status status = tn__memory_take(device, TN_BYTES_PROGRAM, bytes);
	if (status == TN_OK) {
		*memory = (struct physical){ .device = device, .size = bytes, .handles = 1 };
		memory->handle = tn__table_add(&tn__core.memory_handles, memory);
		if (memory->handle) {
			*handle = memory->handle;
		} else {
			tn__memory_give(device, TN_BYTES_PROGRAM, bytes);
			status = TN_NO_MEMORY;
		}
	}
	tn__unlock();
	if (status != TN_OK)
		free(memory);
	return tn__memory_status(status);
}

static void
drop_if_unused(struct physical *memory)
{
	if (memory->handles || memory->mappings)
		return;
	tn__memory_give_back(memory->device, TN_BYTES_PROGRAM, memory->size, memory->share);
	tn__table_remove(&tn__core.memory_handles, memory->handle);
	free(memory);
}

struct tn_share *
tn__vmm_share_locked(uintptr_t handle)
{
	struct physical *memory = tn__table_get(&tn__core.memory_handles, handle);
	if (memory && !memory->share)
		memory->share = tn__share_make(memory->device, TN_BYTES_PROGRAM, memory->size);
	return memory ? memory->share : NULL;
}

uintptr_t
tn__vmm_adopt_locked(struct tn_share *share)
{
	struct physical *memory = calloc(1, sizeof(*memory));
	if (!memory)
		return 0;
	*memory = (struct physical){ .device = share->device, .size = share->size, .handles = 1, .share = share };
	uintptr_t handle = memory->handle = tn__table_add(&tn__core.memory_handles, memory);
	if (!handle)
		free(memory);
	return handle;
}

int
tn__vmm_release(uintptr_t handle)
{
	int result = TN_CUDA_INVALID_VALUE;
	tn__lock();
	struct physical *memory = tn__table_get(&tn__core.memory_handles, handle);
	if (memory && memory->handles) {
		memory->handles--;
		drop_if_unused(memory);
		result = TN_CUDA_OK;
	}
	tn__unlock();
	return result;
}

static struct tn_space *
mappings_at(uint64_t address)
{
	struct tn_range *range = tn__space_find(&tn__core.vmm, address);
	return range ? range->object : NULL;
}

int
tn__vmm_retain(uint64_t address, uintptr_t *handle)
{
	int result = TN_CUDA_INVALID_VALUE;
	tn__lock();
	struct tn_space *mappings = mappings_at(address);
	struct tn_range *mapping = mappings ? tn__space_find(mappings, address) : NULL;
	if (mapping) {
		struct physical *memory = mapping->object;
		memory->handles++;
		*handle = memory->handle;
		result = TN_CUDA_OK;
	}
	tn__unlock();
	return result;
}

int
tn__vmm_device(uintptr_t handle, int *device)
{
	tn__lock();
	const struct physical *memory = tn__table_get(&tn__core.memory_handles, handle);
	if (memory)
		*device = memory->device;
	tn__unlock();
	return memory ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

int
tn__vmm_map(uint64_t address, uint64_t bytes, uint64_t offset, uintptr_t handle)
{
	struct tn_range range;
	int result = TN_CUDA_INVALID_VALUE;
	tn__lock();
	struct tn_space *mappings = mappings_at(address);
	struct physical *memory = tn__table_get(&tn__core.memory_handles, handle);
	/* The documentation asks for offset 0 and a size that is the handle's. */
	if (mappings && memory && offset == 0 && bytes == memory->size && address % TN_GRANULARITY == 0 &&
	    tn__space_take(mappings, bytes, TN_GRANULARITY, address, 0, memory, &range) == TN_OK) {
		if (range.address == address) {
			memory->mappings++;
			result = TN_CUDA_OK;
		} else {
			tn__space_give(mappings, range.address, NULL);
		}
	}
	tn__unlock();
	return result;
}

int
tn__vmm_unmap(uint64_t address, uint64_t bytes)
{
	tn__lock();
	struct tn_space *mappings = mappings_at(address);
	uint64_t cursor = address;
	while (mappings && cursor < address + bytes) {
		struct tn_range *mapping = tn__space_find(mappings, cursor);
		if (!mapping || mapping->address != cursor)
			break;
		struct physical *memory = mapping->object;
		cursor += mapping->size;
		tn__space_give(mappings, mapping->address, NULL);
		memory->mappings--;
		drop_if_unused(memory);
	}
	tn__values_forget_range(address, bytes);
	tn__unlock();
	return mappings && cursor == address + bytes ? TN_CUDA_OK : TN_CUDA_INVALID_VALUE;
}

bool
tn__vmm_pointer_locked(uint64_t address, struct tn_pointer_info *info)
{
	struct tn_space *mappings = mappings_at(address);
	struct tn_range *mapping = mappings ? tn__space_find(mappings, address) : NULL;
	if (!mapping)
		return false;
	*info = (struct tn_pointer_info){ .kind = TN_MEMORY_DEVICE,
		                              .device = ((struct physical *)mapping->object)->device,
		                              .base = mapping->address,
		                              .size = mapping->size };
	return true;
}
