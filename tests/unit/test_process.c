/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples of a run's processes list the same as a walk through all of /proc, while processes come and go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/process.h"

#define MOST 12
#define ROUNDS 300

struct family {
	pid_t pids[MOST]; /* 0: none */
	int pipes[MOST];  /* a child's own child is there when it has written to it */
	unsigned random;
};

static unsigned
draw(struct family *family, unsigned below)
{
	family->random = family->random * 1103515245U + 12345U;
	return (family->random >> 16) % below;
}

/* A child with a child of its own; both wait to be killed. */
static void
start(struct family *family, size_t i)
{
	int ends[2];
	char byte;
	assert_int_equal(pipe(ends), 0);
	family->pids[i] = fork();
	assert_true(family->pids[i] >= 0);
	if (family->pids[i] == 0) {
		alarm(60); /* should the test fail */
		if (fork() == 0 && write(ends[1], "x", 1) != 1)
			_exit(1);
		alarm(60);
		for (;;)
			pause();
	}
	close(ends[1]);
	family->pipes[i] = ends[0];
	assert_int_equal(read(ends[0], &byte, 1), 1);
}

/* The child alone: its own child becomes ours, as those of a run become the reaper's. */
static void
end(struct family *family, size_t i)
{
	kill(family->pids[i], SIGKILL);
	waitpid(family->pids[i], NULL, 0);
	close(family->pipes[i]);
	family->pids[i] = 0;
}

static bool
has(const struct tn_process_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->pids[i] == pid)
			return true;
	return false;
}

static void
assert_same(const struct tn_process_list *a, const struct tn_process_list *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++)
		assert_true(has(b, a->pids[i]));
}

static void
kill_listed(const struct tn_process_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		kill(list->pids[i], SIGKILL);
}

static void
test_a_sample_is_a_walk(void **state)
{
	struct family family = { .random = 7 };
	struct tn_process_others others = { 0 };
	const struct tn_process_tree tree = { .root = getpid() };
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct tn_process_list full = { 0 }, sample = { 0 };
		size_t i = draw(&family, MOST);
		if (family.pids[i] == 0)
			start(&family, i);
		else if (draw(&family, 3) == 0)
			end(&family, i);
		tn__process_descendants(&tree, &full);
		tn__process_descendants_again(&tree, &others, &sample);
		assert_same(&full, &sample);
		for (size_t child = 0; child < MOST; child++)
			assert_true(family.pids[child] == 0 || has(&sample, family.pids[child]));
		if (round == ROUNDS - 1)
			kill_listed(&full);
		tn__process_list_free(&full);
		tn__process_list_free(&sample);
	}
	tn__process_others_free(&others);
	while (wait(NULL) > 0)
		;
}

/* What is another's is remembered after two walks, until the walk that reads all. */
static void
test_what_is_outside_is_remembered(void **state)
{
	struct tn_process_others others = { 0 };
	const struct tn_process_tree tree = { .root = getpid() };
	for (int walk = 1; walk <= 64; walk++) {
		struct tn_process_list list = { 0 };
		tn__process_descendants_again(&tree, &others, &list);
		assert_int_equal(list.count, 0);
		assert_true(walk % 32 == 0 ? others.count == 0 : others.count > 0);
		for (size_t i = 1; i < others.count; i++)
			assert_true(others.items[i - 1].pid < others.items[i].pid);
		if (others.count > 0)
			assert_int_equal(others.items[0].walks, (unsigned)(walk % 32)); /* init */
		tn__process_list_free(&list);
	}
	tn__process_others_free(&others);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sample_is_a_walk),
		cmocka_unit_test(test_what_is_outside_is_remembered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
