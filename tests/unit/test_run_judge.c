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
#include "test_screen.h"
#include "verdict/model_fill.h"
#include "verdict/judge.h"

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
	tn__report_set_split(&report->at_peak, &(struct tn_report_split){ 130 * MIB, 4 * GIB - 130 * MIB, 0, 0, 0 });
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
		{ { .ended = true, .wait_status = 9, .stop_reason = 2 }, 0, TN_VERDICT_UNDECIDED, TN_STOPPED_LIMIT, 12 },
		{ { .ended = true, .wait_status = EXITED(1), .guest_oom_last = true },
		  0,
		  TN_VERDICT_OUT_OF_MEMORY,
		  TN_STOPPED_OUT_OF_MEMORY,
		  10 },
		{ { .ended = true, .wait_status = EXITED(1), .guest_oom_open = true },
		  0,
		  TN_VERDICT_OUT_OF_MEMORY,
		  TN_STOPPED_OUT_OF_MEMORY,
		  10 },
		{ { .ended = true, .wait_status = 6, .ledger_refused_last = true },
		  0,
		  TN_VERDICT_OUT_OF_MEMORY,
		  TN_STOPPED_OUT_OF_MEMORY,
		  10 },
		/* what ended a process of the run is the verdict, whatever the script says, unless another one went on */
		{ { .ended = true, .wait_status = EXITED(0), .guest_oom_last = true },
		  0,
		  TN_VERDICT_OUT_OF_MEMORY,
		  TN_STOPPED_OUT_OF_MEMORY,
		  10 },
		{ { .ended = true, .wait_status = 9, .stop_reason = 1, .guest_oom_last = true },
		  0,
		  TN_VERDICT_OUT_OF_MEMORY,
		  TN_STOPPED_OUT_OF_MEMORY,
		  10 },
		{ { .ended = true, .wait_status = EXITED(0), .guest_oom_open = true }, 0, TN_VERDICT_FITS, TN_STOPPED_END, 0 },
		{ { .ended = true, .wait_status = EXITED(1), .interrupted_by = 2 },
		  0,
		  TN_VERDICT_FAILED,
		  TN_STOPPED_INTERRUPTED,
		  130 },
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
	tn__report_set_split(&report.at_peak,
	                     &(struct tn_report_split){ 260 * MIB, report.device_peak - 260 * MIB, 0, 0, 0 });
	tn__report_judge(&report, &well);
	assert_int_equal(report.uncertainty_highest, report.device_peak + 78 * MIB);
	assert_true(report.narrowly);
	tn__report_free(&report);

	start(&report); /* what is loaded later counts for each context, and adds to that of the context itself */
	report.device_peak = (int64_t)report.gpu.total_bytes - 150 * MIB;
	report.unseen_below = 4 * MIB;
	report.unseen_above = 64 * MIB;
	tn__report_set_split(&report.at_peak,
	                     &(struct tn_report_split){ 260 * MIB, report.device_peak - 260 * MIB, 0, 0, 0 });
	tn__report_judge(&report, &well);
	assert_int_equal(report.uncertainty_lowest, report.device_peak - 2 * (39 + 4) * MIB);
	assert_int_equal(report.uncertainty_highest, report.device_peak + 2 * (39 + 64) * MIB);
	assert_int_equal(report.bounds[0].above + report.bounds[1].above, report.uncertainty_highest - report.device_peak);
	assert_true(report.narrowly);
	tn__report_free(&report);
}

/* A card is offered where its own context, which is known to within a share of itself, leaves enough in any case. */
static void
test_the_smallest_card_is_sure(void **state)
{
	const struct tn_ending well = { .ended = true };
	const struct tn_gpu_row *card = tn__gpu_find("rtx3070");
	int64_t room = (int64_t)(card->figures.total_bytes - card->figures.context_bytes);
	double share = tn__gpu_context_share(tn__gpu_figure_certainty(card, TN_GPU_FIGURE_CONTEXT));
	int64_t unsure = (int64_t)((double)card->figures.context_bytes * share);
	assert_true(unsure > 10 * MIB);
	for (int more = 0; more < 2; more++) {
		struct tn_report report;
		start(&report);
		report.device_peak = (int64_t)report.gpu.context_bytes + room - unsure - MIB + more * 2 * MIB;
		tn__report_set_split(&report.at_peak,
		                     &(struct tn_report_split){ 130 * MIB, report.device_peak - 130 * MIB, 0, 0, 0 });
		tn__report_judge(&report, &well);
		if (more)
			assert_string_not_equal(report.smallest_gpu, "rtx3070");
		else
			assert_string_equal(report.smallest_gpu, "rtx3070");
		tn__report_free(&report);
	}
}

static void
fill_oom(struct tn_report *report, int64_t asked, int64_t available)
{
	int64_t held = (int64_t)report->gpu.total_bytes - available;
	report->oom.requested_bytes = asked;
	report->oom.free_bytes = available;
	report->device_peak = held;
	const struct tn_report_split split = { 130 * MIB, held - 130 * MIB, 0, 0, 0 };
	tn__report_set_split(&report->at_peak, &split);
	tn__report_set_split(&report->at_oom, &split);
}

static void
test_shortage(void **state)
{
	const struct tn_ending out = { .ended = true, .wait_status = EXITED(1), .guest_oom_last = true };
	struct tn_report report;
	start(&report);
	fill_oom(&report, 2 * GIB, GIB);
	tn__report_judge(&report, &out);
	assert_int_equal(report.oom.short_by_bytes, GIB);
	assert_string_equal(report.oom.cause, "unknown"); /* nothing tells what the memory was for */
	assert_int_equal(report.finding_count, 0);
	assert_string_equal(report.smallest_gpu, "t4"); /* 11.75 GiB - 1 + 2, less one context, more the other */
	tn__report_free(&report);
}

/* A limit that the program has set itself: its share of the card must do, not the card. */
static void
test_smallest_card_under_a_limit(void **state)
{
	static const struct {
		double fraction;
		const char *card;
	} rows[] = { { 1, "gtx1080ti" }, { 0.5, "l4" }, { 0.25, "l40s" }, { 1e-300, NULL }, { 0, NULL } };
	const struct tn_ending out = { .ended = true, .wait_status = EXITED(1), .guest_oom_last = true };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tn_report report;
		start(&report);
		fill_oom(&report, GIB, 2 * GIB);
		report.oom.reserved_bytes = 9 * GIB + 512 * MIB;
		report.oom.message = strdup("CUDA out of memory. Tried to allocate 1.00 GiB. 9.60 GiB allowed; 2 GiB free");
		report.oom.fraction = rows[i].fraction;
		tn__report_judge(&report, &out);
		assert_string_equal(report.oom.cause, "memory_fraction_limit");
		char *text = screen_of(&report);
		assert_null(strstr(text, "none of the catalogue"));
		free(text);
		if (rows[i].card == NULL)
			assert_null(report.smallest_gpu);
		else
			assert_string_equal(report.smallest_gpu, rows[i].card);
		tn__report_free(&report);
	}
}

/* ---- processes that ended inside a run that did not ---- */

static void
add_ended_inside(struct tn_report *report, const char *program, const char *file, int64_t bytes)
{
	const struct tn_counted item = { .place = { (char *)(uintptr_t)file, 12, NULL, false },
		                             .name = (char *)(uintptr_t)program,
		                             .count = 1,
		                             .bytes = bytes };
	assert_int_equal(tn__report_add_counted(&report->ended_inside, &item), TN_OK);
}

static void
test_a_process_that_ended_inside(void **state)
{
	const struct tn_ending went_on = { .ended = true, .wait_status = EXITED(0) };
	struct tn_report report;
	start(&report);
	add_ended_inside(&report, "/home/me/big.py", "/home/me/model.py", 3 * GIB);
	add_ended_inside(&report, "-c", NULL, TN_NO_FIGURE);
	add_ended_inside(&report, NULL, NULL, TN_NO_FIGURE);
	tn__report_judge(&report, &went_on);
	assert_int_equal(report.finding_count, 3);
	assert_string_equal(report.findings[0].id, "ended_by_oom_inside");
	assert_int_equal(report.findings[0].severity, TN_SEVERITY_ERROR);
	assert_int_equal(report.findings[0].bytes, 3 * GIB);
	assert_int_equal(report.findings[0].at->line, 12);
	assert_string_equal(report.findings[0].what,
	                    "big.py was ended by an out-of-memory at model.py:12 (asked 3.00 GiB); "
	                    "a process that started later went on without one");
	assert_non_null(strstr(report.findings[1].what, "python -c was ended by an out-of-memory; a process"));
	assert_non_null(strstr(report.findings[2].what, "a process of the run was ended"));
	char *text = screen_of(&report);
	char *first = strstr(text, "\n  error: big.py was ended");
	assert_true(first != NULL && first == strchr(text, '\n')); /* directly under the verdict */
	assert_null(strstr(first + 20, "big.py was"));             /* and only there */
	free(text);
	tn__report_free(&report);
}

static void
test_a_script_that_took_no_notice(void **state)
{
	struct tn_ending ending = { .ended = true, .wait_status = EXITED(0), .guest_oom_last = true };
	struct tn_report report;
	start(&report);
	fill_oom(&report, 2 * GIB, GIB);
	tn__report_judge(&report, &ending);
	assert_int_equal(report.exit_status, 10);
	char *text = screen_of(&report);
	const char *line = strchr(text, '\n');
	assert_non_null(line);
	assert_non_null(strstr(line, "\n  warning: the script ended with status 0 all the same"));
	free(text);
	tn__report_free(&report);
	start(&report); /* one that said so needs no telling */
	ending.wait_status = EXITED(1);
	tn__report_judge(&report, &ending);
	text = screen_of(&report);
	assert_null(strstr(text, "all the same"));
	free(text);
	tn__report_free(&report);
}

/* ---- growth ---- */

static void
grow(struct tn_report *report, int64_t of)
{
	start(report);
	report->steps_seen = 40;
	report->growth.seen = true;
	report->growth.unit = strdup("step");
	report->growth.bytes = MIB;
	report->growth.first = 3;
	report->growth.last = 40;
	report->growth.of = of;
	report->growth.at = tn__report_new_place("leak.py", 31, "train", false);
	/* 1000 steps and a little more fit beside what it holds */
	int64_t room = (int64_t)report->gpu.total_bytes - 130 * MIB;
	report->growth.peak = room - 1000 * MIB - 7;
}

static void
test_growth_is_a_verdict(void **state)
{
	const struct tn_ending stopped = { .ended = true, .wait_status = 9, .stop_reason = 2 };
	const struct tn_ending ended = { .ended = true, .wait_status = EXITED(0) };
	const struct tn_ending shortened = { .ended = true, .wait_status = EXITED(0), .guest_stop = 1 };
	static const struct {
		int which;
		int64_t of, bytes;
		enum tn_verdict verdict;
		int64_t full_at;
	} rows[] = {
		{ 0, TN_NO_FIGURE, MIB, TN_VERDICT_GROWS, 1041 },
		{ 0, 1041, MIB, TN_VERDICT_GROWS, 1041 }, /* full in the last step */
		{ 0, 1040, MIB, TN_VERDICT_FITS, 1041 },
		{ 2, TN_NO_FIGURE, MIB, TN_VERDICT_GROWS, 1041 },
		{ 1, TN_NO_FIGURE, MIB, TN_VERDICT_FITS, 1041 },         /* seen to its end */
		{ 0, TN_NO_FIGURE, 512, TN_VERDICT_FITS, TN_NO_FIGURE }, /* two million steps away */
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct tn_ending *const endings[] = { &stopped, &ended, &shortened };
		struct tn_report report;
		grow(&report, rows[i].of);
		report.growth.bytes = rows[i].bytes;
		tn__report_judge(&report, endings[rows[i].which]);
		assert_int_equal(report.verdict, rows[i].verdict);
		assert_int_equal(report.growth.full_at, rows[i].full_at);
		assert_int_equal(report.exit_status, rows[i].verdict == TN_VERDICT_GROWS ? 10 : 0);
		bool said = rows[i].which != 1;
		assert_int_equal(report.finding_count, said ? 1 : 0);
		if (said) {
			assert_string_equal(report.findings[0].id, "growth");
			assert_int_equal(report.findings[0].at->line, 31);
			assert_int_equal(report.findings[0].severity == TN_SEVERITY_ERROR, rows[i].verdict == TN_VERDICT_GROWS);
			bool of_known_end = rows[i].verdict == TN_VERDICT_FITS && rows[i].of != TN_NO_FIGURE;
			assert_int_equal(strstr(report.findings[0].what, "and comes to ") != NULL, of_known_end);
		}
		tn__report_free(&report);
	}
}

static void
test_growth_beside_a_failure_is_no_verdict(void **state)
{
	const struct tn_ending failed = { .ended = true, .wait_status = EXITED(3) };
	struct tn_report report;
	grow(&report, TN_NO_FIGURE);
	tn__report_judge(&report, &failed);
	assert_int_equal(report.verdict, TN_VERDICT_FAILED);
	assert_int_equal(report.exit_status, 3);
	tn__report_free(&report);
}

/* A program that fails of being made to end early is judged by what was seen before; one that runs out is not. */
static void
test_a_failed_fast_forward(void **state)
{
	struct tn_ending ending = { .ended = true, .wait_status = EXITED(1), .guest_stop = 1 };
	struct tn_report report;
	start(&report);
	report.fast_forward_failed = strdup("ValueError: the schedule wants 100 steps");
	tn__report_judge(&report, &ending);
	assert_int_equal(report.verdict, TN_VERDICT_FITS);
	assert_int_equal(report.stopped, TN_STOPPED_SETTLED);
	assert_int_equal(report.exit_status, 0);
	tn__report_free(&report);
	start(&report);
	ending.guest_oom_last = true;
	tn__report_judge(&report, &ending);
	assert_int_equal(report.verdict, TN_VERDICT_OUT_OF_MEMORY);
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
	tn__report_set_split(&report.at_peak,
	                     &(struct tn_report_split){ 130 * MIB, 2 * GIB + 7, 3 * GIB - 200 * MIB, 70 * MIB, 0 });
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
	assert_int_equal(tn__report_text(&report, (struct tn_style){ .columns = 80 }, out), TN_OK);
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
		tn__report_add_finding(&report, TN_FINDING_churn, TN_NO_FIGURE, NULL, NULL, "number %d", i);
		tn__report_add_source(&report, "field", "number %d", i);
		assert_int_equal(tn__report_add_counted(&report.computed_reads, &item), TN_OK);
	}
	assert_int_equal(report.finding_count, 16);
	assert_int_equal(report.computed_reads.count, 100);
	assert_int_equal(report.computed_reads.items[99].place.line, 99);
	tn__report_free(&report);
}

/* Full counts make the peak an upper bound, unless the program only went on with fewer than full. */
static void
test_assumed_counts_bound_the_peak(void **state)
{
	static const struct {
		const char *what;
		int64_t bytes;
		bool chosen, never_updated;
		double share;
		enum tn_peak_bound bound;
	} rows[] = {
		{ "truth", 0, false, false, 1, TN_PEAK_MEASURED },
		{ "count", 0, false, false, 1, TN_PEAK_MEASURED },
		{ "count", 5 * MIB, false, false, 1, TN_PEAK_UPPER },
		{ "count", TN_NO_FIGURE, false, false, 1, TN_PEAK_UPPER },
		{ "count", 5 * MIB, false, false, 0, TN_PEAK_LOWER },
		{ "count", 5 * MIB, true, false, 1, TN_PEAK_LOWER },
		{ "count", TN_NO_FIGURE, true, false, 1, TN_PEAK_LOWER },
		{ "truth", 0, true, false, 1, TN_PEAK_MEASURED },
		{ "count", 5 * MIB, false, true, 1, TN_PEAK_LOWER },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tn_report report;
		start(&report);
		const struct tn_assumption item = { .place = { "train.py", 7, NULL, false },
			                                .what = (char *)(uintptr_t)rows[i].what,
			                                .value = (char *)(uintptr_t)"0 of 128",
			                                .reads = 1,
			                                .bytes = rows[i].bytes,
			                                .chosen = rows[i].chosen };
		assert_int_equal(tn__report_add_assumption(&report, &item), TN_OK);
		report.assumptions.share = rows[i].share;
		report.facts.never_updated = rows[i].never_updated;
		tn__report_set_bound(&report);
		if (report.bound != rows[i].bound)
			fail_msg("row %zu: bound %d", i, (int)report.bound);
		tn__report_free(&report);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_the_smallest_card_is_sure),
		cmocka_unit_test(test_assumed_counts_bound_the_peak),
		cmocka_unit_test(test_shortage),
		cmocka_unit_test(test_categories_add_up),
		cmocka_unit_test(test_nothing_known),
		cmocka_unit_test(test_a_full_disk_is_an_error),
		cmocka_unit_test(test_lists_are_bounded),
		cmocka_unit_test(test_growth_is_a_verdict),
		cmocka_unit_test(test_smallest_card_under_a_limit),
		cmocka_unit_test(test_a_process_that_ended_inside),
		cmocka_unit_test(test_a_script_that_took_no_notice),
		cmocka_unit_test(test_growth_beside_a_failure_is_no_verdict),
		cmocka_unit_test(test_a_failed_fast_forward),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
