/* SPDX-License-Identifier: Apache-2.0
 *
 * What `tonnage fix` tries, and in which order: on trials that are made up, of a net whose activations go and whose
 * optimizer's update then needs most.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "search/fix_search.h"

#define GIB (INT64_C(1) << 30)

/* What of a peak is told: no bytes of anything else. */
struct held {
	int64_t parameters, gradients, state, activations, temporaries;
};

/* A trial that is over, with a peak of this, made of that. */
static void
end_trial(struct tn_trial *trial, enum tn_verdict verdict, double gib, const char *phase, struct held held)
{
	struct tn_report *report = malloc(sizeof(*report));
	assert_non_null(report);
	tn__report_init(report);
	report->verdict = verdict;
	report->device_peak = (int64_t)(gib * (double)GIB);
	report->at_peak.phase = strdup(phase);
	report->at_peak.by_category[TN_CATEGORY_parameters] = held.parameters;
	report->at_peak.by_category[TN_CATEGORY_gradients] = held.gradients;
	report->at_peak.by_category[TN_CATEGORY_optimizer_state] = held.state;
	report->at_peak.by_category[TN_CATEGORY_activations] = held.activations;
	report->at_peak.by_category[TN_CATEGORY_temporaries] = held.temporaries;
	trial->outcome.report = report;
	trial->end = TN_TRIAL_DONE;
}

/* 24 GiB are needed and 16 are there: 8 of activations, the others stay. */
static int
begin(void **state)
{
	static const char possible[] =
		"[{\"changes\": [], \"survey\": {\"facts\": {\"batches\": [8], \"evaluation_batches\": [8]}, \"possible\": ["
		"{\"id\": \"map_location\", \"title\": \"load there\", \"results\": \"same\", \"values\": [\"1\"]},"
		"{\"id\": \"evaluation_batch\", \"title\": \"fewer\", \"results\": \"same_up_to_rounding\", \"values\": []},"
		"{\"id\": \"accumulate\", \"title\": \"pieces\", \"results\": \"same_up_to_rounding\", \"values\": [\"2\", \"4\", \"8\"]},"
		"{\"id\": \"fused\", \"title\": \"one kernel\", \"results\": \"same_up_to_rounding\", \"values\": [\"True\"]},"
		"{\"id\": \"step_in_backward\", \"title\": \"early\", \"results\": \"same\", \"values\": [\"1\"]},"
		"{\"id\": \"offload_optimizer\", \"title\": \"host\", \"results\": \"same_up_to_rounding\", \"values\": [\"1\"]},"
		"{\"id\": \"autocast\", \"title\": \"16 bits\", \"results\": \"different_training\", \"values\": [\"bf16\"]}]}}]";
	json_error_t error;
	struct tn_fix_search *search = calloc(1, sizeof(*search));
	search->attempts = calloc(TN_FIX_ATTEMPTS, sizeof(*search->attempts));
	search->card.total = 16 * GIB;
	search->need = 24 * GIB;
	search->missing = 8 * GIB;
	end_trial(&search->unchanged_card, TN_VERDICT_OUT_OF_MEMORY, 16, "forward", (struct held){ .parameters = 1 });
	end_trial(&search->unchanged_large, TN_VERDICT_FITS, 24, "backward",
	          (struct held){ 3758096384, 3758096384, 7516192768, 10200547328, 0 });
	json_t *documents = json_loads(possible, 0, &error);
	assert_non_null(documents);
	assert_int_equal(tn__change_results_of(documents, &search->unchanged_large.outcome.changes), TN_OK);
	json_decref(documents);
	*state = search;
	return 0;
}

static int
end(void **state)
{
	struct tn_fix_search *search = *state;
	for (int i = 0; i < search->count; i++) {
		tn__trial_clear(&search->attempts[i].large);
		tn__trial_clear(&search->attempts[i].card);
		tn__fix_change_free(&search->attempts[i].found);
	}
	tn__trial_clear(&search->unchanged_card);
	tn__trial_clear(&search->unchanged_large);
	free(search->attempts);
	free(search);
	return 0;
}

static int
place_of(const struct tn_fix_search *search, const char *changes)
{
	for (int i = 0; i < search->count; i++)
		if (strcmp(search->attempts[i].found.changes, changes) == 0)
			return i;
	return -1;
}

static void
test_what_can_do_nothing_for_the_peak_waits_for_another(void **state)
{
	struct tn_fix_search *search = *state;
	tn__fix_plan(search);
	int pieces = place_of(search, "accumulate=8"), fused = place_of(search, "fused=True");
	assert_true(place_of(search, "accumulate=2") < 0); /* cannot be enough */
	assert_int_equal(pieces, 0);
	assert_int_equal(search->attempts[pieces].stage, TN_STAGE_WAITS);
	assert_int_equal(search->attempts[fused].stage, TN_STAGE_LOW_PRIORITY);
	assert_int_equal(search->attempts[place_of(search, "step_in_backward=1")].stage, TN_STAGE_WAITS);
}

/* The change was seen on the card without end: this is what it leaves. */
static int
fall_short(struct tn_fix_search *search, const char *changes, const char *phase, struct held held)
{
	int index = place_of(search, changes);
	struct tn_attempt *attempt = &search->attempts[index];
	end_trial(&attempt->large, TN_VERDICT_FITS, 17, phase, held);
	attempt->stage = TN_STAGE_OVER;
	attempt->found.end = TN_FIX_NOT_ENOUGH;
	attempt->found.need = 17 * GIB;
	attempt->found.saved = 7 * GIB;
	return index;
}

static void
test_a_sequel_saves_of_what_is_left(void **state)
{
	struct tn_fix_search *search = *state;
	tn__fix_plan(search);
	int first = fall_short(search, "accumulate=8", "optimizer",
	                       (struct held){ 3758096384, 3758096384, 7516192768, 0, 3221225472 });
	int before = search->count;
	tn__fix_plan_sequels(search, first, 1);
	assert_int_equal(search->count, before + 1); /* the cheapest, and no more than asked for */
	assert_int_equal(place_of(search, "accumulate=8,fused=True"), before);
	assert_int_equal(search->attempts[before].stage, TN_STAGE_RETRY_ON_CARD);
	tn__fix_plan_sequels(search, first, 8);
	assert_int_equal(place_of(search, "accumulate=8,map_location=1"), before + 1);
	assert_int_equal(place_of(search, "accumulate=8,offload_optimizer=1"), before + 2);
	assert_int_equal(search->count,
	                 before + 3); /* no other training, no second batch, nothing that refuses to be paired */
}

/* Training and evaluation need as much: neither saves anything by itself. */
static void
test_what_is_for_the_phase_of_the_rest_comes_before_what_helps_anywhere(void **state)
{
	struct tn_fix_search *search = *state;
	tn__fix_plan(search);
	int first = fall_short(search, "accumulate=8", "evaluation",
	                       (struct held){ .parameters = 1, .temporaries = 10 * GIB });
	int before = search->count;
	tn__fix_plan_sequels(search, first, 1);
	assert_int_equal(search->count, before + 1);
	assert_non_null(strstr(search->attempts[before].found.changes, "accumulate=8,evaluation_batch="));
}

static void
test_no_sequel_where_the_peak_is_not_told_or_nothing_helps_it(void **state)
{
	struct tn_fix_search *search = *state;
	tn__fix_plan(search);
	int first = fall_short(search, "accumulate=8", "forward", (struct held){ .parameters = 18253611008 });
	int before = search->count;
	tn__fix_plan_sequels(search, first, 8);
	assert_int_equal(search->count, before);
	search->attempts[first].large.outcome.report->at_peak.by_category[TN_CATEGORY_parameters] = TN_NO_FIGURE;
	tn__fix_plan_sequels(search, first, 8);
	assert_int_equal(search->count, before);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_can_do_nothing_for_the_peak_waits_for_another, begin, end),
		cmocka_unit_test_setup_teardown(test_a_sequel_saves_of_what_is_left, begin, end),
		cmocka_unit_test_setup_teardown(test_what_is_for_the_phase_of_the_rest_comes_before_what_helps_anywhere, begin,
		                                end),
		cmocka_unit_test_setup_teardown(test_no_sequel_where_the_peak_is_not_told_or_nothing_helps_it, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
