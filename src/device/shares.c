/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations that several processes of a run map: the ledger's table of them (layout and rules in ledger.h). Each is
 * charged to one process that has it open, so that the sums of the ledger count it once. Knows no address.
 *
 * What CUDA documents: memory behind a shareable handle stays until its last mapping and its last handle are gone, in
 * whatever process (cuMemRelease). For cudaIpcOpenMemHandle, freeing what another process has open is undefined; it is
 * treated the same, which never says that memory is free while it may be in use.
 */
#include "device/ledger.h"

#include <string.h>

#include "base/error.h"

static uint64_t
bit_of(int slot)
{
	return UINT64_C(1) << (slot % 64);
}

static bool
is_open(const struct tn_ledger_share *share, int slot)
{
	return share->open[slot / 64] & bit_of(slot);
}

static int
any_opener(const struct tn_ledger_share *share)
{
	for (int word = 0; word < TN_LEDGER_PROCESSES / 64; word++)
		if (share->open[word])
			return word * 64 + __builtin_ctzll(share->open[word]);
	return -1;
}

/* Bytes that a slot is no longer charged with; the device still holds them. */
static void
uncharge(struct tn_ledger *ledger, const struct tn_ledger_share *share, int slot)
{
	uint64_t *held = &ledger->processes[slot].bytes[share->device][share->class];
	uint64_t back = share->bytes < *held ? share->bytes : *held;
	uint32_t program = ledger->processes[slot].program;
	*held -= back;
	if (program > 0)
		ledger->programs[program - 1].bytes[share->device] -= back;
}

static void
charge(struct tn_ledger *ledger, struct tn_ledger_share *share, int slot)
{
	uint32_t program = ledger->processes[slot].program;
	ledger->processes[slot].bytes[share->device][share->class] += share->bytes;
	if (program > 0)
		ledger->programs[program - 1].bytes[share->device] += share->bytes;
	share->charged = slot;
}

static void
forget(struct tn_ledger *ledger, struct tn_ledger_share *share)
{
	struct tn_ledger_device *device = &ledger->devices[share->device];
	device->used_bytes -= share->bytes;
	if (share->class == TN_BYTES_PROGRAM)
		device->program_bytes -= share->bytes;
	memset(share, 0, sizeof(*share));
	while (ledger->share_count > 0 && ledger->shares[ledger->share_count - 1].id == 0)
		ledger->share_count--;
}

static void
close_locked(struct tn_ledger *ledger, struct tn_ledger_share *share, int slot)
{
	share->open[slot / 64] &= ~bit_of(slot);
	if (share->charged != slot)
		return;
	int heir = any_opener(share);
	uncharge(ledger, share, slot);
	atomic_fetch_add_explicit(&ledger->sequence, 1, memory_order_relaxed);
	if (heir < 0) {
		forget(ledger, share);
		return;
	}
	charge(ledger, share, heir);
}

void
tn__shares_leave(struct tn_ledger *ledger, int slot)
{
	for (uint32_t row = ledger->share_count; row-- > 0;)
		if (ledger->shares[row].id && is_open(&ledger->shares[row], slot))
			close_locked(ledger, &ledger->shares[row], slot);
}

tn_status
tn__ledger_share(struct tn_ledger *ledger, int device, int slot, enum tn_bytes_class class, uint64_t bytes,
                 uint32_t *row, uint64_t *id)
{
	uint32_t free_row = 0;
	tn__ledger_lock(ledger);
	while (free_row < TN_LEDGER_SHARES && ledger->shares[free_row].id)
		free_row++;
	if (free_row < TN_LEDGER_SHARES) {
		struct tn_ledger_share *share = &ledger->shares[free_row];
		*row = free_row;
		*id = atomic_fetch_add_explicit(&ledger->sequence, 1, memory_order_relaxed) + 1;
		share->bytes = bytes;
		share->device = device;
		share->class = (int32_t)class;
		share->charged = slot;
		share->open[slot / 64] |= bit_of(slot);
		share->id = *id;
		if (ledger->share_count <= free_row)
			ledger->share_count = free_row + 1;
	}
	tn__ledger_unlock(ledger);
	TN_RETURN_IF(free_row == TN_LEDGER_SHARES, TN_LIMIT, "more than %d allocations are shared", TN_LEDGER_SHARES);
	return TN_OK;
}

static struct tn_ledger_share *
find(struct tn_ledger *ledger, uint32_t row, uint64_t id)
{
	bool there = id && row < TN_LEDGER_SHARES && ledger->shares[row].id == id;
	return there ? &ledger->shares[row] : NULL;
}

tn_status
tn__ledger_open_share(struct tn_ledger *ledger, int slot, uint32_t row, uint64_t id, struct tn_ledger_share *about)
{
	tn__ledger_lock(ledger);
	struct tn_ledger_share *share = find(ledger, row, id);
	if (share) {
		share->open[slot / 64] |= bit_of(slot);
		*about = *share;
	}
	tn__ledger_unlock(ledger);
	TN_RETURN_IF(!share, TN_NOT_FOUND, "the memory behind this handle is gone");
	return TN_OK;
}

void
tn__ledger_close_share(struct tn_ledger *ledger, int slot, uint32_t row, uint64_t id)
{
	tn__ledger_lock(ledger);
	struct tn_ledger_share *share = find(ledger, row, id);
	if (share && is_open(share, slot))
		close_locked(ledger, share, slot);
	tn__ledger_unlock(ledger);
}

tn_status
tn__shares_check(const struct tn_ledger *ledger)
{
	for (uint32_t row = 0; row < TN_LEDGER_SHARES; row++) {
		const struct tn_ledger_share *share = &ledger->shares[row];
		bool sound = share->id
		                 ? row < ledger->share_count && is_open(share, share->charged) &&
		                       ledger->processes[share->charged].bytes[share->device][share->class] >= share->bytes
		                 : any_opener(share) < 0;
		TN_RETURN_IF(!sound, TN_STATE, "invariant 6: shared allocation %u is charged to nobody who has it open", row);
	}
	return TN_OK;
}
