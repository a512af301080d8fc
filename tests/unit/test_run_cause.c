/* SPDX-License-Identifier: Apache-2.0
 *
 * Why the card was full: each rule holds where it should, the words carry the figures, and rules that contradict each other
 * stand in the right order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/catalogue.h"
#include "report/report.h"
#include "verdict/model_fill.h"
#include "verdict/judge.h"

#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)

/* What differs from a program that asked for 1 GiB with half of it free. Categories in MiB. */
struct scene {
	const char *phase, *message;
	int64_t asked, available, batch, card; /* card: in MiB; 0: 12 GiB */
	bool workspace, leak, told;
	int64_t parameters, gradients, optimizer_state, activations, inputs, temporaries, cached, others;
	int64_t step;
	struct tn_report_holder holder, beside;    /* lines of interest, bytes in MiB */
	int64_t values, before, calls, vocabulary; /* of the input of this call and of those before; of the request */
	struct tn_place frame;                     /* of PyTorch, innermost */
	int64_t longest, middle;                   /* lengths of samples; the longest is in the batch */
	bool buckets;                              /* gradients lie in DistributedDataParallel's */
	const char *cause, *why, *id;              /* id: of the finding; NULL: the cause */
};

static void
set_categories(struct tn_report_moment *moment, const struct scene *scene)
{
	int64_t *to = moment->by_category;
	to[TN_CATEGORY_parameters] = scene->parameters * MIB;
	to[TN_CATEGORY_gradients] = scene->gradients * MIB;
	to[TN_CATEGORY_optimizer_state] = scene->optimizer_state * MIB;
	to[TN_CATEGORY_activations] = scene->activations * MIB;
	to[TN_CATEGORY_inputs] = scene->inputs * MIB;
	to[TN_CATEGORY_temporaries] = scene->temporaries * MIB;
	to[TN_CATEGORY_cached] = scene->cached * MIB;
	moment->detailed = true;
}

static void
play(const struct scene *scene, struct tn_report *report)
{
	const struct tn_ending out = { .ended = true, .wait_status = 1 << 8, .guest_oom_last = true };
	tn__report_init(report);
	report->gpus = 1;
	report->gpu = tn__gpu_find("rtx3060")->figures;
	if (scene->card != 0)
		report->gpu.total_bytes = (uint64_t)scene->card * MIB;
	report->oom.requested_bytes = (scene->asked != 0 ? scene->asked : 1024) * MIB;
	report->oom.free_bytes = (scene->available != 0 ? scene->available : 512) * MIB;
	report->oom.phase = scene->phase != NULL ? strdup(scene->phase) : NULL;
	report->oom.message = scene->message != NULL ? strdup(scene->message) : NULL;
	report->oom.workspace = scene->workspace;
	report->oom.at = tn__report_new_place("model.py", 88, "forward", false);
	report->batch_size = scene->batch != 0 ? scene->batch : TN_NO_FIGURE;
	int64_t held = (int64_t)report->gpu.total_bytes - report->oom.free_bytes;
	report->device_peak = held;
	tn__report_set_split(&report->at_oom, &(struct tn_report_split){ 130 * MIB, held - 130 * MIB - scene->others * MIB,
	                                                                 0, scene->others * MIB, 0 });
	if (scene->told)
		set_categories(&report->at_oom, scene);
	report->oom.step = scene->step;
	const struct tn_report_holder *lines[] = { &scene->holder, &scene->beside };
	report->at_oom.holders = calloc(2, sizeof(*report->at_oom.holders));
	for (size_t i = 0; i < 2 && lines[i]->bytes > 0; i++) {
		struct tn_report_holder *holder = &report->at_oom.holders[report->at_oom.holder_count++];
		*holder = *lines[i];
		holder->bytes *= MIB;
		holder->at.file = holder->at.file != NULL ? strdup(holder->at.file) : NULL;
		holder->what = holder->what != NULL ? strdup(holder->what) : NULL;
	}
	if (scene->values > 0)
		report->oom.input = (struct tn_oom_input){ strdup("64 x 9"), strdup("8 x 9"), scene->values, scene->before,
			                                       scene->calls };
	report->oom.vocabulary = scene->vocabulary > 0 ? scene->vocabulary : TN_NO_FIGURE;
	if (scene->frame.file != NULL)
		assert_int_equal(tn__report_add_place(&report->oom.stack, &scene->frame), TN_OK);
	if (scene->longest > 0) {
		report->inputs.known = report->inputs.in_last_batch = true;
		report->inputs.unit = strdup("tokens");
		report->inputs.index = 3107;
		report->inputs.longest_known = scene->longest;
		report->inputs.middle = scene->middle;
	}
	report->facts.gradients_in_buckets = scene->buckets;
	report->growth.seen = scene->leak;
	report->growth.bytes = MIB;
	tn__report_judge(report, &out);
}

#define STATE(label)                           \
	{ .category = TN_CATEGORY_optimizer_state, \
	  .bytes = 100,                            \
	  .blocks = 10,                            \
	  .alike = 10,                             \
	  .what = (char *)(uintptr_t)(label) }
#define KEPT(mib, count, parts, in_layers)                                                        \
	{                                                                                             \
		.category = TN_CATEGORY_temporaries, .bytes = (mib), .blocks = (count), .alike = (parts), \
		.layers = (in_layers), .at = {                                                            \
			(char *)(uintptr_t)"/x/keep.py",                                                      \
			12,                                                                                   \
			NULL,                                                                                 \
			false                                                                                 \
		}                                                                                         \
	}

#define SOFTMAX(mib, parts)                                                                                       \
	{                                                                                                             \
		.category = TN_CATEGORY_activations, .bytes = (mib), .blocks = (parts), .alike = (parts), .layers = true, \
		.what = (char *)(uintptr_t)"softmax", .at = {                                                             \
			(char *)(uintptr_t)"/x/keep.py",                                                                      \
			30,                                                                                                   \
			NULL,                                                                                                 \
			false                                                                                                 \
		}                                                                                                         \
	}

#define BATCHES(count)                                                                            \
	{                                                                                             \
		.category = TN_CATEGORY_inputs, .bytes = 90, .blocks = (count), .alike = (count), .at = { \
			(char *)(uintptr_t)"/x/train.py",                                                     \
			14,                                                                                   \
			NULL,                                                                                 \
			false                                                                                 \
		}                                                                                         \
	}

#define FSDP_STATE (char *)(uintptr_t)"/x/torch/distributed/fsdp/_state_dict_utils.py"
#define DTENSOR (char *)(uintptr_t)"/x/torch/distributed/tensor/_api.py"

static const struct scene scenes[] = {
	{ .cause = "unknown" },
	{ .asked = 12 * 1024, .cause = "too_big_single_request", .why = "larger than all that the card can give (11.6" },
	{ .available = 4096,
	  .message = "... 2.00 GiB allowed; ...",
	  .cause = "memory_fraction_limit",
	  .why = "limited itself" },
	{ .available = 4096, .message = "nothing of limits", .cause = "unknown" },
	{ .message = "DefaultCPUAllocator: not enough memory", .cause = "host_ram", .why = "computer's own memory" },
	{ .workspace = true, .cause = "library_workspace", .why = "a library asked" },
	{ .others = 3000, .cause = "other_process", .why = "other processes hold 2.93 GiB" },
	{ .others = 500, .cause = "unknown" }, /* less than what is missing */
	{ .told = true,
	  .cached = 3000,
	  .activations = 6000,
	  .cause = "fragmentation",
	  .why = "keeps 2.93 GiB that no tensor uses" },
	{ .told = true,
	  .cached = 1000,
	  .activations = 6000,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "the batch" },
	{ .told = true, .cached = 1100, .others = 3000, .cause = "other_process", .why = "other processes" },
	{ .told = true,
	  .cached = 3000,
	  .leak = true,
	  .cause = "leak_suspected",
	  .id = "growth",
	  .why = "1.0 MiB more with each step" },
	{ .told = true,
	  .phase = "build",
	  .parameters = 9000,
	  .cause = "model_or_batch_too_big",
	  .id = "model_too_big",
	  .why = "while building" },
	{ .told = true,
	  .phase = "load",
	  .temporaries = 9000,
	  .cause = "model_or_batch_too_big",
	  .id = "model_too_big",
	  .why = "while loading" },
	/* the first update: what is still to come weighs more than the pieces */
	{ .told = true,
	  .phase = "optimizer",
	  .asked = 200,
	  .available = 100,
	  .step = 1,
	  .parameters = 4096,
	  .gradients = 4096,
	  .optimizer_state = 2048,
	  .cached = 900,
	  .holder = STATE("exp_avg float32"),
	  .cause = "model_or_batch_too_big",
	  .id = "optimizer_state",
	  .why =
	      "parameters and gradients take 8.00 GiB, and Adam wants two more numbers for each parameter, 8.00 GiB in all" },
	{ .told = true,
	  .phase = "optimizer",
	  .asked = 200,
	  .available = 100,
	  .step = 2,
	  .parameters = 2048,
	  .gradients = 2048,
	  .optimizer_state = 4096,
	  .cached = 900,
	  .holder = STATE("exp_avg float32"),
	  .cause = "fragmentation",
	  .why = "keeps 900.0 MiB" },
	{ .told = true,
	  .phase = "optimizer",
	  .asked = 200,
	  .available = 100,
	  .step = 1,
	  .parameters = 4096,
	  .gradients = 4096,
	  .optimizer_state = 2048,
	  .cached = 300,
	  .holder = STATE("momentum_buffer float32"),
	  .cause = "model_or_batch_too_big",
	  .id = "optimizer_state",
	  .why = "the optimizer's state 2.00 GiB" },
	/* a foreach update: the temporaries are of the line that asked */
	{ .told = true,
	  .phase = "optimizer",
	  .asked = 200,
	  .available = 100,
	  .step = 3,
	  .parameters = 2500,
	  .gradients = 2500,
	  .optimizer_state = 5000,
	  .temporaries = 1300,
	  .holder = { .category = TN_CATEGORY_temporaries,
	              .bytes = 1300,
	              .blocks = 70,
	              .alike = 1,
	              .at = { (char *)(uintptr_t)"model.py", 88, NULL, false } },
	  .cause = "model_or_batch_too_big",
	  .id = "foreach_temporaries",
	  .why = "all parameters at once: 1.27 GiB of temporaries" },
	/* what the program keeps: one of it is large, many of it pile up, those of layers are the model's work */
	{ .told = true,
	  .parameters = 500,
	  .activations = 1000,
	  .temporaries = 7000,
	  .holder = KEPT(7000, 1, 1, false),
	  .cause = "model_or_batch_too_big",
	  .id = "large_temporaries",
	  .why = "6.84 GiB from one line, keep.py:12, that is neither" },
	{ .told = true,
	  .parameters = 5000,
	  .temporaries = 4000,
	  .holder = KEPT(4000, 4, 4, false),
	  .cause = "leak_suspected",
	  .id = "growth",
	  .why =
	      "3.91 GiB from one line, keep.py:12, that are neither part of the model nor kept for a backward pass (4 tensors)" },
	{ .told = true,
	  .temporaries = 9000,
	  .cached = 1800,
	  .holder = KEPT(9000, 20000, 20000, false),
	  .cause = "leak_suspected",
	  .id = "growth",
	  .why = "(20000 tensors)" },
	{ .told = true,
	  .temporaries = 6000,
	  .cached = 4800,
	  .holder = KEPT(6000, 40, 1, false),
	  .cause = "fragmentation",
	  .why = "keeps 4.69 GiB" },
	{ .told = true,
	  .phase = "forward",
	  .step = 5,
	  .activations = 9000,
	  .inputs = 90,
	  .batch = 32,
	  .holder = BATCHES(5),
	  .cause = "leak_suspected",
	  .id = "growth",
	  .why = "5 batches are still there (train.py:14), with 8.79 GiB of activations" },
	{ .told = true,
	  .phase = "forward",
	  .step = 9,
	  .activations = 9000,
	  .inputs = 90,
	  .batch = 32,
	  .holder = BATCHES(5),
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "each of its 32 samples" },
	{ .told = true,
	  .phase = "forward",
	  .step = 2,
	  .parameters = 3800,
	  .gradients = 3800,
	  .activations = 3800,
	  .cause = "model_or_batch_too_big",
	  .id = "gradients_live_through_forward",
	  .why = "gradients of the step before, 3.71 GiB, are still there" },
	{ .told = true,
	  .phase = "forward",
	  .step = 1,
	  .parameters = 5000,
	  .gradients = 2000,
	  .activations = 3000,
	  .cause = "model_or_batch_too_big",
	  .id = "model_too_big",
	  .why = "the model: parameters" },
	/* gradients that stay wherever zero_grad() is called */
	{ .told = true,
	  .phase = "forward",
	  .step = 2,
	  .buckets = true,
	  .gradients = 3800,
	  .activations = 3800,
	  .batch = 32,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "each of its 32 samples" },
	/* a sample that is far longer than most, in a pass; one that is not, and an update's time */
	{ .told = true,
	  .phase = "forward",
	  .step = 1,
	  .activations = 9000,
	  .batch = 64,
	  .longest = 2500,
	  .middle = 52,
	  .cause = "larger_input",
	  .why = "a long input: the batch holds sample 3107 with 2500 tokens; half of the samples have 52 at most" },
	{ .told = true,
	  .phase = "forward",
	  .step = 1,
	  .activations = 9000,
	  .batch = 64,
	  .longest = 200,
	  .middle = 52,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "each of its 64 samples" },
	{ .told = true,
	  .phase = "optimizer",
	  .step = 1,
	  .activations = 9000,
	  .batch = 64,
	  .longest = 2500,
	  .middle = 52,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "each of its 64 samples" },
	/* an input that is larger than those of complete steps; one that is the first of its kind, or as large as another */
	{ .told = true,
	  .phase = "forward",
	  .step = 6,
	  .activations = 9000,
	  .batch = 64,
	  .values = 576,
	  .before = 72,
	  .calls = 5,
	  .cause = "larger_input",
	  .why = "the input of this step, 64 x 9, is larger than those of the 5 before it: 8 x 9 at most" },
	{ .told = true,
	  .phase = "forward",
	  .step = 6,
	  .activations = 9000,
	  .batch = 64,
	  .values = 576,
	  .before = 400,
	  .calls = 5,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "each of its 64 samples" },
	{ .told = true,
	  .phase = "forward",
	  .step = 2,
	  .activations = 9000,
	  .batch = 64,
	  .values = 576,
	  .before = 72,
	  .calls = 1,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "each of its 64 samples" },
	/* shards that are made whole to be saved, though pieces lie between them; not those that are loaded */
	{ .told = true,
	  .phase = "save",
	  .parameters = 4000,
	  .cached = 3000,
	  .frame = { FSDP_STATE, 330, NULL, false },
	  .cause = "gathered_state",
	  .why = "the full state dict is gathered on this card while it is saved (model.py:88)" },
	{ .told = true,
	  .parameters = 4000,
	  .cached = 3000,
	  .frame = { DTENSOR, 600, (char *)(uintptr_t)"DTensor.full_tensor", false },
	  .cause = "gathered_state",
	  .why = "the full state dict is gathered" },
	{ .told = true,
	  .parameters = 4000,
	  .cached = 3000,
	  .frame = { DTENSOR, 600, (char *)(uintptr_t)"DTensor.redistribute", false },
	  .cause = "fragmentation",
	  .why = "keeps 2.93 GiB" },
	{ .told = true,
	  .phase = "load",
	  .parameters = 4000,
	  .cached = 3000,
	  .frame = { FSDP_STATE, 330, NULL, false },
	  .cause = "fragmentation",
	  .why = "keeps 2.93 GiB" },
	{ .asked = 12 * 1024,
	  .vocabulary = 64000,
	  .cause = "too_big_single_request",
	  .id = "logits",
	  .why = "the logits of all positions, 12.00 GiB over a vocabulary of 64000, are larger than all" },
	/* scores of an attention: copies of each layer's belong to them, others of their size do not */
	{ .told = true,
	  .parameters = 700,
	  .activations = 5400,
	  .temporaries = 5400,
	  .batch = 8,
	  .holder = SOFTMAX(2560, 5),
	  .beside = KEPT(5120, 10, 5, true),
	  .cause = "model_or_batch_too_big",
	  .id = "attention_weights",
	  .why = "keeps its scores: 7.50 GiB in pieces of 512.0 MiB, by the softmax at keep.py:30" },
	/* memory ended between a softmax and its dropout */
	{ .told = true,
	  .phase = "forward",
	  .parameters = 40,
	  .activations = 11000,
	  .batch = 64,
	  .holder = SOFTMAX(3840, 15),
	  .beside = { .category = TN_CATEGORY_activations,
	              .bytes = 4480,
	              .blocks = 28,
	              .alike = 14,
	              .layers = true,
	              .at = { (char *)(uintptr_t)"/x/keep.py", 31, NULL, false } },
	  .cause = "model_or_batch_too_big",
	  .id = "attention_weights",
	  .why = "keeps its scores: 8.12 GiB in pieces of 256.0 MiB, by the softmax at keep.py:30" },
	{ .told = true,
	  .parameters = 700,
	  .activations = 5400,
	  .temporaries = 5400,
	  .batch = 8,
	  .holder = SOFTMAX(2560, 5),
	  .beside = KEPT(5120, 10, 2, true),
	  .cause = "model_or_batch_too_big",
	  .id = "large_temporaries",
	  .why = "5.00 GiB from one line" },
	{ .told = true,
	  .parameters = 500,
	  .temporaries = 4000,
	  .holder = KEPT(4000, 24, 24, true),
	  .cause = "model_or_batch_too_big",
	  .id = "large_temporaries",
	  .why = "from one line" },
	{ .told = true,
	  .parameters = 500,
	  .temporaries = 2000,
	  .holder = KEPT(2000, 24, 24, false),
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "no backward pass needs" },
	{ .told = true,
	  .phase = "forward",
	  .parameters = 5000,
	  .gradients = 2000,
	  .activations = 3000,
	  .cause = "model_or_batch_too_big",
	  .id = "model_too_big",
	  .why = "the model: parameters 4.88 GiB, gradients 1.95 GiB stay, whatever the batch" },
	/* what PyTorch asks for a tensor of 1 to 10 MiB is a segment of 20: nothing is known of the tensor */
	{ .told = true,
	  .phase = "forward",
	  .card = 160,
	  .asked = 20,
	  .available = 8,
	  .parameters = 7,
	  .activations = 12,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "the batch" },
	{ .told = true,
	  .phase = "forward",
	  .card = 160,
	  .asked = 22,
	  .available = 8,
	  .parameters = 7,
	  .activations = 12,
	  .cause = "model_or_batch_too_big",
	  .id = "large_tensor",
	  .why = "one large tensor: the 22.0 MiB requested" },
	{ .told = true,
	  .phase = "forward",
	  .asked = 4096,
	  .parameters = 500,
	  .activations = 3000,
	  .cause = "model_or_batch_too_big",
	  .id = "large_tensor",
	  .why = "one large tensor: the 4.00 GiB requested" },
	{ .told = true,
	  .phase = "forward",
	  .parameters = 130,
	  .activations = 7000,
	  .asked = 2048,
	  .batch = 4,
	  .holder = { .category = TN_CATEGORY_activations,
	              .bytes = 6144,
	              .blocks = 3,
	              .alike = 3,
	              .layers = true,
	              .at = { (char *)(uintptr_t)"/x/attention.py", 22, NULL, false } },
	  .cause = "model_or_batch_too_big",
	  .id = "large_activations",
	  .why = "a few large tensors: 3 times 2.00 GiB of activations from attention.py:22" },
	{ .told = true,
	  .phase = "forward",
	  .parameters = 500,
	  .activations = 8192,
	  .batch = 8,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "the batch: each of its 8 samples adds at least 1.00 GiB of activations" },
	{ .told = true,
	  .phase = "backward",
	  .parameters = 500,
	  .activations = 8192,
	  .batch = 8,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "the batch: each of its 8 samples adds 1.00 GiB of activations" },
	{ .told = true,
	  .phase = "backward",
	  .parameters = 500,
	  .activations = 8192,
	  .batch = 1,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "the activations of a single sample take 8.00 GiB" },
	{ .told = true,
	  .phase = "backward",
	  .parameters = 500,
	  .activations = 8192,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "the batch: its activations take 8.00 GiB" },
	{ .told = true,
	  .phase = "evaluation",
	  .parameters = 500,
	  .temporaries = 8192,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "8.00 GiB in tensors that no backward pass needs" },
	{ .told = true,
	  .phase = "evaluation",
	  .parameters = 500,
	  .activations = 8192,
	  .batch = 8,
	  .cause = "model_or_batch_too_big",
	  .id = "evaluation_with_graph",
	  .why = "evaluation keeps 8.00 GiB of activations for a backward pass" },
	{ .told = true,
	  .phase = "data",
	  .inputs = 8192,
	  .cause = "model_or_batch_too_big",
	  .id = "batch_too_big",
	  .why = "its tensors take 8.00 GiB" },
};

static void
test_every_rule(void **state)
{
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		struct tn_report report;
		play(&scenes[i], &report);
		if (strcmp(report.oom.cause, scenes[i].cause) != 0)
			fail_msg("scene %zu: %s, wanted %s", i, report.oom.cause, scenes[i].cause);
		assert_int_equal(report.finding_count, scenes[i].why != NULL ? 1 : 0);
		if (scenes[i].why != NULL) {
			const struct tn_finding *finding = &report.findings[0];
			if (strstr(finding->what, scenes[i].why) == NULL)
				fail_msg("scene %zu: \"%s\", wanted \"%s\"", i, finding->what, scenes[i].why);
			assert_string_equal(finding->id, scenes[i].id != NULL ? scenes[i].id : scenes[i].cause);
			assert_int_equal(finding->severity, TN_SEVERITY_ERROR);
			assert_non_null(finding->advice);
			if (!scenes[i].leak)
				assert_int_equal(finding->at->line, 88);
		}
		tn__report_free(&report);
	}
}

/* PyTorch's own figures stand in for the record where there is none. */
static void
test_fragmentation_without_a_record(void **state)
{
	const struct tn_ending out = { .ended = true, .wait_status = 1 << 8, .guest_oom_last = true };
	struct tn_report report;
	tn__report_init(&report);
	report.gpu = tn__gpu_find("rtx3060")->figures;
	report.oom.requested_bytes = GIB;
	report.oom.free_bytes = 100 * MIB;
	report.oom.reserved_bytes = 11 * GIB;
	report.oom.allocated_bytes = 9 * GIB;
	report.oom.largest_free_block_bytes = 96 * MIB;
	tn__report_judge(&report, &out);
	assert_string_equal(report.oom.cause, "fragmentation");
	assert_string_equal(report.findings[0].what,
	                    "fragmentation: PyTorch keeps 2.00 GiB that no tensor uses, the largest "
	                    "piece of it 96.0 MiB");
	tn__report_free(&report);
}

static void
test_pinned_memory(void **state)
{
	const struct tn_ending out = { .ended = true, .wait_status = 1 << 8, .guest_oom_last = true };
	const struct tn_place frame = { (char *)"x.py", 3, (char *)"pin_memory", false };
	struct tn_report report;
	tn__report_init(&report);
	report.gpu = tn__gpu_find("rtx3060")->figures;
	assert_int_equal(tn__report_add_place(&report.oom.stack, &frame), TN_OK);
	tn__report_judge(&report, &out);
	assert_string_equal(report.oom.cause, "host_ram");
	tn__report_free(&report);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_rule),
		                                cmocka_unit_test(test_fragmentation_without_a_record),
		                                cmocka_unit_test(test_pinned_memory) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
