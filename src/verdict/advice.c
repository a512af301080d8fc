/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of advice.
 */
#include "verdict/advice.h"

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
	int64_t of_training = report->at_oom
	                          .activations_of_training; /* a network in eval() is called in the middle of a step */
	return report->oom.phase != NULL && strcmp(report->oom.phase, "evaluation") == 0 &&
	       (of_training <= 0 || 2 * of_training < report->at_oom.by_category[TN_CATEGORY_activations]);
}

static bool
trains(const struct tn_report *report)
{
	return !evaluates(report) && (!facts(report)->known || facts(report)->trains);
}

static bool
several(const struct tn_report *report)
{
	return report->programs.count > 0;
}

static bool
alone(const struct tn_report *report)
{
	return !several(report);
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

/* Adapters beside weights that stay as they are and have more than 8 bits. */
static bool
can_quantise_frozen(const struct tn_report *report)
{
	const struct tn_facts *seen = facts(report);
	return seen->known && seen->trains && seen->parameter_bytes > 0 &&
	       4 * seen->trained_bytes <= seen->parameter_bytes && 2 * seen->small_bytes <= seen->parameter_bytes;
}

static bool
copy_rests(const struct tn_report *report)
{
	return !facts(report)->copy_called;
}

static bool
copy_is_called(const struct tn_report *report)
{
	return facts(report)->copy_called && is_wide(report);
}

static bool
searches(const struct tn_report *report)
{
	return !facts(report)->known || facts(report)->cudnn_benchmark;
}

static bool
has_no_workspace_config(const struct tn_report *report)
{
	return !facts(report)->workspace_config;
}

/* Adapters train a few per cent of what they stand beside. */
static bool
trains_most(const struct tn_report *report)
{
	return trains(report) &&
	       (facts(report)->parameter_bytes <= 0 || 4 * facts(report)->trained_bytes > facts(report)->parameter_bytes);
}

static bool
has_large_state(const struct tn_report *report)
{
	return trains_most(report) && !facts(report)->small_state;
}

static bool
is_no_training(const struct tn_report *report)
{
	return !facts(report)->trained_in_eval;
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

static bool
can_shard(const struct tn_report *report)
{
	return report->rank_count > 1 && !facts(report)->sharded;
}

#define LAST_RESORT "multi_gpu" /* given where no piece before it holds */

static const struct tn_advice table[] = {
	{ "accumulate", "a smaller batch with gradient accumulation", "it trains, with a batch of more than one",
	  can_accumulate },
	{ "smaller_batch", "a smaller batch", "it does not train here, with a batch of more than one",
	  smaller_batch_alone },
	{ "checkpointing", "checkpointing (torch.utils.checkpoint)", "it trains, and checkpoints nothing", can_checkpoint },
	{ "train_mode", "model.train() before the loop, which turns that checkpointing on",
	  "it trains in eval(), with checkpointing configured", is_left_in_eval },
	{ "autocast", "autocast to 16 bits", "autocast is off, and most parameters have 32 bits", can_autocast },
	{ "parameters_16_bits", "16-bit parameters (dtype=torch.bfloat16)", "most parameters have 32 bits", can_halve },
	{ "inference_16_bits", "the model in 16 bits (dtype=torch.bfloat16)",
	  "it does not train, and most parameters have 32 bits", can_halve_for_inference },
	{ "quantise", "weights in 8 or 4 bits (bitsandbytes, torchao)",
	  "it does not train, and most parameters have more than 8 bits", can_quantise },
	{ "quantise_frozen", "the frozen weights in 4 bits (QLoRA: bitsandbytes)",
	  "it trains less than a quarter of its parameters, and most have more than 8 bits", can_quantise_frozen },
	{ "shard_model", "the model sharded over the ranks (fully_shard, FullyShardedDataParallel, or ZeRO-3)",
	  "several ranks, and no shards were seen", can_shard },
	{ "shard_early",
	  "the model built on the meta device or the CPU, and sharded before it is on the card (fully_shard, then to_empty)",
	  "several ranks, and no shards were seen", can_shard },
	{ "small_state", "an optimizer with less state (8-bit Adam, Adafactor, SGD)",
	  "it trains more than a quarter of its parameters, with an optimizer of two full numbers for each",
	  has_large_state },
	{ "lora", "train fewer parameters (LoRA)", "it trains more than a quarter of them", trains_most },
	{ "multi_gpu", "more than one card, or a part of the model on the CPU", "nothing else is left", NULL },
	{ "no_grad", "with torch.no_grad(): around the evaluation",
	  "its training does not look like evaluation: it is not in eval()", is_no_training },
	{ "no_grad_around", "with torch.no_grad(): around that call", "always", NULL },
	{ "expandable", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment",
	  "the environment does not say so already", has_plain_segments },
	{ "fewer_workers", "fewer data loader workers", "it has a data loader", has_a_loader },
	{ "less_pinned", "less pinned memory", "always", NULL },
	{ "in_pieces", "make this tensor smaller, or compute it in chunks: no setting helps", "always", NULL },
	{ "work_in_pieces", "compute this in chunks", "always", NULL },
	{ "raise_limit", "raise the limit that the program has set itself (set_per_process_memory_fraction)",
	  "such a limit is what refused", NULL },
	{ "no_benchmark", "torch.backends.cudnn.benchmark = False", "the program has set it to True", searches },
	{ "workspace_config", "smaller workspaces of cuBLAS (CUBLAS_WORKSPACE_CONFIG)",
	  "the environment does not say so already", has_no_workspace_config },
	{ "let_go",
	  "find what keeps these tensors: a list, or a graph that a loss still holds (loss.item() or .detach() lets "
	  "it go)",
	  "memory grows", NULL },
	{ "take_turns", "run them one after the other, or on cards of their own", "several programs share the card",
	  several },
	{ "smaller_part",
	  "a smaller part of the card for one of them (an engine's gpu_memory_utilization, a change that tonnage fix finds)",
	  "several programs share the card", several },
	{ "end_others", "stop the other processes, or wait for them", "other processes hold what is missing", alone },
	{ "keep_less", "keep them on the CPU (.cpu()), or only what is needed of them", "they pile up", NULL },
	{ "keep_on_cpu", "keep this on the CPU, or build it in chunks", "one line keeps that much", NULL },
	{ "build_on_cpu", "leave a part of the model on the CPU", "the card is full while the model is built", NULL },
	{ "no_foreach", "foreach=False or fused=True among the optimizer's arguments",
	  "an update allocated that many temporaries", NULL },
	{ "zero_grad", "optimizer.zero_grad() before the forward pass, unless gradients are being accumulated",
	  "gradients of the step before are there", NULL },
	{ "sdpa", "torch.nn.functional.scaled_dot_product_attention, which keeps no scores",
	  "scores of an attention are kept", NULL },
	{ "shorter", "shorter sequences", "scores of an attention are kept", NULL },
	{ "chunked_loss", "the loss in pieces (a chunked cross-entropy)", "it trains, and logits are what is large",
	  trains },
	{ "copy_on_cpu", "keep the copy on the CPU (.cpu())", "the copy was never called", copy_rests },
	{ "copy_in_16_bits", "store the copy in 16 bits", "the copy is called, and most parameters have 32 bits",
	  copy_is_called },
	{ "bucket_view", "DistributedDataParallel(model, gradient_as_bucket_view=True): gradients lie in the buckets",
	  "gradients lie beside the buckets", NULL },
	{ "state_to_cpu",
	  "FullStateDictConfig(offload_to_cpu=True, rank0_only=True), or get_model_state_dict with "
	  "StateDictOptions(full_state_dict=True, cpu_offload=True)",
	  "a state dict is gathered on the card", NULL },
	{ "bound_input", "a bound on what one batch may hold (cut, drop or bucket what is longer)",
	  "the input was larger than before", NULL },
	{ "leave_except", "try again behind the except block, with nothing left that refers to the exception",
	  "an exception that was caught holds tensors", NULL },
	{ "loss_inside",
	  "compute the loss in the model's forward(), so that only numbers are gathered, or use DistributedDataParallel",
	  "DataParallel gathers outputs", NULL },
	{ "set_device",
	  "torch.cuda.set_device(local_rank) before anything uses CUDA, and torch.load(..., map_location=\"cpu\")",
	  "a rank holds memory of another rank's card", NULL },
	{ "move_layers", "layers moved to the cards that have room (.to() by hand, or a device_map with max_memory)",
	  "of several cards one is full and others are not", NULL },
	{ "reduce_bucket_size",
	  "a smaller \"reduce_bucket_size\" in the configuration's \"zero_optimization\" (5e8 unless it says otherwise)",
	  "DeepSpeed's buckets are large", NULL },
	{ "empty_cache_once", "torch.cuda.empty_cache() once, behind what needed it, gives it to other processes",
	  "much of the cache is not used any more", NULL },
	{ "in_place", "work in place, or into tensors that are allocated once (out=)",
	  "the same tensors are allocated again and again", NULL },
	{ "no_empty_cache", "take empty_cache() out of the loop: what it frees is requested again at once",
	  "it is called there", NULL },
	{ "less_memory", "where the card was too full for what the cache held, a little less memory makes it faster",
	  "segments are freed and allocated again without empty_cache()", NULL },
	{ "batch_by_batch", "keep it on the CPU, and move it to the card batch by batch", "a data set lies on the card",
	  NULL },
	{ "zero_grad_after_step", "optimizer.zero_grad() only after optimizer.step()",
	  "gradients are dropped before they are used", NULL },
	{ "delete_optimizer", "delete the optimizer, too, and whatever else holds its parameters (a scheduler, a trainer)",
	  "an optimizer holds parameters of no model", NULL },
	{ "delete_checkpoint", "delete the loaded checkpoint once load_state_dict has copied it (del checkpoint)",
	  "a checkpoint is on the card, and was copied", NULL },
	{ "map_location",
	  "load it on the CPU (torch.load(..., map_location=\"cpu\")): load_state_dict copies to the card by itself",
	  "a checkpoint was loaded onto the card", NULL },
	{ "prune_remove", "prune.remove(module, \"weight\") once it is pruned drops mask and original",
	  "masks of torch.nn.utils.prune are there", NULL },
	{ "smaller_kv_cache",
	  "fewer or shorter texts at once, or keys and values on the host "
	  "(cache_implementation=\"offloaded\") or quantised",
	  "a cache of keys and values grows", NULL },
	{ "make_once", "allocate it once at its final size and write into slices (or torch.cat a list at the end)",
	  "a tensor is reallocated, slightly larger each time", NULL },
	{ "pin_few", "pin a few large tensors and reuse them: each is rounded up to a power of two", "much is pinned",
	  NULL },
	{ "pin_by_loader", "let the DataLoader do it (pin_memory=True)", "it has a data loader", has_a_loader },
	{ "tensor_itself", "use the tensor itself, or tensor.detach() (tensor.clone() where a copy is wanted)",
	  "torch.tensor() was given a tensor", NULL },
	{ "memory_reserved", "torch.cuda.memory_reserved()", "memory_cached() was called", NULL },
	{ "keep_the_graph",
	  "remove torch.no_grad(), .detach() and .item() between the parameters and the loss; train "
	  "something that requires_grad",
	  "backward() found no graph", NULL },
	{ "lazy_linear", "let nn.LazyLinear infer the number, or print the shape in front of this layer",
	  "the matrix had a different number of columns", NULL },
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

void
tn__report_advise(const struct tn_report *report, struct tn_finding *finding, const char *wanted)
{
	if (finding == NULL || wanted == NULL)
		return;
	free(finding->advice);
	free(finding->advice_ids);
	finding->advice = tn__advice_words(report, wanted, &finding->advice_ids);
}
