/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations that several processes map: counted once, whoever lets go first, and whoever dies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/ledger.h"

#define MIB (UINT64_C(1) << 20)

static char path[64];

/* Two cards of 100 MiB, and one process that is there until the test ends it. */
struct scene {
	struct tn_ledger *ledger;
	int own, others;
	pid_t other;
};

static pid_t
start_process(void)
{
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	return child;
}

static void
end_process(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static struct scene
make(void)
{
	struct tn_gpu_figures gpus[2] = { { .total_bytes = 100 * MIB }, { .total_bytes = 100 * MIB } };
	struct scene scene = { .other = start_process() };
	snprintf(path, sizeof(path), "/tmp/tonnage-test-shares-%d", (int)getpid());
	unlink(path);
	assert_int_equal(tn__ledger_create(path, gpus, 2, 0, &scene.ledger), TN_OK);
	assert_int_equal(tn__ledger_enter(scene.ledger, getpid(), &scene.own), TN_OK);
	assert_int_equal(tn__ledger_enter(scene.ledger, scene.other, &scene.others), TN_OK);
	return scene;
}

static void
finish(struct scene *scene)
{
	assert_int_equal(tn__ledger_check(scene->ledger), TN_OK);
	tn__ledger_close(scene->ledger);
	end_process(scene->other);
	unlink(path);
}

static uint64_t
used(const struct scene *scene)
{
	assert_int_equal(tn__ledger_check(scene->ledger), TN_OK);
	return scene->ledger->devices[1].used_bytes;
}

static void
share(struct scene *scene, uint32_t *row, uint64_t *id)
{
	assert_int_equal(tn__ledger_take(scene->ledger, 1, scene->own, TN_BYTES_PROGRAM, 40 * MIB, NULL), TN_OK);
	assert_int_equal(tn__ledger_share(scene->ledger, 1, scene->own, TN_BYTES_PROGRAM, 40 * MIB, row, id), TN_OK);
}

/* The other process opens them, too. */
static void
share_and_open(struct scene *scene, uint32_t *row, uint64_t *id, struct tn_ledger_share *about)
{
	share(scene, row, id);
	assert_int_equal(tn__ledger_open_share(scene->ledger, scene->others, *row, *id, about), TN_OK);
}

static void
test_opening_costs_nothing_and_the_last_one_gives_back(void **state)
{
	struct scene scene = make();
	struct tn_ledger_share about;
	uint32_t row;
	uint64_t id;
	share_and_open(&scene, &row, &id, &about);
	assert_int_equal(about.bytes, 40 * MIB);
	assert_int_equal(about.device, 1);
	assert_int_equal(used(&scene), 40 * MIB);
	tn__ledger_close_share(scene.ledger, scene.others, row, id);
	assert_int_equal(used(&scene), 40 * MIB);
	tn__ledger_close_share(scene.ledger, scene.own, row, id);
	assert_int_equal(used(&scene), 0);
	assert_int_equal(scene.ledger->share_count, 0);
	finish(&scene);
}

static void
test_an_owner_that_frees_first_leaves_the_bytes_to_who_has_it_open(void **state)
{
	struct scene scene = make();
	struct tn_ledger_share about;
	uint32_t row;
	uint64_t id;
	share_and_open(&scene, &row, &id, &about);
	tn__ledger_close_share(scene.ledger, scene.own, row, id);
	assert_int_equal(used(&scene), 40 * MIB);
	assert_int_equal(scene.ledger->processes[scene.own].bytes[1][TN_BYTES_PROGRAM], 0);
	assert_int_equal(scene.ledger->processes[scene.others].bytes[1][TN_BYTES_PROGRAM], 40 * MIB);
	tn__ledger_close_share(scene.ledger, scene.others, row, id);
	assert_int_equal(used(&scene), 0);
	finish(&scene);
}

/* The one that is charged dies: the other keeps it. Then nobody has it. */
static void
test_the_dead_have_nothing_open(void **state)
{
	struct scene scene = make();
	struct tn_ledger_share about;
	uint32_t row;
	uint64_t id;
	assert_int_equal(tn__ledger_take(scene.ledger, 1, scene.others, TN_BYTES_PROGRAM, 40 * MIB, NULL), TN_OK);
	assert_int_equal(tn__ledger_share(scene.ledger, 1, scene.others, TN_BYTES_PROGRAM, 40 * MIB, &row, &id), TN_OK);
	assert_int_equal(tn__ledger_open_share(scene.ledger, scene.own, row, id, &about), TN_OK);
	end_process(scene.other);
	assert_int_equal(tn__ledger_sweep(scene.ledger), 1);
	assert_int_equal(used(&scene), 40 * MIB);
	assert_int_equal(scene.ledger->processes[scene.own].bytes[1][TN_BYTES_PROGRAM], 40 * MIB);
	tn__ledger_leave(scene.ledger, scene.own);
	assert_int_equal(used(&scene), 0);
	assert_int_equal(tn__ledger_enter(scene.ledger, getpid(), &scene.own), TN_OK);
	assert_int_equal(tn__ledger_open_share(scene.ledger, scene.own, row, id, &about), TN_NOT_FOUND);
	scene.other = start_process();
	finish(&scene);
}

static void
test_a_row_that_is_used_again_has_another_id(void **state)
{
	struct scene scene = make();
	struct tn_ledger_share about;
	uint32_t rows[2];
	uint64_t ids[2];
	for (int i = 0; i < 2; i++) {
		share(&scene, &rows[i], &ids[i]);
		tn__ledger_close_share(scene.ledger, scene.own, rows[i], ids[i]);
	}
	assert_int_equal(rows[0], rows[1]);
	assert_int_not_equal(ids[0], ids[1]);
	assert_int_equal(tn__ledger_open_share(scene.ledger, scene.others, rows[0], ids[0], &about), TN_NOT_FOUND);
	assert_int_equal(tn__ledger_open_share(scene.ledger, scene.others, UINT32_MAX, 1, &about), TN_NOT_FOUND);
	finish(&scene);
}

static void
test_too_many(void **state)
{
	struct scene scene = make();
	uint32_t row;
	uint64_t id;
	for (int i = 0; i < TN_LEDGER_SHARES; i++)
		assert_int_equal(tn__ledger_share(scene.ledger, 0, scene.own, TN_BYTES_PROGRAM, 0, &row, &id), TN_OK);
	assert_int_equal(tn__ledger_share(scene.ledger, 0, scene.own, TN_BYTES_PROGRAM, 0, &row, &id), TN_LIMIT);
	tn__ledger_leave(scene.ledger, scene.own);
	assert_int_equal(scene.ledger->share_count, 0);
	finish(&scene);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opening_costs_nothing_and_the_last_one_gives_back),
		cmocka_unit_test(test_an_owner_that_frees_first_leaves_the_bytes_to_who_has_it_open),
		cmocka_unit_test(test_the_dead_have_nothing_open),
		cmocka_unit_test(test_a_row_that_is_used_again_has_another_id),
		cmocka_unit_test(test_too_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
