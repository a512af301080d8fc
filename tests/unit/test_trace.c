/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots to columns: every form, what is missing, what is malformed, sharing, and what held the memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_pickle_writer.h"
#include "tonnage/snapshot.h"

enum { USER_FRAME, TORCH_FRAME, NEXT_MEMO };

static struct writer writer;

/* Two frames that later stacks refer to stand in a list of their own, under a key that nobody knows. */
static void
put_frames(void)
{
	put_text(&writer, "my_frames");
	put_ops(&writer, "](");
	put_frame(&writer, "forward", "/lib/python3.11/site-packages/torch/nn/linear.py", 12, TORCH_FRAME);
	put_frame(&writer, "train", "/work/train.py", 41, USER_FRAME);
	put_ops(&writer, "e");
}

static void
put_stack(void)
{
	put_text(&writer, "frames");
	put_ops(&writer, "](");
	put_with(&writer, 'j', TORCH_FRAME);
	put_with(&writer, 'j', USER_FRAME);
	put_ops(&writer, "e");
}

static void
put_block(int64_t address, int64_t size, int64_t requested, const char *state, bool with_stack)
{
	put_ops(&writer, "}(");
	put_pair(&writer, "address", address);
	put_pair(&writer, "size", size);
	put_pair(&writer, "requested_size", requested);
	put_text_pair(&writer, "state", state);
	if (with_stack)
		put_stack();
	put_ops(&writer, "u");
}

/* A segment of 4096 bytes with three blocks. */
static void
put_segment(int64_t address)
{
	put_ops(&writer, "}(");
	put_pair(&writer, "device", 0);
	put_pair(&writer, "address", address);
	put_pair(&writer, "total_size", 4096);
	put_pair(&writer, "stream", -1);
	put_text_pair(&writer, "segment_type", "small");
	put_text(&writer, "segment_pool_id");
	put_ops(&writer, "K\x02K\x03\x86");
	put_text(&writer, "is_expandable");
	put_ops(&writer, "\x88");
	put_text(&writer, "blocks");
	put_ops(&writer, "](");
	put_block(address, 1024, 1000, "active_allocated", true);
	put_block(address + 1024, 512, 500, "active_pending_free", false);
	put_block(address + 1536, 2560, 0, "inactive", false);
	put_ops(&writer, "eu");
}

static void
put_event(const char *action, int64_t address, int64_t size, int64_t time_us)
{
	put_ops(&writer, "}(");
	put_text_pair(&writer, "action", action);
	put_pair(&writer, strcmp(action, "oom") ? "addr" : "device_free", address);
	put_pair(&writer, "size", size);
	put_pair(&writer, "time_us", time_us);
	put_stack();
	put_ops(&writer, "u");
}

/* A whole snapshot with all that there is. */
static void
put_snapshot(void)
{
	put_start(&writer);
	put_ops(&writer, "}(");
	put_frames();
	put_text(&writer, "segments");
	put_ops(&writer, "](");
	put_segment(0x1000);
	put_segment(0x9000);
	put_ops(&writer, "e");
	put_text(&writer, "device_traces");
	put_ops(&writer, "](](");
	put_event("alloc", 0x1000, 1000, 7);
	put_event("oom", 77, 1 << 20, 8);
	put_event("never_heard_of", 0x1000, 1000, 9);
	put_ops(&writer, "e](");
	put_event("segment_alloc", 0x1000, 4096, 6);
	put_ops(&writer, "e]e");
	put_text(&writer, "allocator_settings");
	put_ops(&writer, "}(");
	put_text_pair(&writer, "PYTORCH_CUDA_ALLOC_CONF", "a:b");
	put_pair(&writer, "max_split_size", -1);
	put_text(&writer, "roundup");
	put_ops(&writer, "}(");
	put_pair(&writer, "64", 2);
	put_ops(&writer, "uu");
	put_text(&writer, "external_annotations");
	put_ops(&writer, "](}(");
	put_text_pair(&writer, "name", "step");
	put_text_pair(&writer, "stage", "START");
	put_pair(&writer, "device", 1);
	put_pair(&writer, "time_us", 5);
	put_ops(&writer, "ueu.");
}

static struct tn_snapshot *
parsed(void)
{
	struct tn_snapshot *snapshot = NULL;
	if (tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot) != TN_OK)
		fail_msg("%s", tn_error_text());
	return snapshot;
}

static void
expect_failure(tn_status status, const char *words)
{
	struct tn_snapshot *snapshot = NULL;
	assert_int_equal(tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot), status);
	assert_null(snapshot);
	if (!strstr(tn_error_text(), words))
		fail_msg("%s", tn_error_text());
}

static void
test_segments_and_blocks(void **state)
{
	const struct tn_segment *segments;
	const struct tn_block *blocks;
	put_snapshot();
	struct tn_snapshot *snapshot = parsed();
	assert_int_equal(tn_snapshot_segments(snapshot, &segments), 2);
	assert_int_equal(tn_snapshot_blocks(snapshot, &blocks), 6);
	assert_int_equal(segments[1].address, 0x9000);
	assert_int_equal(segments[1].total, 4096);
	assert_true(segments[1].allocated == TN_UNKNOWN);
	assert_true(segments[1].stream == UINT64_MAX); /* -1 as a handle */
	assert_int_equal(segments[1].pool[0], 2);
	assert_int_equal(segments[1].pool[1], 3);
	assert_true(segments[1].small && segments[1].expandable && !segments[1].host);
	assert_int_equal(segments[1].first_block, 3);
	assert_int_equal(segments[1].blocks, 3);
	assert_int_equal(blocks[3].requested, 1000);
	assert_int_equal(blocks[3].state, TN_BLOCK_LIVE);
	assert_int_equal(blocks[4].state, TN_BLOCK_PENDING);
	assert_int_equal(blocks[5].state, TN_BLOCK_FREE);
	assert_int_equal(blocks[5].stack, 0);
	tn_snapshot_close(snapshot);
}

static void
test_traces(void **state)
{
	put_snapshot();
	struct tn_snapshot *snapshot = parsed();
	assert_int_equal(tn_snapshot_traces(snapshot), 3);
	assert_int_equal(tn_snapshot_events(snapshot, 0), 3);
	assert_int_equal(tn_snapshot_events(snapshot, 1), 1);
	assert_int_equal(tn_snapshot_events(snapshot, 2), 0);
	assert_int_equal(tn_snapshot_trace_device(snapshot, 1), 1);
	struct tn_event event = tn_snapshot_event(snapshot, 0, 0);
	assert_int_equal(event.action, TN_ACTION_ALLOC);
	assert_int_equal(event.address, 0x1000);
	assert_int_equal(event.size, 1000);
	assert_int_equal(event.time_us, 7);
	assert_true(event.pool[0] == TN_UNKNOWN);
	assert_null(event.compile_context);
	assert_int_equal(tn_snapshot_event(snapshot, 0, 2).action, TN_ACTION_OTHER);
	assert_int_equal(tn_snapshot_event(snapshot, 1, 0).action, TN_ACTION_SEGMENT_ALLOC);
	size_t trace, index;
	assert_true(tn_snapshot_out_of_memory(snapshot, 0, &trace, &index));
	assert_int_equal(index, 1);
	assert_int_equal(tn_snapshot_event(snapshot, trace, index).address, 77);
	assert_false(tn_snapshot_out_of_memory(snapshot, 1, &trace, &index));
	tn_snapshot_close(snapshot);
}

static void
test_stacks_are_shared(void **state)
{
	const uint32_t *frames;
	put_snapshot();
	struct tn_snapshot *snapshot = parsed();
	assert_int_equal(tn_snapshot_frames(snapshot), 2);
	tn_stack stack = tn_snapshot_event(snapshot, 0, 0).stack;
	assert_int_equal(tn_snapshot_event(snapshot, 1, 0).stack, stack);
	assert_int_equal(tn_snapshot_stack(snapshot, stack, &frames), 2);
	struct tn_frame frame = tn_snapshot_frame(snapshot, frames[0]);
	assert_string_equal(frame.function, "forward");
	assert_int_equal(frame.line, 12);
	assert_false(frame.user);
	uint32_t user;
	assert_true(tn_snapshot_user_frame(snapshot, stack, &user));
	assert_int_equal(user, frames[1]);
	assert_false(tn_snapshot_user_frame(snapshot, 0, &user));
	assert_int_equal(tn_snapshot_stack(snapshot, 0, &frames), 0);
	tn_snapshot_close(snapshot);
}

static void
test_settings_and_annotations(void **state)
{
	const struct tn_setting *settings;
	const struct tn_annotation *annotations;
	put_snapshot();
	struct tn_snapshot *snapshot = parsed();
	assert_int_equal(tn_snapshot_settings(snapshot, &settings), 3);
	assert_string_equal(settings[0].name, "PYTORCH_CUDA_ALLOC_CONF");
	assert_string_equal(settings[0].text, "a:b");
	assert_int_equal(settings[1].integer, -1);
	assert_string_equal(settings[2].name, "roundup.64");
	assert_int_equal(settings[2].integer, 2);
	assert_int_equal(tn_snapshot_annotations(snapshot, &annotations), 1);
	assert_string_equal(annotations[0].name, "step");
	assert_true(annotations[0].start);
	assert_int_equal(annotations[0].device, 1);
	assert_int_equal(annotations[0].time_us, 5);
	tn_snapshot_close(snapshot);
}

static void
test_who_holds_the_memory(void **state)
{
	struct tn_holder *holders;
	size_t count;
	put_snapshot();
	struct tn_snapshot *snapshot = parsed();
	struct tn_snapshot_totals totals = tn_snapshot_sum(snapshot, TN_ALL_DEVICES);
	assert_int_equal(totals.reserved, 8192);
	assert_int_equal(totals.allocated, 2048);
	assert_int_equal(totals.active, 3072);
	assert_int_equal(totals.requested, 3000);
	assert_int_equal(totals.largest_free_block, 2560);
	assert_int_equal(totals.live_blocks, 2);
	assert_int_equal(tn_snapshot_sum(snapshot, 1).reserved, 0);
	assert_int_equal(tn_snapshot_holders(snapshot, 0, &holders, &count), TN_OK);
	assert_int_equal(count, 2);
	assert_string_equal(holders[0].file, "/work/train.py");
	assert_string_equal(holders[0].function, "train");
	assert_int_equal(holders[0].line, 41);
	assert_int_equal(holders[0].bytes, 2048);
	assert_int_equal(holders[0].requested, 2000);
	assert_int_equal(holders[0].blocks, 2);
	assert_null(holders[1].file);
	assert_int_equal(holders[1].bytes, 1024);
	free(holders);
	tn_snapshot_close(snapshot);
}

static void
test_bare_list_of_segments(void **state)
{
	const struct tn_segment *segments;
	put_start(&writer);
	put_ops(&writer, "](}(");
	put_pair(&writer, "total_size", 4096);
	put_text(&writer, "blocks");
	put_ops(&writer, "]ue.");
	struct tn_snapshot *snapshot = parsed();
	assert_int_equal(tn_snapshot_segments(snapshot, &segments), 1);
	assert_int_equal(segments[0].blocks, 0);
	assert_int_equal(tn_snapshot_traces(snapshot), 0);
	tn_snapshot_close(snapshot);
	put_start(&writer);
	put_ops(&writer, "].");
	snapshot = parsed();
	assert_int_equal(tn_snapshot_segments(snapshot, &segments), 0);
	tn_snapshot_close(snapshot);
}

/* Old blocks: no address, and a history in place of frames and requested_size. */
static void
test_old_blocks(void **state)
{
	const struct tn_block *blocks;
	put_start(&writer);
	put_ops(&writer, "](}(");
	put_pair(&writer, "address", 0x2000);
	put_pair(&writer, "total_size", 1536);
	put_text(&writer, "blocks");
	put_ops(&writer, "](}(");
	put_pair(&writer, "size", 1024);
	put_text_pair(&writer, "state", "active_awaiting_free");
	put_text(&writer, "history");
	put_ops(&writer, "](}(");
	put_pair(&writer, "real_size", 900);
	put_text(&writer, "frames");
	put_ops(&writer, "](");
	put_frame(&writer, "f", "/work/f.py", 3, NEXT_MEMO);
	put_ops(&writer, "eu}(");
	put_pair(&writer, "real_size", 5);
	put_ops(&writer, "ueu}(");
	put_pair(&writer, "size", 512);
	put_text_pair(&writer, "state", "inactive");
	put_ops(&writer, "ueue.");
	struct tn_snapshot *snapshot = parsed();
	assert_int_equal(tn_snapshot_blocks(snapshot, &blocks), 2);
	assert_int_equal(blocks[0].address, 0x2000);
	assert_int_equal(blocks[0].requested, 900);
	assert_int_equal(blocks[0].state, TN_BLOCK_PENDING);
	assert_int_not_equal(blocks[0].stack, 0);
	assert_int_equal(blocks[1].address, 0x2400);
	assert_true(blocks[1].requested == TN_UNKNOWN);
	tn_snapshot_close(snapshot);
}

/* Host memory has one trace that is not nested, and segments of device -1. */
static void
test_host_memory(void **state)
{
	const struct tn_segment *segments;
	put_start(&writer);
	put_ops(&writer, "}(");
	put_text(&writer, "device_traces");
	put_ops(&writer, "]");
	put_text(&writer, "host_traces");
	put_ops(&writer, "](}(");
	put_text_pair(&writer, "action", "alloc");
	put_pair(&writer, "size", 64);
	put_ops(&writer, "ue");
	put_text(&writer, "host_segments");
	put_ops(&writer, "](}(");
	put_pair(&writer, "device", -1);
	put_pair(&writer, "total_size", 4096);
	put_ops(&writer, "ueu.");
	struct tn_snapshot *snapshot = parsed();
	assert_int_equal(tn_snapshot_traces(snapshot), 1);
	assert_int_equal(tn_snapshot_trace_device(snapshot, 0), -1);
	assert_int_equal(tn_snapshot_event(snapshot, 0, 0).size, 64);
	assert_int_equal(tn_snapshot_segments(snapshot, &segments), 1);
	assert_true(segments[0].host);
	assert_int_equal(tn_snapshot_sum(snapshot, TN_ALL_DEVICES).reserved, 0);
	assert_int_equal(tn_snapshot_sum(snapshot, -1).reserved, 4096);
	tn_snapshot_close(snapshot);
}

/* Entries that are first met outside of the traces, in another order, come in the order of the trace. */
static void
test_order_is_that_of_the_trace(void **state)
{
	put_start(&writer);
	put_ops(&writer, "}(");
	put_text(&writer, "kept_by_somebody");
	put_ops(&writer, "](");
	for (uint32_t index = 0; index < 3; index++) {
		put_ops(&writer, "}");
		put_with(&writer, 'r', index);
		put_ops(&writer, "(");
		put_text_pair(&writer, "action", "alloc");
		put_pair(&writer, "size", 100 + index);
		put_ops(&writer, "u");
	}
	put_ops(&writer, "e");
	put_text(&writer, "device_traces");
	put_ops(&writer, "](](");
	put_with(&writer, 'j', 2);
	put_with(&writer, 'j', 0);
	put_ops(&writer, "eeu.");
	struct tn_snapshot *snapshot = parsed();
	assert_int_equal(tn_snapshot_events(snapshot, 0), 2);
	assert_int_equal(tn_snapshot_event(snapshot, 0, 0).size, 102);
	assert_int_equal(tn_snapshot_event(snapshot, 0, 1).size, 100);
	tn_snapshot_close(snapshot);
}

static void
test_whose_lines(void **state)
{
	static const struct {
		const char *file;
		bool user;
	} files[] = {
		{ "/home/me/train.py", true },
		{ "train.py", true },
		{ "<stdin>", true },
		{ "<ipython-input-3-0a1b>", true },
		{ "/tmp/ipykernel_77/123.py", true },
		{ "C:\\work\\train.py", true },
		{ "", false },
		{ "??", false },
		{ "CUDACachingAllocator.cpp", false },
		{ "<frozen importlib._bootstrap>", false },
		{ "<eval_with_key>.5", false },
		{ "/usr/lib/python3.11/runpy.py", false },
		{ "/opt/conda/lib/python3.10/site-packages/transformers/trainer.py", false },
		{ "C:\\py\\Lib\\site-packages\\torch\\nn\\x.py", false },
		{ "/usr/lib/python3/dist-packages/numpy/x.py", false },
		{ "/home/me/pytorch/torch/nn/modules/linear.py", false },
		{ "/home/me/pytorch/libtorch_cpu.so", false },
	};
	enum { COUNT = sizeof(files) / sizeof(files[0]) };
	put_start_of_list(&writer);
	for (uint32_t index = 0; index < COUNT; index++)
		put_frame(&writer, "f", files[index].file, 1, index);
	put_ops(&writer, "eu.");
	struct tn_snapshot *snapshot = parsed();
	assert_int_equal(tn_snapshot_frames(snapshot), COUNT);
	for (uint32_t index = 0; index < COUNT; index++) {
		if (tn_snapshot_frame(snapshot, index).user != files[index].user)
			fail_msg("%s", files[index].file);
	}
	tn_snapshot_close(snapshot);
}

static void
put_one_event(const char *key, int64_t number)
{
	put_start(&writer);
	put_ops(&writer, "}(");
	put_text(&writer, "device_traces");
	put_ops(&writer, "](](}(");
	put_text_pair(&writer, "action", "alloc");
	put_pair(&writer, key, number);
	put_ops(&writer, "ueeu.");
}

static void
test_wrong_figures(void **state)
{
	put_one_event("size", -1);
	expect_failure(TN_FORMAT, "byte 56: \"size\" of the dict that ends here is not an integer from 0");
	put_one_event("frames", 3);
	expect_failure(TN_FORMAT, "\"frames\" of the dict that ends here is not a list of stack frames");
	put_one_event("compile_context", 3);
	expect_failure(TN_FORMAT, "not a string");
	put_one_event("pool_id", 3);
	expect_failure(TN_FORMAT, "not a tuple of two integers");
}

static void
test_not_a_snapshot(void **state)
{
	put_start(&writer);
	put_ops(&writer, "}.");
	expect_failure(TN_FORMAT, "byte 3: a pickle, but no memory snapshot");
	put_start(&writer);
	put_ops(&writer, "N.");
	expect_failure(TN_FORMAT, "no memory snapshot");
	put_start(&writer);
	put_ops(&writer, "](](](]eee.");
	expect_failure(TN_FORMAT, "no memory snapshot");
	writer.size = 0;
	expect_failure(TN_FORMAT, "byte 0: the file is empty");
	put_ops(&writer, "\x1f\x8b hello");
	expect_failure(TN_FORMAT, "the gzip data is corrupt, at byte ");
	writer.size = 0;
	put_ops(&writer, "BZh91AY");
	expect_failure(TN_UNSUPPORTED, "byte 0: compressed by bzip2");
	writer.size = 0;
	put_ops(&writer, "PK\x03\x04 hello");
	expect_failure(TN_UNSUPPORTED, "byte 0: a zip file");
	writer.size = 0;
	put_ops(&writer, "{\"json\": 1}");
	expect_failure(TN_FORMAT, "byte 0: not a pickle");
}

/* One list of blocks in a thousand segments would be a million rows out of a few bytes. */
static void
test_shared_blocks_are_refused(void **state)
{
	put_start(&writer);
	put_ops(&writer, "](");
	for (int index = 0; index < 2; index++) {
		put_ops(&writer, "}(");
		put_text(&writer, "blocks");
		if (index == 0) {
			put_ops(&writer, "](");
			put_block(1, 2, 3, "inactive", false);
			put_ops(&writer, "e");
			put_with(&writer, 'r', 0);
		} else {
			put_with(&writer, 'j', 0);
		}
		put_ops(&writer, "u");
	}
	put_ops(&writer, "e.");
	expect_failure(TN_FORMAT, "one list stands in two places");
}

/* A stack that grows by one frame at a time would be copied each time. */
static void
test_stack_that_grows_slowly(void **state)
{
	put_start(&writer);
	put_ops(&writer, "](");
	put_frame(&writer, "f", "/work/f.py", 3, 0);
	put_ops(&writer, "e");
	for (int index = 0; index < 3; index++) {
		put_with(&writer, 'j', 0);
		put_ops(&writer, "a");
	}
	put_ops(&writer, ".");
	expect_failure(TN_LIMIT, "grows as no pickler writes it");
}

static void
test_cut_anywhere(void **state)
{
	put_snapshot();
	for (size_t size = 0; size < writer.size; size++) {
		struct tn_snapshot *snapshot = NULL;
		uint8_t *copy = malloc(size + 1); /* so that a sanitizer sees a read beyond the end */
		memcpy(copy + 1, writer.bytes, size);
		assert_int_equal(tn_snapshot_parse(copy + 1, size, NULL, &snapshot), TN_FORMAT);
		assert_non_null(strstr(tn_error_text(), "byte "));
		free(copy);
	}
}

/* Every byte, one after the other, becomes another one: any status, no crash. */
static void
test_changed_anywhere(void **state)
{
	static const uint8_t others[] = { 0x00, 0xff, '.', 'e', 'u', '(', ']', '}', 'h', 'j', 0x94, 0x8a };
	put_snapshot();
	for (size_t at = 0; at < writer.size; at++) {
		uint8_t original = writer.bytes[at];
		for (size_t index = 0; index < sizeof(others); index++) {
			struct tn_snapshot *snapshot = NULL;
			writer.bytes[at] = others[index];
			if (tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot) == TN_OK)
				tn_snapshot_sum(snapshot, TN_ALL_DEVICES);
			tn_snapshot_close(snapshot);
		}
		writer.bytes[at] = original;
	}
}

/* Every budget, from none upwards, ends in TN_LIMIT until it is enough. */
static void
test_every_budget(void **state)
{
	struct tn_snapshot_options options = tn_snapshot_defaults();
	struct tn_snapshot *snapshot = NULL;
	put_snapshot();
	tn_status status = TN_LIMIT;
	for (options.memory_bytes = 0; status == TN_LIMIT && options.memory_bytes < 1 << 20; options.memory_bytes += 97)
		status = tn_snapshot_parse(writer.bytes, writer.size, &options, &snapshot);
	assert_int_equal(status, TN_OK);
	assert_true(options.memory_bytes > 97);
	tn_snapshot_close(snapshot);
}

static void
test_files(void **state)
{
	struct tn_snapshot *snapshot = NULL;
	assert_int_equal(tn_snapshot_open("/nonexistent/file", NULL, &snapshot), TN_IO);
	assert_non_null(strstr(tn_error_text(), "/nonexistent/file"));
	assert_int_equal(tn_snapshot_open("/", NULL, &snapshot), TN_IO);
	assert_int_equal(tn_snapshot_open("/dev/null", NULL, &snapshot), TN_FORMAT);
	assert_non_null(strstr(tn_error_text(), "/dev/null: byte 0"));
	tn_snapshot_close(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments_and_blocks),
		cmocka_unit_test(test_traces),
		cmocka_unit_test(test_stacks_are_shared),
		cmocka_unit_test(test_settings_and_annotations),
		cmocka_unit_test(test_who_holds_the_memory),
		cmocka_unit_test(test_bare_list_of_segments),
		cmocka_unit_test(test_old_blocks),
		cmocka_unit_test(test_host_memory),
		cmocka_unit_test(test_order_is_that_of_the_trace),
		cmocka_unit_test(test_whose_lines),
		cmocka_unit_test(test_wrong_figures),
		cmocka_unit_test(test_not_a_snapshot),
		cmocka_unit_test(test_shared_blocks_are_refused),
		cmocka_unit_test(test_stack_that_grows_slowly),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_changed_anywhere),
		cmocka_unit_test(test_every_budget),
		cmocka_unit_test(test_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
