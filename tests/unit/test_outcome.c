/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trial leaves, written and read back: every field that a search looks at is the same behind the border of the two
 * processes; and what is broken, missing or of another kind is unknown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "trials/outcome.h"
#include "verdict/model_fill.h"

#define MIB (INT64_C(1) << 20)

/* A program that ran out of memory, in whose report every field that a search reads has a value of its own. */
static void
fill(struct tn_report *report)
{
	tn__report_init(report);
	report->verdict = TN_VERDICT_OUT_OF_MEMORY;
	report->exit_status = 10;
	report->steps_seen = 3;
	report->allocated_peak = 900 * MIB;
	report->reserved_peak = 1000 * MIB;
	report->requested_peak = 890 * MIB;
	report->device_peak = 1100 * MIB;
	report->uncertainty_lowest = 1090 * MIB;
	report->uncertainty_highest = 1117 * MIB;
	report->smallest_gpu = "rtx3060";
	report->peak_rss_bytes = 77 * MIB;
	report->exception = strdup("ValueError: words");
	report->at_peak.phase = strdup("backward");
	report->at_peak.detailed = true;
	report->at_peak.device_bytes = 0;
	for (int i = 0; i < TN_CATEGORIES; i++)
		report->at_peak.device_bytes += report->at_peak.by_category[i] = (i + 1) * MIB;
	report->at_peak.split.communication = report->at_peak.by_category[TN_CATEGORY_communication] - 3 * MIB;
	report->at_peak.holders = calloc(2, sizeof(*report->at_peak.holders));
	report->at_peak.holder_count = 2;
	report->at_peak.holders[0] = (struct tn_report_holder){
		.category = TN_CATEGORY_parameters, .bytes = 5 * MIB, .alike = 1, .what = strdup("copy of the model")
	};
	report->at_peak.holders[1] = (struct tn_report_holder){
		.category = TN_CATEGORY_communication, .bytes = 3 * MIB, .alike = 1, .what = strdup("DDP's buckets")
	};
	report->growth.seen = true;
	report->oom.seen = true;
	report->oom.requested_bytes = 64 * MIB;
	report->oom.step = 2;
	report->oom.cause = strdup("fragmentation");
	report->oom.phase = strdup("forward");
	report->oom.at = tn__report_new_place("/home/user/model.py", 32, "forward", false);
	report->facts = (struct tn_facts){ .known = true,
		                               .trains = true,
		                               .autocast = true,
		                               .checkpoints = true,
		                               .checkpoints_wait = true,
		                               .trained_in_eval = true,
		                               .never_updated = true,
		                               .loader = true,
		                               .expandable_segments = true,
		                               .copy_called = true,
		                               .cudnn_benchmark = true,
		                               .workspace_config = true,
		                               .small_state = true,
		                               .parameter_bytes = 4,
		                               .wide_bytes = 3,
		                               .small_bytes = 2,
		                               .trained_bytes = 1 };
	(void)tn__report_add_finding_as(report, TN_FINDING_growth, TN_SEVERITY_WARNING, MIB, NULL, NULL, "it grows");
	(void)tn__report_add_finding_as(report, TN_FINDING_fragmentation, TN_SEVERITY_ERROR, MIB, NULL,
	                                "expandable_segments", "in pieces");
}

/* The documents of two processes, in a folder of their own; the caller frees the name. */
static char *
write_changes(void)
{
	static const char *const documents[] = {
		"{\"schema\": \"tonnage.changes/1\", \"changes\": [{\"id\": \"checkpoint\", \"applied\": false, \"why_not\": \"no block\","
		" \"results\": \"same_up_to_rounding\", \"how\": null}], \"patch\": null, \"kit\": {\"job\": 1}, \"survey\": {\"facts\":"
		" {\"backward\": 6, \"blocks\": 12, \"batches\": [4, 64, null], \"batch_options\": [8], \"evaluation_batches\": [128]},"
		" \"possible\": [{\"id\": \"accumulate\", \"title\": \"pieces\", \"results\": \"same_up_to_rounding\", \"values\":"
		" [\"2\", null]}, {\"title\": \"nameless\"}]}}",
		"{\"schema\": \"tonnage.another/1\", \"changes\": [{\"id\": \"sdpa\"}]}",
		"{\"schema\": \"tonnage.changes/1\", \"changes\": \"none\"",
	};
	char *folder = strdup("/tmp/tonnage-test-outcome-XXXXXX"), path[128];
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		snprintf(path, sizeof(path), "%s/%zu.json", folder, i);
		FILE *out = fopen(path, "we");
		assert_non_null(out);
		fputs(documents[i], out);
		fclose(out);
	}
	return folder;
}

static void
remove_changes(char *folder)
{
	char path[128];
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%d.json", folder, i);
		unlink(path);
	}
	rmdir(folder);
	free(folder);
}

/* What another process reads of a run. */
static void
pass_on(const struct tn_report *report, const char *error, struct tn_outcome *out)
{
	char *folder = write_changes(), *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	assert_non_null(file);
	struct json_t *of_run = report != NULL
	                            ? tn__outcome_of_run(report, 2, folder, "1\thalf\t3\t2\t1000\t300\n", "torch\t/x\n")
	                            : NULL;
	assert_int_equal(tn__outcome_write(of_run, error, 10, file), TN_OK);
	fclose(file);
	tn__outcome_read(text, size, out);
	free(text);
	remove_changes(folder);
}

static void
test_the_report_is_the_same(void **state)
{
	struct tn_report report;
	struct tn_outcome outcome;
	fill(&report);
	pass_on(&report, NULL, &outcome);
	const struct tn_report *read = outcome.report;
	assert_non_null(read);
	assert_int_equal(outcome.command, 2);
	assert_int_equal(read->verdict, report.verdict);
	assert_int_equal(read->exit_status, report.exit_status);
	assert_int_equal(read->steps_seen, report.steps_seen);
	assert_int_equal(read->allocated_peak, report.allocated_peak);
	assert_int_equal(read->reserved_peak, report.reserved_peak);
	assert_int_equal(read->requested_peak, report.requested_peak);
	assert_int_equal(read->device_peak, report.device_peak);
	assert_int_equal(read->uncertainty_highest, report.uncertainty_highest);
	assert_string_equal(read->smallest_gpu, report.smallest_gpu);
	assert_int_equal(read->peak_rss_bytes, report.peak_rss_bytes);
	assert_string_equal(read->exception, report.exception);
	assert_string_equal(read->at_peak.phase, report.at_peak.phase);
	assert_memory_equal(read->at_peak.by_category, report.at_peak.by_category, sizeof(report.at_peak.by_category));
	assert_int_equal(read->at_peak.split.communication, report.at_peak.split.communication);
	assert_int_equal(read->at_peak.holder_count, 2);
	assert_int_equal(read->at_peak.holders[0].bytes, 5 * MIB);
	assert_string_equal(read->at_peak.holders[0].what, "copy of the model");
	assert_true(read->growth.seen && read->oom.seen);
	assert_int_equal(read->oom.requested_bytes, report.oom.requested_bytes);
	assert_int_equal(read->oom.step, report.oom.step);
	assert_string_equal(read->oom.cause, report.oom.cause);
	assert_string_equal(read->oom.phase, report.oom.phase);
	assert_string_equal(read->oom.at->file, report.oom.at->file);
	assert_int_equal(read->oom.at->line, report.oom.at->line);
	assert_memory_equal(&read->facts, &report.facts, sizeof(report.facts));
	assert_int_equal(read->finding_count, 2);
	assert_string_equal(read->findings[0].id, "fragmentation");
	assert_string_equal(read->findings[0].what, "in pieces");
	assert_string_equal(read->findings[0].advice, "expandable_segments");
	assert_null(read->findings[1].advice);
	assert_string_equal(outcome.work, "1\thalf\t3\t2\t1000\t300\n");
	assert_string_equal(outcome.modules, "torch\t/x\n");
	assert_null(outcome.error);
	assert_int_equal(outcome.exit_status, 10);
	tn__outcome_free(&outcome);
	tn__report_free(&report);
}

/* Every verdict has a word, and comes back as itself: a search compares numbers. */
static void
test_every_verdict_comes_back(void **state)
{
	for (int i = 0; i < TN_VERDICTS; i++) {
		struct tn_report report;
		struct tn_outcome outcome;
		tn__report_init(&report);
		report.verdict = (enum tn_verdict)i;
		pass_on(&report, NULL, &outcome);
		assert_int_equal(outcome.report->verdict, i);
		tn__outcome_free(&outcome);
		tn__report_free(&report);
	}
}

static void
test_what_is_unknown_stays_unknown(void **state)
{
	struct tn_report report;
	struct tn_outcome outcome;
	tn__report_init(&report);
	pass_on(&report, NULL, &outcome);
	const struct tn_report *read = outcome.report;
	assert_int_equal(read->device_peak, TN_NO_FIGURE);
	assert_int_equal(read->uncertainty_highest, TN_NO_FIGURE);
	assert_int_equal(read->at_peak.by_category[TN_CATEGORY_parameters], TN_NO_FIGURE);
	assert_int_equal(read->peak_rss_bytes, TN_NO_FIGURE);
	assert_null(read->oom.cause);
	assert_null(read->smallest_gpu);
	assert_null(read->exception);
	assert_false(read->oom.seen || read->growth.seen || read->facts.known);
	assert_int_equal(read->finding_count, 0);
	tn__outcome_free(&outcome);
	tn__report_free(&report);
}

static void
test_changes_and_survey(void **state)
{
	struct tn_report report;
	struct tn_outcome outcome;
	tn__report_init(&report);
	pass_on(&report, NULL, &outcome);
	const struct tn_change_results *changes = &outcome.changes;
	const struct tn_survey *survey = &changes->survey;
	assert_int_equal(changes->count, 1); /* neither another schema nor half a document */
	assert_int_equal(changes->processes[0].count, 1);
	assert_null(changes->processes[0].patch);
	const struct tn_change_result *result = &changes->processes[0].items[0];
	assert_string_equal(result->id, "checkpoint");
	assert_false(result->applied);
	assert_string_equal(result->why_not, "no block");
	assert_null(result->how);
	assert_int_equal(result->results, TN_GUARANTEE_ROUNDING);
	assert_non_null(outcome.kit);
	assert_true(survey->known);
	assert_int_equal(survey->backward, 6);
	assert_int_equal(survey->blocks, 12);
	assert_int_equal(tn__survey_batch(survey, 1000), 64);
	assert_int_equal(tn__survey_batch(survey, 10), 4);
	assert_int_equal(tn__survey_batch(survey, 3), 0);
	assert_int_equal(tn__survey_evaluation_batch(survey), 128);
	assert_int_equal(survey->possible_count, 1); /* one without a name cannot be tried */
	const struct tn_possible_change *row = tn__survey_find(survey, "accumulate=4");
	assert_non_null(row);
	assert_null(tn__survey_find(survey, "accumulate_more"));
	assert_int_equal(row->values.count, 2);
	assert_string_equal(row->values.items[0], "2");
	assert_null(row->values.items[1]);
	tn__outcome_free(&outcome);
	tn__report_free(&report);
}

static void
test_a_trial_that_failed_or_broke_off(void **state)
{
	static const char *const broken[] = {
		"", "{", "[]", "{}", "{\"report\": null}", "{\"report\": 3, \"changes\": {}}"
	};
	struct tn_outcome outcome;
	pass_on(NULL, "no such card", &outcome);
	assert_null(outcome.report);
	assert_string_equal(outcome.error, "no such card");
	assert_int_equal(outcome.exit_status, 10);
	tn__outcome_free(&outcome);
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		tn__outcome_read(broken[i], strlen(broken[i]), &outcome);
		assert_null(outcome.report);
		assert_null(outcome.error);
		assert_int_equal(outcome.changes.count, 0);
		assert_false(outcome.changes.survey.known);
		tn__outcome_free(&outcome);
	}
	tn__outcome_read(NULL, 0, &outcome);
	assert_null(outcome.report);
	tn__outcome_free(&outcome);
}

/* "alloc=a:1,b:2" is one part: only the driver's own commas join. */
static void
test_the_spelling_of_changes(void **state)
{
	char id[64], *changes = NULL, *part = tn__change_part("accumulate", "4"),
				 *plain = tn__change_part("zero_grad", NULL);
	char *title = tn__change_title("pieces", "4"), *bare = tn__change_title("early", NULL);
	assert_string_equal(part, "accumulate=4");
	assert_string_equal(plain, "zero_grad");
	assert_string_equal(title, "pieces (4)");
	assert_string_equal(bare, "early");
	tn__change_join(&changes, part);
	tn__change_join(&changes, plain);
	assert_string_equal(changes, "accumulate=4,zero_grad");
	assert_string_equal(tn__change_id("alloc=max_split_size_mb:64,x:1", id), "alloc");
	assert_true(tn__change_is("batch=8", "batch") && tn__change_is("batch", "batch"));
	assert_false(tn__change_is("batch_norm=8", "batch") || tn__change_is("bat", "batch"));
	assert_int_equal(tn__change_number("batch=8"), 8);
	assert_int_equal(tn__change_number("zero_grad"), 0);
	for (int i = TN_GUARANTEE_SAME; i <= TN_GUARANTEE_DIFFERENT; i++)
		assert_int_equal(tn__guarantee_of(tn__guarantee_name((enum tn_guarantee)i)), i);
	assert_int_equal(tn__guarantee_of("another"), TN_GUARANTEE_DIFFERENT);
	assert_int_equal(tn__guarantee_of(NULL), TN_GUARANTEE_DIFFERENT);
	free(changes);
	free(part);
	free(plain);
	free(title);
	free(bare);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_report_is_the_same),           cmocka_unit_test(test_every_verdict_comes_back),
		cmocka_unit_test(test_what_is_unknown_stays_unknown),    cmocka_unit_test(test_changes_and_survey),
		cmocka_unit_test(test_a_trial_that_failed_or_broke_off), cmocka_unit_test(test_the_spelling_of_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
