/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger's lock, and its sums, which are made anew from the slots when the lock's owner died.
 */
#include "device/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

uint64_t
tn__ledger_bytes_of(const struct tn_ledger *ledger, int device)
{
	uint64_t sum = ledger->devices[device].other_bytes;
	for (int slot = 0; slot < TN_LEDGER_PROCESSES; slot++)
		for (int class = 0; class < TN_BYTES_CLASSES; class++)
			sum += ledger->processes[slot].bytes[device][class];
	return sum;
}

uint64_t
tn__ledger_program_bytes_of(const struct tn_ledger *ledger, int device)
{
	uint64_t sum = 0;
	for (int slot = 0; slot < TN_LEDGER_PROCESSES; slot++)
		sum += ledger->processes[slot].bytes[device][TN_BYTES_PROGRAM];
	return sum;
}

void
tn__ledger_count_regions(const struct tn_ledger *ledger, uint32_t processes[TN_LEDGER_REGIONS])
{
	memset(processes, 0, TN_LEDGER_REGIONS * sizeof(*processes));
	for (int slot = 0; slot < TN_LEDGER_PROCESSES; slot++) {
		uint32_t region = ledger->processes[slot].region;
		if (region > 0 && region <= TN_LEDGER_REGIONS)
			processes[region - 1]++;
	}
}

static void
recompute_programs(struct tn_ledger *ledger)
{
	for (uint32_t i = 0; i < ledger->program_count; i++)
		memset(ledger->programs[i].bytes, 0, sizeof(ledger->programs[i].bytes));
	for (int slot = 0; slot < TN_LEDGER_PROCESSES && ledger->program_count > 0; slot++) {
		const struct tn_ledger_process *process = &ledger->processes[slot];
		if (process->state == TN_PROCESS_FREE || process->program == 0)
			continue;
		for (uint32_t device = 0; device < ledger->device_count; device++)
			for (int class = 0; class < TN_BYTES_CLASSES; class++)
				ledger->programs[process->program - 1].bytes[device] += process->bytes[device][class];
	}
}

void
tn__ledger_recompute(struct tn_ledger *ledger)
{
	uint32_t processes[TN_LEDGER_REGIONS];
	for (uint32_t device = 0; device < ledger->device_count; device++) {
		ledger->devices[device].used_bytes = tn__ledger_bytes_of(ledger, (int)device);
		ledger->devices[device].program_bytes = tn__ledger_program_bytes_of(ledger, (int)device);
	}
	recompute_programs(ledger);
	tn__ledger_count_regions(ledger, processes);
	ledger->regions_occupied = 0;
	for (uint32_t i = 0; i < TN_LEDGER_REGIONS; i++) {
		ledger->regions[i].processes = processes[i];
		ledger->regions_occupied |= (uint64_t)(processes[i] > 0) << i;
	}
}

/* A dead owner's half-made change is impossible to see: sums are only touched after the slot, by single stores of values
 * computed before, and a sweep recomputes the sums from the slots. */
void
tn__ledger_lock(struct tn_ledger *ledger)
{
	if (pthread_mutex_lock(&ledger->lock) == EOWNERDEAD) {
		pthread_mutex_consistent(&ledger->lock);
		tn__ledger_recompute(ledger);
	}
}

void
tn__ledger_release(struct tn_ledger *ledger)
{
	pthread_mutex_unlock(&ledger->lock);
}

void
tn__ledger_unlock(struct tn_ledger *ledger)
{
#ifndef NDEBUG
	if (tn__ledger_check_locked(ledger) != TN_OK) {
		fprintf(stderr, "tonnage: the ledger is broken: %s\n", tn_error_text());
		abort();
	}
#endif
	tn__ledger_release(ledger);
}

tn_status
tn__ledger_init_lock(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attributes;
	int failed = pthread_mutexattr_init(&attributes);
	if (!failed)
		failed = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (!failed)
		failed = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (!failed)
		failed = pthread_mutex_init(mutex, &attributes);
	TN_RETURN_IF(failed, TN_IO, "cannot make a lock shared between processes: %s", strerror(failed));
	return TN_OK;
}
