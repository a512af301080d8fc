/* SPDX-License-Identifier: Apache-2.0
 *
 * A run against its baseline: the line that is to blame, when lines have moved and hold the same; and that what changed adds
 * up. The program's source is a file of the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/catalogue.h"
#include "verdict/gate.h"
#include "report/report.h"
#include "verdict/model_fill.h"
#include "verdict/judge.h"

#define MIB (INT64_C(1) << 20)
#define CONTEXT (130 * MIB)

static const struct tn_ending well = { .ended = true };

struct held { /* one line of the source */
	int64_t line, bytes;
	enum tn_category category;
};

static char folder[] = "/tmp/tonnage-test-gate-XXXXXX", source[64], kept[64];

static int
make_folder(void **state)
{
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(source, sizeof(source), "%s/block.py", folder);
	snprintf(kept, sizeof(kept), "%s/peak.json", folder);
	return 0;
}

static int
remove_folder(void **state)
{
	unlink(source);
	unlink(kept);
	return rmdir(folder);
}

static void
write_source(const char *text)
{
	FILE *out = fopen(source, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static void
make_report(struct tn_report *report, const struct held *rows, size_t count, int64_t cached)
{
	int64_t program = cached;
	for (size_t i = 0; i < count; i++)
		program += rows[i].bytes;
	tn__report_init(report);
	report->gpu = tn__gpu_find("rtx3060")->figures;
	report->device_peak = CONTEXT + program;
	tn__report_set_split(&report->at_peak, &(struct tn_report_split){ CONTEXT, program, 0, 0, 0 });
	struct tn_report_moment *moment = &report->at_peak;
	for (int i = 0; i < TN_CATEGORY_context; i++)
		moment->by_category[i] = 0;
	moment->by_category[TN_CATEGORY_cached] = cached;
	moment->holders = calloc(count, sizeof(*moment->holders));
	moment->holder_count = count;
	moment->detailed = true;
	for (size_t i = 0; i < count; i++) {
		moment->holders[i] = (struct tn_report_holder){ rows[i].category,
			                                            rows[i].bytes,
			                                            1,
			                                            { strdup(source), rows[i].line, strdup("forward"), false },
			                                            1,
			                                            false,
			                                            NULL,
			                                            false };
		moment->by_category[rows[i].category] += rows[i].bytes;
	}
}

#define ACTIVATIONS(line, mib) { line, (mib) * MIB, TN_CATEGORY_activations }
#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Judges `rows` against the baseline in `kept`; the caller frees both. */
static struct tn_baseline *
judge(struct tn_report *report, const struct held *rows, size_t count, int64_t cached)
{
	struct tn_baseline *baseline;
	assert_int_equal(tn__baseline_read(kept, &baseline), TN_OK);
	make_report(report, rows, count, cached);
	report->gate.baseline = baseline;
	report->gate.tolerance = TN_TOLERANCE;
	tn__report_judge(report, &well);
	int64_t sum = 0;
	for (size_t i = 0; i < report->gate.drift_count; i++)
		sum += report->gate.drifts[i].after - report->gate.drifts[i].before;
	assert_int_equal(sum, report->device_peak - baseline->device_peak);
	return baseline;
}

static void
keep(const char *text, const struct held *rows, size_t count, int64_t cached)
{
	struct tn_report report;
	write_source(text);
	make_report(&report, rows, count, cached);
	FILE *out = fopen(kept, "w");
	assert_non_null(out);
	assert_int_equal(tn__baseline_write(&report, out), TN_OK);
	assert_int_equal(fclose(out), 0);
	tn__report_free(&report);
}

static void
check_guilty(const char *text, const struct held *rows, size_t count, int64_t line)
{
	struct tn_report report;
	write_source(text);
	struct tn_baseline *baseline = judge(&report, rows, count, 2 * MIB);
	assert_int_equal(report.verdict, TN_VERDICT_OVER_BASELINE);
	assert_int_equal(report.exit_status, 11);
	assert_string_equal(report.findings[0].id, "over_baseline");
	assert_int_equal(report.gate.drifts[0].at.line, line);
	assert_int_equal(report.findings[0].at->line, line);
	tn__report_free(&report);
	tn__baseline_free(baseline);
}

static const char before[] = "def forward(self, x):\n    y = self.linear(x)\n    return y.relu()\n";
static const struct held rows_before[] = { ACTIVATIONS(2, 16), ACTIVATIONS(3, 16) };

/* The new line holds as much as the old ones and stands among them, and those have moved. */
static void
test_a_new_line_is_to_blame(void **state)
{
	static const struct held after[] = { ACTIVATIONS(3, 16), ACTIVATIONS(4, 16), ACTIVATIONS(5, 16) };
	keep(before, rows_before, COUNT(rows_before), 2 * MIB);
	check_guilty(
		"import torch\ndef forward(self, x):\n    y = self.linear(x)\n    self.kept = y * 2\n    return y.relu()\n",
		after, COUNT(after), 4);
	check_guilty("# more\ndef forward(self, x):\n    z = x + 1\n        y = self.linear(x)\n    return y.relu()\n",
	             after, COUNT(after), 3);
}

/* Nothing new, but one line holds more. */
static void
test_a_line_that_grew_is_to_blame(void **state)
{
	static const struct held after[] = { ACTIVATIONS(2, 16), ACTIVATIONS(3, 40) };
	keep(before, rows_before, COUNT(rows_before), 2 * MIB);
	check_guilty(before, after, COUNT(after), 3);
}

/* Without the source, lines are known by their bytes. */
static void
test_without_the_source(void **state)
{
	static const struct held after[] = { ACTIVATIONS(7, 16), ACTIVATIONS(8, 24), ACTIVATIONS(9, 16) };
	keep(before, rows_before, COUNT(rows_before), 2 * MIB);
	write_source("");
	check_guilty("", after, COUNT(after), 8);
}

static void
test_what_has_no_line(void **state)
{
	struct tn_report report;
	keep(before, rows_before, COUNT(rows_before), 2 * MIB);
	struct tn_baseline *baseline = judge(&report, rows_before, COUNT(rows_before), 20 * MIB);
	assert_int_equal(report.verdict, TN_VERDICT_OVER_BASELINE);
	assert_int_equal(report.gate.drift_count, 1);
	assert_int_equal(report.gate.drifts[0].category, TN_CATEGORY_cached);
	assert_null(report.gate.drifts[0].at.file);
	assert_null(report.findings[0].at);
	tn__report_free(&report);
	tn__baseline_free(baseline);
}

static void
test_the_same_changes_nothing(void **state)
{
	struct tn_report report;
	keep(before, rows_before, COUNT(rows_before), 2 * MIB);
	struct tn_baseline *baseline = judge(&report, rows_before, COUNT(rows_before), 2 * MIB);
	assert_int_equal(report.verdict, TN_VERDICT_FITS);
	assert_int_equal(report.gate.drift_count, 0);
	assert_int_equal(report.gate.version_count, 0);
	tn__report_free(&report);
	tn__baseline_free(baseline);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_line_is_to_blame),   cmocka_unit_test(test_a_line_that_grew_is_to_blame),
		cmocka_unit_test(test_without_the_source),       cmocka_unit_test(test_what_has_no_line),
		cmocka_unit_test(test_the_same_changes_nothing),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
