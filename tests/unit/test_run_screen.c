/* SPDX-License-Identifier: Apache-2.0
 *
 * The screens of `tonnage run`, line by line, against tests/golden/run: at 80 and 100 columns, with colour and without,
 * in UTF-8 and in ASCII. Figures are invented. TN_GOLDEN_WRITE=1 writes the files anew; look at the difference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/catalogue.h"
#include "report/printer.h"
#include "verdict/model_fill.h"
#include "verdict/judge.h"

#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)
#define PACKAGES "/env/lib/python3.11/site-packages/"

static const struct tn_ending well = { .ended = true, .wait_status = 9, .stop_reason = 1 };
static const struct tn_ending out = { .ended = true, .wait_status = 1 << 8, .guest_oom_last = true };

static void
start(struct tn_report *report)
{
	tn__report_init(report);
	report->gpus = 1;
	report->gpu = tn__gpu_find("rtx3060")->figures;
	report->context_lowest = 91 * MIB;
	report->context_highest = 169 * MIB;
	report->working_folder = strdup("/home/me/work");
	report->command = strdup("python finetune.py --config configs/large.yaml");
	report->seconds = 3.4;
	tn__report_add_source(report, "gpu.context_bytes", "catalogue (guess)");
}

static void
hold(struct tn_report_moment *moment, const struct tn_report_holder *holders, size_t count)
{
	moment->holders = calloc(count, sizeof(*holders));
	moment->holder_count = count;
	moment->detailed = true;
	int64_t left = moment->by_category[TN_CATEGORY_other];
	for (int i = 0; i < TN_CATEGORY_context; i++)
		moment->by_category[i] = 0;
	for (size_t i = 0; i < count; i++) {
		struct tn_report_holder *copy = &moment->holders[i];
		*copy = holders[i];
		copy->at.file = holders[i].at.file != NULL ? strdup(holders[i].at.file) : NULL;
		copy->at.function = holders[i].at.function != NULL ? strdup(holders[i].at.function) : NULL;
		copy->what = holders[i].what != NULL ? strdup(holders[i].what) : NULL;
		moment->by_category[copy->category] += copy->bytes;
		left -= copy->bytes;
	}
	moment->by_category[TN_CATEGORY_rounding] = 3 * MIB;
	moment->by_category[TN_CATEGORY_cached] = left - 3 * MIB;
}

#define AT(file, line, function) { (char *)(uintptr_t)(file), line, (char *)(uintptr_t)(function), false }
#define BACK(file, line, function) { (char *)(uintptr_t)(file), line, (char *)(uintptr_t)(function), true }

static void
out_of_memory(struct tn_report *report)
{
	static const struct tn_report_holder holders[] = {
		{ TN_CATEGORY_activations, 6912 * MIB, 24, AT("/home/me/work/model.py", 88, "forward"), 24, true, NULL, false },
		{ TN_CATEGORY_optimizer_state, 2672 * MIB, 292, AT("/home/me/work/finetune.py", 30, "<module>"), 2, false,
		  (char *)"exp_avg, exp_avg_sq float32", false },
		{ TN_CATEGORY_parameters, 1336 * MIB, 292, AT("/home/me/work/model.py", 20, "__init__"), 1, false, NULL,
		  false },
		{ TN_CATEGORY_activations, 512 * MIB, 1,
		  AT(PACKAGES "transformers/models/gpt2/modeling_gpt2.py", 1121, "forward"), 1, false, NULL, false },
		{ TN_CATEGORY_temporaries, 96 * MIB, 1, BACK("/home/me/work/model.py", 61, "forward"), 1, false, NULL, false },
	};
	static const struct tn_place stack[] = {
		AT(PACKAGES "torch/nn/functional.py", 5, "linear"),
		AT("/home/me/work/model.py", 88, "Attention.forward"),
		AT("/home/me/work/finetune.py", 41, "<module>"),
	};
	start(report);
	report->steps_seen = 0;
	report->batch_size = 8;
	report->oom.requested_bytes = 1536 * MIB;
	report->oom.free_bytes = 20 * MIB;
	report->oom.reserved_bytes = 11000 * MIB;
	report->oom.allocated_bytes = 10900 * MIB;
	report->oom.step = 1;
	report->oom.phase = strdup("forward");
	report->oom.at = tn__report_new_place(stack[1].file, 88, stack[1].function, false);
	for (size_t i = 0; i < sizeof(stack) / sizeof(stack[0]); i++)
		assert_int_equal(tn__report_add_place(&report->oom.stack, &stack[i]), TN_OK);
	int64_t held = (int64_t)report->gpu.total_bytes - 20 * MIB;
	report->device_peak = held;
	struct tn_report_split split = { 130 * MIB, held - 200 * MIB, 70 * MIB, 0, 0 };
	tn__report_set_split(&report->at_peak, &split);
	tn__report_set_split(&report->at_oom, &split);
	hold(&report->at_oom, holders, sizeof(holders) / sizeof(holders[0]));
	report->at_oom.largest_free_block_bytes = 96 * MIB;
	report->need = (struct tn_need){ .bytes = 22400 * MIB, .least = 22360 * MIB, .steps = 3 };
	tn__report_add_region(report, "build", 1500 * MIB, 1400 * MIB, 1500 * MIB);
	tn__report_add_region(report, "forward", held, held - 200 * MIB, held);
	tn__report_judge(report, &out);
}

static void
grows(struct tn_report *report)
{
	static const struct tn_report_holder holders[] = {
		{ TN_CATEGORY_temporaries, 38 * MIB, 38, AT("/home/me/work/leak.py", 31, "train"), 38, false, NULL, false },
		{ TN_CATEGORY_parameters, 8 * MIB, 4, AT(PACKAGES "torch/nn/modules/linear.py", 100, "__init__"), 4, false,
		  NULL, false },
		{ TN_CATEGORY_workspaces, 8 * MIB, 1, { NULL, TN_NO_FIGURE, NULL, false }, 1, false, (char *)"cublas", false },
	};
	start(report);
	report->steps_seen = 41;
	report->input_shapes = 1;
	report->device_peak = 200 * MIB;
	tn__report_set_split(&report->at_peak, &(struct tn_report_split){ 130 * MIB, 60 * MIB, 10 * MIB, 0, 0 });
	hold(&report->at_peak, holders, sizeof(holders) / sizeof(holders[0]));
	report->growth = (struct tn_report_growth){ .seen = true,
		                                        .unit = strdup("step"),
		                                        .bytes = MIB,
		                                        .first = 3,
		                                        .last = 40,
		                                        .peak = 60 * MIB,
		                                        .of = TN_NO_FIGURE,
		                                        .full_at = TN_NO_FIGURE,
		                                        .at = tn__report_new_place("/home/me/work/leak.py", 31, "train",
		                                                                   false) };
	report->not_seen_known = true;
	tn__report_add_not_seen(report, "the evaluation after each epoch");
	tn__report_judge(report, &well);
}

static void
fits(struct tn_report *report)
{
	static const struct tn_report_holder holders[] = {
		{ TN_CATEGORY_activations, 3000 * MIB, 48,
		  AT(PACKAGES "transformers/models/llama/modeling_llama.py", 260, "LlamaMLP.forward"), 48, true, NULL, false },
		{ TN_CATEGORY_optimizer_state,
		  200 * MIB,
		  20,
		  { NULL, TN_NO_FIGURE, NULL, false },
		  1,
		  false,
		  (char *)"exp_avg, exp_avg_sq \033[31mfloat32",
		  false },
		{ TN_CATEGORY_parameters, 1400 * MIB, 200,
		  AT("/opt/a/very/deep/folder/that/goes/on/and/on/model.py", 7, "build"), 1, false, NULL, false },
		{ TN_CATEGORY_gradients, 100 * MIB, 200,
		  BACK("/opt/a/very/deep/folder/that/goes/on/and/on/model.py", 17, "forward"), 1, false, NULL, false },
	};
	start(report);
	report->steps_seen = 12;
	report->input_shapes = 3;
	report->device_peak = 6 * GIB;
	report->allocated_peak = 4700 * MIB;
	report->reserved_peak = 5000 * MIB;
	report->requested_peak = 4690 * MIB;
	report->scratch = strdup("/tmp/tonnage-0-AbCdEf/scratch/files");
	report->computed_read_count = 2;
	const struct tn_counted read = { .place = AT("/home/me/work/train.py", 44, NULL), .count = 2 };
	assert_int_equal(tn__report_add_counted(&report->computed_reads, &read), TN_OK);
	tn__report_set_split(&report->at_peak, &(struct tn_report_split){ 130 * MIB, 5000 * MIB, 14 * MIB, 1000 * MIB, 0 });
	tn__report_add_source(report, "at_peak.by_category.other_processes", "--other");
	hold(&report->at_peak, holders, sizeof(holders) / sizeof(holders[0]));
	tn__report_add_region(report, "build", 1500 * MIB, 1400 * MIB, 1500 * MIB);
	tn__report_add_region(report, "forward", 5500 * MIB, 5000 * MIB, 5500 * MIB);
	tn__report_add_region(report, "backward", 6 * GIB, 5000 * MIB, 5900 * MIB);
	tn__report_add_region(report, "optimizer", 6 * GIB, 5000 * MIB, 6 * GIB);
	tn__report_add_region(report, "save", 6 * GIB, 5000 * MIB, 0);
	report->not_seen_known = true;
	tn__report_add_not_seen(report, "epochs after the first");
	tn__report_add_not_seen(report, "input shapes were still changing");
	tn__report_judge(report, &well);
}

/* --no-detail, or a program without Python. */
static void
plain(struct tn_report *report)
{
	start(report);
	report->device_peak = 4 * GIB;
	tn__report_set_split(&report->at_peak, &(struct tn_report_split){ 130 * MIB, 4 * GIB - 130 * MIB, 0, 0, 0 });
	tn__report_judge(report, &well);
}

/* A longer sample is known than was seen. */
static void
late(struct tn_report *report)
{
	fits(report);
	report->inputs.known = report->inputs.longer = true;
	report->inputs.order = strdup("as_is");
	report->inputs.unit = strdup("tokens");
	report->inputs.seen = 3200;
	report->inputs.of = 10000;
	report->inputs.looked = 6144;
	report->inputs.shortest = 64;
	report->inputs.longest_seen = 127;
	report->inputs.longest_known = 1024;
	report->inputs.index = 9731;
	tn__report_set_bound(report);
}

/* --inputs longest: this seed's batches fit, another's need not. */
static void
together(struct tn_report *report)
{
	out_of_memory(report);
	report->inputs.known = report->inputs.in_last_batch = report->inputs.together_failed = true;
	report->inputs.order = strdup("longest");
	report->inputs.unit = strdup("nodes");
	report->inputs.seen = 2000;
	report->inputs.of = report->inputs.looked = 10000;
	report->inputs.shortest = 10;
	report->inputs.longest_seen = report->inputs.longest_known = 12000;
	report->inputs.index = 41;
	report->inputs.last_batch = 16;
	report->inputs.largest_batch = (struct tn_peaks_of_batches){ 9 * GIB, 10 * GIB };
}

static const struct {
	const char *name;
	void (*fill)(struct tn_report *);
} screens[] = { { "out_of_memory", out_of_memory },
	            { "grows", grows },
	            { "fits", fits },
	            { "plain", plain },
	            { "late", late },
	            { "together", together } };

static const struct {
	const char *name;
	struct tn_style style;
} styles[] = {
	{ "100", { false, true, 100 } },     { "80", { false, true, 80 } },        { "100_colour", { true, true, 100 } },
	{ "80_colour", { true, true, 80 } }, { "80_ascii", { false, false, 80 } },
};

static char *
read_file(const char *path)
{
	char *text = calloc(1, 65536);
	FILE *file = fopen(path, "r");
	if (file == NULL)
		fail_msg("%s is missing", path);
	assert_true(fread(text, 1, 65535, file) < 65535);
	fclose(file);
	return text;
}

static void
compare(const char *path, const char *text)
{
	if (getenv("TN_GOLDEN_WRITE") != NULL) {
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		fputs(text, file);
		fclose(file);
		return;
	}
	char *wanted = read_file(path);
	if (strcmp(text, wanted) != 0)
		fail_msg("%s differs; this is what came:\n%s", path, text);
	free(wanted);
}

/* No line is wider than it may be, escapes not counted. */
static void
check_width(const char *text, int columns)
{
	int column = 0;
	for (const char *at = text; *at != '\0'; at++) {
		if (*at == '\033') {
			at = strchr(at, 'm');
			continue;
		}
		column = *at == '\n' ? 0 : column + (((unsigned char)*at & 0xc0) != 0x80);
		if (column > columns)
			fail_msg("wider than %d columns:\n%s", columns, text);
	}
}

static void
test_screens(void **state)
{
	for (size_t i = 0; i < sizeof(screens) / sizeof(screens[0]); i++) {
		struct tn_report report;
		screens[i].fill(&report);
		for (size_t k = 0; k < sizeof(styles) / sizeof(styles[0]); k++) {
			char path[512], *text = NULL;
			size_t size = 0;
			FILE *stream = open_memstream(&text, &size);
			assert_int_equal(tn__report_text(&report, styles[k].style, stream), TN_OK);
			fclose(stream);
			snprintf(path, sizeof(path), "%s/%s_%s.txt", TN_GOLDEN, screens[i].name, styles[k].name);
			check_width(text, styles[k].style.columns);
			compare(path, text);
			free(text);
		}
		tn__report_free(&report);
	}
}

/* Names come from the program: what a terminal would obey must not reach it, and ASCII stays ASCII. */
static void
test_nothing_to_obey(void **state)
{
	struct tn_report report;
	char *text = NULL;
	size_t size = 0;
	fits(&report);
	free(report.at_peak.holders[0].at.file);
	report.at_peak.holders[0].at.file = strdup("/x/a\033[2Jvery\nlong\rname\tof\177a-file-that-does-not-fit.py");
	FILE *stream = open_memstream(&text, &size);
	assert_int_equal(tn__report_text(&report, (struct tn_style){ false, false, 100 }, stream), TN_OK);
	fclose(stream);
	for (const char *at = text; *at != '\0'; at++)
		assert_true(*at == '\n' || ((unsigned char)*at >= 0x20 && (unsigned char)*at < 0x7f));
	free(text);
	tn__report_free(&report);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_screens), cmocka_unit_test(test_nothing_to_obey) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
