/* SPDX-License-Identifier: Apache-2.0
 *
 * The analysis of snapshots written by hand: what blocks were for, whose lines they belong to, what grows, and what is
 * guessed without metadata.
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

/* ---- categories ---- */

/* One block of 4000 bytes at SEGMENT from event 1 on, freed at event 4, and another thing at its address after that. */
static struct tn_snapshot *
with_one_block(void)
{
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	live(SEGMENT, 4096, 4000, "n");
	close_segment();
	return finish(true);
}

static void
begin_one_block(void)
{
	begin();
	event("segment_alloc", SEGMENT, 2 * MIB, "");
	alloc(SEGMENT, 4000, "m");
	alloc(SEGMENT + 8192, 4000, "t");
	release(SEGMENT + 8192, 4000, "t");
	event("free_requested", SEGMENT, 4000, "m"); /* event 5 */
	event("free_completed", SEGMENT, 4000, "m");
	alloc(SEGMENT, 4000, "n"); /* event 7 */
}

/* Bytes are split by what covers them, the earlier category first; what nobody covers is temporary. */
static void
test_a_block_of_several_categories(void **state)
{
	begin_one_block();
	mark("look\t%lld\n", before(2));
	mark("hold\tactivations\t%d\t3000\t\n", SEGMENT);
	mark("hold\tgradients\t%d\t500\t\n", SEGMENT + 1000);
	mark("hold\tparameters\t%d\t600\tw\n", SEGMENT + 900);
	mark("hold\tparameters\t%d\t100\tv\n", SEGMENT + 950);
	mark("hold\tinputs\t%d\t9999\t\n", SEGMENT + 2900); /* longer than what was asked for */
	mark("hold\toptimizer_state\t%d\t0\t\n", SEGMENT + 2900);
	mark("library\t%lld\tcublas\t%d\t200\n", before(2), SEGMENT);
	struct tn_snapshot *snapshot = with_one_block();
	struct tn_moment moment = moment_of(snapshot, 5);
	assert_int_equal(moment.by_category[TN_CATEGORY_parameters], 600);
	assert_int_equal(moment.by_category[TN_CATEGORY_gradients], 0); /* all of it is parameters */
	assert_int_equal(moment.by_category[TN_CATEGORY_inputs], 1100);
	assert_int_equal(moment.by_category[TN_CATEGORY_activations], 3000 - 600 - 100);
	assert_int_equal(moment.by_category[TN_CATEGORY_workspaces], 0);
	assert_int_equal(moment.by_category[TN_CATEGORY_temporaries], 0);
	assert_int_equal(moment.by_category[TN_CATEGORY_rounding], 96);
	assert_string_equal(holding_at(&moment, TN_CATEGORY_parameters, 88)->label, "w");
	tn__moment_free(&moment);
	moment = end_of(snapshot); /* another block stands at that address */
	assert_int_equal(moment.by_category[TN_CATEGORY_temporaries], 4000);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* What a module made for itself is no input of the program; what is known to be something else neither. */
static void
test_inputs_come_from_outside(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 2 * MIB, "");
	alloc(SEGMENT, 1024, "Cm");
	alloc(SEGMENT + 1024, 1024, "m");
	alloc(SEGMENT + 2048, 1024, "m");
	mark("look\t%lld\n", before(4));
	for (int block = 0; block < 3; block++)
		mark("hold\tinputs\t%d\t1024\t\n", SEGMENT + 1024 * block);
	mark("hold\ttemporaries\t%d\t1024\tkept\n", SEGMENT + 2048);
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	live(SEGMENT, 1024, 1024, "Cm");
	live(SEGMENT + 1024, 1024, 1024, "m");
	live(SEGMENT + 2048, 1024, 1024, "m");
	close_segment();
	struct tn_snapshot *snapshot = finish(true);
	struct tn_moment moment = end_of(snapshot);
	assert_int_equal(moment.by_category[TN_CATEGORY_activations], 1024);
	assert_int_equal(moment.by_category[TN_CATEGORY_inputs], 1024);
	assert_int_equal(moment.by_category[TN_CATEGORY_temporaries], 1024);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* A hold says what its allocation is for the whole of its life; of several looks the earlier category counts. */
static void
test_looks(void **state)
{
	begin_one_block();
	mark("look\t%lld\n", before(2));
	mark("hold\tactivations\t%d\t4000\t\n", SEGMENT);
	mark("look\t%lld\n", before(4));
	mark("hold\tgradients\t%d\t1000\t\n", SEGMENT);
	mark("hold\tinputs\t%d\t4000\t\n", SEGMENT + 8192); /* has gone */
	mark("hold\tinputs\t%d\t4000\t\n", SEGMENT - 512);  /* was never */
	mark("hold\tinputs\t%d\t4000\t\n", SEGMENT + 4050); /* behind what was asked for */
	mark("look\t%lld\n", before(8));
	mark("hold\tparameters\t%d\t4000\t\n", SEGMENT);
	struct tn_snapshot *snapshot = with_one_block();
	struct tn_moment moment = moment_of(snapshot, 2);
	assert_int_equal(moment.by_category[TN_CATEGORY_gradients], 1000);
	assert_int_equal(moment.by_category[TN_CATEGORY_activations], 3000);
	tn__moment_free(&moment);
	moment = end_of(snapshot);
	assert_int_equal(moment.by_category[TN_CATEGORY_parameters], 4000);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* A look from before the trace tells of what was there when it began; a workspace is what is left of the block. */
static void
test_marks_from_before_the_trace(void **state)
{
	begin();
	release(SEGMENT, 4000, "m");
	alloc(SEGMENT, 4000, "n");
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	live(SEGMENT, 4096, 4000, "n");
	close_segment();
	mark("look\t5\n");
	mark("hold\tgradients\t%d\t1000\t\n", SEGMENT);
	mark("library\t5\tcublas\t%d\t3500\n", SEGMENT + 100);
	struct tn_snapshot *snapshot = finish(true);
	struct tn_moment moment = moment_of(snapshot, 0);
	assert_int_equal(moment.by_category[TN_CATEGORY_gradients], 1000);
	assert_int_equal(moment.by_category[TN_CATEGORY_workspaces], 2600);
	assert_int_equal(moment.by_category[TN_CATEGORY_temporaries], 400);
	assert_string_equal(holding_at(&moment, TN_CATEGORY_workspaces, 88)->label, "cublas");
	tn__moment_free(&moment);
	moment = end_of(snapshot);
	assert_int_equal(moment.by_category[TN_CATEGORY_temporaries], 4000);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* ---- backward ---- */

enum { LOGITS = 3 << 10, HIDDEN = 5 << 10, SAVED = 7 << 10 };

/* Forward: HIDDEN at line 88 (event 1), a view of it, LOGITS at line 90 (event 2), SAVED at line 92 (event 3). Backward
 * begins at event 4; its allocations follow, each of 512 bytes. */
static void
begin_backward(void)
{
	begin();
	event("segment_alloc", SEGMENT, 2 * MIB, "");
	alloc(SEGMENT, HIDDEN, "Tm");
	alloc(SEGMENT + 8192, LOGITS, "Tn");
	alloc(SEGMENT + 16384, SAVED, "TGo");
	mark("phase\t%lld\t1\tbackward\n", before(4));
}

/* Ends the trace with all blocks alive, `count` of backward. */
static struct tn_moment
end_backward(int count)
{
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	live(SEGMENT, HIDDEN, HIDDEN, "Tm");
	live(SEGMENT + 8192, LOGITS, LOGITS, "Tn");
	live(SEGMENT + 16384, 7168, SAVED, "TGo");
	for (int index = 0; index < count; index++)
		live(SEGMENT + 65536 + 512 * index, 512, 512, "");
	close_segment();
	struct tn_snapshot *snapshot = finish(true);
	struct tn_moment moment = end_of(snapshot);
	/* The texts live in the snapshot, which is not closed before the next one is made. */
	static struct tn_snapshot *last;
	tn_snapshot_close(last);
	last = snapshot;
	return moment;
}

static void
work(int index)
{
	alloc(SEGMENT + 65536 + 512 * index, 512, index % 2 ? "" : "G"); /* a hook of ours on the stack does not count */
}

static void
test_nodes_and_lines(void **state)
{
	begin_backward();
	work(0); /* event 4: before any node */
	work(1);
	work(2);
	work(3);
	work(4);
	work(5); /* event 9: after the pass */
	mark("backward\t%lld\t1\n", before(4));
	mark("node\t1\t12\t%d\t%d\t0\tSoftmaxBackward0\n", SAVED, SEGMENT + 16384 + 100); /* evidence inside the block */
	mark("node\t2\t11\t%d\t0\t0\tMmBackward0\n", LOGITS);                             /* by its size */
	mark("node\t3\t10\t%d\t%d\t1\tViewBackward0\n", HIDDEN, SEGMENT);                 /* shows node 4's result */
	mark("node\t4\t9\t%d\t0\t0\tAddmmBackward0\n", HIDDEN);
	mark("node\t5\t-1\t64\t0\t0\tAccumulateGrad\n");
	mark("run\t%lld\t1\n", before(5));
	mark("run\t%lld\t2\n", before(6));
	mark("run\t%lld\t4\n", before(7));
	mark("run\t%lld\t5\n", before(8));
	mark("phase\t%lld\t1\tother\n", before(9));
	struct tn_moment moment = end_backward(6);
	assert_int_equal(moment.by_category[TN_CATEGORY_temporaries], moment.requested);
	assert_int_equal(moment.named_bytes, moment.requested - 2 * 512);
	const struct tn_holding *twice = NULL;
	size_t backward = 0;
	for (size_t index = 0; index < moment.holder_count; index++) {
		const struct tn_holding *holding = &moment.holders[index];
		backward += holding->at.backward ? holding->bytes : 0;
		twice = holding->at.backward && holding->at.line == 88 ? holding : twice;
	}
	assert_int_equal(backward, 4 * 512);
	assert_non_null(twice);
	assert_int_equal(twice->blocks, 2); /* what adds up a gradient belongs to the node before */
	assert_int_not_equal(twice->stack, 0);
	assert_string_equal(moment.phase, "other");
	assert_null(moment.at.file);
	tn__moment_free(&moment);
}

/* What cannot be tied or found has the line of the node before it in the order of forward. */
static void
test_nodes_without_a_trace(void **state)
{
	begin_backward();
	work(0);
	work(1);
	work(2);
	mark("backward\t%lld\t1\n", before(4));
	mark("node\t7\t5\t0\t%d\t0\tFirst\n", SEGMENT);
	mark("node\t8\t6\t77\t0\t0\tUnknown\n");
	mark("node\t9\t4\t77\t0\t0\tBeforeTheFirst\n");
	mark("run\t%lld\t8\n", before(4));
	mark("run\t%lld\t9\n", before(5));
	mark("run\t%lld\t1000\n", before(6)); /* no node of the file: as the one before */
	struct tn_moment moment = end_backward(3);
	assert_int_equal(moment.named_bytes, moment.requested);
	expect_line(&moment.at, "/work/model.py", 88, true);
	assert_int_equal(moment.holder_count, 4);
	tn__moment_free(&moment);
}

/* A pass that was only marked has no runs: its work is not that of the nodes of an earlier pass. */
static void
test_a_pass_without_nodes(void **state)
{
	begin_backward();
	work(0); /* event 4: in the pass with nodes */
	work(1); /* event 5: in the one without */
	mark("backward\t%lld\t1\n", before(4));
	mark("node\t1\t12\t%d\t0\t0\tSoftmaxBackward0\n", SAVED);
	mark("backward\t%lld\t2\n", before(5));
	mark("run\t%lld\t1\n", before(4));
	struct tn_moment moment = end_backward(2);
	size_t backward = 0;
	for (size_t index = 0; index < moment.holder_count; index++)
		backward += moment.holders[index].at.backward ? moment.holders[index].bytes : 0;
	assert_int_equal(backward, 512);
	assert_int_equal(moment.named_bytes, moment.requested - 512);
	tn__moment_free(&moment);
}

/* The next allocation of the right size between its neighbours: not one from before, not one after. */
static void
test_sizes_between_neighbours(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 2 * MIB, "");
	alloc(SEGMENT, 1024, "m");
	alloc(SEGMENT + 8192, 2048, "n");
	alloc(SEGMENT + 16384, 1024, "o"); /* event 3 */
	alloc(SEGMENT + 24576, 4096, "t");
	alloc(SEGMENT + 32768, 1024, "e");
	alloc(SEGMENT + 40960, 512, "");
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	live(SEGMENT + 40960, 512, 512, "");
	close_segment();
	mark("phase\t%lld\t1\tbackward\n", before(6));
	mark("backward\t%lld\t1\n", before(6));
	mark("node\t1\t1\t2048\t%d\t0\tA\n", SEGMENT + 8192);
	mark("node\t2\t2\t1024\t0\t0\tB\n");
	mark("node\t3\t3\t4096\t%d\t0\tC\n", SEGMENT + 24576);
	mark("run\t%lld\t2\n", before(6));
	struct tn_snapshot *snapshot = finish(true);
	struct tn_moment moment = end_of(snapshot);
	expect_line(&moment.at, "/work/model.py", 92, true);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* An out-of-memory in backward has the line of the node at work. */
static void
test_out_of_memory_in_backward(void **state)
{
	begin_backward();
	event("oom", 77, 40 * MIB, "");
	mark("backward\t%lld\t1\n", before(4));
	mark("node\t1\t12\t%d\t0\t0\tSoftmaxBackward0\n", SAVED);
	mark("run\t%lld\t1\n", before(4));
	struct tn_moment moment = end_backward(0);
	expect_line(&moment.at, "/work/model.py", 92, true);
	tn__moment_free(&moment);
}

/* ---- holdings ---- */

/* 6 layers of 4 KiB + 2 * 1 KiB and a scrap at one line, twice 2 KiB a layer at another. */
static void
test_layers(void **state)
{
	begin();
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	for (int layer = 0; layer < 6; layer++) {
		int64_t at = SEGMENT + 16384 * layer;
		live(at, 4096, 4096, "TmCCt");
		live(at + 4096, 1024, 1024, "TmCCt");
		live(at + 5120, 1024, 1024, "TmCCt");
		live(at + 6144, 2048, 2048, "TnCCt");
		live(at + 8192, 2048, 2048, "TnCCt");
	}
	live(SEGMENT + MIB, 512, 12, "TmCCt");
	live(SEGMENT + MIB + 512, 512, 512, "Tt");
	close_segment();
	struct tn_snapshot *snapshot = finish(true);
	struct tn_moment moment = end_of(snapshot);
	const struct tn_holding *first = holding_at(&moment, TN_CATEGORY_temporaries, 88);
	assert_ptr_equal(first, moment.holders);
	assert_int_equal(first->bytes, 6 * 6144 + 12);
	assert_int_equal(first->blocks, 19);
	assert_int_equal(first->alike, 6);
	assert_true(first->layers);
	expect_line(&first->at, "/work/model.py", 88, false);
	assert_null(first->user.file);
	const struct tn_holding *second = holding_at(&moment, TN_CATEGORY_temporaries, 90);
	assert_int_equal(second->blocks, 12);
	assert_int_equal(second->alike, 6);
	const struct tn_holding *plain = holding_at(&moment, TN_CATEGORY_temporaries, 41);
	assert_int_equal(plain->alike, 1);
	assert_false(plain->layers);
	assert_int_equal(moment.named_bytes, moment.requested);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* Three layers that keep two equal tensors of one line and one of another; without one of the six nothing is said. */
static void
test_visits(void **state)
{
	for (int gone = 0; gone < 2; gone++) {
		begin();
		event("segment_alloc", SEGMENT, 2 * MIB, "");
		for (int layer = 0; layer < 3; layer++) {
			alloc(SEGMENT + 16384 * layer, 4096, "TmCCt");
			alloc(SEGMENT + 16384 * layer + 4096, 4096, "TmCCt");
			alloc(SEGMENT + 16384 * layer + 8192, 2048, "TnCCt");
		}
		end_trace();
		open_segment(SEGMENT, 2 * MIB, false);
		for (int layer = 0; layer < 3; layer++) {
			live(SEGMENT + 16384 * layer, 4096, 4096, "TmCCt");
			if (!gone || layer < 2)
				live(SEGMENT + 16384 * layer + 4096, 4096, 4096, "TmCCt");
			live(SEGMENT + 16384 * layer + 8192, 2048, 2048, "TnCCt");
		}
		close_segment();
		struct tn_snapshot *snapshot = finish(true);
		struct tn_moment moment = end_of(snapshot);
		assert_int_equal(holding_at(&moment, TN_CATEGORY_temporaries, 88)->alike, gone ? 1 : 3);
		assert_int_equal(holding_at(&moment, TN_CATEGORY_temporaries, 90)->alike, 3);
		tn__moment_free(&moment);
		tn_snapshot_close(snapshot);
	}
}

/* What a list gained in four steps are no layers, though a module inside of another made it; in two steps it may be. */
static void
test_kept_in_steps(void **state)
{
	for (int steps = 2; steps <= 4; steps += 2) {
		begin();
		event("segment_alloc", SEGMENT, 2 * MIB, "");
		for (int part = 0; part < 4; part++) {
			alloc(SEGMENT + 4096 * part, 4096, "TmCCt");
			if (part % (4 / steps) == 4 / steps - 1)
				mark("step\t%lld\t%d\t0\n", (long long)clock_us++ * 1000, part + 1);
		}
		end_trace();
		open_segment(SEGMENT, 2 * MIB, false);
		for (int part = 0; part < 4; part++)
			live(SEGMENT + 4096 * part, 4096, 4096, "TmCCt");
		close_segment();
		struct tn_snapshot *snapshot = finish(true);
		struct tn_moment moment = end_of(snapshot);
		const struct tn_holding *kept = holding_at(&moment, TN_CATEGORY_temporaries, 88);
		assert_int_equal(kept->alike, 4);
		assert_int_equal(kept->layers, steps == 2);
		tn__moment_free(&moment);
		tn_snapshot_close(snapshot);
	}
}

static void
test_labels(void **state)
{
	static const char *const labels[] = { "exp_avg float32", "exp_avg_sq float32", "exp_avg_sq float32",
		                                  "master float64", "step float32" };
	begin();
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	mark("look\t5\n");
	for (int index = 0; index < 5; index++) {
		int64_t size = index == 4 ? 4 : 4096;
		live(SEGMENT + 4096 * index, size == 4 ? 512 : size, size, "Ot");
		mark("hold\toptimizer_state\t%lld\t%lld\t%s\n", (long long)(SEGMENT + 4096 * index), (long long)size,
		     labels[index]);
	}
	live(SEGMENT + MIB, 4096, 4096, "m");
	mark("hold\tparameters\t%lld\t4096\th.0.weight\n", (long long)SEGMENT + MIB);
	live(SEGMENT + MIB + 4096, 4096, 4096, "n");
	live(SEGMENT + MIB + 8192, 4096, 4096, "n");
	mark("hold\tparameters\t%lld\t4096\ta\n", (long long)SEGMENT + MIB + 4096);
	mark("hold\tparameters\t%lld\t4096\tb\n", (long long)SEGMENT + MIB + 8192);
	close_segment();
	struct tn_snapshot *snapshot = finish(true);
	struct tn_moment moment = end_of(snapshot);
	assert_string_equal(holding_at(&moment, TN_CATEGORY_optimizer_state, 41)->label,
	                    "exp_avg, exp_avg_sq float32, master float64");
	assert_string_equal(holding_at(&moment, TN_CATEGORY_parameters, 88)->label, "h.0.weight");
	assert_null(holding_at(&moment, TN_CATEGORY_parameters, 90)->label);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* Frames of libraries count as places of work; our hook's and code that was made up do not. */
static void
test_whose_lines(void **state)
{
	begin();
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	live(SEGMENT, 512, 512, "xTGSLt");
	live(SEGMENT + 512, 512, 512, "xTGS");
	close_segment();
	struct tn_snapshot *snapshot = finish(true);
	struct tn_moment moment = end_of(snapshot);
	assert_int_equal(moment.holder_count, 2);
	expect_line(&moment.holders[0].at, "/env/lib/python3.11/site-packages/transformers/gpt.py", 7, false);
	expect_line(&moment.holders[0].user, "/work/train.py", 41, false);
	assert_null(moment.holders[1].at.file);
	assert_int_equal(moment.named_bytes, 512);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* "<string>" is the program of `python -c` when its top level is there; packages that come with torch are torch. */
static void
test_programs_without_a_file(void **state)
{
	static const struct {
		const char *name, *file;
		bool user, library;
	} cases[] = {
		{ "<module>", "<string>", true, false },
		{ "f", "<string>", true, false },
		{ "f", "<frozen runpy>", false, false },
		{ "f", "<__array_function__ internals>", false, false },
		{ "f", "/env/lib/python3.11/site-packages/torchvision/models/resnet.py", false, true },
		{ "f", "/env/lib/python3.11/site-packages/triton/runtime/jit.py", false, false },
		{ "f", "/env/lib/python3.11/site-packages/functorch/x.py", false, false },
		{ "f", "C:\\py\\Lib\\site-packages\\peft\\x.py", false, true },
		{ "f", "/usr/lib/python3.11/contextlib.py", false, false },
	};
	enum { COUNT = sizeof(cases) / sizeof(cases[0]) };
	struct tn_snapshot *snapshot;
	put_start_of_list(&writer);
	for (uint32_t index = 0; index < COUNT; index++)
		put_frame(&writer, cases[index].name, cases[index].file, 1, index);
	put_ops(&writer, "eu.");
	assert_int_equal(tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot), TN_OK);
	for (uint32_t index = 0; index < COUNT; index++) {
		struct tn_frame frame = tn_snapshot_frame(snapshot, index);
		if (frame.user != cases[index].user || frame.library != cases[index].library)
			fail_msg("%s", cases[index].file);
	}
	tn_snapshot_close(snapshot);
}

/* ---- growth ---- */

/* Three steps: line 88 keeps 1000 bytes more in each, line 90 keeps some in the first only, line 92 swaps. */
static struct tn_snapshot *
three_steps(void)
{
	begin();
	mark("phase\t5\t1\tforward\n");
	event("segment_alloc", SEGMENT, 2 * MIB, "");
	for (int step = 0; step < 3; step++) {
		alloc(SEGMENT + 1024 * step, 1000, "m");
		alloc(SEGMENT + 65536, 3000, "t");
		release(SEGMENT + 65536, 3000, "t");
		if (step == 0)
			alloc(SEGMENT + 16384, 9000, "n");
		if (step > 0)
			release(SEGMENT + 32768 + 8192 * (step - 1), 5000, "o");
		alloc(SEGMENT + 32768 + 8192 * step, 5000, "o");
		mark("step\t%lld\t%d\t0\n", (long long)clock_us * 1000, step + 1);
	}
	alloc(SEGMENT + 8192, 1000, "e"); /* of a step that does not end */
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	for (int step = 0; step < 3; step++)
		live(SEGMENT + 1024 * step, 1024, 1000, "m");
	live(SEGMENT + 8192, 1024, 1000, "e");
	live(SEGMENT + 16384, 9216, 9000, "n");
	live(SEGMENT + 32768 + 16384, 5120, 5000, "o");
	close_segment();
	return finish(true);
}

static void
test_growth(void **state)
{
	struct tn_snapshot *snapshot = three_steps();
	struct tn_holding *holdings;
	size_t count;
	assert_int_equal(growth_of_snapshot(snapshot, 0, &holdings, &count), TN_OK);
	assert_int_equal(count, 1);
	assert_int_equal(holdings[0].bytes, 1000);
	assert_int_equal(holdings[0].blocks, 1);
	expect_line(&holdings[0].at, "/work/model.py", 88, false);
	free(holdings);
	tn_snapshot_close(snapshot);
}

static void
test_no_growth_without_steps(void **state)
{
	struct tn_holding *holdings;
	size_t count = 7;
	begin_one_block();
	struct tn_snapshot *snapshot = with_one_block();
	assert_int_equal(growth_of_snapshot(snapshot, 0, &holdings, &count), TN_OK);
	assert_int_equal(count, 0);
	free(holdings);
	tn_snapshot_close(snapshot);
}

/* ---- without metadata ---- */

static void
test_guesses(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 2 * MIB, "");
	alloc(SEGMENT, 1000, "Tm");            /* 1: a plain tensor, not in a module */
	alloc(SEGMENT + 4096, 2000, "AAt");    /* 2: moved by a module: a parameter */
	alloc(SEGMENT + 8192, 3000, "TnCt");   /* 3: freed in backward: an activation */
	alloc(SEGMENT + 12288, 100, "TnCt");   /* 4: freed in forward */
	release(SEGMENT + 12288, 100, "TnCt"); /* 5, 6 */
	alloc(SEGMENT + 16384, 4000, "");      /* 7: backward; lives on: a gradient */
	alloc(SEGMENT + 20480, 200, "x");      /* 8: freed in the same backward */
	release(SEGMENT + 8192, 3000, "TnCt"); /* 9, 10 */
	release(SEGMENT + 20480, 200, "x");    /* 11, 12 */
	alloc(SEGMENT + 24576, 5000, "Ot");    /* 13: survives: state of the optimizer */
	alloc(SEGMENT + 32768, 300, "Ot");     /* 14 */
	release(SEGMENT + 32768, 300, "Ot");
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	live(SEGMENT, 1024, 1000, "Tm");
	live(SEGMENT + 4096, 2048, 2000, "AAt");
	live(SEGMENT + 16384, 4096, 4000, "");
	live(SEGMENT + 24576, 5120, 5000, "Ot");
	close_segment();
	struct tn_snapshot *snapshot = finish(false);
	struct tn_moment moment = moment_of(snapshot, 9);
	assert_true(moment.inferred);
	assert_int_equal(moment.by_category[TN_CATEGORY_parameters], 2000);
	assert_int_equal(moment.by_category[TN_CATEGORY_activations], 3000);
	assert_int_equal(moment.by_category[TN_CATEGORY_gradients], 4000);
	assert_int_equal(moment.by_category[TN_CATEGORY_temporaries], 1200);
	expect_line(&holding_at(&moment, TN_CATEGORY_gradients, 90)->at, "/work/model.py", 90, true);
	tn__moment_free(&moment);
	moment = moment_of(snapshot, 15);
	assert_int_equal(moment.by_category[TN_CATEGORY_optimizer_state], 5000);
	assert_int_equal(moment.by_category[TN_CATEGORY_temporaries], 1300);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* An optimizer that is given a closure calls the model: a pass as any other, where no metadata say more. */
static void
test_guesses_in_a_closure(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 2 * MIB, "");
	alloc(SEGMENT, 2000, "AAt");             /* 1: a parameter */
	alloc(SEGMENT + 8192, 3000, "TnCtOt");   /* 2: freed in backward: an activation */
	alloc(SEGMENT + 12288, 500, "TtOt");     /* 3: of the loss */
	alloc(SEGMENT + 16384, 4000, "");        /* 4: backward: a gradient */
	release(SEGMENT + 8192, 3000, "TnCtOt"); /* 5, 6 */
	release(SEGMENT + 12288, 500, "TtOt");   /* 7, 8 */
	alloc(SEGMENT + 24576, 5000, "Ot");      /* 9: the update: state */
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	live(SEGMENT, 2048, 2000, "AAt");
	live(SEGMENT + 16384, 4096, 4000, "");
	live(SEGMENT + 24576, 5120, 5000, "Ot");
	close_segment();
	struct tn_snapshot *snapshot = finish(false);
	struct tn_moment moment = moment_of(snapshot, 3);
	assert_true(moment.inferred);
	assert_int_equal(moment.by_category[TN_CATEGORY_parameters], 2000);
	assert_int_equal(moment.by_category[TN_CATEGORY_activations], 3000);
	assert_int_equal(moment.by_category[TN_CATEGORY_optimizer_state], 0);
	tn__moment_free(&moment);
	moment = moment_of(snapshot, 10);
	assert_int_equal(moment.by_category[TN_CATEGORY_optimizer_state], 5000);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

/* Without any stack nothing can be guessed. */
static void
test_no_guesses_without_stacks(void **state)
{
	begin();
	event("segment_alloc", SEGMENT, 2 * MIB, "");
	alloc(SEGMENT, 1000, "");
	end_trace();
	open_segment(SEGMENT, 2 * MIB, false);
	live(SEGMENT, 1024, 1000, "");
	close_segment();
	struct tn_snapshot *snapshot = finish(false);
	struct tn_moment moment = end_of(snapshot);
	assert_int_equal(moment.by_category[TN_CATEGORY_temporaries], 1000);
	tn__moment_free(&moment);
	tn_snapshot_close(snapshot);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_block_of_several_categories),
		cmocka_unit_test(test_inputs_come_from_outside),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_marks_from_before_the_trace),
		cmocka_unit_test(test_nodes_and_lines),
		cmocka_unit_test(test_nodes_without_a_trace),
		cmocka_unit_test(test_a_pass_without_nodes),
		cmocka_unit_test(test_sizes_between_neighbours),
		cmocka_unit_test(test_out_of_memory_in_backward),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_kept_in_steps),
		cmocka_unit_test(test_visits),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_whose_lines),
		cmocka_unit_test(test_programs_without_a_file),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_no_growth_without_steps),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_guesses_in_a_closure),
		cmocka_unit_test(test_no_guesses_without_stacks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
