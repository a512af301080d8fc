/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run on a card that is never full changes of the cause that another run was given: as fix has it from two trials.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict/run_reader.h"
#include "verdict/judge.h"

#define GIB ((json_int_t)1 << 30)

/* 2 GiB are asked for on a card of 12; 3 GiB of what PyTorch holds are used by no tensor. */
static json_t *
on_the_card(void)
{
	json_t *document = json_pack(
		"{s:s, s:s, s:{s:s, s:I, s:I}, s:{s:I, s:I, s:I, s:s, s:s, s:i, s:{s:I, s:I, s:I, s:I}}, "
		"s:[{s:s, s:s, s:I, s:s, s:s}]}",
		"schema", "tonnage.run/1", "verdict", "out_of_memory", "gpu", "name", "a card", "total_bytes", 12 * GIB,
		"context_bytes", GIB / 4, "out_of_memory", "requested_bytes", 2 * GIB, "free_bytes", GIB, "short_by_bytes", GIB,
		"cause", "fragmentation", "phase", "forward", "step", 2, "by_category", "parameters", 4 * GIB, "activations",
		4 * GIB, "cached", 3 * GIB, "context", GIB / 4, "findings", "id", "fragmentation", "severity", "error", "bytes",
		GIB, "what", "fragmentation: ...", "do", "expandable_segments");
	assert_non_null(document);
	return document;
}

static json_t *
on_a_large_card(json_int_t device, json_int_t cached, json_int_t state, const char *verdict)
{
	json_t *document = json_pack("{s:s, s:{s:i}, s:{s:I, s:I, s:I}, s:{s:{s:I, s:I, s:I, s:I}}, s:{s:b}}", "verdict",
	                             verdict, "steps", "seen", 3, "peak", "device_bytes", device, "reserved_bytes",
	                             device - GIB / 4, "allocated_bytes", device - GIB / 4 - cached, "at_peak",
	                             "by_category", "parameters", 4 * GIB, "gradients", 4 * GIB, "optimizer_state", state,
	                             "activations", 4 * GIB, "facts", "trains", 1);
	assert_non_null(document);
	return document;
}

/* A report as a trial's result gives it; the document, which it borrows from, is the caller's. */
static void
read_trial(const json_t *document, struct tn_report *report)
{
	tn__report_init(report);
	assert_int_equal(tn__run_json_read(document, report), TN_OK);
	tn__facts_read(json_object_get(document, "facts"), &report->facts);
}

static void
check(json_t *large, const char *cause, const char *id)
{
	json_t *document = on_the_card();
	struct tn_report report, on_large;
	read_trial(document, &report);
	read_trial(large, &on_large);
	tn__report_judge_need(&report, &on_large);
	assert_string_equal(report.oom.cause, cause);
	assert_string_equal(report.findings[0].id, id);
	tn__report_free(&report);
	tn__report_free(&on_large);
	json_decref(document);
	json_decref(large);
}

static void
test_the_whole_need_decides(void **context)
{
	(void)context;
	/* The model lasts with 16 GiB: no batch is small enough, and no setting of the allocator helps. */
	check(on_a_large_card(24 * GIB, 0, 8 * GIB, "fits"), "model_or_batch_too_big", "model_too_big");
	/* Its tensors are more than the card has, but the model alone is not. */
	check(on_a_large_card(14 * GIB, 0, 0, "fits"), "model_or_batch_too_big", "batch_too_big");
	/* Its tensors fit: what lies between them is the cause still. */
	check(on_a_large_card(14 * GIB, 4 * GIB, 0, "fits"), "fragmentation", "fragmentation");
}

static void
test_what_tells_nothing_changes_nothing(void **context)
{
	(void)context;
	check(on_a_large_card(24 * GIB, 0, 8 * GIB, "failed"), "fragmentation", "fragmentation");
	check(on_a_large_card(0, 0, 8 * GIB, "fits"), "fragmentation", "fragmentation");
	check(json_object(), "fragmentation", "fragmentation");
}

/* Less than was there already: it did not get as far. */
static void
test_a_need_below_what_was_held(void **context)
{
	(void)context;
	struct tn_report report;
	struct tn_need need = {
		.bytes = 3 * GIB, .least = 3 * GIB, .steps = 3, .facts = { .known = true, .trains = true }
	};
	tn__report_init(&report);
	report.oom.allocated_bytes = 8 * GIB;
	tn__report_take_need(&report, &need);
	assert_int_equal(report.need.bytes, 0);
	assert_false(report.facts.known);
	need.bytes = need.least = 9 * GIB;
	tn__report_take_need(&report, &need);
	assert_int_equal(report.need.bytes, 9 * GIB);
	assert_true(report.facts.known && report.facts.trains);
	tn__report_free(&report);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_whole_need_decides),
		cmocka_unit_test(test_what_tells_nothing_changes_nothing),
		cmocka_unit_test(test_a_need_below_what_was_held),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
