/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of advice.
 */
#include "report/advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tn_facts *
facts(const struct tn_report *report)
{
	return &report->facts;
}

static bool
evaluates(const struct tn_report *report)
{
	return report->oom.phase != NULL && strcmp(report->oom.phase, "evaluation") == 0;
}

static bool
trains(const struct tn_report *report)
{
	return !evaluates(report) && (!facts(report)->known || facts(report)->trains);
}

static bool
batch_can_shrink(const struct tn_report *report)
{
	return report->batch_size != 1;
}

/* More than half of the parameters are of 32 bits or more. */
static bool
is_wide(const struct tn_report *report)
{
	return facts(report)->parameter_bytes <= 0 || 2 * facts(report)->wide_bytes > facts(report)->parameter_bytes;
}

static bool
can_accumulate(const struct tn_report *report)
{
	return batch_can_shrink(report) && trains(report);
}

static bool
smaller_batch_alone(const struct tn_report *report)
{
	return batch_can_shrink(report) && !trains(report);
}

static bool
can_checkpoint(const struct tn_report *report)
{
	return trains(report) && !facts(report)->checkpoints && !facts(report)->checkpoints_wait;
}

static bool
is_left_in_eval(const struct tn_report *report)
{
	return facts(report)->trained_in_eval && facts(report)->checkpoints_wait;
}

static bool
can_autocast(const struct tn_report *report)
{
	return !facts(report)->autocast && is_wide(report);
}

static bool
can_halve(const struct tn_report *report)
{
	return is_wide(report);
}

static bool
can_halve_for_inference(const struct tn_report *report)
{
	return is_wide(report) && !trains(report);
}

static bool
can_quantise(const struct tn_report *report)
{
	return !trains(report) && !evaluates(report) && 2 * facts(report)->small_bytes <= facts(report)->parameter_bytes;
}

static bool
has_large_state(const struct tn_report *report)
{
	return trains(report) && !facts(report)->small_state;
}

/* Adapters train a few per cent of what they stand beside. */
static bool
trains_most(const struct tn_report *report)
{
	return trains(report) && (facts(report)->parameter_bytes <= 0 ||
	                          4 * facts(report)->trained_bytes > facts(report)->parameter_bytes);
}

static bool
is_plain_evaluation(const struct tn_report *report)
{
	return evaluates(report) && !facts(report)->trained_in_eval;
}

static bool
has_plain_segments(const struct tn_report *report)
{
	return !facts(report)->expandable_segments;
}

static bool
has_a_loader(const struct tn_report *report)
{
	return !facts(report)->known || facts(report)->loader;
}

#define LAST_RESORT "more_cards" /* given where no piece before it holds */

static const struct tn_advice table[] = {
	{ "accumulate", "a smaller batch with gradient accumulation", "it trains, with a batch of more than one",
	  can_accumulate },
	{ "smaller_batch", "a smaller batch", "it does not train here, with a batch of more than one", smaller_batch_alone },
	{ "checkpointing", "checkpointing (torch.utils.checkpoint)", "it trains, and checkpoints nothing", can_checkpoint },
	{ "train_mode", "model.train() before the loop, which turns that checkpointing on",
	  "it trains in eval(), with checkpointing configured", is_left_in_eval },
	{ "autocast", "autocast to 16 bits", "autocast is off, and most parameters have 32 bits", can_autocast },
	{ "parameters_16_bits", "16-bit parameters (dtype=torch.bfloat16)", "most parameters have 32 bits", can_halve },
	{ "inference_16_bits", "the model in 16 bits (dtype=torch.bfloat16)",
	  "it does not train, and most parameters have 32 bits", can_halve_for_inference },
	{ "quantise", "weights in 8 or 4 bits (bitsandbytes, torchao)",
	  "it does not train, and most parameters have more than 8 bits", can_quantise },
	{ "small_state", "an optimizer with less state (8-bit Adam, Adafactor, SGD)",
	  "it trains with an optimizer of two full numbers a parameter", has_large_state },
	{ "lora", "train fewer parameters (LoRA)", "it trains more than a quarter of them", trains_most },
	{ "more_cards", "more than one card, or a part of the model on the CPU", "nothing else is left", NULL },
	{ "no_grad", "with torch.no_grad(): around the evaluation", "it evaluates, and does not train that way",
	  is_plain_evaluation },
	{ "expandable", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment",
	  "the environment does not say so already", has_plain_segments },
	{ "fewer_workers", "fewer data loader workers", "it has a data loader", has_a_loader },
	{ "less_pinned", "less pinned memory", "always", NULL },
	{ "in_pieces", "make this tensor smaller, or do its work in pieces: no setting helps", "always", NULL },
	{ "work_in_pieces", "do this work in pieces", "always", NULL },
	{ "raise_limit", "raise the limit that the program has set itself (set_per_process_memory_fraction)",
	  "such a limit is what refused", NULL },
	{ "less_workspace",
	  "less working memory (torch.backends.cudnn.benchmark = False, CUBLAS_WORKSPACE_CONFIG)", "a library asked", NULL },
	{ "let_go", "find what keeps these tensors: a list, or a graph that a loss still holds (loss.item() or .detach() lets "
	            "it go)", "memory grows", NULL },
	{ "end_others", "end the other processes, or wait for them", "other processes hold what is missing", NULL },
	{ "keep_less", "keep them on the CPU (.cpu()), or only what is needed of them", "they pile up", NULL },
	{ "keep_on_cpu", "keep this on the CPU, make it in pieces", "one line keeps that much", NULL },
	{ "build_on_cpu", "build them on the CPU and keep a part there", "the card is full while the model is built", NULL },
	{ "no_foreach", "foreach=False or fused=True among the optimizer's arguments", "an update made that many temporaries",
	  NULL },
	{ "zero_grad", "optimizer.zero_grad() before the forward pass, unless gradients are being accumulated",
	  "gradients of the step before are there", NULL },
	{ "sdpa", "torch.nn.functional.scaled_dot_product_attention, which keeps no scores", "scores of an attention are kept",
	  NULL },
	{ "shorter", "shorter sequences", "scores of an attention are kept", NULL },
	{ "chunked_loss", "the loss in pieces (a chunked cross-entropy)", "it trains, and logits are what is large", trains },
	{ "fewer_logits", "logits only where they are wanted", "logits are what is large", NULL },
};

const struct tn_advice *
tn__advice_at(size_t index)
{
	return index < sizeof(table) / sizeof(table[0]) ? &table[index] : NULL;
}

static const struct tn_advice *
find(const char *id, size_t length)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strlen(table[i].id) == length && strncmp(table[i].id, id, length) == 0)
			return &table[i];
	return NULL;
}

bool
tn__advice_is_among(const struct tn_advice *advice, const char *ids)
{
	for (const char *id = ids; *id != '\0'; id += strspn(id, " ")) {
		size_t length = strcspn(id, " ");
		if (strlen(advice->id) == length && strncmp(advice->id, id, length) == 0)
			return true;
		id += length;
	}
	return false;
}

char *
tn__advice_words(const struct tn_report *report, const char *wanted, char **held)
{
	char *words = NULL, *ids = NULL;
	size_t words_size = 0, ids_size = 0;
	FILE *out = open_memstream(&words, &words_size), *names = open_memstream(&ids, &ids_size);
	*held = NULL;
	for (const char *id = wanted; out != NULL && names != NULL && *id != '\0'; id += strspn(id, " ")) {
		size_t length = strcspn(id, " ");
		const struct tn_advice *piece = find(id, length);
		bool holds = piece != NULL && (piece->holds == NULL || piece->holds(report));
		if (piece != NULL && strcmp(piece->id, LAST_RESORT) == 0 && ftell(out) > 0)
			holds = false;
		if (holds) {
			fprintf(out, "%s%s", ftell(out) > 0 ? ", or " : "", piece->text);
			fprintf(names, "%s%s", ftell(names) > 0 ? " " : "", piece->id);
		}
		id += length;
	}
	bool good = out != NULL && names != NULL;
	if (out != NULL)
		good = fclose(out) == 0 && good;
	if (names != NULL)
		good = fclose(names) == 0 && good;
	if (good && words[0] != '\0') {
		*held = ids;
		return words;
	}
	free(words);
	free(ids);
	return NULL;
}
