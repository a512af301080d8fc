/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata in a snapshot: every kind of line, what is skipped, what is refused and at which line; and how the reader
 * hands them out.
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

#include "analyze/metadata.h"
#include "test_analyze_writer.h"
#include "tonnage/snapshot.h"

#define HEAD "tonnage-metadata\t1\n"

static struct tn_metadata
parsed(const char *text)
{
	struct tn_metadata metadata;
	if (tn__metadata_parse(text, strlen(text), &metadata) != TN_OK)
		fail_msg("%s", tn_error_text());
	return metadata;
}

static void
test_every_kind(void **state)
{
	struct tn_metadata metadata = parsed(HEAD "phase\t1000\t3\tforward\n"
	                                          "look\t1001\n"
	                                          "hold\toptimizer_state\t4096\t512\texp_avg float32\n"
	                                          "hold\tinputs\t8192\t16\t\n"
	                                          "backward\t1002\t7\n"
	                                          "node\t5\t-1\t0\t0\t1\tTBackward0\n"
	                                          "backward\t1003\t8\t1\n"
	                                          "run\t1003\t5\n"
	                                          "graph\t1003\t1008\t1010\t/a.py\t7\tf\n"
	                                          "library\t1004\tcublas\t4096\t100\n"
	                                          "copied\t1005\t4096\t101\n"
	                                          "card\t1006\t1\t2\t3\t4\t5\t6\n"
	                                          "step\t1007\t3\t99\n"
	                                          "oom\t1008\t1\t98\n"
	                                          "batch\t64\n");
	assert_int_equal(metadata.phases_count, 1);
	assert_int_equal(metadata.phases[0].time, 1000);
	assert_int_equal(metadata.phases[0].step, 3);
	assert_string_equal(metadata.phases[0].name, "forward");
	assert_int_equal(metadata.looks[0].time, 1001);
	assert_int_equal(metadata.holds_count, 2);
	assert_int_equal(metadata.holds[0].category, TN_CATEGORY_optimizer_state);
	assert_int_equal(metadata.holds[0].address, 4096);
	assert_int_equal(metadata.holds[0].bytes, 512);
	assert_string_equal(metadata.holds[0].label, "exp_avg float32");
	assert_int_equal(metadata.holds[1].category, TN_CATEGORY_inputs);
	assert_string_equal(metadata.holds[1].label, "");
	assert_int_equal(metadata.passes[0].pass, 7);
	assert_int_equal(metadata.passes[0].first_node, 0);
	assert_int_equal(metadata.passes[0].nodes, 1);
	assert_false(metadata.passes[0].creates);
	assert_true(metadata.passes[1].creates);
	assert_int_equal(metadata.nodes[0].id, 5);
	assert_int_equal(metadata.nodes[0].sequence, -1);
	assert_true(metadata.nodes[0].view);
	assert_string_equal(metadata.nodes[0].name, "TBackward0");
	assert_int_equal(metadata.runs[0].id, 5);
	assert_int_equal(metadata.graphs[0].ended, 1008);
	assert_int_equal(metadata.graphs[0].freed, 1010);
	assert_string_equal(metadata.graphs[0].file, "/a.py");
	assert_int_equal(metadata.graphs[0].line, 7);
	assert_string_equal(metadata.graphs[0].function, "f");
	assert_string_equal(metadata.libraries[0].library, "cublas");
	assert_int_equal(metadata.libraries[0].bytes, 100);
	assert_int_equal(metadata.copies[0].bytes, 101);
	assert_int_equal(metadata.cards[0].device, 1);
	assert_int_equal(metadata.cards[0].total, 2);
	assert_int_equal(metadata.cards[0].others, 6);
	assert_int_equal(metadata.steps[0].number, 3);
	assert_int_equal(metadata.steps[0].allocated, 99);
	assert_int_equal(metadata.ooms[0].requested, 98);
	assert_int_equal(metadata.batches[0].size, 64);
	tn__metadata_free(&metadata);
}

static void
test_what_is_not_known_is_skipped(void **state)
{
	struct tn_metadata metadata = parsed("tonnage-metadata\t1\tof a later release\n"
	                                     "\n"
	                                     "weather\tfine\n"
	                                     "batch\t64\tof a later release\n"
	                                     "batch\t65"); /* the last newline may be missing */
	assert_int_equal(metadata.batches_count, 2);
	assert_int_equal(metadata.batches[1].size, 65);
	tn__metadata_free(&metadata);
}

static void
test_escapes(void **state)
{
	struct tn_metadata metadata = parsed(HEAD "phase\t1\t1\ta\\tb\\nc\\rd\\\\n\n");
	assert_string_equal(metadata.phases[0].name, "a\tb\nc\rd\\n");
	tn__metadata_free(&metadata);
}

static void
test_times_never_fall(void **state)
{
	struct tn_metadata metadata = parsed(HEAD "run\t50\t1\nrun\t40\t2\nrun\t60\t3\nlook\t10\n");
	assert_int_equal(metadata.runs[1].time, 50);
	assert_int_equal(metadata.runs[2].time, 60);
	assert_int_equal(metadata.looks[0].time, 10); /* kinds do not mind each other */
	tn__metadata_free(&metadata);
}

static void
test_refused(void **state)
{
	static const struct {
		const char *text, *line;
		tn_status status;
	} cases[] = {
		{ "", "line 1 ", TN_FORMAT },
		{ "\n", "line 1 ", TN_FORMAT },
		{ "tonnage-mark\t1\n", "line 1 ", TN_FORMAT },
		{ "tonnage-metadata\n", "line 1 ", TN_FORMAT },
		{ "tonnage-metadata\t2\n", "line 1 ", TN_UNSUPPORTED },
		{ HEAD "batch\n", "line 2 ", TN_FORMAT },
		{ HEAD "batch\t\n", "line 2 ", TN_FORMAT },
		{ HEAD "batch\t-\n", "line 2 ", TN_FORMAT },
		{ HEAD "batch\t 1\n", "line 2 ", TN_FORMAT },
		{ HEAD "batch\t0x10\n", "line 2 ", TN_FORMAT },
		{ HEAD "batch\t9223372036854775808\n", "line 2 ", TN_FORMAT },
		{ HEAD "step\t1\t1\t18446744073709551616\n", "line 2 ", TN_FORMAT },
		{ HEAD "step\t1\t1\t-1\n", "line 2 ", TN_FORMAT },
		{ HEAD "step\t-1\t1\t1\n", "line 2 ", TN_FORMAT },
		{ HEAD "batch\t1\nhold\tinputs\t1\t1\t\n", "line 3 ", TN_FORMAT },
		{ HEAD "look\t1\nhold\tworkspaces\t1\t1\t\n", "line 3 ", TN_FORMAT },
		{ HEAD "look\t1\nhold\tworkspaces\t1\t1\t\n", "line 3 ", TN_FORMAT },
		{ HEAD "look\t1\nhold\tinputs\t1\t1\n", "line 3 ", TN_FORMAT },
		{ HEAD "look\t1\nhold\tinputs\t1\t1\t\\\n", "line 3 ", TN_FORMAT },
		{ HEAD "look\t1\nhold\tinputs\t1\t1\t\\x\n", "line 3 ", TN_FORMAT },
		{ HEAD "node\t1\t1\t1\t1\t0\tX\n", "line 2 ", TN_FORMAT },
		{ HEAD "card\t1\t0\t1\t1\t1\t1\n", "line 2 ", TN_FORMAT },
		{ HEAD "phase\t1\t1\n", "line 2 ", TN_FORMAT },
		{ HEAD "graph\t1\t2\t3\t\t0\n", "line 2 ", TN_FORMAT },
		{ HEAD "graph\t1\t-2\t3\t\t0\t\n", "line 2 ", TN_FORMAT },
	};
	for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
		struct tn_metadata metadata;
		tn_status status = tn__metadata_parse(cases[index].text, strlen(cases[index].text), &metadata);
		if (status != cases[index].status || !strstr(tn_error_text(), cases[index].line))
			fail_msg("case %zu: %s, %s", index, tn_status_text(status), tn_error_text());
	}
}

/* The largest and smallest numbers that fit are taken. */
static void
test_limits_of_numbers(void **state)
{
	struct tn_metadata metadata = parsed(HEAD "batch\t9223372036854775807\nbatch\t-9223372036854775807\n"
	                                          "step\t9223372036854775807\t0\t18446744073709551615\n");
	assert_true(metadata.batches[0].size == INT64_MAX);
	assert_true(metadata.batches[1].size == -INT64_MAX);
	assert_true(metadata.steps[0].allocated == UINT64_MAX);
	tn__metadata_free(&metadata);
}

static void
test_zero_bytes(void **state)
{
	static const char text[] = HEAD "phase\t1\t1\tab\0cd\nbatch\t1\0\n";
	struct tn_metadata metadata;
	assert_int_equal(tn__metadata_parse(text, sizeof(text) - 1, &metadata), TN_FORMAT);
	assert_non_null(strstr(tn_error_text(), "line 3 "));
}

/* Metadata cut anywhere give a status, and nothing is read behind their end. */
static void
test_cut(void **state)
{
	static const char text[] = HEAD "look\t12\nhold\tinputs\t1\t1\ta\\tb\nbackward\t1\t1\nnode\t1\t1\t1\t1\t0\tX\n";
	for (size_t length = 0; length < sizeof(text); length++) {
		char *copy = malloc(length ? length : 1);
		struct tn_metadata metadata;
		memcpy(copy, text, length);
		tn_status status = tn__metadata_parse(copy, length, &metadata);
		free(copy);
		if (status == TN_OK)
			tn__metadata_free(&metadata);
		else if (status != TN_UNSUPPORTED) /* of no version yet */
			assert_int_equal(status, TN_FORMAT);
	}
}

/* ---- in a snapshot ---- */

static tn_status
parse_with(const char *metadata, size_t length, struct tn_snapshot **snapshot)
{
	open_snapshot();
	put_metadata(metadata, length);
	open_segments();
	close_segments();
	close_snapshot();
	return tn_snapshot_parse(writer.bytes, writer.size, NULL, snapshot);
}

static void
test_handed_out(void **state)
{
	static const char text[] = HEAD "batch\t1\n\0x";
	struct tn_snapshot *snapshot;
	size_t length;
	assert_int_equal(parse_with(text, sizeof(text) - 1, &snapshot), TN_OK);
	const char *metadata = tn_snapshot_metadata(snapshot, &length);
	assert_int_equal(length, sizeof(text) - 1);
	assert_memory_equal(metadata, text, sizeof(text));
	tn_snapshot_close(snapshot);
}

static void
test_absent(void **state)
{
	struct tn_snapshot *snapshot;
	size_t length = 7;
	open_snapshot();
	open_segments();
	close_segments();
	close_snapshot();
	assert_int_equal(tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot), TN_OK);
	assert_null(tn_snapshot_metadata(snapshot, &length));
	assert_int_equal(length, 0);
	tn_snapshot_close(snapshot);
	put_start(&writer); /* a bare list of segments */
	put_ops(&writer, "].");
	assert_int_equal(tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot), TN_OK);
	assert_null(tn_snapshot_metadata(snapshot, &length));
	tn_snapshot_close(snapshot);
}

static void
test_no_text(void **state)
{
	struct tn_snapshot *snapshot;
	open_snapshot();
	put_pair(&writer, "tonnage", 1);
	open_segments();
	close_segments();
	close_snapshot();
	assert_int_equal(tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot), TN_FORMAT);
	assert_non_null(strstr(tn_error_text(), "tonnage"));
}

/* Only the snapshot's own dict counts. */
static void
test_elsewhere(void **state)
{
	struct tn_snapshot *snapshot;
	size_t length;
	open_snapshot();
	put_text(&writer, "allocator_settings");
	put_ops(&writer, "}(");
	put_text_pair(&writer, "tonnage", "1");
	put_ops(&writer, "u");
	open_segments();
	close_segments();
	close_snapshot();
	assert_int_equal(tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot), TN_OK);
	assert_null(tn_snapshot_metadata(snapshot, &length));
	tn_snapshot_close(snapshot);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind), cmocka_unit_test(test_what_is_not_known_is_skipped),
		cmocka_unit_test(test_escapes),    cmocka_unit_test(test_times_never_fall),
		cmocka_unit_test(test_refused),    cmocka_unit_test(test_limits_of_numbers),
		cmocka_unit_test(test_zero_bytes), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_handed_out), cmocka_unit_test(test_absent),
		cmocka_unit_test(test_no_text),    cmocka_unit_test(test_elsewhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
