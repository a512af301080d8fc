/* SPDX-License-Identifier: Apache-2.0
 *
 * From an ending to a verdict, and what follows from the other fields; and the two writers on such reports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "gpu/catalogue.h"
#include "report/report.h"

#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)
#define EXITED(status) ((status) << 8)

static void
start(struct tn_report *report)
{
	tn__report_init(report);
	report->gpus = 1;
	report->gpu = tn__gpu_find("rtx3060")->figures;
	report->device_peak = 4 * GIB;
	report->at_peak = (struct tn_report_split){ 130 * MIB, 4 * GIB - 130 * MIB, 0, 0 };
	report->context_lowest = 91 * MIB;
	report->context_highest = 169 * MIB;
}

static void
test_verdicts(void **state)
{
	static const struct {
		struct tn_ending ending;
		enum tn_misuse misuse;
		enum tn_verdict verdict;
		enum tn_stopped stopped;
		int status;
	} rows[] = {
		{ { .ended = true, .wait_status = EXITED(0) }, 0, TN_VERDICT_FITS, TN_STOPPED_END, 0 },
		{ { .ended = true, .wait_status = EXITED(3) }, 0, TN_VERDICT_FAILED, TN_STOPPED_FAILED, 3 },
		{ { .ended = true, .wait_status = 11 }, 0, TN_VERDICT_FAILED, TN_STOPPED_FAILED, 139 },
		{ { .ended = true, .wait_status = 9, .stop_reason = 1 }, 0, TN_VERDICT_FITS, TN_STOPPED_SETTLED, 0 },
		{ { .ended = true, .wait_status = 9, .stop_reason = 2 }, 0, TN_VERDICT_FITS, TN_STOPPED_LIMIT, 0 },
		{ { .ended = true, .wait_status = EXITED(1), .guest_oom_ended = true }, 0, TN_VERDICT_OUT_OF_MEMORY,
		  TN_STOPPED_OUT_OF_MEMORY, 10 },
		{ { .ended = true, .wait_status = EXITED(1), .guest_oom_open = true }, 0, TN_VERDICT_OUT_OF_MEMORY,
		  TN_STOPPED_OUT_OF_MEMORY, 10 },
		{ { .ended = true, .wait_status = 6, .ledger_refused_last = true }, 0, TN_VERDICT_OUT_OF_MEMORY,
		  TN_STOPPED_OUT_OF_MEMORY, 10 },
		/* what was outlived is no verdict */
		{ { .ended = true, .wait_status = EXITED(0), .guest_oom_ended = true }, 0, TN_VERDICT_FITS, TN_STOPPED_END, 0 },
		{ { .ended = true, .wait_status = EXITED(1), .interrupted_by = 2 }, 0, TN_VERDICT_FAILED,
		  TN_STOPPED_INTERRUPTED, 130 },
		{ { .ended = true, .wait_status = EXITED(1) }, TN_MISUSE_NO_TORCH, TN_VERDICT_FAILED, TN_STOPPED_FAILED, 2 },
		{ { .ended = false }, TN_MISUSE_CPU_TORCH, TN_VERDICT_FAILED, TN_STOPPED_FAILED, 2 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tn_report report;
		start(&report);
		report.misuse = rows[i].misuse;
		tn__report_judge(&report, &rows[i].ending);
		assert_int_equal(report.verdict, rows[i].verdict);
		assert_int_equal(report.stopped, rows[i].stopped);
		assert_int_equal(report.exit_status, rows[i].status);
		assert_int_equal(report.oom.seen, rows[i].verdict == TN_VERDICT_OUT_OF_MEMORY);
		tn__report_free(&report);
	}
}

static void
test_bounds(void **state)
{
	const struct tn_ending well = { .ended = true };
	struct tn_report report;
	start(&report);
	tn__report_judge(&report, &well);
	assert_int_equal(report.uncertainty_lowest, 4 * GIB - 39 * MIB);
	assert_int_equal(report.uncertainty_highest, 4 * GIB + 39 * MIB);
	assert_false(report.narrowly);
	assert_string_equal(report.smallest_gpu, "rtx3070");
	tn__report_free(&report);

	start(&report); /* two processes, each with a context, and 60 MiB to spare */
	report.device_peak = (int64_t)report.gpu.total_bytes - 60 * MIB;
	report.at_peak = (struct tn_report_split){ 260 * MIB, report.device_peak - 260 * MIB, 0, 0 };
	tn__report_judge(&report, &well);
	assert_int_equal(report.uncertainty_highest, report.device_peak + 78 * MIB);
	assert_true(report.narrowly);
	tn__report_free(&report);
}

static void
fill_oom(struct tn_report *report, int64_t asked, int64_t available)
{
	int64_t held = (int64_t)report->gpu.total_bytes - available;
	report->oom.requested_bytes = asked;
	report->oom.free_bytes = available;
	report->device_peak = held;
	report->at_peak = report->at_oom = (struct tn_report_split){ 130 * MIB, held - 130 * MIB, 0, 0 };
}

static void
test_causes(void **state)
{
	const struct tn_ending out = { .ended = true, .wait_status = EXITED(1), .guest_oom_ended = true };
	struct tn_report report;
	start(&report);
	fill_oom(&report, 2 * GIB, GIB);
	tn__report_judge(&report, &out);
	assert_int_equal(report.oom.short_by_bytes, GIB);
	assert_string_equal(report.oom.cause, "unknown");
	assert_string_equal(report.smallest_gpu, "t4"); /* 11.75 GiB - 1 + 2, less one context, more the other */
	tn__report_free(&report);

	start(&report);
	fill_oom(&report, 12 * GIB, 11 * GIB);
	tn__report_judge(&report, &out);
	assert_string_equal(report.oom.cause, "too_big_single_request");
	tn__report_free(&report);

	start(&report);
	fill_oom(&report, 2 * GIB, GIB);
	report.at_oom.other_processes = 3 * GIB;
	report.at_oom.program -= 3 * GIB;
	tn__report_judge(&report, &out);
	assert_string_equal(report.oom.cause, "other_process");
	tn__report_free(&report);

	start(&report);
	fill_oom(&report, GIB, 8 * GIB);
	report.oom.message = strdup("... 2.00 GiB allowed; ...");
	tn__report_judge(&report, &out);
	assert_string_equal(report.oom.cause, "memory_fraction_limit");
	assert_int_equal(report.oom.short_by_bytes, TN_UNKNOWN);
	tn__report_free(&report);
}

static json_t *
as_json(const struct tn_report *report)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_int_equal(tn__report_json(report, out), TN_OK);
	fclose(out);
	json_t *object = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(object);
	return object;
}

static void
test_categories_add_up(void **state)
{
	const struct tn_ending well = { .ended = true };
	struct tn_report report;
	int64_t sum = 0;
	const char *name;
	json_t *value;
	start(&report);
	report.device_peak = 5 * GIB + 7;
	report.at_peak = (struct tn_report_split){ 130 * MIB, 2 * GIB + 7, 3 * GIB - 200 * MIB, 70 * MIB };
	report.scratch = strdup("/tmp/\xff\xfe not UTF-8");
	tn__report_judge(&report, &well);
	json_t *object = as_json(&report);
	json_object_foreach(json_object_get(json_object_get(object, "at_peak"), "by_category"), name, value)
		sum += (int64_t)json_integer_value(value);
	assert_int_equal(sum, report.device_peak);
	assert_string_equal(json_string_value(json_object_get(object, "scratch")), "/tmp/?? not UTF-8");
	json_decref(object);
	tn__report_free(&report);
}

static void
test_nothing_known(void **state)
{
	const struct tn_ending well = { .ended = true };
	char *text = NULL;
	size_t size = 0;
	struct tn_report report;
	tn__report_init(&report);
	report.gpu = tn__gpu_find("t4")->figures;
	tn__report_judge(&report, &well);
	json_decref(as_json(&report));
	FILE *out = open_memstream(&text, &size);
	assert_int_equal(tn__report_text(&report, (struct tn_style){ false, false }, out), TN_OK);
	fclose(out);
	assert_null(strstr(text, "(null)"));
	free(text);
	tn__report_free(&report);
}

static void
test_a_full_disk_is_an_error(void **state)
{
	const struct tn_ending well = { .ended = true };
	struct tn_report report;
	start(&report);
	tn__report_judge(&report, &well);
	FILE *full = fopen("/dev/full", "w");
	assert_non_null(full);
	assert_int_equal(tn__report_json(&report, full), TN_IO);
	fclose(full);
	tn__report_free(&report);
}

static void
test_lists_are_bounded(void **state)
{
	struct tn_report report;
	tn__report_init(&report);
	for (int i = 0; i < 100; i++) {
		struct tn_counted item = { .place = { (char *)"f.py", i, NULL, false }, .count = 1 };
		tn__report_add_finding(&report, "id", TN_SEVERITY_HINT, TN_UNKNOWN, NULL, "number %d", i);
		tn__report_add_source(&report, "field", "number %d", i);
		assert_int_equal(tn__report_add_counted(&report.computed_reads, &item), TN_OK);
	}
	assert_int_equal(report.finding_count, 16);
	assert_int_equal(report.computed_reads.count, 100);
	assert_int_equal(report.computed_reads.items[99].place.line, 99);
	tn__report_free(&report);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),     cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_causes),       cmocka_unit_test(test_categories_add_up),
		cmocka_unit_test(test_nothing_known), cmocka_unit_test(test_a_full_disk_is_an_error),
		cmocka_unit_test(test_lists_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
