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

#include "test_failing_memory.h"
#include "tonnage/snapshot.h"

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
	static const char *const paths[] = { TN_CORPUS "/snapshot_p4", TN_CORPUS "/host", TN_CORPUS "/history" };
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
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_allocation) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
