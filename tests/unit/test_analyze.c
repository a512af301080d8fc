/* SPDX-License-Identifier: Apache-2.0
 *
 * The analysis of snapshots written by hand: when blocks lived, how large they were, and which moment is the peak.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_analyze_moments.h"

/* ---- ordered sets ---- */

static void
test_sets_against_a_plain_one(void **state)
{
	static const uint32_t counts[] = { 1, 2, 63, 64, 65, 4096, 4097, 300000 };
	for (size_t each = 0; each < sizeof(counts) / sizeof(counts[0]); each++) {
		uint32_t count = counts[each], seed = 7;
		bool *plain = calloc(count, sizeof(*plain));
		struct tn_set set;
		assert_int_equal(tn__set_make(&set, count), TN_OK);
		for (int round = 0; round < 2000; round++) {
			uint32_t rank = (seed = seed * 1664525 + 1013904223) % count, asked = (seed >> 7) % count;
			plain[rank] = seed >> 30;
			(plain[rank] ? tn__set_add : tn__set_remove)(&set, rank);
			uint32_t above = TN_NO_ADDRESS, below = TN_NO_ADDRESS;
			for (uint32_t at = asked + 1; above == TN_NO_ADDRESS && at < count && at < asked + 5000; at++)
				above = plain[at] ? at : above;
			for (uint32_t at = asked + 1; below == TN_NO_ADDRESS && at > 0 && at + 5000 > asked; at--)
				below = plain[at - 1] ? at - 1 : below;
			if (above != TN_NO_ADDRESS || asked + 5000 >= count)
				assert_int_equal(tn__set_above(&set, asked), above);
			if (below != TN_NO_ADDRESS || asked < 4999)
				assert_int_equal(tn__set_below(&set, asked), below);
		}
		tn__set_free(&set);
		free(plain);
	}
}

static void
test_places(void **state)
{
	uint64_t *addresses = malloc(5 * sizeof(*addresses));
	memcpy(addresses, (uint64_t[]){ 30, 10, 20, 10, UINT64_MAX }, 5 * sizeof(*addresses));
	struct tn_address_index places;
	tn__address_index_take(&places, addresses, 5);
	assert_int_equal(places.count, 4);
	assert_int_equal(tn__place_of(&places, 20), 1);
	assert_int_equal(tn__place_of(&places, 21), TN_NO_ADDRESS);
	assert_int_equal(tn__place_below(&places, 29), 1);
	assert_int_equal(tn__place_below(&places, 9), TN_NO_ADDRESS);
	assert_int_equal(tn__place_below(&places, UINT64_MAX), 3);
	free(places.addresses);
}

/* ---- sizes ---- */

static uint64_t
allocated_at(const struct tn_snapshot *snapshot, uint32_t state)
{
	struct tn_analysis *analysis = analysed(snapshot);
	uint64_t allocated = analysis->allocated[state];
	tn__analysis_close(analysis);
	return allocated;
}

/* A request of 10 MiB + 1 byte in a segment of 12 MiB: the rest of nearly 2 MiB is given back; of 11 MiB and a bit less
 * than 1 MiB is left: it stays with the block. */
static void
test_rest_of_a_large_block(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 12 * MIB, "");
	alloc(SEGMENT, 10 * MIB + 1, "t");
	release(SEGMENT, 10 * MIB + 1, "t");
	alloc(SEGMENT, 11 * MIB, "t");
	release(SEGMENT, 11 * MIB, "t");
	alloc(SEGMENT, 11 * MIB - 1, "t");
	release(SEGMENT, 11 * MIB - 1, "t");
	alloc(SEGMENT, 11 * MIB - 512, "t");
	release(SEGMENT, 11 * MIB - 512, "t");
	end_trace();
	free_segment(SEGMENT, 12 * MIB);
	struct tn_snapshot *snapshot = finish(false);
	assert_int_equal(allocated_at(snapshot, 2), 10 * MIB + 512);
	assert_int_equal(allocated_at(snapshot, 5), 12 * MIB); /* exactly 1 MiB stays */
	assert_int_equal(allocated_at(snapshot, 8), 12 * MIB);
	assert_int_equal(allocated_at(snapshot, 11), 11 * MIB - 512);
	assert_int_equal(allocated_at(snapshot, 13), 0);
	tn_snapshot_close(snapshot);
}

/* The block behind bounds the free one, and only while it is there. */
static void
test_free_block_between_others(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 20 * MIB, "");
	alloc(SEGMENT, 4 * MIB, "t");
	alloc(SEGMENT + 4 * MIB, 4 * MIB, "t");
	release(SEGMENT, 4 * MIB, "t");
	alloc(SEGMENT, 3 * MIB + 1, "t"); /* event 5: of the 4 MiB less than 1 MiB would be left */
	release(SEGMENT, 3 * MIB + 1, "t");
	event("free_requested", SEGMENT + 4 * MIB, 4 * MIB, "t");
	alloc(SEGMENT, 3 * MIB + 1, "t"); /* the block behind waits for its stream: it still bounds */
	release(SEGMENT, 3 * MIB + 1, "t");
	event("free_completed", SEGMENT + 4 * MIB, 4 * MIB, "t");
	alloc(SEGMENT, 3 * MIB + 1, "t"); /* event 13 */
	release(SEGMENT, 3 * MIB + 1, "t");
	end_trace();
	free_segment(SEGMENT, 20 * MIB);
	struct tn_snapshot *snapshot = finish(false);
	assert_int_equal(allocated_at(snapshot, 6), 8 * MIB);
	assert_int_equal(allocated_at(snapshot, 9), 0);
	assert_int_equal(allocated_at(snapshot, 10), 4 * MIB);
	assert_int_equal(allocated_at(snapshot, 14), 3 * MIB + 512);
	tn_snapshot_close(snapshot);
}

static void
test_small_and_expandable_give_back_all(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 2 * MIB, "");
	alloc(SEGMENT, 1, "t");
	alloc(SEGMENT + 512, MIB - 1, "t");
	event("segment_map", OTHER_SEGMENT, 20 * MIB, "");
	alloc(OTHER_SEGMENT, 19 * MIB + 1, "t");
	release(SEGMENT, 1, "t");
	release(SEGMENT + 512, MIB - 1, "t");
	release(OTHER_SEGMENT, 19 * MIB + 1, "t");
	end_trace();
	free_segment(SEGMENT, 2 * MIB);
	open_segment(OTHER_SEGMENT, 20 * MIB, true);
	block(OTHER_SEGMENT, 20 * MIB, 0, "inactive", "");
	close_segment();
	struct tn_snapshot *snapshot = finish(false);
	assert_int_equal(allocated_at(snapshot, 2), 512);
	assert_int_equal(allocated_at(snapshot, 3), 512 + MIB);
	assert_int_equal(allocated_at(snapshot, 5), 512 + MIB + 19 * MIB + 512);
	struct tn_moment moment = moment_of(snapshot, 4); /* mapped, nothing in it yet */
	assert_int_equal(moment.reserved, 22 * MIB);
	assert_int_equal(moment.largest_free_block, 20 * MIB);
	tn__moment_free(&moment);
	moment = moment_of(snapshot, 3);
	assert_int_equal(moment.reserved, 2 * MIB);
	assert_int_equal(moment.largest_free_block, MIB - 512);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

static void
put_settings(int64_t max_split, int64_t divisions)
{
	put_text(&writer, "allocator_settings");
	put_ops(&writer, "}(");
	put_pair(&writer, "max_split_size", max_split);
	put_text(&writer, "roundup_power2_divisions");
	put_ops(&writer, "}(");
	put_pair(&writer, "1", divisions);
	put_pair(&writer, "2", divisions);
	put_pair(&writer, "32768", 1);
	put_pair(&writer, "99999999999999999999", 4);
	put_ops(&writer, "uu");
}

/* Between powers of two there are so many steps; beyond max_split_size a block is not split. */
static void
test_settings(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 40 * MIB, "");
	alloc(SEGMENT, 2 * MIB + 1, "t"); /* steps of 512 KiB */
	release(SEGMENT, 2 * MIB + 1, "t");
	alloc(SEGMENT, 25 * MIB, "t");
	release(SEGMENT, 25 * MIB, "t");
	alloc(SEGMENT, 5 * MIB + 1, "t"); /* slot 4 is not divided */
	release(SEGMENT, 5 * MIB + 1, "t");
	event("segment_alloc", OTHER_SEGMENT, 2 * MIB, "");
	alloc(OTHER_SEGMENT, 4097, "t"); /* steps of 1024 */
	release(OTHER_SEGMENT, 4097, "t");
	alloc(OTHER_SEGMENT, 2000, "t"); /* too small for steps */
	release(OTHER_SEGMENT, 2000, "t");
	end_trace();
	free_segment(SEGMENT, 40 * MIB);
	free_segment(OTHER_SEGMENT, 2 * MIB);
	close_segments();
	put_settings(24 * MIB, 4);
	close_snapshot();
	struct tn_snapshot *snapshot;
	assert_int_equal(tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot), TN_OK);
	assert_int_equal(allocated_at(snapshot, 2), 2 * MIB + 512 * 1024);
	assert_int_equal(allocated_at(snapshot, 5), 40 * MIB);
	assert_int_equal(allocated_at(snapshot, 8), 5 * MIB + 512);
	assert_int_equal(allocated_at(snapshot, 12), 5120);
	assert_int_equal(allocated_at(snapshot, 15), 2048);
	tn_snapshot_close(snapshot);
}

/* Blocks from before the trace: no block of the large pool is as small as the gap behind the first one. */
static void
test_sizes_from_before_the_trace(void **state)
{
	begin();
	release(SEGMENT, 3 * MIB + 1, "t");                 /* 4 MiB: what is behind it lives on */
	release(SEGMENT + 8 * MIB, 4 * MIB, "t");           /* its gap is 8 MiB: it was free */
	release(OTHER_SEGMENT, 11 * MIB + 1, "t");          /* to the end of its segment */
	event("free_completed", SEGMENT + 12 * MIB, 4, ""); /* was being freed when the trace began */
	end_trace();
	open_segment(SEGMENT, 20 * MIB, false);
	block(SEGMENT, 4 * MIB, 0, "inactive", "");
	live(SEGMENT + 4 * MIB, 4 * MIB, 4 * MIB, "t");
	block(SEGMENT + 8 * MIB, 12 * MIB, 0, "inactive", "");
	close_segment();
	free_segment(OTHER_SEGMENT, 12 * MIB);
	struct tn_snapshot *snapshot = finish(false);
	assert_int_equal(allocated_at(snapshot, 0), 24 * MIB);
	assert_int_equal(allocated_at(snapshot, 1), 20 * MIB);
	assert_int_equal(allocated_at(snapshot, 7), 4 * MIB);
	struct tn_moment moment = moment_of(snapshot, 0);
	assert_int_equal(moment.requested, 3 * MIB + 1 + 8 * MIB + 11 * MIB + 1);
	assert_int_equal(moment.holders[0].at.line, 41); /* a free has the stack of its allocation */
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* ---- lives ---- */

/* A recorder that left frees out, or segments that were not there in the end. */
static void
test_events_that_are_missing(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 20 * MIB, "");
	alloc(SEGMENT, 2 * MIB, "t");
	alloc(SEGMENT, 3 * MIB, "m");           /* the first one's free was left out */
	alloc(SEGMENT + 8 * MIB, 2 * MIB, "t"); /* its free was left out, too: the snapshot does not know it */
	event("free_requested", SEGMENT, 3 * MIB, "m");
	end_trace();
	open_segment(SEGMENT, 20 * MIB, false);
	live(SEGMENT, 2 * MIB, 2 * MIB - 5, "n"); /* allocated again, unseen */
	block(SEGMENT + 2 * MIB, MIB, MIB, "active_pending_free", "");
	block(SEGMENT + 3 * MIB, 17 * MIB, 0, "inactive", "");
	close_segment();
	struct tn_snapshot *snapshot = finish(false);
	assert_int_equal(allocated_at(snapshot, 2), 2 * MIB);
	assert_int_equal(allocated_at(snapshot, 3), 3 * MIB);
	assert_int_equal(allocated_at(snapshot, 4), 5 * MIB);
	struct tn_moment moment = end_of(snapshot);
	assert_int_equal(moment.allocated, 2 * MIB);
	assert_int_equal(moment.requested, 2 * MIB - 5);
	assert_int_equal(moment.by_category[TN_CATEGORY_rounding], 5);
	assert_int_equal(moment.by_category[TN_CATEGORY_cached], 18 * MIB);
	assert_int_equal(moment.largest_free_block, 17 * MIB);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* Where frees have a stack of their own, that of a block from before the trace is not known. */
static void
test_frees_with_stacks_of_their_own(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 2 * MIB, "");
	alloc(SEGMENT + 1024, 512, "m");
	release(SEGMENT + 1024, 512, "t");
	release(SEGMENT, 512, "t");
	end_trace();
	free_segment(SEGMENT, 2 * MIB);
	struct tn_snapshot *snapshot = finish(false);
	struct tn_moment moment = moment_of(snapshot, 4);
	assert_int_equal(moment.requested, 512);
	assert_int_equal(moment.named_bytes, 0);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* ---- the moment ---- */

/* Two states hold the most reserved; the one with more allocated is the peak, named by its allocation. */
static void
test_peak(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 20 * MIB, "");
	alloc(SEGMENT, 2 * MIB, "t");
	event("segment_alloc", OTHER_SEGMENT, 20 * MIB, "");
	alloc(OTHER_SEGMENT, 4 * MIB, "Lt");
	release(SEGMENT, 2 * MIB, "t");
	event("segment_free", SEGMENT, 20 * MIB, "");
	end_trace();
	open_segment(OTHER_SEGMENT, 20 * MIB, false);
	live(OTHER_SEGMENT, 4 * MIB, 4 * MIB, "Lt");
	block(OTHER_SEGMENT + 4 * MIB, 16 * MIB, 0, "inactive", "");
	close_segment();
	mark("phase\t%lld\t3\tbuild\n", before(0));
	mark("phase\t%lld\t4\tforward\n", before(3));
	mark("phase\t%lld\t4\tbackward\n", before(4));
	struct tn_snapshot *snapshot = finish(true);
	struct tn_moment moment;
	assert_int_equal(peak_of_snapshot(snapshot, 0, TN_UNKNOWN, &moment), TN_OK);
	assert_int_equal(moment.reserved, 40 * MIB);
	assert_int_equal(moment.allocated, 6 * MIB);
	assert_int_equal(moment.time_us, 1003);
	assert_int_equal(moment.step, 4);
	assert_string_equal(moment.phase, "forward");
	assert_false(moment.inferred);
	expect_line(&moment.at, "/env/lib/python3.11/site-packages/transformers/gpt.py", 7, false);
	expect_line(&moment.at_user, "/work/train.py", 41, false);
	assert_int_equal(moment.largest_free_block, 18 * MIB);
	tn__moment_free(&moment);
	assert_int_equal(peak_of_snapshot(snapshot, 0, 20 * MIB, &moment), TN_OK);
	assert_int_equal(moment.allocated, 4 * MIB); /* the end holds more than the beginning */
	assert_string_equal(moment.phase, "backward");
	tn__moment_free(&moment);
	assert_int_equal(peak_of_snapshot(snapshot, 0, 30 * MIB, &moment), TN_NOT_FOUND);
	tn_snapshot_close(snapshot);
}

static void
test_nothing_there(void **state)
{
	struct tn_snapshot *snapshot;
	struct tn_moment moment;
	put_start(&writer);
	put_ops(&writer, "].");
	assert_int_equal(tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot), TN_OK);
	assert_int_equal(peak_of_snapshot(snapshot, 0, TN_UNKNOWN, &moment), TN_OK);
	assert_int_equal(moment.reserved, 0);
	assert_int_equal(moment.holder_count, 0);
	assert_null(moment.phase);
	assert_int_equal(moment.step, -1);
	tn__moment_free(&moment);
	assert_int_equal(end_of_snapshot(snapshot, 5, &moment), TN_OK);
	tn__moment_free(&moment);
	assert_int_equal(end_of_snapshot(snapshot, -1, &moment), TN_INVALID);
	tn_snapshot_close(snapshot);
}

static void
test_more_allocated_than_reserved(void **state)
{
	struct tn_moment moment;
	begin();
	end_trace();
	open_segment(SEGMENT, MIB, false);
	live(SEGMENT, 2 * MIB, 2 * MIB, "t");
	close_segment();
	struct tn_snapshot *snapshot = finish(false);
	assert_int_equal(end_of_snapshot(snapshot, 0, &moment), TN_FORMAT);
	tn_snapshot_close(snapshot);
}

static void
test_malformed_metadata(void **state)
{
	struct tn_moment moment;
	begin();
	end_trace();
	mark("run\tnow\t1\n");
	struct tn_snapshot *snapshot = finish(true);
	assert_int_equal(end_of_snapshot(snapshot, 0, &moment), TN_FORMAT);
	assert_non_null(strstr(tn_error_text(), "line 2 "));
	tn_snapshot_close(snapshot);
}

/* The work that asked is what an out-of-memory is about; an allocation that came later is about itself. */
static void
test_out_of_memory(void **state)
{
	for (int later = 0; later < 2; later++) {
		begin();
		event("segment_alloc", SEGMENT, 20 * MIB, "");
		alloc(SEGMENT, 2 * MIB, "t");
		event("oom", 77, 40 * MIB, "Tm");
		event("snapshot", 0, 0, "");
		if (later)
			alloc(SEGMENT + 2 * MIB, 2 * MIB, "n");
		end_trace();
		open_segment(SEGMENT, 20 * MIB, false);
		live(SEGMENT, 2 * MIB, 2 * MIB, "t");
		if (later)
			live(SEGMENT + 2 * MIB, 2 * MIB, 2 * MIB, "n");
		close_segment();
		struct tn_snapshot *snapshot = finish(false);
		struct tn_moment moment = end_of(snapshot);
		expect_line(&moment.at, "/work/model.py", later ? 90 : 88, false);
		assert_null(moment.at_user.file);
		tn__moment_free(&moment);
		tn_snapshot_close(snapshot);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets_against_a_plain_one),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_rest_of_a_large_block),
		cmocka_unit_test(test_free_block_between_others),
		cmocka_unit_test(test_small_and_expandable_give_back_all),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_sizes_from_before_the_trace),
		cmocka_unit_test(test_events_that_are_missing),
		cmocka_unit_test(test_frees_with_stacks_of_their_own),
		cmocka_unit_test(test_peak),
		cmocka_unit_test(test_nothing_there),
		cmocka_unit_test(test_more_allocated_than_reserved),
		cmocka_unit_test(test_malformed_metadata),
		cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
