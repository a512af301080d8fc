/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch as a cause: what it brings, by what is most of it.
 */
#include <inttypes.h>
#include <string.h>

#include "verdict/cause_rules.h"

#define MANY_SAMPLES 16
/* What PyTorch asks the driver for where a tensor takes 1 to 10 MiB: kLargeBuffer, c10/cuda/CUDACachingAllocator.cpp. */
#define SEGMENT (INT64_C(20) << 20)

/* ---- a few large tensors ---- */

/* Activations of one line, a few parts of which fill the card. */
static const struct tn_report_holder *
few_large_ones(const struct tn_cause_facts *facts)
{
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		if (holder->category != TN_CATEGORY_activations || holder->at.file == NULL)
			continue;
		int64_t parts = holder->alike > 0 ? holder->alike : 1;
		bool large = holder->bytes / parts >= facts->room / 8 && holder->blocks <= 8 * parts;
		return large && 2 * holder->bytes >= facts->passing ? holder : NULL;
	}
	return NULL;
}

/* A large tensor of a large batch is the batch's doing: it shrinks with it. */
static bool
a_few_fill_it(const struct tn_cause_facts *facts)
{
	return few_large_ones(facts) != NULL && facts->report->batch_size < MANY_SAMPLES;
}

static void
why_a_few(const struct tn_cause_facts *facts, FILE *out)
{
	const struct tn_report_holder *holder = few_large_ones(facts);
	if (holder->alike > 1)
		fprintf(out, "a few large tensors: %lld times ", (long long)holder->alike);
	else
		fputs("one large tensor: ", out);
	print_bytes(out, "", holder->bytes / (holder->alike > 0 ? holder->alike : 1), " of activations");
	print_line(out, " from ", &holder->at);
}

const struct tn_cause tn__cause_a_few_fill_it = { TN_FINDING_model_or_batch_too_big, TN_FINDING_large_activations,
	                                              a_few_fill_it, why_a_few, NULL };

static bool
one_tensor(const struct tn_cause_facts *facts)
{
	int64_t largest = 0;
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		int64_t bytes = holder->blocks == 1 ? holder->bytes : holder->bytes / (holder->alike > 0 ? holder->alike : 1);
		if (bytes > largest)
			largest = bytes;
	}
	/* A large tensor of a large batch is the batch's doing, in a pass. */
	bool by_itself = facts->report->batch_size < MANY_SAMPLES ||
	                 (facts->oom->phase != NULL && phase_is(facts, "other"));
	return facts->moment->detailed && by_itself && facts->asked != SEGMENT && facts->asked >= facts->room / 5 &&
	       facts->asked >= facts->lasting && 2 * facts->asked >= facts->passing && facts->asked >= largest;
}

static void
why_one_tensor(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "one large tensor: the ", facts->asked, " requested here are more than any other tensor takes");
}

const struct tn_cause tn__cause_one_tensor = { TN_FINDING_model_or_batch_too_big, TN_FINDING_large_tensor, one_tensor,
	                                           why_one_tensor, NULL };

/* ---- a larger input than before ---- */

#define TIMES_LARGER 2

static bool
in_a_pass(const struct tn_cause_facts *facts)
{
	return phase_is(facts, "forward") || phase_is(facts, "backward") || phase_is(facts, "evaluation");
}

/* What the model was given before was much smaller, and steps with it were completed. */
static bool
larger_input(const struct tn_cause_facts *facts)
{
	const struct tn_oom_input *input = &facts->oom->input;
	return in_a_pass(facts) && facts->oom->step >= 2 && input->calls_before >= 2 &&
	       input->values >= TIMES_LARGER * input->values_before;
}

static void
why_larger_input(const struct tn_cause_facts *facts, FILE *out)
{
	const struct tn_oom_input *input = &facts->oom->input;
	fprintf(out, "the input of this step, %s, is larger than those of the %lld before it: %s at most", input->shape,
	        (long long)input->calls_before, input->before);
}

const struct tn_cause tn__cause_larger_input = { TN_FINDING_larger_input, TN_FINDING_larger_input, larger_input,
	                                             why_larger_input, NULL };

/* ---- a batch with the longest sample ---- */

#define TIMES_THE_MIDDLE 4

/* The batch that ran out holds the longest sample known, and most are far shorter. */
static bool
longest_sample(const struct tn_cause_facts *facts)
{
	const struct tn_inputs *inputs = &facts->report->inputs;
	return in_a_pass(facts) && inputs->known && inputs->in_last_batch && inputs->middle > 0 &&
	       inputs->longest_known >= TIMES_THE_MIDDLE * inputs->middle;
}

static void
why_longest_sample(const struct tn_cause_facts *facts, FILE *out)
{
	const struct tn_inputs *inputs = &facts->report->inputs;
	fprintf(out,
	        "a long input: the batch holds sample %" PRId64 " with %" PRId64 " %s; half of the samples have %" PRId64
	        " at most",
	        inputs->index, inputs->longest_known, inputs->unit != NULL ? inputs->unit : "items", inputs->middle);
}

const struct tn_cause tn__cause_longest_sample = { TN_FINDING_larger_input, TN_FINDING_larger_input, longest_sample,
	                                               why_longest_sample, NULL };

/* ---- scores of an attention ---- */

#define NEAR 4 /* lines */

/* Made as often in a pass, which memory may have ended within a layer. */
static bool
as_often(int64_t one, int64_t other)
{
	return one > 1 && other > 1 && one - other <= 1 && other - one <= 1;
}

/* Made a line or two from the softmax, as often: its dropout, scores and mask of one line together. */
static bool
is_beside(const struct tn_report_holder *holder, const struct tn_report_holder *softmax)
{
	if (holder->at.file == NULL || softmax->at.file == NULL || strcmp(holder->at.file, softmax->at.file) != 0)
		return false;
	int64_t away = holder->at.line > softmax->at.line ? holder->at.line - softmax->at.line
	                                                  : softmax->at.line - holder->at.line;
	int64_t part = holder->bytes / (holder->alike > 0 ? holder->alike : 1);
	int64_t scores = softmax->bytes / (softmax->alike > 0 ? softmax->alike : 1);
	return away <= NEAR && as_often(holder->alike, softmax->alike) && part >= scores && part <= 2 * scores;
}

/* Scores before and after masks and dropout: activations as large as what a softmax made, and copies that the program keeps of
 * each layer's. */
static int64_t
bytes_like(const struct tn_cause_facts *facts, const struct tn_report_holder *softmax)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		bool copies = holder->category == TN_CATEGORY_temporaries && holder->layers &&
		              as_often(holder->alike, softmax->alike);
		bool alike = (holder->category == TN_CATEGORY_activations || copies) && holder->blocks > 0 &&
		             softmax->blocks > 0 &&
		             (holder->bytes / holder->blocks == softmax->bytes / softmax->blocks || is_beside(holder, softmax));
		bytes += alike ? holder->bytes : 0;
	}
	return bytes;
}

/* What softmax made inside the layers of a model, with all that is of its size, when that is most of the activations;
 * NULL when it is not. */
static const struct tn_report_holder *
scores_of_layers(const struct tn_cause_facts *facts)
{
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		if (holder->category != TN_CATEGORY_activations || holder->what == NULL || strcmp(holder->what, "softmax") != 0)
			continue;
		return 5 * bytes_like(facts, holder) >= 2 * facts->passing ? holder : NULL;
	}
	return NULL;
}

/* Scores of an attention that is written out: length times length for each head. */
static bool
attention_fills_it(const struct tn_cause_facts *facts)
{
	const struct tn_report_holder *holder = few_large_ones(facts);
	bool large = holder != NULL && holder->what != NULL && strcmp(holder->what, "softmax") == 0;
	return large || scores_of_layers(facts) != NULL;
}

static void
why_attention(const struct tn_cause_facts *facts, FILE *out)
{
	const struct tn_report_holder *holder = scores_of_layers(facts);
	holder = holder != NULL ? holder : few_large_ones(facts);
	int64_t all = bytes_like(facts, holder);
	print_bytes(out, "attention written out by hand keeps its scores: ", all, "");
	if (holder->blocks > 1)
		print_bytes(out, " in pieces of ", holder->bytes / holder->blocks, "");
	print_line(out, ", by the softmax at ", &holder->at);
	fputs("; they grow with the square of the length", out);
}

const struct tn_cause tn__cause_attention_fills_it = { TN_FINDING_model_or_batch_too_big, TN_FINDING_attention_weights,
	                                                   attention_fills_it, why_attention, NULL };

/* ---- logits ---- */

/* The loss over a large vocabulary: logits, their softmax, and the gradients of both. */
static bool
logits_fill_it(const struct tn_cause_facts *facts)
{
	bool loss = false;
	for (size_t i = 0; i < facts->oom->stack.count && i < 4; i++) {
		const char *function = facts->oom->stack.items[i].function;
		loss |= function != NULL && strcmp(function, "cross_entropy") == 0;
	}
	for (size_t i = 0; i < facts->moment->holder_count && facts->oom->at != NULL; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		loss |= holder->what != NULL && strcmp(holder->what, "log_softmax") == 0 && holder->at.file != NULL &&
		        holder->at.line == facts->oom->at->line && strcmp(holder->at.file, facts->oom->at->file) == 0;
	}
	return (loss || facts->oom->vocabulary > 0) && facts->asked >= facts->room / 16;
}

static void
why_logits(const struct tn_cause_facts *facts, FILE *out)
{
	if (facts->oom->vocabulary > 0)
		fprintf(out, "the loss over a vocabulary of %lld: its logits take ", (long long)facts->oom->vocabulary);
	else
		fputs("the loss over a large vocabulary: its logits take ", out);
	print_bytes(out, "", facts->asked,
	            facts->report->facts.known && !facts->report->facts.trains
	                ? ""
	                : ", and their softmax and their gradients as much again each");
}

const struct tn_cause tn__cause_logits_fill_it = { TN_FINDING_model_or_batch_too_big, TN_FINDING_logits, logits_fill_it,
	                                               why_logits, NULL };

/* ---- model against batch ---- */

static void
why_activations(const struct tn_cause_facts *facts, FILE *out)
{
	int64_t activations = of(facts, TN_CATEGORY_activations), batch = facts->report->batch_size;
	const char *least = phase_is(facts, "forward") ? "at least " : "";
	if (batch > 1) {
		fprintf(out, "the batch: each of its %lld samples adds %s", (long long)batch, least);
		print_bytes(out, "", activations / batch, " of activations");
	} else if (batch == 1) {
		fprintf(out, "the activations of a single sample take %s", least);
		print_bytes(out, "", activations, "");
	} else {
		print_bytes(out, "the batch: its activations take ", activations, "");
	}
}

const struct tn_cause tn__cause_activations_outweigh = {
	TN_FINDING_model_or_batch_too_big, TN_FINDING_batch_too_big, tn__cause_is_of_activations, why_activations,
	"accumulate smaller_batch checkpointing autocast inference_16_bits multi_gpu"
};

static bool
temporaries_outweigh(const struct tn_cause_facts *facts)
{
	return facts->moment->detailed && facts->passing > 0 && 2 * of(facts, TN_CATEGORY_temporaries) >= facts->passing;
}

static void
why_temporaries(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "the work on one batch: ", of(facts, TN_CATEGORY_temporaries),
	            " in tensors that no backward pass needs");
}

const struct tn_cause tn__cause_temporaries_outweigh = { TN_FINDING_model_or_batch_too_big, TN_FINDING_batch_too_big,
	                                                     temporaries_outweigh, why_temporaries,
	                                                     "accumulate smaller_batch work_in_pieces" };

static bool
batch_outweighs(const struct tn_cause_facts *facts)
{
	return facts->moment->detailed && facts->passing > 0;
}

static void
why_batch(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "the batch: its tensors take ", facts->passing, "");
}

const struct tn_cause tn__cause_batch_outweighs = { TN_FINDING_model_or_batch_too_big, TN_FINDING_batch_too_big,
	                                                batch_outweighs, why_batch, NULL };
