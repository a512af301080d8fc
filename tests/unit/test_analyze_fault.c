/* SPDX-License-Identifier: Apache-2.0
 *
 * Analysing a snapshot while the Nth allocation of host memory fails, for every N: a status, no crash, nothing lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/moment.h"
#include "test_analyze_at.h"
#include "test_analyze_writer.h"
#include "test_failing_memory.h"

static const char metadata[] = "tonnage-metadata\t1\n"
							   "phase\t5\t1\tforward\n"
							   "look\t1002000\n"
							   "hold\tparameters\t1048576\t100\tw\n"
							   "hold\tinputs\t1048626\t400\t\n"
							   "phase\t1003000\t1\tbackward\n"
							   "backward\t1003000\t1\n"
							   "node\t1\t4\t512\t1048576\t0\tA\n"
							   "run\t1003000\t1\n"
							   "library\t1003000\tcublas\t1050624\t512\n"
							   "card\t1\t0\t1\t1\t1\t1\t1\n"
							   "copied\t1\t1\t1\n"
							   "step\t1005000\t1\t0\n"
							   "oom\t1005000\t0\t5\n"
							   "batch\t4\n";

static struct tn_snapshot *
made(bool with_metadata)
{
	struct tn_snapshot *snapshot = NULL;
	open_snapshot();
	open_trace();
	event("segment_alloc", 1 << 20, 2 * MIB, "");
	alloc(1 << 20, 512, "TmCCt");
	alloc((1 << 20) + 1024, 512, "Ot");
	alloc((1 << 20) + 2048, 512, "");
	event("segment_map", 1 << 28, 20 * MIB, "");
	alloc(1 << 28, 512, "t");
	close_trace();
	open_segments();
	open_segment(1 << 20, 2 * MIB, false);
	live(1 << 20, 512, 512, "TmCCt");
	live((1 << 20) + 1024, 512, 512, "Ot");
	live((1 << 20) + 2048, 512, 512, "");
	close_segment();
	open_segment(1 << 28, 20 * MIB, true);
	live(1 << 28, 512, 512, "t");
	close_segment();
	close_segments();
	if (with_metadata)
		put_metadata(metadata, sizeof(metadata) - 1);
	close_snapshot();
	assert_int_equal(tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot), TN_OK);
	return snapshot;
}

static tn_status
analyse(const struct tn_snapshot *snapshot)
{
	struct tn_moment moment = { 0 };
	struct tn_holding *holdings = NULL;
	size_t count;
	tn_status status = peak_of_snapshot(snapshot, 0, TN_UNKNOWN, &moment);
	tn__moment_free(&moment);
	if (status == TN_OK)
		status = end_of_snapshot(snapshot, 0, &moment);
	if (status == TN_OK)
		tn__moment_free(&moment);
	if (status == TN_OK)
		status = growth_of_snapshot(snapshot, 0, &holdings, &count);
	if (status == TN_OK)
		free(holdings);
	return status;
}

static void
test_every_allocation(void **state)
{
	for (int with_metadata = 0; with_metadata < 2; with_metadata++) {
		struct tn_snapshot *snapshot = made(with_metadata);
		failed = true;
		for (long nth = 0; failed; nth++) {
			long before = held;
			failed = false;
			left = nth;
			tn_status status = analyse(snapshot);
			left = -1;
			assert_int_equal(status, failed ? TN_NO_MEMORY : TN_OK);
			assert_int_equal(held, before);
			assert_true(nth < 1000);
		}
		tn_snapshot_close(snapshot);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_allocation) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
