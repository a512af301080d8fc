/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of doc/design/0018-evidence.md, walked whole: every ending, with and without each kind of evidence. What is
 * expected is told by the table's sentences, not by the judge's own tests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/catalogue.h"
#include "test_screen.h"
#include "verdict/model_fill.h"
#include "verdict/judge.h"

#define GIB (INT64_C(1) << 30)

enum end { WELL, FAILED, KILLED, SETTLED, LIMIT, REHEARSED, BROKEN_FAST_FORWARD_SHARE, CTRL_C, ENDS };
enum refused { NOTHING, A_QUESTION, BEFORE_A_STEP, AFTER_ALL_STEPS, REFUSALS };
enum out { NONE, LAST, OPEN, BY_CARD, OUTS };

struct row {
	enum end end;
	enum refused refused;
	enum out out;
	bool passed, used, exception, made_by_us;
};

static struct tn_ending
ending_of(const struct row *row)
{
	struct tn_ending ending = { .ended = true,
		                        .guest_oom_last = row->out == LAST,
		                        .guest_oom_open = row->out == OPEN,
		                        .ledger_refused_last = row->out == BY_CARD };
	static const struct {
		int wait_status, stop_reason, guest_stop, interrupted_by;
	} ends[ENDS] = { [WELL] = { 0, 0, 0, 0 },
		             [FAILED] = { 3 << 8, 0, 0, 0 },
		             [KILLED] = { 11, 0, 0, 0 },
		             [SETTLED] = { 9, TN_REASON_SETTLED, TN_REASON_SETTLED, 0 },
		             [LIMIT] = { 9, TN_REASON_LIMIT, TN_REASON_LIMIT, 0 },
		             [REHEARSED] = { 0, 0, TN_REASON_LIMIT, 0 },
		             [BROKEN_FAST_FORWARD_SHARE] = { 1 << 8, 0, TN_REASON_LIMIT, 0 },
		             [CTRL_C] = { 2, 0, 0, 2 } };
	ending.wait_status = ends[row->end].wait_status;
	ending.stop_reason = ends[row->end].stop_reason;
	ending.guest_stop = ends[row->end].guest_stop;
	ending.interrupted_by = ends[row->end].interrupted_by;
	return ending;
}

static void
add_refused(struct tn_report *report, enum refused refused)
{
	struct tn_counted call = { .place = { NULL, TN_NO_FIGURE, NULL, false },
		                       .library = (char *)(uintptr_t)(refused == A_QUESTION ? "nvml" : "cusolver"),
		                       .name = (char *)(uintptr_t)(refused == A_QUESTION ? "nvmlDeviceGetFanSpeed"
		                                                                         : "cusolverDnSgesvd"),
		                       .count = 2,
		                       .bytes = TN_NO_FIGURE,
		                       .unfollowed = refused != BEFORE_A_STEP };
	if (refused != NOTHING)
		assert_int_equal(tn__report_add_counted(&report->refused_calls, &call), TN_OK);
}

static void
fill(struct tn_report *report, const struct row *row)
{
	tn__report_init(report);
	report->gpus = 1;
	report->gpu = tn__gpu_find("rtx3060")->figures;
	report->device_peak = row->used ? 4 * GIB : 0;
	report->context_lowest = report->context_highest = 0;
	tn__report_set_split(&report->at_peak, &(struct tn_report_split){ 0, report->device_peak, 0, 0, 0 });
	report->torch = strdup("2.11.0");
	report->limit_seconds = 120;
	report->steps_seen = row->passed ? 3 : 0;
	if (row->exception)
		report->exception = strdup("ValueError: words");
	if (row->end == BROKEN_FAST_FORWARD_SHARE)
		report->fast_forward_failed = strdup("its loader ended early");
	if (row->made_by_us)
		tn__report_add_doubt(report, TN_FINDING_download_refused, true, "--network allow", "a download was refused");
	add_refused(report, row->refused);
}

/* The table, sentence by sentence. */
static enum tn_verdict
expected_of(const struct row *row)
{
	bool by_itself = row->end == WELL || row->end == REHEARSED;
	bool stopped = row->end == SETTLED || row->end == LIMIT;
	bool seen = row->passed || row->end == SETTLED;
	/* Ctrl-C leaves what is known and no verdict. */
	if (row->end == CTRL_C)
		return TN_VERDICT_FAILED;
	/* An out-of-memory that ended a process, and after which nobody took the work up, is the verdict. */
	if (row->out == LAST)
		return TN_VERDICT_OUT_OF_MEMORY;
	/* A program that failed with one still open has reported that. */
	if (!by_itself && !stopped && row->out != NONE)
		return TN_VERDICT_OUT_OF_MEMORY;
	/* A program that failed of its own accord says nothing of memory, unless we have a part in it. */
	if (row->end == FAILED || row->end == KILLED)
		return row->made_by_us ? TN_VERDICT_UNDECIDED : TN_VERDICT_FAILED;
	/* What the run itself took from the program leaves it open. */
	if (row->made_by_us)
		return TN_VERDICT_UNDECIDED;
	/* Whoever did not end well by himself has to have completed a step or pass. */
	if (!seen && !by_itself)
		return TN_VERDICT_UNDECIDED;
	/* Nothing can be said of a card that was not used. */
	if (!row->used)
		return TN_VERDICT_UNDECIDED;
	/* Work that was refused has to be followed by a complete step or pass. */
	if (row->refused == AFTER_ALL_STEPS)
		return TN_VERDICT_UNDECIDED;
	/* A script's status of 0 does not cover a process that failed before its first step. */
	if (!seen && row->exception)
		return TN_VERDICT_UNDECIDED;
	return TN_VERDICT_FITS;
}

static void
check(const struct row *row)
{
	static const int own[ENDS] = { [FAILED] = 3, [KILLED] = 139, [CTRL_C] = 130 };
	struct tn_ending ending = ending_of(row);
	struct tn_report report;
	fill(&report, row);
	tn__report_judge(&report, &ending);
	enum tn_verdict verdict = expected_of(row);
	if (report.verdict != verdict)
		print_error("end %d, refused %d, out %d, passed %d, used %d, exception %d, by us %d\n", row->end, row->refused,
		            row->out, row->passed, row->used, row->exception, row->made_by_us);
	assert_int_equal(report.verdict, verdict);
	assert_int_equal(report.exit_status, verdict == TN_VERDICT_FITS            ? 0
	                                     : verdict == TN_VERDICT_OUT_OF_MEMORY ? 10
	                                     : verdict == TN_VERDICT_UNDECIDED     ? 12
	                                                                           : own[row->end]);
	if (verdict == TN_VERDICT_UNDECIDED) { /* it says why, first, and what would decide */
		assert_true(report.finding_count > 0);
		assert_int_equal(report.findings[0].severity, TN_SEVERITY_ERROR);
		assert_non_null(report.findings[0].advice);
	}
	tn__report_free(&report);
}

static void
test_the_whole_table(void **state)
{
	struct row row = { 0 };
	int rows = 0;
	for (int end = 0; end < ENDS; end++)
		for (int refused = 0; refused < REFUSALS; refused++)
			for (int out = 0; out < OUTS; out++)
				for (int bits = 0; bits < 16; bits++, rows++) {
					row = (struct row){ (enum end)end,   (enum refused)refused, (enum out)out,  (bits & 1) != 0,
						                (bits & 2) != 0, (bits & 4) != 0,       (bits & 8) != 0 };
					check(&row);
				}
	assert_int_equal(rows, ENDS * REFUSALS * OUTS * 16);
}

/* The verdict's own line has the reason, the next one what would decide; `tonnage fix` is no remedy for it. */
static void
test_words(void **state)
{
	static const struct {
		struct row row;
		const char *first, *second;
	} rows[] = {
		{ { .end = LIMIT, .used = true },
		  "the time limit came before the first step or pass was complete",
		  "--seconds N" },
		{ { .end = WELL }, "the program never used a GPU", "on \"cuda\"" },
		{ { .end = WELL, .used = true, .refused = AFTER_ALL_STEPS },
		  "a solver of cuSOLVER",
		  "torch.linalg on the CPU" },
		{ { .end = WELL, .used = true, .exception = true }, "ValueError: words", "set -e" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tn_ending ending = ending_of(&rows[i].row);
		struct tn_report report;
		fill(&report, &rows[i].row);
		tn__report_judge(&report, &ending);
		char *text = screen_of(&report);
		assert_int_equal(strncmp(text, "Undecided on NVIDIA GeForce RTX 3060 (11.75 GiB): ", 50), 0);
		const char *decides = strstr(text, "\n  To decide it  ");
		assert_non_null(decides);
		assert_non_null(strstr(report.findings[0].what, rows[i].first));
		assert_non_null(strstr(report.findings[0].advice, rows[i].second));
		assert_int_equal(strncmp(text + 50, report.findings[0].what, 25), 0);
		assert_int_equal(strncmp(decides + 17, report.findings[0].advice, 25), 0);
		assert_null(strstr(text, "tonnage fix"));
		assert_null(strstr(text, "error:"));
		free(text);
		tn__report_free(&report);
	}
}

/* While it compiles the limit waits; when even that is over, the option for it is named. */
static void
test_the_limit_of_compiling(void **state)
{
	const struct row row = { .end = LIMIT, .used = true };
	struct tn_ending ending = ending_of(&row);
	for (int over = 0; over < 2; over++) {
		struct tn_report report;
		fill(&report, &row);
		report.compiling = true;
		report.compile_limit_seconds = 900;
		report.compiled_seconds = over ? 900.2 : 40;
		tn__report_judge(&report, &ending);
		assert_int_equal(strstr(report.findings[0].what, "still compiling") != NULL, over);
		assert_non_null(strstr(report.findings[0].advice, over ? "--compile-seconds" : "--seconds"));
		tn__report_free(&report);
	}
}

/* Families that only ask are never told as missing work; a family is told once. */
static void
test_families(void **state)
{
	assert_true(tn__refusal_of("nvml", "nvmlDeviceGetFanSpeed")->asks_only);
	assert_false(tn__refusal_of("nccl", "ncclCommInitAll")->asks_only);
	assert_ptr_equal(tn__refusal_of("nccl", "ncclCommInitAll"), tn__refusal_of("nccl", "ncclCommInitRankConfig"));
	assert_ptr_not_equal(tn__refusal_of("cuda", "cuGetExportTable"), tn__refusal_of("cuda", "cuIpcGetMemHandle"));
	assert_non_null(tn__refusal_of(NULL, NULL));
	const struct row row = { .end = FAILED, .used = true, .refused = AFTER_ALL_STEPS };
	struct tn_ending ending = ending_of(&row);
	struct tn_report report;
	fill(&report, &row);
	add_refused(&report, A_QUESTION);
	add_refused(&report, BEFORE_A_STEP);
	tn__report_judge(&report, &ending);
	assert_int_equal(report.finding_count, 1);
	assert_string_equal(report.findings[0].id, "refused_calls");
	assert_non_null(strstr(report.findings[0].what, "4 calls"));
	tn__report_free(&report);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_whole_table),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_the_limit_of_compiling),
		cmocka_unit_test(test_families),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
