/* SPDX-License-Identifier: Apache-2.0
 *
 * No advice that the program follows already: every piece against every state of the facts that were seen. What a piece
 * must not be given for stands here by its words, not by the condition in the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/advice.h"

#define EVERY_FACT 10 /* bits of a state */

static const char *
all_ids(void)
{
	static char ids[2048];
	const struct tn_advice *piece;
	ids[0] = '\0';
	for (size_t i = 0; (piece = tn__advice_at(i)) != NULL; i++)
		snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s%s", i > 0 ? " " : "", piece->id);
	return ids;
}

static void
set(struct tn_report *report, unsigned state)
{
	struct tn_facts *facts = &report->facts;
	tn__report_init(report);
	facts->known = true;
	facts->trains = state & 1;
	facts->autocast = state & 2;
	facts->checkpoints = state & 4;
	facts->checkpoints_wait = state & 8;
	facts->trained_in_eval = state & 16;
	facts->expandable_segments = state & 32;
	facts->small_state = state & 64;
	facts->parameter_bytes = 1000;
	facts->wide_bytes = state & 128 ? 1000 : 0;
	facts->small_bytes = state & 128 ? 0 : state & 256 ? 900 : 0;
	facts->trained_bytes = state & 256 ? 10 : 1000;
	facts->loader = state & 2;
	report->batch_size = state & 512 ? 1 : 8;
	report->oom.phase = strdup(state & 4 && !(state & 1) ? "evaluation" : "forward");
}

/* { said, while this is so } */
static void
check(const struct tn_report *report, const char *words)
{
	const struct tn_facts *facts = &report->facts;
	const struct {
		const char *words;
		bool follows;
	} rows[] = {
		{ "autocast", facts->autocast || facts->wide_bytes == 0 },
		{ "16-bit parameters", facts->wide_bytes == 0 },
		{ "the model in 16 bits", facts->wide_bytes == 0 },
		{ "LoRA", facts->trained_bytes == 10 || !facts->trains },
		{ "8-bit Adam", facts->small_state || !facts->trains },
		{ "torch.utils.checkpoint", facts->checkpoints || facts->checkpoints_wait || !facts->trains },
		{ "gradient accumulation", report->batch_size == 1 || !facts->trains },
		{ "a smaller batch", report->batch_size == 1 },
		{ "8 or 4 bits", facts->small_bytes == 900 || facts->trains },
		{ "expandable_segments", facts->expandable_segments },
		{ "torch.no_grad()", facts->trained_in_eval || strcmp(report->oom.phase, "evaluation") != 0 },
		{ "model.train()", !facts->trained_in_eval || !facts->checkpoints_wait },
		{ "data loader workers", !facts->loader },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].follows && words != NULL && strstr(words, rows[i].words) != NULL)
			fail_msg("advised although it is so, or would not help: %s", rows[i].words);
}

static void
test_nothing_that_is_so(void **context)
{
	(void)context;
	for (unsigned state = 0; state < 1U << EVERY_FACT; state++) {
		struct tn_report report;
		char *held;
		set(&report, state);
		char *words = tn__advice_words(&report, all_ids(), &held);
		check(&report, words);
		free(words);
		free(held);
		tn__report_free(&report);
	}
}

/* The other way round: each piece is given in some state, and all in the state of which nothing is known. */
static void
test_each_is_given(void **context)
{
	(void)context;
	const struct tn_advice *piece;
	for (size_t i = 0; (piece = tn__advice_at(i)) != NULL; i++) {
		bool given = false;
		for (unsigned state = 0; state < 1U << EVERY_FACT && !given; state++) {
			struct tn_report report;
			set(&report, state);
			given = piece->holds == NULL || piece->holds(&report);
			tn__report_free(&report);
		}
		if (!given)
			fail_msg("never given: %s", piece->id);
	}
}

static void
test_words(void **context)
{
	(void)context;
	struct tn_report report;
	char *held;
	tn__report_init(&report);
	char *words = tn__advice_words(&report, "accumulate checkpointing no_such autocast", &held);
	assert_string_equal(words, "a smaller batch with gradient accumulation, or checkpointing (torch.utils.checkpoint), or "
	                           "autocast to 16 bits");
	assert_string_equal(held, "accumulate checkpointing autocast");
	free(words);
	free(held);
	words = tn__advice_words(&report, "accumulate more_cards", &held);
	assert_string_equal(words, "a smaller batch with gradient accumulation"); /* the last resort is not needed */
	free(words);
	free(held);
	report.batch_size = 1;
	words = tn__advice_words(&report, "accumulate more_cards", &held);
	assert_string_equal(held, "more_cards");
	free(words);
	free(held);
	report.facts.known = report.facts.trains = report.facts.autocast = true;
	assert_null(tn__advice_words(&report, "autocast", &held));
	assert_null(held);
	tn__report_free(&report);
}

static void
test_ids_are_whole_words(void **context)
{
	(void)context;
	const struct tn_advice *piece = tn__advice_at(0);
	assert_string_equal(piece->id, "accumulate");
	assert_true(tn__advice_is_among(piece, "lora accumulate"));
	assert_false(tn__advice_is_among(piece, "accumulate_more lora"));
	assert_false(tn__advice_is_among(piece, ""));
}

static void
test_kernels(void **context)
{
	(void)context;
	struct tn_report report;
	tn__report_init(&report);
	static const struct {
		int32_t kernels[2];
		int major, minor;
		bool has;
	} rows[] = {
		{ { 75, 80 }, 6, 1, false },   { { 75, 80 }, 7, 5, true },  { { 75, 80 }, 8, 6, true },
		{ { 86, 90 }, 8, 0, false },   { { 75, 90 }, 12, 0, false }, { { 75, -90 }, 12, 0, true },
		{ { 100, 120 }, 10, 3, true }, { { 75, -80 }, 7, 0, false },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tn_gpu_figures card = { .compute_major = rows[i].major, .compute_minor = rows[i].minor };
		memcpy(report.facts.kernels, rows[i].kernels, sizeof(rows[i].kernels));
		report.facts.kernel_count = 2;
		assert_int_equal(tn__report_has_kernels(&report, &card), rows[i].has);
		report.facts.kernel_count = 0; /* unknown */
		assert_true(tn__report_has_kernels(&report, &card));
	}
	tn__report_free(&report);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_that_is_so), cmocka_unit_test(test_each_is_given), cmocka_unit_test(test_words),
		cmocka_unit_test(test_ids_are_whole_words), cmocka_unit_test(test_kernels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
