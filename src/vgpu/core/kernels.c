/* SPDX-License-Identifier: Apache-2.0
 *
 * Every kernel that the program has registered, found by its host stub or its handle. Knows nothing of launches.
 */
#include "vgpu/core/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* What the program may name a kernel by, its host stub or its handle (which is the kernel's own address), hashes to it:
 * open addressing, a power of two of slots, at most half full. */
struct name_of_kernel {
	const void *key;
	struct tn_kernel *kernel;
};
static struct name_of_kernel *by_key;
static size_t key_slots, key_count;

/* Every kernel, for the list at the end. */
static struct tn_kernel **all;
static size_t all_count, all_capacity;

static size_t
slot_of(const void *key, size_t slots)
{
	return (size_t)(((uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (slots - 1);
}

static void
put_key(struct name_of_kernel *table, size_t slots, const void *key, struct tn_kernel *kernel)
{
	size_t slot = slot_of(key, slots);
	while (table[slot].key)
		slot = (slot + 1) & (slots - 1);
	table[slot] = (struct name_of_kernel){ .key = key, .kernel = kernel };
}

static bool
grow_keys(void)
{
	size_t slots = key_slots ? key_slots * 2 : 8192;
	struct name_of_kernel *table = calloc(slots, sizeof(*table));
	if (!table)
		return false;
	for (size_t i = 0; i < key_slots; i++)
		if (by_key[i].key)
			put_key(table, slots, by_key[i].key, by_key[i].kernel);
	free(by_key);
	by_key = table;
	key_slots = slots;
	return true;
}

struct tn_kernel *
tn__kernel_find_locked(const void *key)
{
	if (!key_slots || !key)
		return NULL;
	for (size_t slot = slot_of(key, key_slots); by_key[slot].key; slot = (slot + 1) & (key_slots - 1))
		if (by_key[slot].key == key)
			return by_key[slot].kernel;
	return NULL;
}

static bool
reserve(void)
{
	if ((key_count + 2) * 2 >= key_slots && !grow_keys())
		return false;
	return tn__array_room(&all, &all_capacity, all_count + 1, sizeof(*all), SIZE_MAX);
}

int
tn__kernel_register(const void *host, const char *name, bool copy, struct tn_kernel **out)
{
	struct tn_kernel *kernel = calloc(1, sizeof(*kernel));
	char *copied = copy ? strdup(name) : NULL;
	if (!kernel || (copy && !copied)) {
		free(copied);
		free(kernel);
		return TN_CUDA_OUT_OF_MEMORY;
	}
	kernel->name = copy ? copied : name;
	kernel->host = host;
	tn__lock();
	bool room = reserve();
	if (room) {
		all[all_count++] = kernel;
		put_key(by_key, key_slots, kernel, kernel);
		key_count++;
		if (host) {
			put_key(by_key, key_slots, host, kernel);
			key_count++;
		}
	}
	tn__unlock();
	if (!room) {
		free(copied);
		free(kernel);
		return TN_CUDA_OUT_OF_MEMORY;
	}
	if (out)
		*out = kernel;
	return TN_CUDA_OK;
}

void
tn__kernel_code_gone(struct tn_kernel_code *code)
{
	tn__lock();
	code->image = NULL;
	tn__unlock();
}

void
tn__kernels_of_locked(const struct tn_kernel_code *code,
                      void (*visit)(struct tn_kernel *kernel, const struct tn_code *read), const struct tn_code *read)
{
	for (size_t i = 0; i < all_count; i++)
		if (all[i]->code == code)
			visit(all[i], read);
}

struct tn_kernel *
tn__kernel_find(const void *key)
{
	tn__lock();
	struct tn_kernel *kernel = tn__kernel_find_locked(key);
	tn__unlock();
	return kernel;
}

struct tn_kernel *
tn__kernel_at_locked(size_t index)
{
	return index < all_count ? all[index] : NULL;
}
