/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger's invariants (ledger.h), checked.
 */
#include "device/ledger.h"

#include <string.h>

#include "base/error.h"

static tn_status
check_regions(const struct tn_ledger *ledger)
{
	uint32_t processes[TN_LEDGER_REGIONS];
	tn__ledger_count_regions(ledger, processes);
	for (uint32_t i = 0; i < TN_LEDGER_REGIONS; i++) {
		const struct tn_ledger_region *region = &ledger->regions[i];
		bool occupied = ledger->regions_occupied >> i & 1;
		TN_RETURN_IF(region->processes != processes[i] || occupied != (processes[i] > 0) ||
		                 (occupied && i >= ledger->region_count),
		             TN_STATE, "invariant 5: region %u counts other processes than are in it", i);
		for (uint32_t device = 0; occupied && device < ledger->device_count; device++)
			TN_RETURN_IF(region->peak_used_bytes[device] < ledger->devices[device].used_bytes ||
			                 region->peak_program_bytes[device] < ledger->devices[device].program_bytes,
			             TN_STATE, "invariant 5: region %u peaked below what device %u holds", i, device);
	}
	return TN_OK;
}

tn_status
tn__ledger_check_locked(struct tn_ledger *ledger)
{
	tn_status status = TN_OK;
	for (uint32_t i = 0; i < ledger->device_count && status == TN_OK; i++) {
		const struct tn_ledger_device *device = &ledger->devices[i];
		if (device->used_bytes != tn__ledger_bytes_of(ledger, (int)i))
			status = tn__fail(TN_STATE, "invariant 1: device %u uses other bytes than its processes hold", i);
		else if (device->used_bytes > device->gpu.total_bytes + device->spill_bytes ||
		         device->peak_used_bytes < device->used_bytes)
			status = tn__fail(TN_STATE, "invariant 2: device %u holds more than it can or than its peak", i);
		else if (device->program_bytes != tn__ledger_program_bytes_of(ledger, (int)i))
			status = tn__fail(TN_STATE, "invariant 4: device %u counts other program bytes than its processes hold", i);
	}
	for (int slot = 0; slot < TN_LEDGER_PROCESSES && status == TN_OK; slot++) {
		static const struct tn_ledger_process nothing;
		const struct tn_ledger_process *process = &ledger->processes[slot];
		if (process->state == TN_PROCESS_FREE &&
		    (process->region != 0 || memcmp(process->bytes, nothing.bytes, sizeof(process->bytes)) != 0))
			status = tn__fail(TN_STATE, "invariant 3: free slot %d holds bytes or a region", slot);
	}
	if (status == TN_OK)
		status = check_regions(ledger);
	if (status == TN_OK)
		status = tn__shares_check(ledger);
	return status;
}

tn_status
tn__ledger_check(struct tn_ledger *ledger)
{
	tn__ledger_lock(ledger);
	tn_status status = tn__ledger_check_locked(ledger);
	tn__ledger_release(ledger);
	return status;
}
