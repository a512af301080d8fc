/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger: sums, the last byte, peaks and what they were made of, dead owners, a lock that a dead process held.
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
	struct tn_gpu_figures gpus[TN_MAX_DEVICES] = {0};
	struct tn_ledger *ledger = NULL;
	for (int i = 0; i < devices; i++)
		gpus[i].total_bytes = total;
	snprintf(path, sizeof(path), "/tmp/tonnage-test-ledger-%d", (int)getpid());
	unlink(path);
	assert_int_equal(tn_ledger_create(path, gpus, devices, other, &ledger), TN_OK);
	return ledger;
}

static void
finish(struct tn_ledger *ledger)
{
	assert_int_equal(tn__ledger_check(ledger), TN_OK);
	tn_ledger_close(ledger);
	unlink(path);
}

static void
test_last_byte(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 30 * MIB);
	int slot;
	assert_int_equal(tn_ledger_enter(ledger, getpid(), &slot), TN_OK);
	assert_int_equal(tn_ledger_free_bytes(ledger, 0), 70 * MIB);
	assert_int_equal(tn_ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 70 * MIB + 1, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_int_equal(tn_ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 70 * MIB, NULL), TN_OK);
	assert_int_equal(tn_ledger_take(ledger, 0, slot, TN_BYTES_LIBRARY, 1, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_int_equal(ledger->devices[0].refusal.count, 2);
	assert_int_equal(ledger->devices[0].refusal.requested_bytes, 1);
	assert_int_equal(ledger->devices[0].refusal.free_bytes, 0);
	/* nothing overflows its way in */
	assert_int_equal(tn_ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, UINT64_MAX, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_int_equal(tn_ledger_take(ledger, 1, slot, TN_BYTES_PROGRAM, 1, NULL), TN_INVALID);
	finish(ledger);
}

static void
test_peak_and_its_parts(void **state)
{
	struct tn_ledger *ledger = make(2, 100 * MIB, 5 * MIB);
	int slot;
	assert_int_equal(tn_ledger_enter(ledger, getpid(), &slot), TN_OK);
	tn_ledger_take(ledger, 1, slot, TN_BYTES_CONTEXT, 10 * MIB, NULL);
	tn_ledger_take(ledger, 1, slot, TN_BYTES_PROGRAM, 40 * MIB, NULL);
	tn_ledger_give(ledger, 1, slot, TN_BYTES_PROGRAM, 40 * MIB);
	tn_ledger_take(ledger, 1, slot, TN_BYTES_LIBRARY, 20 * MIB, NULL);
	const struct tn_ledger_device *device = &ledger->devices[1];
	assert_int_equal(device->peak_used_bytes, 55 * MIB);
	assert_int_equal(device->used_bytes, 35 * MIB);
	assert_int_equal(device->at_peak.bytes[TN_BYTES_CONTEXT], 10 * MIB);
	assert_int_equal(device->at_peak.bytes[TN_BYTES_PROGRAM], 40 * MIB);
	assert_int_equal(device->at_peak.bytes[TN_BYTES_LIBRARY], 0);
	assert_int_equal(device->at_peak.other_bytes, 5 * MIB);
	assert_int_equal(ledger->devices[0].peak_used_bytes, 5 * MIB);
	/* more than was taken does not come back */
	tn_ledger_give(ledger, 1, slot, TN_BYTES_LIBRARY, 90 * MIB);
	assert_int_equal(device->used_bytes, 15 * MIB);
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
		tn_ledger_enter(ledger, getpid(), &own);
		tn_ledger_take(ledger, 0, own, TN_BYTES_PROGRAM, 90 * MIB, NULL);
		(void)!write(ready[1], "r", 1);
		pause();
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(tn_ledger_free_bytes(ledger, 0), 10 * MIB);
	assert_int_equal(tn_ledger_sweep(ledger), 0); /* it lives */
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* An allocation that would not fit looks for dead owners first. */
	assert_int_equal(tn_ledger_enter(ledger, getpid(), &slot), TN_OK);
	assert_int_equal(tn_ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 95 * MIB, NULL), TN_OK);
	close(ready[0]);
	close(ready[1]);
	finish(ledger);
}

static void
test_lock_of_a_dead_process(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int slot;
	assert_int_equal(tn_ledger_enter(ledger, getpid(), &slot), TN_OK);
	tn_ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 7 * MIB, NULL);
	pid_t child = fork();
	if (child == 0) {
		pthread_mutex_lock(&ledger->lock);
		ledger->devices[0].used_bytes = 12345; /* a change that was never finished */
		_exit(0);
	}
	waitpid(child, NULL, 0);
	assert_int_equal(tn_ledger_free_bytes(ledger, 0), 93 * MIB);
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
	assert_int_equal(tn_ledger_enter(ledger, getpid(), &slot), TN_OK);
	/* All alive: refused. */
	uint64_t start = tn__process_start_time(getpid());
	assert_true(start > 0);
	for (int i = 0; i < TN_LEDGER_PROCESSES; i++) {
		ledger->processes[i].state = TN_PROCESS_ALIVE;
		ledger->processes[i].pid = getpid();
		ledger->processes[i].start_time = start;
	}
	assert_int_equal(tn_ledger_enter(ledger, getppid(), &slot), TN_LIMIT);
	finish(ledger);
}

static void
test_nth_allocation_fails(void **state)
{
	struct tn_ledger *ledger = make(1, 100 * MIB, 0);
	int slot;
	tn_ledger_enter(ledger, getpid(), &slot);
	ledger->devices[0].fail_countdown = 3;
	assert_int_equal(tn_ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 1, NULL), TN_OK);
	assert_int_equal(tn_ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 1, NULL), TN_OK);
	assert_int_equal(tn_ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 1, NULL), TN_OUT_OF_DEVICE_MEMORY);
	assert_int_equal(tn_ledger_take(ledger, 0, slot, TN_BYTES_PROGRAM, 1, NULL), TN_OK);
	finish(ledger);
}

static void
test_refused_calls(void **state)
{
	struct tn_ledger *ledger = make(1, MIB, 0);
	char name[96];
	tn_ledger_count_call(ledger, "cufft", "cufftExec");
	tn_ledger_count_call(ledger, "cufft", "cufftExec");
	tn_ledger_count_call(ledger, "other", "cufftExec");
	assert_int_equal(ledger->call_count, 2);
	assert_int_equal(ledger->calls[0].count, 2);
	for (int i = 0; i < TN_LEDGER_CALLS; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		tn_ledger_count_call(ledger, "x", name);
	}
	assert_int_equal(ledger->call_count, TN_LEDGER_CALLS);
	assert_int_equal(ledger->calls_lost, 2);
	finish(ledger);
}

static void
test_files_that_are_none(void **state)
{
	struct tn_ledger *ledger = NULL;
	assert_int_equal(tn_ledger_open("/nonexistent/ledger", &ledger), TN_IO);
	assert_int_equal(tn_ledger_open("/dev/null", &ledger), TN_FORMAT);
	assert_null(ledger);
	struct tn_ledger *made = make(1, MIB, 0);
	assert_int_equal(tn_ledger_create(path, NULL, 0, 0, &ledger), TN_IO); /* exists */
	made->version = 99;
	assert_int_equal(tn_ledger_open(path, &ledger), TN_FORMAT);
	made->version = TN_LEDGER_VERSION;
	assert_int_equal(tn_ledger_open(path, &ledger), TN_OK);
	tn_ledger_close(ledger);
	finish(made);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_byte),
		cmocka_unit_test(test_peak_and_its_parts),
		cmocka_unit_test(test_killed_process_gives_back),
		cmocka_unit_test(test_lock_of_a_dead_process),
		cmocka_unit_test(test_more_processes_than_slots),
		cmocka_unit_test(test_nth_allocation_fails),
		cmocka_unit_test(test_refused_calls),
		cmocka_unit_test(test_files_that_are_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
