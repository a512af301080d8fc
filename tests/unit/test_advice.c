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

#include "verdict/advice.h"
#include "verdict/judge.h"

#define EVERY_FACT 13 /* bits of a state */

static const char *
all_ids(void)
{
	static char ids[4096];
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
	facts->cudnn_benchmark = state & 1024;
	facts->workspace_config = state & 2048;
	facts->copy_called = state & 4096;
	facts->sharded = state & 4096;
	report->programs.count = state & 1024 ? 2 : 0;
	report->rank_count = state & 2 ? 2 : 0;
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
		{ "(LoRA)", facts->trained_bytes == 10 || !facts->trains },
		{ "8-bit Adam", facts->small_state || !facts->trains },
		{ "torch.utils.checkpoint", facts->checkpoints || facts->checkpoints_wait || !facts->trains },
		{ "gradient accumulation", report->batch_size == 1 || !facts->trains },
		{ "a smaller batch", report->batch_size == 1 },
		{ "8 or 4 bits", facts->small_bytes == 900 || facts->trains },
		{ "expandable_segments", facts->expandable_segments },
		{ "around the evaluation", facts->trained_in_eval },
		{ "model.train()", !facts->trained_in_eval || !facts->checkpoints_wait },
		{ "data loader workers", !facts->loader },
		{ "let the DataLoader", !facts->loader },
		{ "QLoRA", facts->small_bytes == 900 || facts->trained_bytes == 1000 || !facts->trains },
		{ "cudnn.benchmark", !facts->cudnn_benchmark },
		{ "CUBLAS_WORKSPACE_CONFIG", facts->workspace_config },
		{ "sharded over the ranks", facts->sharded || report->rank_count < 2 },
		{ "sharded before it is on the card", facts->sharded || report->rank_count < 2 },
		{ "keep the copy on the CPU", facts->copy_called },
		{ "store the copy in 16 bits", !facts->copy_called || facts->wide_bytes == 0 },
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

/* ---- each row by itself: given in a state in which it helps, absent where the one thing that forbids it is so ---- */

static void
helps_training(struct tn_report *report)
{
	report->facts = (struct tn_facts){ .known = true,
		                               .trains = true,
		                               .loader = true,
		                               .cudnn_benchmark = true,
		                               .parameter_bytes = 1000,
		                               .wide_bytes = 1000,
		                               .trained_bytes = 1000 };
	report->batch_size = 8;
	report->oom.phase = strdup("forward");
}

static void
helps_inference(struct tn_report *report)
{
	helps_training(report);
	report->facts.trains = false;
}
static void
helps_adapters(struct tn_report *report)
{
	helps_training(report);
	report->facts.wide_bytes = 0;
	report->facts.trained_bytes = 10;
}
static void
helps_eval_mode(struct tn_report *report)
{
	helps_training(report);
	report->facts.trained_in_eval = report->facts.checkpoints_wait = true;
}
static void
helps_called_copy(struct tn_report *report)
{
	helps_training(report);
	report->facts.copy_called = true;
}

static void
helps_ranks(struct tn_report *report)
{
	helps_training(report);
	report->rank_count = 2;
}
static void
one_rank(struct tn_report *report)
{
	report->rank_count = 1;
}
static void
sharded(struct tn_report *report)
{
	report->facts.sharded = true;
}

static void
no_batch(struct tn_report *report)
{
	report->batch_size = 1;
}
static void
no_training(struct tn_report *report)
{
	report->facts.trains = false;
}
static void
trains(struct tn_report *report)
{
	report->facts.trains = true;
}
static void
checkpoints(struct tn_report *report)
{
	report->facts.checkpoints = true;
}
static void
checkpoints_wait(struct tn_report *report)
{
	report->facts.checkpoints_wait = true;
}
static void
in_train(struct tn_report *report)
{
	report->facts.trained_in_eval = false;
}
static void
in_eval(struct tn_report *report)
{
	report->facts.trained_in_eval = true;
}
static void
autocast(struct tn_report *report)
{
	report->facts.autocast = true;
}
static void
narrow(struct tn_report *report)
{
	report->facts.wide_bytes = 0;
}
static void
small(struct tn_report *report)
{
	report->facts.wide_bytes = 0;
	report->facts.small_bytes = 900;
}
static void
small_state(struct tn_report *report)
{
	report->facts.small_state = true;
}
static void
adapters(struct tn_report *report)
{
	report->facts.trained_bytes = 10;
}
static void
trains_all(struct tn_report *report)
{
	report->facts.trained_bytes = 1000;
}
static void
expandable(struct tn_report *report)
{
	report->facts.expandable_segments = true;
}
static void
no_loader(struct tn_report *report)
{
	report->facts.loader = false;
}
static void
no_benchmark(struct tn_report *report)
{
	report->facts.cudnn_benchmark = false;
}
static void
config(struct tn_report *report)
{
	report->facts.workspace_config = true;
}
static void
called(struct tn_report *report)
{
	report->facts.copy_called = true;
}
static void
not_called(struct tn_report *report)
{
	report->facts.copy_called = false;
}
static void
in_evaluation(struct tn_report *report)
{
	free(report->oom.phase);
	report->oom.phase = strdup("evaluation");
}

static void
several_programs(struct tn_report *report)
{
	report->programs.count = 2;
}
static void
one_program(struct tn_report *report)
{
	report->programs.count = 0;
}
static void
helps_several(struct tn_report *report)
{
	helps_training(report);
	several_programs(report);
}

static const struct row {
	const char *id;
	void (*helps)(struct tn_report *);
	void (*void_by)(struct tn_report *);
} table_rows[] = {
	{ "accumulate", helps_training, no_batch },
	{ "accumulate", helps_training, no_training },
	{ "accumulate", helps_training, in_evaluation },
	{ "smaller_batch", helps_inference, no_batch },
	{ "smaller_batch", helps_inference, trains },
	{ "checkpointing", helps_training, checkpoints },
	{ "checkpointing", helps_training, checkpoints_wait },
	{ "checkpointing", helps_training, no_training },
	{ "train_mode", helps_eval_mode, in_train },
	{ "autocast", helps_training, autocast },
	{ "autocast", helps_training, narrow },
	{ "parameters_16_bits", helps_training, narrow },
	{ "inference_16_bits", helps_inference, narrow },
	{ "inference_16_bits", helps_inference, trains },
	{ "quantise", helps_inference, small },
	{ "quantise", helps_inference, trains },
	{ "quantise_frozen", helps_adapters, trains_all },
	{ "quantise_frozen", helps_adapters, no_training },
	{ "quantise_frozen", helps_adapters, small },
	{ "small_state", helps_training, small_state },
	{ "small_state", helps_training, adapters },
	{ "small_state", helps_training, no_training },
	{ "lora", helps_training, adapters },
	{ "lora", helps_training, no_training },
	{ "no_grad", helps_training, in_eval },
	{ "expandable", helps_training, expandable },
	{ "fewer_workers", helps_training, no_loader },
	{ "pin_by_loader", helps_training, no_loader },
	{ "no_benchmark", helps_training, no_benchmark },
	{ "workspace_config", helps_training, config },
	{ "shard_model", helps_ranks, one_rank },
	{ "shard_model", helps_ranks, sharded },
	{ "shard_early", helps_ranks, one_rank },
	{ "shard_early", helps_ranks, sharded },
	{ "copy_on_cpu", helps_training, called },
	{ "copy_in_16_bits", helps_called_copy, not_called },
	{ "copy_in_16_bits", helps_called_copy, narrow },
	{ "chunked_loss", helps_training, no_training },
	{ "take_turns", helps_several, one_program },
	{ "smaller_part", helps_several, one_program },
	{ "end_others", helps_training, several_programs },
};

static bool
is_given(const struct row *row, bool made_void)
{
	struct tn_report report;
	char *held;
	tn__report_init(&report);
	row->helps(&report);
	if (made_void)
		row->void_by(&report);
	char *words = tn__advice_words(&report, row->id, &held);
	bool given = words != NULL;
	free(words);
	free(held);
	tn__report_free(&report);
	return given;
}

static void
test_each_row(void **context)
{
	(void)context;
	const struct tn_advice *piece;
	for (size_t i = 0; i < sizeof(table_rows) / sizeof(table_rows[0]); i++) {
		if (!is_given(&table_rows[i], false))
			fail_msg("row %zu, %s: not given where it helps", i, table_rows[i].id);
		if (is_given(&table_rows[i], true))
			fail_msg("row %zu, %s: given where it does not help", i, table_rows[i].id);
	}
	for (size_t i = 0; (piece = tn__advice_at(i)) != NULL; i++) {
		bool known = piece->holds == NULL;
		for (size_t j = 0; j < sizeof(table_rows) / sizeof(table_rows[0]) && !known; j++)
			known = strcmp(table_rows[j].id, piece->id) == 0;
		if (!known)
			fail_msg("a condition without a case: %s", piece->id);
	}
}

/* Rows without a condition of their own hang on their finding: an out-of-memory that shows nothing brings none of them. */
static void
test_nothing_without_its_finding(void **context)
{
	(void)context;
	struct tn_report report;
	tn__report_init(&report);
	report.oom.seen = true;
	tn__report_find_cause(&report);
	for (size_t i = 0; i < report.finding_count; i++)
		assert_null(report.findings[i].advice);
	tn__report_free(&report);
}

static void
test_words(void **context)
{
	(void)context;
	struct tn_report report;
	char *held;
	tn__report_init(&report);
	char *words = tn__advice_words(&report, "accumulate checkpointing no_such autocast", &held);
	assert_string_equal(words,
	                    "a smaller batch with gradient accumulation, or checkpointing (torch.utils.checkpoint), or "
	                    "autocast to 16 bits");
	assert_string_equal(held, "accumulate checkpointing autocast");
	free(words);
	free(held);
	words = tn__advice_words(&report, "accumulate multi_gpu", &held);
	assert_string_equal(words, "a smaller batch with gradient accumulation"); /* the last resort is not needed */
	free(words);
	free(held);
	report.batch_size = 1;
	words = tn__advice_words(&report, "accumulate multi_gpu", &held);
	assert_string_equal(held, "multi_gpu");
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
		{ { 75, 80 }, 6, 1, false },   { { 75, 80 }, 7, 5, true },   { { 75, 80 }, 8, 6, true },
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
		cmocka_unit_test(test_nothing_that_is_so),
		cmocka_unit_test(test_each_is_given),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_each_row),
		cmocka_unit_test(test_nothing_without_its_finding),
		cmocka_unit_test(test_ids_are_whole_words),
		cmocka_unit_test(test_kernels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
