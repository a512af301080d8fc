/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger: sums, the last byte, peaks and what they were made of, regions, dead owners, a lock that a dead process
 * held.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/ledger.h"

#define MIB (UINT64_C(1) << 20)

static char path[64];

static struct tn_ledger *
make(int devices, uint64_t total, uint64_t other)
{
	struct tn_gpu_figures gpus[TN_MAX_DEVICES] = { 0 };
	struct tn_ledger *ledger = NULL;
	for (int i = 0; i < devices; i++)
		gpus[i].total_bytes = total;
	snprintf(path, sizeof(path), "/tmp/tonnage-test-ledger-%d", (int)getpid());
	unlink(path);
	assert_int_equal(tn__ledger_create(path, gpus, devices, other, &ledger), TN_OK);
	return ledger;
}

static void
finish(struct tn_ledger *ledger)
{
	assert_int_equal(tn__ledger_check(ledger), TN_OK);
	tn__ledger_close(ledger);
	unlink(path);
}

static void
test_last_byte(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 30 * MIB);
	int slot;
	assert_int_equal(tn__ledger_enter(ledger, getpid(), &slot), TN_OK);
	assert_int_equal(tn__ledger_free_bytes(ledger, 0), 70 * MIB);
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 70 * MIB + 1, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 70 * MIB, NULL), TN_OK);
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_LIBRARY, 1, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_int_equal(ledger->devices[0].refusal.count, 2);
	assert_int_equal(ledger->devices[0].refusal.requested_bytes, 1);
	assert_int_equal(ledger->devices[0].refusal.free_bytes, 0);
	/* nothing overflows its way in */
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, UINT64_MAX, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_int_equal(tn__ledger_take(ledger, 1, slot, TN_BYTES_PROGRAM, 1, NULL), TN_INVALID);
	finish(ledger);
}

static void
test_peak_and_its_parts(void **state)
{
	struct tn_ledger *ledger = make(2, 100 * MIB, 5 * MIB);
	int slot;
	assert_int_equal(tn__ledger_enter(ledger, getpid(), &slot), TN_OK);
	tn__ledger_take(ledger, 1, slot, TN_BYTES_CONTEXT, 10 * MIB, NULL);
	tn__ledger_take(ledger, 1, slot, TN_BYTES_PROGRAM, 40 * MIB, NULL);
	tn__ledger_give(ledger, 1, slot, TN_BYTES_PROGRAM, 40 * MIB);
	tn__ledger_take(ledger, 1, slot, TN_BYTES_LIBRARY, 20 * MIB, NULL);
	const struct tn_ledger_device *device = &ledger->devices[1];
	assert_int_equal(device->peak_used_bytes, 55 * MIB);
	assert_int_equal(device->used_bytes, 35 * MIB);
	assert_int_equal(device->at_peak.bytes[TN_BYTES_CONTEXT], 10 * MIB);
	assert_int_equal(device->at_peak.bytes[TN_BYTES_PROGRAM], 40 * MIB);
	assert_int_equal(device->at_peak.bytes[TN_BYTES_LIBRARY], 0);
	assert_int_equal(device->at_peak.other_bytes, 5 * MIB);
	assert_int_equal(ledger->devices[0].peak_used_bytes, 5 * MIB);
	/* more than was taken does not come back */
	tn__ledger_give(ledger, 1, slot, TN_BYTES_LIBRARY, 90 * MIB);
	assert_int_equal(device->used_bytes, 15 * MIB);
	finish(ledger);
}

/* Where the driver goes on in the computer's memory: nothing of the card is free then, and there is an end to it, too. */
static void
test_spilling(void **state)
{
	(void)state;
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int slot;
	ledger->devices[0].spill_bytes = 50 * MIB;
	assert_int_equal(tn__ledger_enter(ledger, getpid(), &slot), TN_OK);
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 90 * MIB, NULL), TN_OK);
	assert_int_equal(tn__ledger_free_bytes(ledger, 0), 10 * MIB);
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 60 * MIB, NULL), TN_OK);
	assert_int_equal(tn__ledger_free_bytes(ledger, 0), 0);
	assert_int_equal(ledger->devices[0].peak_used_bytes, 150 * MIB);
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 1, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_int_equal(ledger->devices[0].refusal.free_bytes, 0);
	finish(ledger);
}

/* Several programs: each has the bytes of its processes, its own peak, its part of the device's peak and of a refusal. */
static void
test_programs(void **state)
{
	(void)state;
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	const struct tn_ledger_device *device = &ledger->devices[0];
	int own, other;
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	ledger->program_count = 2;
	assert_int_equal(tn__ledger_enter(ledger, getpid(), &own), TN_OK);
	assert_int_equal(tn__ledger_enter(ledger, child, &other), TN_OK);
	tn__ledger_set_program(ledger, own, 1);
	tn__ledger_set_program(ledger, other, 2);
	tn__ledger_set_program(ledger, other, 3); /* there is no third */
	assert_int_equal(tn__ledger_take(ledger, 0, own, TN_BYTES_PROGRAM, 40 * MIB, NULL), TN_OK);
	assert_int_equal(tn__ledger_take(ledger, 0, other, TN_BYTES_CONTEXT, 20 * MIB, NULL), TN_OK);
	tn__ledger_give(ledger, 0, own, TN_BYTES_PROGRAM, 30 * MIB);
	assert_int_equal(tn__ledger_take(ledger, 0, other, TN_BYTES_PROGRAM, 35 * MIB, NULL), TN_OK);
	assert_int_equal(device->at_peak.programs[0][TN_BYTES_PROGRAM], 10 * MIB);
	assert_int_equal(device->at_peak.programs[1][TN_BYTES_PROGRAM], 35 * MIB);
	assert_int_equal(device->at_peak.programs[1][TN_BYTES_CONTEXT], 20 * MIB);
	assert_int_equal(ledger->programs[0].peak_bytes[0], 40 * MIB);
	assert_int_equal(ledger->programs[1].peak_bytes[0], 55 * MIB);
	assert_int_equal(tn__ledger_take(ledger, 0, own, TN_BYTES_PROGRAM, 90 * MIB, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_int_equal(device->refusal.held.programs[1][TN_BYTES_PROGRAM], 35 * MIB);
	assert_false(tn__ledger_settle_program(ledger, 1));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(tn__ledger_sweep(ledger), 1);
	assert_int_equal(ledger->programs[1].bytes[0], 0);
	assert_int_equal(ledger->programs[1].peak_bytes[0], 55 * MIB);
	assert_false(tn__ledger_settle_program(ledger, 1)); /* whether a program has ended the supervisor says */
	ledger->programs[1].ended = 1;
	assert_true(tn__ledger_settle_program(ledger, 1));
	assert_true(tn__ledger_settle_program(ledger, 0)); /* one that is none of several */
	finish(ledger);
}

/* Of several processes: who held most as the device held most, and what it held at a refusal, which need not be the peak. */
static void
test_whose_peak_and_what_a_refusal_met(void **state)
{
	(void)state;
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	const struct tn_ledger_device *device = &ledger->devices[0];
	int own, other;
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(tn__ledger_enter(ledger, getpid(), &own), TN_OK);
	assert_int_equal(tn__ledger_enter(ledger, child, &other), TN_OK);
	assert_int_equal(tn__ledger_take(ledger, 0, own, TN_BYTES_PROGRAM, 40 * MIB, NULL), TN_OK);
	assert_int_equal(tn__ledger_take(ledger, 0, other, TN_BYTES_CONTEXT, 50 * MIB, NULL), TN_OK);
	assert_int_equal(tn__ledger_take(ledger, 0, other, TN_BYTES_PROGRAM, 2 * MIB, NULL), TN_OK);
	assert_int_equal(device->at_peak.largest_pid, getpid());
	assert_int_equal(device->at_peak.largest_program, 40 * MIB);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* the other one's context is gone: this one holds more than at the peak, the device less */
	assert_int_equal(tn__ledger_sweep(ledger), 1);
	assert_int_equal(tn__ledger_take(ledger, 0, own, TN_BYTES_PROGRAM, 48 * MIB, NULL), TN_OK);
	assert_int_equal(tn__ledger_take(ledger, 0, own, TN_BYTES_PROGRAM, 20 * MIB, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_int_equal(device->at_peak.bytes[TN_BYTES_PROGRAM], 42 * MIB);
	assert_int_equal(device->refusal.held.bytes[TN_BYTES_PROGRAM], 88 * MIB);
	assert_int_equal(device->refusal.held.bytes[TN_BYTES_CONTEXT], 0);
	assert_int_equal(device->refusal.held.largest_program, 88 * MIB);
	finish(ledger);
}

static void
test_killed_process_gives_back(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int slot, ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		int own;
		tn__ledger_enter(ledger, getpid(), &own);
		tn__ledger_take(ledger, 0, own, TN_BYTES_PROGRAM, 90 * MIB, NULL);
		(void)!write(ready[1], "r", 1);
		pause();
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(tn__ledger_free_bytes(ledger, 0), 10 * MIB);
	assert_int_equal(tn__ledger_sweep(ledger), 0); /* it lives */
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* An allocation that would not fit looks for dead owners first. */
	assert_int_equal(tn__ledger_enter(ledger, getpid(), &slot), TN_OK);
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 95 * MIB, NULL), TN_OK);
	close(ready[0]);
	close(ready[1]);
	finish(ledger);
}

static void
test_lock_of_a_dead_process(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int slot;
	assert_int_equal(tn__ledger_enter(ledger, getpid(), &slot), TN_OK);
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 7 * MIB, NULL);
	pid_t child = fork();
	if (child == 0) {
		pthread_mutex_lock(&ledger->lock);
		ledger->devices[0].used_bytes = 12345; /* a change that was never finished */
		_exit(0);
	}
	waitpid(child, NULL, 0);
	assert_int_equal(tn__ledger_free_bytes(ledger, 0), 93 * MIB);
	finish(ledger);
}

static void
test_more_processes_than_slots(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int slot;
	/* Slots of processes that are gone are taken over. */
	for (int i = 0; i < TN_LEDGER_PROCESSES; i++) {
		ledger->processes[i].state = TN_PROCESS_ALIVE;
		ledger->processes[i].pid = 0x7ffffff0 - i;
		ledger->processes[i].start_time = 1;
	}
	assert_int_equal(tn__ledger_enter(ledger, getpid(), &slot), TN_OK);
	/* All alive: refused. */
	uint64_t start = tn__process_start_time(getpid());
	assert_true(start > 0);
	for (int i = 0; i < TN_LEDGER_PROCESSES; i++) {
		ledger->processes[i].state = TN_PROCESS_ALIVE;
		ledger->processes[i].pid = getpid();
		ledger->processes[i].start_time = start;
	}
	assert_int_equal(tn__ledger_enter(ledger, getppid(), &slot), TN_LIMIT);
	finish(ledger);
}

static void
test_nth_allocation_fails(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int slot;
	tn__ledger_enter(ledger, getpid(), &slot);
	ledger->devices[0].fail_countdown = 3;
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 1, NULL), TN_OK);
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 1, NULL), TN_OK);
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 1, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 1, NULL), TN_OK);
	finish(ledger);
}

static void
test_refused_calls(void **state)
{
	struct tn_ledger *ledger = make(1, MIB, 0);
	char name[96];
	tn__ledger_count_call(ledger, "cufft", "cufftExec");
	tn__ledger_count_call(ledger, "cufft", "cufftExec");
	tn__ledger_count_call(ledger, "other", "cufftExec");
	assert_int_equal(ledger->call_count, 2);
	assert_int_equal(ledger->calls[0].count, 2);
	for (int i = 0; i < TN_LEDGER_CALLS; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		tn__ledger_count_call(ledger, "x", name);
	}
	assert_int_equal(ledger->call_count, TN_LEDGER_CALLS);
	assert_int_equal(ledger->calls_lost, 2);
	finish(ledger);
}

static void
test_files_that_are_none(void **state)
{
	struct tn_ledger *ledger = NULL;
	assert_int_equal(tn__ledger_open("/nonexistent/ledger", &ledger), TN_IO);
	assert_int_equal(tn__ledger_open("/dev/null", &ledger), TN_FORMAT);
	assert_null(ledger);
	struct tn_ledger *made = make(1, MIB, 0);
	assert_int_equal(tn__ledger_create(path, NULL, 0, 0, &ledger), TN_IO); /* exists */
	made->version = 99;
	assert_int_equal(tn__ledger_open(path, &ledger), TN_FORMAT);
	made->version = TN_LEDGER_VERSION;
	assert_int_equal(tn__ledger_open(path, &ledger), TN_OK);
	tn__ledger_close(ledger);
	finish(made);
}

/* ---- regions ---- */

static const struct tn_ledger_region *
region_named(const struct tn_ledger *ledger, const char *name)
{
	for (uint32_t i = 0; i < ledger->region_count; i++)
		if (strcmp(ledger->regions[i].name, name) == 0)
			return &ledger->regions[i];
	return NULL;
}

static void
assert_region(const struct tn_ledger *ledger, const char *name, int device, uint64_t used, uint64_t program)
{
	const struct tn_ledger_region *region = region_named(ledger, name);
	assert_non_null(region);
	assert_int_equal(region->peak_used_bytes[device], used * MIB);
	assert_int_equal(region->peak_program_bytes[device], program * MIB);
}

static void
test_peaks_of_regions(void **state)
{
	struct tn_ledger *ledger = make(2, 100 * MIB, 5 * MIB);
	int slot;
	tn__ledger_enter(ledger, getpid(), &slot);
	tn__ledger_take(ledger, 0, slot, TN_BYTES_CONTEXT, 10 * MIB, NULL);
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 80 * MIB, NULL); /* in no region */
	tn__ledger_give(ledger, 0, slot, TN_BYTES_PROGRAM, 70 * MIB);
	assert_int_equal(tn__ledger_enter_region(ledger, slot, "forward"), TN_OK);
	assert_region(ledger, "forward", 0, 25, 10); /* what was there already */
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 20 * MIB, NULL);
	tn__ledger_take(ledger, 1, slot, TN_BYTES_LIBRARY, 3 * MIB, NULL);
	assert_int_equal(tn__ledger_enter_region(ledger, slot, "backward"), TN_OK);
	tn__ledger_give(ledger, 0, slot, TN_BYTES_PROGRAM, 30 * MIB);
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 5 * MIB, NULL);
	assert_int_equal(tn__ledger_enter_region(ledger, slot, "forward"), TN_OK); /* again: lower, nothing changes */
	assert_int_equal(tn__ledger_enter_region(ledger, slot, NULL), TN_OK);
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 60 * MIB, NULL);
	assert_int_equal(ledger->region_count, 2);
	assert_int_equal(region_named(ledger, "forward")->entered, 2);
	assert_region(ledger, "forward", 0, 45, 30);
	assert_region(ledger, "forward", 1, 8, 0);
	assert_region(ledger, "backward", 0, 45, 30);
	finish(ledger);
}

static void
assert_taken(const struct tn_ledger *ledger, const char *name, int device, uint64_t taken)
{
	assert_int_equal(region_named(ledger, name)->peak_taken_bytes[device], taken * MIB);
}

/* Of a region that took memory itself: what was held then. One that lives on what was there took none. */
static void
test_taken_in_regions(void **state)
{
	struct tn_ledger *ledger = make(2, 100 * MIB, 5 * MIB);
	int slot, other;
	tn__ledger_enter(ledger, getpid(), &slot);
	tn__ledger_enter(ledger, getppid(), &other);
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 60 * MIB, NULL);
	tn__ledger_enter_region(ledger, slot, "forward");
	assert_region(ledger, "forward", 0, 65, 60);
	assert_taken(ledger, "forward", 0, 0);
	tn__ledger_give(ledger, 0, slot, TN_BYTES_PROGRAM, 40 * MIB);
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 10 * MIB, NULL);
	assert_region(ledger, "forward", 0, 65, 60); /* at its start */
	assert_taken(ledger, "forward", 0, 35);      /* when it took something */
	assert_taken(ledger, "forward", 1, 0);
	tn__ledger_take(ledger, 1, slot, TN_BYTES_LIBRARY, 2 * MIB, NULL);
	assert_taken(ledger, "forward", 1, 7); /* a library's bytes are as good */
	tn__ledger_enter_region(ledger, slot, "save");
	tn__ledger_give(ledger, 0, slot, TN_BYTES_PROGRAM, 5 * MIB);
	assert_int_equal(tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 90 * MIB, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_taken(ledger, "save", 0, 0); /* giving and being refused is not taking */
	tn__ledger_enter_region(ledger, slot, "forward");
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, MIB, NULL);
	assert_taken(ledger, "forward", 0, 35); /* less than before */
	/* Two processes in one region: either's bytes count for it, and for the region of the other. */
	tn__ledger_enter_region(ledger, other, "save");
	tn__ledger_take(ledger, 0, other, TN_BYTES_PROGRAM, 9 * MIB, NULL);
	assert_taken(ledger, "save", 0, 40);
	assert_taken(ledger, "forward", 0, 40);
	finish(ledger);
}

/* A region peaks by what all processes hold while one of them is in it. */
static void
test_regions_of_several_processes(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int slot, other;
	tn__ledger_enter(ledger, getpid(), &slot);
	tn__ledger_enter(ledger, getppid(), &other);
	tn__ledger_enter_region(ledger, slot, "train");
	tn__ledger_enter_region(ledger, other, "train");
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 10 * MIB, NULL);
	tn__ledger_enter_region(ledger, slot, "save");
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 10 * MIB, NULL);
	assert_region(ledger, "train", 0, 20, 20); /* the other is still in it */
	tn__ledger_leave(ledger, other);
	assert_int_equal(region_named(ledger, "train")->processes, 0);
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 10 * MIB, NULL);
	assert_region(ledger, "train", 0, 20, 20);
	assert_region(ledger, "save", 0, 30, 30);
	assert_int_equal(tn__ledger_enter_region(ledger, other, "train"), TN_INVALID); /* it left */
	assert_int_equal(tn__ledger_enter_region(ledger, -1, "train"), TN_INVALID);
	finish(ledger);
}

static void
test_names_of_regions(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int slot;
	char name[64];
	tn__ledger_enter(ledger, getpid(), &slot);
	/* 46 letters and a character of two bytes, which is cut away whole; the same name finds the same row */
	memset(name, 'a', 46);
	memcpy(name + 46, "\xc3\xa4zz", 5);
	assert_int_equal(tn__ledger_enter_region(ledger, slot, name), TN_OK);
	assert_int_equal(tn__ledger_enter_region(ledger, slot, name), TN_OK);
	assert_int_equal(ledger->region_count, 1);
	assert_int_equal(strlen(ledger->regions[0].name), 46);
	memset(name, 'b', 63);
	name[63] = '\0';
	assert_int_equal(tn__ledger_enter_region(ledger, slot, name), TN_OK);
	assert_int_equal(strlen(ledger->regions[1].name), TN_LEDGER_REGION_NAME - 1);
	for (int i = 2; i < TN_LEDGER_REGIONS; i++) {
		snprintf(name, sizeof(name), "region %d", i);
		assert_int_equal(tn__ledger_enter_region(ledger, slot, name), TN_OK);
	}
	/* The last row's bit is one, too. */
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 7 * MIB, NULL);
	assert_region(ledger, "region 63", 0, 7, 7);
	assert_int_equal(tn__ledger_enter_region(ledger, slot, "one more"), TN_LIMIT);
	assert_int_equal(ledger->regions_lost, 1);
	assert_int_equal(ledger->regions_occupied, 0);
	tn__ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 7 * MIB, NULL);
	assert_region(ledger, "region 63", 0, 7, 7);
	assert_int_equal(tn__ledger_enter_region(ledger, slot, "region 5"), TN_OK);
	finish(ledger);
}

static void
test_region_of_a_dead_process(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int slot;
	tn__ledger_enter(ledger, getpid(), &slot);
	tn__ledger_enter_region(ledger, slot, "mine");
	pid_t child = fork();
	if (child == 0) {
		int own;
		tn__ledger_enter(ledger, getpid(), &own);
		tn__ledger_take(ledger, 0, own, TN_BYTES_PROGRAM, 9 * MIB, NULL);
		tn__ledger_enter_region(ledger, own, "its");
		pthread_mutex_lock(&ledger->lock);
		ledger->processes[own].region = 1; /* a switch that was never finished */
		_exit(0);
	}
	waitpid(child, NULL, 0);
	assert_int_equal(tn__ledger_sweep(ledger), 1);
	assert_int_equal(region_named(ledger, "its")->processes, 0);
	assert_int_equal(region_named(ledger, "mine")->processes, 1);
	assert_int_equal(ledger->devices[0].program_bytes, 0);
	finish(ledger);
}

/* A debug build walks the invariants whenever the lock is released. */
static void
test_debug_builds_end_where_a_sum_is_wrong(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int status;
	pid_t child = fork();
	if (child == 0) {
		fclose(stderr);
		ledger->devices[0].used_bytes = MIB; /* that nobody holds */
		tn__ledger_count_call(ledger, "libcuda.so.1", "cuRefused");
		_exit(0);
	}
	waitpid(child, &status, 0);
#ifdef NDEBUG
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#else
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#endif
	tn__ledger_close(ledger);
	unlink(path);
}

static void
test_a_job_has_settled_when_all_its_ranks_have(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int ready[2], held[2];
	char byte = 0;
	assert_int_equal(pipe(ready) | pipe(held), 0);
	pid_t child = fork();
	if (child == 0) {
		tn__ledger_join_job(ledger, getpid(), 2);
		_exit(write(ready[1], &byte, 1) != 1 || read(held[0], &byte, 1) != 1);
	}
	assert_true(tn__ledger_settle_member(ledger, getpid())); /* of no job */
	tn__ledger_join_job(ledger, getpid(), 2);
	tn__ledger_join_job(ledger, getpid(), 2); /* once is enough */
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(ledger->member_count, 2);
	assert_false(tn__ledger_settle_member(ledger, getpid())); /* the other one has not */
	assert_int_equal(write(held[1], &byte, 1), 1);
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(tn__ledger_settle_member(ledger, getpid())); /* the other one has ended */
	tn__ledger_join_job(ledger, getpid(), 3);
	assert_false(tn__ledger_settle_member(ledger, getpid())); /* one has not come yet */
	ledger->ranks_run = 2;
	ledger->members_wanted = 0;
	tn__ledger_join_job(ledger, getpid(), 16);
	assert_true(tn__ledger_settle_member(ledger, getpid())); /* the others are not run */
	close(ready[0]), close(ready[1]), close(held[0]), close(held[1]);
	finish(ledger);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_byte),
		cmocka_unit_test(test_peak_and_its_parts),
		cmocka_unit_test(test_spilling),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_whose_peak_and_what_a_refusal_met),
		cmocka_unit_test(test_killed_process_gives_back),
		cmocka_unit_test(test_a_job_has_settled_when_all_its_ranks_have),
		cmocka_unit_test(test_lock_of_a_dead_process),
		cmocka_unit_test(test_more_processes_than_slots),
		cmocka_unit_test(test_nth_allocation_fails),
		cmocka_unit_test(test_refused_calls),
		cmocka_unit_test(test_files_that_are_none),
		cmocka_unit_test(test_peaks_of_regions),
		cmocka_unit_test(test_taken_in_regions),
		cmocka_unit_test(test_regions_of_several_processes),
		cmocka_unit_test(test_names_of_regions),
		cmocka_unit_test(test_region_of_a_dead_process),
		cmocka_unit_test(test_debug_builds_end_where_a_sum_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
