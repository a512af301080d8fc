/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a snapshot while the Nth allocation of host memory fails, for every N: a status, no crash, nothing lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tonnage/snapshot.h"

static long left = -1; /* allocations until one fails; negative: none does */
static long held;      /* pieces of memory that are not given back */
static bool failed;

void *__real_realloc(void *memory, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void __real_free(void *memory);

static bool
fails(void)
{
	if (left < 0 || left-- > 0)
		return false;
	failed = true;
	return true;
}

void *
__wrap_realloc(void *memory, size_t size)
{
	void *grown = fails() ? NULL : __real_realloc(memory, size);
	held += grown && !memory;
	return grown;
}

void *
__wrap_calloc(size_t count, size_t size)
{
	void *memory = fails() ? NULL : __real_calloc(count, size);
	held += memory != NULL;
	return memory;
}

void *
__wrap_malloc(size_t size)
{
	void *memory = fails() ? NULL : __real_malloc(size);
	held += memory != NULL;
	return memory;
}

void
__wrap_free(void *memory)
{
	held -= memory != NULL;
	__real_free(memory);
}

static tn_status
read_and_sum(const char *path)
{
	struct tn_snapshot *snapshot = NULL;
	struct tn_holder *holders = NULL;
	size_t count;
	tn_status status = tn_snapshot_open(path, NULL, &snapshot);
	if (status == TN_OK)
		status = tn_snapshot_holders(snapshot, TN_ALL_DEVICES, &holders, &count);
	if (status == TN_OK)
		free(holders);
	tn_snapshot_close(snapshot);
	return status;
}

static void
test_every_allocation(void **state)
{
	static const char *const paths[] = {TN_CORPUS "/snapshot_p4", TN_CORPUS "/host", TN_CORPUS "/history"};
	for (size_t path = 0; path < sizeof(paths) / sizeof(paths[0]); path++) {
		failed = true;
		for (long nth = 0; failed; nth++) {
			long before = held;
			failed = false;
			left = nth;
			tn_status status = read_and_sum(paths[path]);
			left = -1;
			assert_int_equal(status, failed ? TN_NO_MEMORY : TN_OK);
			assert_int_equal(held, before);
			assert_true(nth < 1000);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
