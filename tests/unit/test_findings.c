/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of the analysis on traces written by hand, each with the mistake and without; and what pictures of a trace rest
 * on: columns add up to what was reserved, layouts fill their segments.
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

#include "analyze/findings.h"
#include "test_analyze_moments.h"

static int events; /* written so far */

static void
make(int64_t address, int64_t size, const char *stack)
{
	alloc(address, size, stack);
	events++;
}

static void
drop(int64_t address, int64_t size, const char *stack)
{
	release(address, size, stack);
	events += 2;
}

static void
begin_trace(void)
{
	begin();
	events = 0;
}

/* The finding of an id in a state (-1: the end), copied to *out with the name of its file, whose text may go with the
 * analysis; false when it is not there. */
static bool
find(const struct tn_snapshot *snapshot, int state, const char *id, struct tn_trace_finding *out)
{
	struct tn_analysis *analysis = analysed(snapshot);
	struct tn_part_list parts;
	struct tn_trace_findings list;
	bool found = false;
	assert_int_equal(tn__list_parts(analysis, &parts), TN_OK);
	uint32_t moment = state < 0 ? (uint32_t)analysis->events.count : (uint32_t)state;
	assert_int_equal(tn__find_all(analysis, &parts, moment, &list), TN_OK);
	for (size_t index = 0; index < list.count; index++) {
		assert_true(strlen(list.items[index].what) > 0);
		if (strcmp(tn__finding_name(list.items[index].id), id) != 0)
			continue;
		static char file[64];
		*out = list.items[index];
		out->at.file = out->at.file ? strncpy(file, out->at.file, sizeof(file) - 1) : NULL;
		found = true;
	}
	tn__part_list_free(&parts);
	tn__analysis_close(analysis);
	return found;
}

/* ---- fragmentation ---- */

/* A segment of 1 GiB that a block of so many MiB keeps. */
static struct tn_snapshot *
pinned(int64_t mib)
{
	begin_trace();
	end_trace();
	open_segment(SEGMENT, 1024 * MIB, false);
	live(SEGMENT, mib * MIB, mib * MIB, "t");
	block(SEGMENT + mib * MIB, (1024 - mib) * MIB, 0, "inactive", "");
	close_segment();
	return finish(false);
}

static void
test_a_small_block_pins_a_segment(void **state)
{
	struct tn_trace_finding found;
	struct tn_snapshot *snapshot = pinned(4);
	assert_true(find(snapshot, -1, "fragmentation", &found));
	assert_int_equal(found.bytes, 1020 * MIB);
	expect_line(&found.at, "/work/train.py", 41, false);
	assert_null(found.advice); /* the table's: a setting gives these pages back */
	tn_snapshot_close(snapshot);
	snapshot = pinned(1000);
	assert_false(find(snapshot, -1, "fragmentation", &found));
	tn_snapshot_close(snapshot);
}

/* ---- churn ---- */

static struct tn_snapshot *
rounds(int count, const char *stack)
{
	begin_trace();
	for (int round = 0; round < count; round++) {
		make(SEGMENT, 64 * MIB, stack);
		drop(SEGMENT, 64 * MIB, stack);
	}
	end_trace();
	free_segment(SEGMENT, 64 * MIB);
	return finish(false);
}

static void
test_churn_is_of_the_program_itself(void **state)
{
	struct tn_trace_finding found;
	struct tn_snapshot *snapshot = rounds(200, "t");
	assert_true(find(snapshot, -1, "churn", &found));
	assert_int_equal(found.bytes, 64 * MIB);
	expect_line(&found.at, "/work/train.py", 41, false);
	assert_non_null(strstr(found.what, "200 tensors"));
	tn_snapshot_close(snapshot);
	static const char *const innocent[] = { "mC", "Ot", "At" }; /* a module, an optimizer, a model being moved */
	for (size_t index = 0; index < sizeof(innocent) / sizeof(innocent[0]); index++) {
		snapshot = rounds(200, innocent[index]);
		assert_false(find(snapshot, -1, "churn", &found));
		tn_snapshot_close(snapshot);
	}
	snapshot = rounds(60, "t");
	assert_false(find(snapshot, -1, "churn", &found));
	tn_snapshot_close(snapshot);
}

/* Segments that go and come back, without anybody having called empty_cache(). */
static struct tn_snapshot *
segment_rounds(int count, bool called)
{
	begin_trace();
	for (int round = 0; round < count; round++) {
		if (called)
			mark("call\t%lld\tempty_cache\t/work/loop.py\t8\t<module>\n", before(events + 4 * round));
		for (int each = 0; each < 4; each++)
			event("segment_alloc", SEGMENT + each * 64 * MIB, 64 * MIB, "t");
		for (int each = 0; each < 4; each++)
			event("segment_free", SEGMENT + each * 64 * MIB, 64 * MIB, "t");
	}
	end_trace();
	return finish(called);
}

static void
test_segments_that_come_and_go(void **state)
{
	struct tn_trace_finding found;
	struct tn_snapshot *snapshot = segment_rounds(5, false);
	assert_true(find(snapshot, -1, "segment_churn", &found));
	assert_non_null(strstr(found.what, "4 times"));
	tn_snapshot_close(snapshot);
	snapshot = segment_rounds(5, true);
	assert_true(find(snapshot, -1, "empty_cache_in_loop", &found));
	expect_line(&found.at, "/work/loop.py", 8, false);
	assert_false(find(snapshot, -1, "segment_churn", &found));
	tn_snapshot_close(snapshot);
	snapshot = segment_rounds(3, false); /* twice only */
	assert_false(find(snapshot, -1, "segment_churn", &found));
	tn_snapshot_close(snapshot);
}

/* ---- gradients ---- */

/* Backward passes whose gradient is dropped behind each; with or without an update before that. */
static struct tn_snapshot *
micro_steps(bool updates)
{
	begin_trace();
	mark("phase\t%lld\t1\tbuild\n", before(events));
	make(SEGMENT, 100 * MIB, "At");
	mark("call\t%lld\tzero_grad\t/work/early.py\t3\t<module>\n", before(events));
	mark("look\t%lld\nhold\tparameters\t%lld\t%lld\tw\n", before(events), (long long)SEGMENT, (long long)(100 * MIB));
	for (int step = 1; step <= 4; step++) {
		mark("phase\t%lld\t%d\tforward\n", before(events), step);
		make(SEGMENT + 400 * MIB, MIB, "mC");
		mark("phase\t%lld\t%d\tbackward\n", before(events), step);
		drop(SEGMENT + 400 * MIB, MIB, "mC");
		make(SEGMENT + 200 * MIB, 100 * MIB, "");
		mark("phase\t%lld\t%d\tother\n", before(events), step);
		if (updates)
			mark("phase\t%lld\t%d\toptimizer\n", before(events), step);
		mark("call\t%lld\tzero_grad\t/work/loop.py\t9\t<module>\n", before(events));
		make(SEGMENT + 500 * MIB, MIB, "t");
		drop(SEGMENT + 500 * MIB, MIB, "t");
		drop(SEGMENT + 200 * MIB, 100 * MIB, "");
	}
	end_trace();
	open_segment(SEGMENT, 1024 * MIB, false);
	live(SEGMENT, 100 * MIB, 100 * MIB, "At");
	block(SEGMENT + 100 * MIB, 924 * MIB, 0, "inactive", "");
	close_segment();
	return finish(true);
}

static void
test_gradients_that_no_update_used(void **state)
{
	struct tn_trace_finding found;
	struct tn_snapshot *snapshot = micro_steps(false);
	assert_true(find(snapshot, -1, "zero_grad_every_micro_step", &found));
	assert_int_equal(found.bytes, 100 * MIB);
	assert_non_null(strstr(found.what, "3 of 4 backward passes"));
	expect_line(&found.at, "/work/loop.py", 9, false);
	assert_non_null(found.sure);
	tn_snapshot_close(snapshot);
	snapshot = micro_steps(true);
	assert_false(find(snapshot, -1, "zero_grad_every_micro_step", &found));
	tn_snapshot_close(snapshot);
}

/* ---- data ---- */

/* A tensor of 2 GiB, made before the first forward pass or in it, by the program or by a module. */
static struct tn_snapshot *
large_tensor(bool early, const char *stack)
{
	begin_trace();
	mark("phase\t%lld\t1\tbuild\n", before(0));
	if (!early)
		mark("phase\t%lld\t1\tforward\n", before(0));
	make(SEGMENT, 2048 * MIB, stack);
	mark("phase\t%lld\t1\tforward\n", before(events));
	make(SEGMENT + 2048 * MIB, MIB, "mC");
	end_trace();
	open_segment(SEGMENT, 2049 * MIB, false);
	live(SEGMENT, 2048 * MIB, 2048 * MIB, stack);
	live(SEGMENT + 2048 * MIB, MIB, MIB, "mC");
	close_segment();
	return finish(true);
}

static void
test_data_that_stays(void **state)
{
	struct tn_trace_finding found;
	struct tn_snapshot *snapshot = large_tensor(true, "t");
	assert_true(find(snapshot, -1, "dataset_on_device", &found));
	assert_int_equal(found.bytes, 2048 * MIB);
	expect_line(&found.at, "/work/train.py", 41, false);
	tn_snapshot_close(snapshot);
	snapshot = large_tensor(false, "t");
	assert_false(find(snapshot, -1, "dataset_on_device", &found));
	tn_snapshot_close(snapshot);
	snapshot = large_tensor(true, "At"); /* a model's own */
	assert_false(find(snapshot, -1, "dataset_on_device", &found));
	tn_snapshot_close(snapshot);
}

/* ---- what need not be there ---- */

/* A model of 600 MiB, marked with a label, and beside it a tensor of so many MiB. */
static struct tn_snapshot *
beside_a_model(int64_t mib, const char *stack, const char *label)
{
	begin_trace();
	mark("phase\t%lld\t1\tforward\n", before(0));
	make(SEGMENT, 600 * MIB, "At");
	make(SEGMENT + 600 * MIB, mib * MIB, stack);
	mark("look\t%lld\nhold\tparameters\t%lld\t%lld\t%s\n", before(events), (long long)SEGMENT, (long long)(600 * MIB),
	     label);
	mark("call\t%lld\tdeleted\t/work/main.py\t7\tmain\n", before(events));
	end_trace();
	open_segment(SEGMENT, (600 + mib) * MIB, false);
	live(SEGMENT, 600 * MIB, 600 * MIB, "At");
	live(SEGMENT + 600 * MIB, mib * MIB, mib * MIB, stack);
	close_segment();
	return finish(true);
}

static bool
find_beside(int64_t mib, const char *stack, const char *label, const char *id, struct tn_trace_finding *out)
{
	struct tn_snapshot *snapshot = beside_a_model(mib, stack, label);
	bool found = find(snapshot, -1, id, out);
	tn_snapshot_close(snapshot);
	return found;
}

static void
test_a_copy_of_the_model(void **state)
{
	struct tn_trace_finding found;
	assert_true(find_beside(600, "Dt", "", "model_copy", &found));
	assert_int_equal(found.bytes, 600 * MIB);
	assert_true(found.avoidable);
	assert_false(find_beside(600, "t", "", "model_copy", &found));
	assert_false(find_beside(2000, "Dt", "", "model_copy", &found)); /* copied layers are the model */
	assert_false(find_beside(600, "DMt", "", "model_copy", &found)); /* so are those of nn.Transformer */
	assert_false(find_beside(100, "Dt", "", "model_copy", &found));
}

static void
test_buckets_beside_the_gradients(void **state)
{
	struct tn_trace_finding found;
	assert_true(find_beside(600, "Bt", "", "ddp_buckets", &found));
	assert_int_equal(found.bytes, 600 * MIB);
	expect_line(&found.at, "/work/train.py", 41, false);
	assert_false(find_beside(600, "tB", "", "ddp_buckets", &found)); /* made in what it calls */
}

static void
test_outputs_that_data_parallel_gathers(void **state)
{
	struct tn_trace_finding found;
	assert_true(find_beside(600, "THt", "", "gathered_outputs", &found)); /* wherever below its gather */
	assert_int_equal(found.bytes, 600 * MIB);
	assert_true(found.avoidable);
	expect_line(&found.at, "/work/train.py", 41, false);
	assert_false(find_beside(600, "Tt", "", "gathered_outputs", &found));
}

static void
test_a_model_that_only_an_optimizer_holds(void **state)
{
	struct tn_trace_finding found;
	assert_true(find_beside(1, "t", "held by an optimizer alone", "deleted_but_held", &found));
	assert_int_equal(found.bytes, 600 * MIB);
	assert_string_equal(found.at.file, "/work/main.py"); /* where it was deleted */
	assert_false(find_beside(1, "t", "", "deleted_but_held", &found));
}

/* A tensor that a line makes anew so many times, each `more` MiB larger than the one before. */
static struct tn_snapshot *
growing_reallocations(int times, int64_t more, const char *stack, bool drops_first)
{
	int64_t address = SEGMENT, size = 400, end = SEGMENT + 4000 * MIB;
	begin_trace();
	make(address, size * MIB, stack);
	for (int time = 0; time < times; time++, size += more) {
		int64_t next = address == SEGMENT ? end : SEGMENT;
		if (drops_first)
			drop(address, size * MIB, stack);
		make(next, (size + more) * MIB, stack);
		if (!drops_first)
			drop(address, size * MIB, stack);
		address = next;
	}
	end_trace();
	open_segment(address, 4000 * MIB, false);
	live(address, size * MIB, size * MIB, stack);
	block(address + size * MIB, (4000 - size) * MIB, 0, "inactive", "");
	close_segment();
	return finish(false);
}

static bool
find_anew(int times, int64_t more, const char *stack, bool drops_first, const char *id)
{
	struct tn_trace_finding found;
	struct tn_snapshot *snapshot = growing_reallocations(times, more, stack, drops_first);
	bool there = find(snapshot, -1, id, &found);
	if (there)
		assert_int_equal(found.bytes, (400 + times * more) * MIB);
	tn_snapshot_close(snapshot);
	return there;
}

/* A call makes 300 MiB that its graph keeps and its output, 100 MiB; 50 MiB are made behind it. `together`: both go at once, `gone`: before the
 * end of the trace, else they stay. */
static struct tn_snapshot *
output_that_is_looked_at(const char *place, bool gone, bool together)
{
	begin_trace();
	mark("phase\t%lld\t1\tforward\n", before(0));
	make(SEGMENT, 100 * MIB, "At");
	int call = events;
	make(SEGMENT + 100 * MIB, 300 * MIB, "mC");
	make(SEGMENT + 400 * MIB, 100 * MIB, "mC");
	make(SEGMENT + 500 * MIB, 10 * MIB, "mC"); /* goes within the call */
	drop(SEGMENT + 500 * MIB, 10 * MIB, "mC");
	int ended = events;
	make(SEGMENT + 500 * MIB, 50 * MIB, "t");
	drop(SEGMENT + 500 * MIB, 50 * MIB, "t");
	if (gone && !together) {
		drop(SEGMENT + 100 * MIB, 300 * MIB, "mC");
		make(SEGMENT + 500 * MIB, MIB, "t");
		drop(SEGMENT + 500 * MIB, MIB, "t");
	}
	if (gone)
		drop(SEGMENT + 400 * MIB, 100 * MIB, "mC");
	mark("graph\t%lld\t%lld\t%lld\t%s\t9\tmain\n", before(call), before(ended), gone ? before(events) : 0, place);
	if (gone && together)
		drop(SEGMENT + 100 * MIB, 300 * MIB, "mC"); /* what the node itself does not hold */
	make(SEGMENT + 500 * MIB, MIB, "t");
	end_trace();
	open_segment(SEGMENT, 1024 * MIB, false);
	live(SEGMENT, 100 * MIB, 100 * MIB, "At");
	if (gone) {
		block(SEGMENT + 100 * MIB, 400 * MIB, 0, "inactive", "");
	} else {
		live(SEGMENT + 100 * MIB, 300 * MIB, 300 * MIB, "mC");
		live(SEGMENT + 400 * MIB, 100 * MIB, 100 * MIB, "mC");
	}
	live(SEGMENT + 500 * MIB, MIB, MIB, "t");
	block(SEGMENT + 501 * MIB, 523 * MIB, 0, "inactive", "");
	close_segment();
	return finish(true);
}

static void
expect_unused(bool gone, bool together, int64_t mib)
{
	struct tn_trace_finding found;
	struct tn_snapshot *snapshot = output_that_is_looked_at("/work/main.py", gone, together);
	assert_true(find(snapshot, 7, "unused_graph", &found)); /* as the 50 MiB are there */
	assert_int_equal(found.bytes, mib * MIB);
	assert_true(found.avoidable);
	expect_line(&found.at, "/work/main.py", 9, false);
	tn_snapshot_close(snapshot);
	snapshot = output_that_is_looked_at("", gone, together);
	assert_false(find(snapshot, 7, "unused_graph", &found));
	tn_snapshot_close(snapshot);
}

static void
test_graphs_that_no_backward_pass_uses(void **state)
{
	expect_unused(true, true, 400);
	expect_unused(true, false, 100); /* what went before the graph was not kept for it */
	expect_unused(false, true, 400);
	struct tn_trace_finding found;
	struct tn_snapshot *snapshot = output_that_is_looked_at("/work/main.py", true, true);
	assert_false(find(snapshot, -1, "unused_graph", &found)); /* it has gone */
	tn_snapshot_close(snapshot);
}

/* Whatever is said of the call, what is kept for its graph is activations. */
static void
test_what_a_graph_keeps_is_activations(void **state)
{
	struct tn_snapshot *snapshot = output_that_is_looked_at("", true, true);
	struct tn_analysis *analysis = analysed(snapshot);
	struct tn_moment moment;
	assert_int_equal(tn__moment_of_state(analysis, 7, &moment), TN_OK);
	assert_int_equal(moment.by_category[TN_CATEGORY_activations], 400 * MIB);
	assert_int_equal(moment.by_category[TN_CATEGORY_temporaries], 150 * MIB);
	tn__moment_free(&moment);
	tn__analysis_close(analysis);
	tn_snapshot_close(snapshot);
}

/* A backward pass that ran out of memory: what it has made so far is of its own graph, if it makes one. */
static void
test_a_pass_that_creates_a_graph_and_is_cut(void **state)
{
	for (int creates = 0; creates < 2; creates++) {
		begin_trace();
		make(SEGMENT, 100 * MIB, "At");
		mark("phase\t%lld\t1\tbackward\n", before(events));
		mark("backward\t%lld\t1\t%d\n", before(events), creates);
		make(SEGMENT + 100 * MIB, 300 * MIB, "");
		mark("oom\t%lld\t0\t%lld\n", before(events), (long long)MIB);
		end_trace();
		open_segment(SEGMENT, 400 * MIB, false);
		live(SEGMENT, 100 * MIB, 100 * MIB, "At");
		live(SEGMENT + 100 * MIB, 300 * MIB, 300 * MIB, "");
		close_segment();
		struct tn_snapshot *snapshot = finish(true);
		struct tn_analysis *analysis = analysed(snapshot);
		struct tn_moment moment;
		assert_int_equal(tn__moment_of_state(analysis, (uint32_t)events, &moment), TN_OK);
		assert_int_equal(moment.by_category[TN_CATEGORY_activations], creates * 300 * MIB);
		tn__moment_free(&moment);
		tn__analysis_close(analysis);
		tn_snapshot_close(snapshot);
	}
}

static void
test_a_tensor_that_is_reallocated_a_bit_larger(void **state)
{
	assert_true(find_anew(20, 50, "t", false, "growing_cat"));
	assert_true(find_anew(20, 50, "LCt", false, "kv_cache"));
	assert_false(find_anew(20, 50, "LCt", false, "growing_cat"));
	assert_false(find_anew(20, 0, "t", false, "growing_cat")); /* it does not grow */
	assert_false(find_anew(20, 50, "t", true, "growing_cat")); /* the old one goes first */
	assert_false(find_anew(5, 50, "t", false, "growing_cat"));
}

/* ---- growth ---- */

/* Steps that leave a tensor each; of `more` MiB more than the one before. */
static struct tn_snapshot *
growing(int steps, int64_t mib, int64_t more)
{
	int64_t address = SEGMENT, held = 0;
	begin_trace();
	mark("phase\t%lld\t1\tforward\n", before(0));
	for (int step = 1; step <= steps; step++, address += mib * MIB, mib += more) {
		make(address, mib * MIB, "t");
		held += mib * MIB;
		mark("step\t%lld\t%d\t%lld\n", before(events), step, (long long)held);
	}
	make(address, MIB, "e");
	drop(address, MIB, "e");
	end_trace();
	open_segment(SEGMENT, 1024 * MIB, false);
	mib -= steps * more;
	for (address = SEGMENT; steps-- > 0; address += mib * MIB, mib += more)
		live(address, mib * MIB, mib * MIB, "t");
	block(address, SEGMENT + 1024 * MIB - address, 0, "inactive", "");
	close_segment();
	return finish(true);
}

static void
test_growth(void **state)
{
	struct tn_trace_finding found;
	struct tn_snapshot *snapshot = growing(8, 16, 0);
	assert_true(find(snapshot, -1, "growth", &found));
	assert_int_equal(found.bytes, 16 * MIB);
	expect_line(&found.at, "/work/train.py", 41, false);
	tn_snapshot_close(snapshot);
	snapshot = growing(3, 16, 0); /* too few to tell */
	assert_false(find(snapshot, -1, "growth", &found));
	tn_snapshot_close(snapshot);
	snapshot = growing(8, 16, 16); /* it grows with its work */
	assert_false(find(snapshot, -1, "growth", &found));
	tn_snapshot_close(snapshot);
}

/* ---- pictures ---- */

static void
test_columns_are_real_moments(void **state)
{
	uint32_t named[] = { 7, 0 };
	struct tn_snapshot *snapshot = micro_steps(false);
	struct tn_analysis *analysis = analysed(snapshot);
	struct tn_part_list parts;
	struct tn_timeline timeline;
	assert_int_equal(tn__list_parts(analysis, &parts), TN_OK);
	for (size_t most = 1; most < 40; most++) {
		assert_int_equal(tn__timeline_make(analysis, &parts, most, named, 2, &timeline), TN_OK);
		assert_true(timeline.count <= most + 4);
		assert_int_equal(timeline.columns[0].first, 0);
		for (size_t index = 0; index < timeline.count; index++) {
			const struct tn_column *column = &timeline.columns[index];
			uint64_t sum = 0;
			for (size_t category = 0; category < TN_CATEGORIES; category++)
				sum += column->bytes[category];
			assert_int_equal(sum, analysis->reserved[column->moment]);
			assert_int_equal(tn__column_of(&timeline, column->moment), index);
			assert_int_equal(tn__column_from(&timeline, column->moment), index);
			assert_true(column->low <= analysis->allocated[column->moment]);
		}
		for (size_t index = 0; index < 2; index++)
			assert_int_equal(timeline.columns[tn__column_of(&timeline, named[index])].moment, named[index]);
		tn__timeline_free(&timeline);
	}
	tn__part_list_free(&parts);
	tn__analysis_close(analysis);
	tn_snapshot_close(snapshot);
}

static void
test_layouts_fill_their_segments(void **state)
{
	struct tn_snapshot *snapshot = micro_steps(false);
	struct tn_analysis *analysis = analysed(snapshot);
	for (uint32_t at = 0; at <= analysis->events.count; at++) {
		struct tn_layout layout;
		uint64_t live_bytes = 0;
		assert_int_equal(tn__layout_of(analysis, at, &layout), TN_OK);
		for (size_t index = 0; index < layout.segment_count; index++) {
			const struct tn_layout_segment *segment = &layout.segments[index];
			uint64_t filled = 0;
			for (size_t number = segment->first_block; number < segment->first_block + segment->blocks; number++)
				filled += layout.blocks[number].size;
			assert_int_equal(filled, segment->size);
			live_bytes += segment->live;
		}
		assert_int_equal(live_bytes, analysis->allocated[at]);
		tn__layout_free(&layout);
	}
	tn__analysis_close(analysis);
	tn_snapshot_close(snapshot);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_small_block_pins_a_segment),
		cmocka_unit_test(test_churn_is_of_the_program_itself),
		cmocka_unit_test(test_segments_that_come_and_go),
		cmocka_unit_test(test_gradients_that_no_update_used),
		cmocka_unit_test(test_data_that_stays),
		cmocka_unit_test(test_a_copy_of_the_model),
		cmocka_unit_test(test_buckets_beside_the_gradients),
		cmocka_unit_test(test_outputs_that_data_parallel_gathers),
		cmocka_unit_test(test_a_model_that_only_an_optimizer_holds),
		cmocka_unit_test(test_graphs_that_no_backward_pass_uses),
		cmocka_unit_test(test_what_a_graph_keeps_is_activations),
		cmocka_unit_test(test_a_pass_that_creates_a_graph_and_is_cut),
		cmocka_unit_test(test_a_tensor_that_is_reallocated_a_bit_larger),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_columns_are_real_moments),
		cmocka_unit_test(test_layouts_fill_their_segments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
