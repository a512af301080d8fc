/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations that processes of a run share: this process's part in them, and where those of other processes are open here.
 * Bytes are counted once, by the ledger (device/shares.c); here are only addresses. Lock: the core's.
 */
#include <stdlib.h>

#include "vgpu/core/state.h"

static struct tn_space imports = { .base = TN_IMPORT_BASE, .size = TN_IMPORT_SIZE };

struct tn_share *
tn__share_make(int device, enum tn_bytes_class class, uint64_t bytes)
{
	struct tn_share *share = calloc(1, sizeof(*share));
	if (!share)
		return NULL;
	share->size = bytes;
	share->device = device;
	if (tn__core.slot < 0 || tn__ledger_share(tn__core.ledger, tn__ledger_device(tn__core.devices[device].physical),
	                                          tn__core.slot, class, bytes, &share->row, &share->id) != TN_OK) {
		free(share);
		return NULL;
	}
	return share;
}

void
tn__share_close(struct tn_share *share)
{
	if (tn__core.slot >= 0)
		tn__ledger_close_share(tn__core.ledger, tn__core.slot, share->row, share->id);
	free(share);
}

void
tn__memory_give_back(int device, enum tn_bytes_class class, uint64_t bytes, struct tn_share *share)
{
	if (share)
		tn__share_close(share);
	else
		tn__memory_give(device, class, bytes);
}

/* The visible device of one of the ledger; the current one when this process does not see it. */
static int
visible_device(int number)
{
	for (int device = 0; device < tn__core.count; device++)
		if (tn__ledger_device(tn__core.devices[device].physical) == number)
			return device;
	return tn__current_device();
}

struct tn_share *
tn__share_join_locked(uint32_t row, uint64_t id)
{
	struct tn_ledger_share about;
	struct tn_share *share = calloc(1, sizeof(*share));
	if (!share)
		return NULL;
	if (tn__core.slot < 0 || tn__ledger_open_share(tn__core.ledger, tn__core.slot, row, id, &about) != TN_OK) {
		free(share);
		return NULL;
	}
	*share = (struct tn_share){
		.row = row, .id = id, .size = about.bytes, .device = visible_device(about.device), .openings = 1
	};
	return share;
}

static struct tn_share *
find_open(uint32_t row, uint64_t id)
{
	for (size_t i = 0; i < imports.count; i++) {
		struct tn_share *share = imports.ranges[i].object;
		if (share->row == row && share->id == id)
			return share;
	}
	return NULL;
}

struct tn_share *
tn__share_open_locked(uint32_t row, uint64_t id)
{
	struct tn_range range;
	struct tn_share *share = find_open(row, id);
	if (share) {
		share->openings++;
		return share;
	}
	share = tn__share_join_locked(row, id);
	if (share && tn__space_take(&imports, share->size, TN_GRANULARITY, 0, 0, share, &range) != TN_OK) {
		tn__share_close(share);
		share = NULL;
	}
	if (share)
		share->address = range.address;
	return share;
}

struct tn_share *
tn__share_at_locked(uint64_t address)
{
	const struct tn_range *range = tn__space_find(&imports, address);
	return range ? range->object : NULL;
}

void
tn__share_unmap_locked(struct tn_share *share)
{
	tn__space_give(&imports, share->address, NULL);
	tn__share_close(share);
}

bool
tn__imported_locked(uint64_t address, struct tn_pointer_info *info)
{
	const struct tn_range *range = tn__space_find(&imports, address);
	if (!range)
		return false;
	*info = (struct tn_pointer_info){ .kind = TN_MEMORY_DEVICE,
		                              .device = ((const struct tn_share *)range->object)->device,
		                              .base = range->address,
		                              .size = range->size };
	return true;
}
