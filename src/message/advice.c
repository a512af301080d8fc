/* SPDX-License-Identifier: Apache-2.0
 *
 * What to do first, and why: up to three steps, named as the user's framework names them. Those of its phase
 * (advice.def) come before those of its cause.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "message/internal_message.h"
#include "message/seen.h"

static void __attribute__((format(printf, 2, 3)))
add(struct tn_message *message, const char *format, ...)
{
	if (message->advice_count >= sizeof(message->advice) / sizeof(message->advice[0]))
		return;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message->advice[message->advice_count++], sizeof(message->advice[0]), format, arguments);
	va_end(arguments);
}

/* ---- by phase and framework ---- */

enum shown {
#define SHOWN(name, words) SHOWN_##name,
#define ROW(phases, frameworks, wants, unless, says, text)
#include "message/advice.def"
#undef SHOWN
#undef ROW
};

enum says { SAYS_NOTHING = 0, SAYS_BATCH = 1, SAYS_CHECKPOINT = 2 };

static const char *const shown_words[] = {
#define SHOWN(name, words) words,
#define ROW(phases, frameworks, wants, unless, says, text)
#include "message/advice.def"
#undef SHOWN
#undef ROW
};
_Static_assert(sizeof(shown_words) / sizeof(shown_words[0]) <= 64, "a bit each in tn_message.shown");

static const struct row {
	uint32_t phases;
	const char *frameworks;
	enum shown wants, unless;
	enum says says;
	const char *text;
} rows[] = {
#define AT(phase) (1u << TN_AT_##phase)
#define SHOWN(name, words)
#define ROW(phases, frameworks, wants, unless, says, text) \
	{ phases, frameworks, SHOWN_##wants, SHOWN_##unless, SAYS_##says, text },
#include "message/advice.def"
#undef SHOWN
#undef ROW
#undef AT
};

static uint64_t
bit(enum shown shown)
{
	return UINT64_C(1) << shown;
}

uint64_t
tn__advice_shown(const char *line)
{
	uint64_t shown = 0;
	size_t all = strlen(line);
	for (size_t i = 0; i < SHOWN_NOTHING; i++)
		for (const char *word = shown_words[i]; *word != '\0';) {
			size_t length = strcspn(word, "|");
			if (memmem(line, all, word, length) != NULL)
				shown |= bit((enum shown)i);
			word += length + (word[length] == '|');
		}
	return shown;
}

static bool
is_shown(const struct tn_message *message, enum shown shown)
{
	return (message->shown & bit(shown)) != 0;
}

/* Whether a list of names, separated by '|', has one; "" has all. */
static bool
among(const char *list, const char *name)
{
	if (*list == '\0')
		return true;
	for (size_t length = name != NULL ? strlen(name) : 0; length > 0; list++) {
		size_t size = strcspn(list, "|");
		if (size == length && memcmp(list, name, length) == 0)
			return true;
		list += size;
		if (*list == '\0')
			return false;
	}
	return false;
}

static bool
in_phase(const struct tn_message *message, uint32_t phases)
{
	return (phases >> message->phase & 1u) != 0;
}

/* Whether the phase works on no batch, so that a smaller one cannot help. */
static bool
without_batch(const struct tn_message *message)
{
	return in_phase(message, 1u << TN_AT_BUILD | 1u << TN_AT_LOAD | 1u << TN_AT_RESUME | 1u << TN_AT_SAVE);
}

/* Whether the figures speak against the failure. */
static bool
contradicts(const struct tn_message *message)
{
	uint64_t tried = message->figures[TN_FIGURE_TRIED], free_bytes = message->figures[TN_FIGURE_FREE];
	return tried != TN_MESSAGE_NONE && free_bytes != TN_MESSAGE_NONE && free_bytes >= tried;
}

/* Rows are for cards that are full. A request as large as the card is one tensor, which passes explain best. */
static bool
phase_decides(const struct tn_message *message)
{
	bool card = message->kind == TN_KIND_CUDA || message->kind == TN_KIND_HIP || message->kind == TN_KIND_XPU;
	bool pass = in_phase(message, 1u << TN_AT_FORWARD | 1u << TN_AT_LOSS | 1u << TN_AT_BACKWARD);
	bool told = message->cause == TN_CAUSE_MODEL_OR_BATCH || (message->cause == TN_CAUSE_TOO_BIG && !pass) ||
	            (message->cause == TN_CAUSE_UNKNOWN && !message->unclear && !contradicts(message));
	return card && told;
}

/* " from 8 to 4" where the text prints the batch. */
static void
add_row(struct tn_message *message, const char *text, const struct tn_seen *seen)
{
	char change[64] = "";
	uint64_t batch = seen->settings[TN_SETTING_MICRO_BATCH];
	const char *mark = strstr(text, "%s");
	if (batch != TN_MESSAGE_NONE && batch > 1)
		snprintf(change, sizeof(change), " from %llu to %llu", (unsigned long long)batch,
		         (unsigned long long)(batch / 2));
	if (mark == NULL)
		add(message, "%s", text);
	else
		add(message, "%.*s%s%s", (int)(mark - text), text, change, mark + 2);
}

/* Returns what of the general advice is said. */
static unsigned
advise_phase(struct tn_message *message, const struct tn_seen *seen)
{
	unsigned said = 0;
	if (message->rank >= 0)
		message->shown |= bit(SHOWN_RANKS);
	if (seen->settings[TN_SETTING_MICRO_BATCH] == 1)
		message->shown |= bit(SHOWN_ONE_SAMPLE);
	for (size_t i = 0; phase_decides(message) && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (in_phase(message, rows[i].phases) && among(rows[i].frameworks, message->framework) &&
		    (rows[i].wants == SHOWN_NOTHING || is_shown(message, rows[i].wants)) &&
		    !is_shown(message, rows[i].unless)) {
			add_row(message, rows[i].text, seen);
			said |= rows[i].says;
		}
	return said;
}

/* ---- by cause ---- */

static bool
is_torch(const struct tn_message *message)
{
	return strncmp(message->said_by, "PyTorch", 7) == 0;
}

/* The program that shows who holds a device's memory. */
static const char *
monitor(const struct tn_message *message)
{
	static const char *const names[] = { "nvidia-smi", "nvidia-smi",          "rocm-smi", "Activity Monitor", "xpu-smi",
		                                 "top",        "the vendor's monitor" };
	return names[message->kind];
}

static void
advise_fragmentation(struct tn_message *message)
{
	const char *variable = message->kind == TN_KIND_HIP ? "PYTORCH_HIP_ALLOC_CONF"
	                       : message->old_settings      ? "PYTORCH_CUDA_ALLOC_CONF"
	                                                    : "PYTORCH_ALLOC_CONF";
	if (message->kind == TN_KIND_OTHER)
		add(message,
		    "Set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True: the cache then grows in one piece, and idle pieces "
		    "can be joined.");
	else
		add(message,
		    "Set %s=expandable_segments:True (PyTorch 2.1 or newer%s): the cache then grows in one piece, so idle "
		    "pieces can serve a large request.",
		    variable,
		    message->old_settings || message->kind == TN_KIND_HIP
		        ? ""
		        : "; before 2.10 the variable is PYTORCH_CUDA_ALLOC_CONF");
	if (message->reserved_is_idle)
		add(message,
		    "Update PyTorch, which has no such setting here; until then call torch.cuda.empty_cache() between phases "
		    "whose sizes differ.");
	else
		add(message,
		    "Where that is not supported, set max_split_size_mb:128 there instead: large pieces are then not cut up "
		    "for small requests.");
	add(message, "Keep shapes alike: pad batches to a few fixed lengths, so that freed pieces fit the next request.");
}

/* Several processes that hold little more than a context, or a rank that fails on the first card. */
static bool
contexts_on_first(const struct tn_message *message)
{
	size_t small = 0;
	for (size_t i = 0; i < message->process_count; i++)
		small += message->processes[i].bytes != TN_MESSAGE_NONE && message->processes[i].bytes < UINT64_C(1) << 30;
	return message->device_index == 0 && (small >= 2 || message->rank > 0);
}

static void
advise_other_process(struct tn_message *message)
{
	char device[32] = "";
	if (contexts_on_first(message))
		add(message,
		    "Have each rank set its own card before anything else, torch.cuda.set_device(local_rank), and load with "
		    "map_location=\"cpu\": else all of them open a context on card 0.");
	if (message->framework != NULL && strcmp(message->framework, "vllm") == 0)
		add(message,
		    "Lower --gpu-memory-utilization (gpu_memory_utilization): it is a share of the whole card, what others "
		    "hold included.");
	if (message->device_index >= 0)
		snprintf(device, sizeof(device), " on device %lld", (long long)message->device_index);
	add(message,
	    "Look who holds the memory%s: %s lists processes; end those left over from earlier runs, notebooks included.",
	    device, monitor(message));
	add(message, "Choose a free card with CUDA_VISIBLE_DEVICES; with several ranks, have each one set its own with "
	             "torch.cuda.set_device(local_rank), or all of them open a context on card 0.");
	add(message,
	    "If nobody else is listed, this process itself holds it outside PyTorch: another framework, a library's "
	    "workspace, or one in C++.");
}

/* Passes without gradients: nothing is accumulated, and nothing kept for a backward pass. */
static void
advise_inference(struct tn_message *message, unsigned said)
{
	bool own_loop = among("pytorch|timm|peft|accelerate|deepspeed|fsdp", message->framework);
	if (own_loop && !is_shown(message, SHOWN_NO_GRAD))
		add(message,
		    "Wrap this in torch.no_grad() or torch.inference_mode(): else all activations are kept for a backward "
		    "pass that never comes.");
	if ((said & SAYS_BATCH) == 0)
		add(message,
		    "Make the batch, the sequence or the picture smaller: here it is not bound to the size of a training.");
	add(message, "Use bfloat16 or float16, and move results to the computer's memory (.cpu()) as they come.");
}

static void
advise_model(struct tn_message *message, unsigned said)
{
	if (message->kind == TN_KIND_MPS) {
		add(message,
		    "Halve the batch and use gradient accumulation to keep its effect: activations shrink with the batch.");
		add(message,
		    "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit where the computer has memory left; beyond that it "
		    "stalls. torch.mps.empty_cache() between phases gives back what is cached.");
		add(message,
		    "Load the weights in half precision (torch.float16 or bfloat16) and close other programs: the memory is "
		    "shared with them.");
		return;
	}
	if (without_batch(message)) {
		add(message,
		    "No batch is at work here: make the model itself smaller (bfloat16, quantised weights), or spread it "
		    "over several cards or the computer's memory.");
		return;
	}
	if (message->phase == TN_AT_GATHER && is_shown(message, SHOWN_FSDP)) /* weights, not predictions */
		return;
	if (in_phase(message, 1u << TN_AT_EVALUATION | 1u << TN_AT_GENERATE | 1u << TN_AT_GATHER)) {
		advise_inference(message, said);
		return;
	}
	bool smallest = is_shown(message, SHOWN_ONE_SAMPLE);
	if ((said & SAYS_BATCH) == 0 && smallest)
		add(message, "The batch is 1 already: make the sequence or the picture shorter.");
	else if ((said & SAYS_BATCH) == 0)
		add(message,
		    "Halve the batch (or the sequence length) and use gradient accumulation to keep its effect: activations "
		    "shrink with the batch.");
	if (message->figures[TN_FIGURE_TOTAL] != TN_MESSAGE_NONE &&
	    message->figures[TN_FIGURE_ALLOCATED] != TN_MESSAGE_NONE &&
	    message->figures[TN_FIGURE_ALLOCATED] > message->figures[TN_FIGURE_TOTAL])
		add(message,
		    "Have the driver keep to the card, so that the need shows and nothing is slowed down by the computer's "
		    "memory: NVIDIA Control Panel, CUDA - Sysmem Fallback Policy, Prefer No Sysmem Fallback.");
	bool checkpoints = is_shown(message, SHOWN_CHECKPOINTING) || (said & SAYS_CHECKPOINT) != 0;
	add(message, "Use bfloat16 autocast%s what is kept for the backward pass.",
	    checkpoints ? ": it cuts" : " and activation checkpointing: they cut");
	add(message, "%s store loss.item(), not the loss: else each step's graph stays.",
	    is_shown(message, SHOWN_NO_GRAD) ? "Where losses are collected"
	                                     : "In evaluation or inference wrap the work in torch.no_grad(), and");
}

static void
advise_too_big(struct tn_message *message)
{
	add(message,
	    "Look at the shapes in the line that failed: a product of two long axes (an N x N matrix, full attention, an "
	    "outer product) or a wrong axis is the usual reason.");
	add(message,
	    "Compute it in chunks over one axis, or use a form that never builds it (scaled_dot_product_attention, "
	    "torch.utils.checkpoint, an iterator).");
	add(message, "Batch size and allocator settings help only if the request itself shrinks with the batch.");
}

static void
advise_fraction(struct tn_message *message)
{
	add(message, "Raise or remove the program's own limit: torch.cuda.set_per_process_memory_fraction, or "
	             "per_process_memory_fraction in the allocator's settings; the card has room.");
	add(message, "If the limit is wanted (a shared card), make the batch smaller until it fits below it.");
}

static void
advise_host(struct tn_message *message)
{
	bool loader = strcmp(message->family, "host_dataloader") == 0;
	bool killed = strcmp(message->family, "host_killed") == 0;
	if (strcmp(message->said_by, "Ollama") == 0) {
		add(message, "Take a smaller model or one of fewer bits (q4_K_M), or a shorter context (num_ctx, "
		             "OLLAMA_CONTEXT_LENGTH).");
		add(message,
		    "Close other programs, or give the container or WSL more memory: what does not fit on the card is to lie "
		    "in it.");
		return;
	}
	if (loader) {
		add(message,
		    "Use fewer loader processes (num_workers) or a smaller prefetch_factor: each holds its own batches and "
		    "copies of the data set's Python objects.");
		add(message,
		    "In a container give more shared memory: docker run --shm-size=8g (or --ipc=host), since batches pass "
		    "through /dev/shm.");
		return;
	}
	if (killed)
		add(message,
		    "See how much the process used and was allowed: dmesg, the scheduler's report, or the container's memory "
		    "limit; raise the limit if it is low.");
	add(message,
	    "This is the computer's own memory, not the GPU's: read data in pieces (numpy.memmap, an iterable data set) "
	    "and do not keep two copies.");
	if (!killed)
		add(message,
		    "Check the shape: a size far above the data is a wrong axis or a wider type (float64 for float32).");
	add(message, "For model weights, load with mmap=True or low_cpu_mem_usage=True so that they are not held twice.");
}

static void
advise_library(struct tn_message *message)
{
	if (message->kind == TN_KIND_MPS) {
		add(message,
		    "Call torch.mps.empty_cache() between phases and make single operations smaller: the memory lies in the "
		    "driver's and kernels' own buffers.");
		add(message, "Update PyTorch and macOS: buffers outside the pool are often a defect that was fixed.");
		return;
	}
	add(message, "Leave room for the library: make the batch smaller, or limit PyTorch with "
	             "torch.cuda.set_per_process_memory_fraction(0.9).");
	if (strcmp(message->family, "nccl") == 0)
		add(message,
		    "Start communication early (one small all_reduce before the model is built), or lower NCCL_BUFFSIZE and "
		    "NCCL_MAX_NCHANNELS.");
	else
		add(message,
		    "Make the library start early (one small product before the model is built), so that it gets its memory "
		    "while there is some.");
	add(message, "See with %s whether another process fills the card.", monitor(message));
}

static void
advise_unclear(struct tn_message *message)
{
	add(message,
	    "Run it again on an empty card or with a much smaller batch: if the error goes away, memory was the cause.");
	if (strcmp(message->family, "nvml_assert") == 0)
		add(message,
		    "Update PyTorch, or print torch.cuda.memory_summary() before the failing line: the message that would "
		    "have shown the sizes was lost.");
	else
		add(message,
		    "Otherwise look at shapes, types and library versions: the text does not say that memory was short.");
}

/* Nothing is known but that the card was full: as a program starts, it is mostly somebody else's. */
static bool
at_start(const struct tn_message *message)
{
	return message->kind == TN_KIND_CUDA && message->figures[TN_FIGURE_TRIED] == TN_MESSAGE_NONE &&
	       in_phase(message, 1u << TN_AT_UNKNOWN | 1u << TN_AT_BUILD | 1u << TN_AT_DATA);
}

static void
advise_unknown(struct tn_message *message)
{
	bool contradiction = contradicts(message);
	if (contradiction)
		add(message,
		    "Run it again: the figures are read after the failure, and another process may have taken and returned "
		    "memory meanwhile; watch %s while it starts.",
		    monitor(message));
	else if (at_start(message))
		add(message,
		    "See with %s who holds the card, also processes left over from earlier runs; choose a free one with "
		    "CUDA_VISIBLE_DEVICES.",
		    monitor(message));
	else
		add(message, "Get the figures: %s while it runs%s.", monitor(message),
		    is_torch(message) ? ", and torch.cuda.memory_summary() before the failing line" : "");
	if (contradiction)
		add(message,
		    "Check limits that the message does not show: a container's or MIG's share, Windows' shared memory, a "
		    "driver that keeps memory back.");
	if (strcmp(message->family, "jax") == 0 || strcmp(message->family, "tensorflow") == 0)
		add(message, "TensorFlow and JAX take most of the card at start: set TF_FORCE_GPU_ALLOW_GROWTH=true or "
		             "XLA_PYTHON_CLIENT_PREALLOCATE=false if others share it.");
	else if (!contradiction && is_torch(message))
		add(message, "Rule out other processes and a half-ended earlier run first, then halve the batch.");
	if (!contradiction)
		add(message, "Make the request smaller: batch, sequence length, context size or image size.");
}

/* ---- an engine's own refusal ---- */

/* A share of the card in hundredths, rounded down. */
static unsigned
hundredths(uint64_t part, uint64_t whole)
{
	return (unsigned)(100.0 * (double)part / (double)whole);
}

static void
advise_vllm(struct tn_message *message)
{
	uint64_t tokens = message->need[TN_NEED_BUDGET_TOKENS], total = message->figures[TN_FIGURE_TOTAL];
	uint64_t free_bytes = message->figures[TN_FIGURE_FREE];
	if (total != TN_MESSAGE_NONE && free_bytes != TN_MESSAGE_NONE && total > 0) {
		unsigned most = hundredths(free_bytes, total);
		add(message,
		    "Give it no more than is free: --gpu-memory-utilization %u.%02u at most (gpu_memory_utilization): it is "
		    "a share of the whole card, what others hold included.",
		    most / 100, most % 100);
		add(message, "Or free the card: %s shows who holds the rest, also an engine that ended badly.",
		    monitor(message));
		return;
	}
	if (tokens != TN_MESSAGE_NONE && tokens > 0)
		add(message, "Start it with --max-model-len %llu or less (max_model_len): that is what the cache has room for.",
		    (unsigned long long)tokens);
	add(message,
	    "Raise --gpu-memory-utilization (gpu_memory_utilization, 0.9 if not given) where the card is free otherwise; "
	    "--kv-cache-dtype fp8 halves the cache.");
	if (tokens == TN_MESSAGE_NONE)
		add(message,
		    "Lower --max-model-len and --max-num-seqs; where the weights alone fill the card, take a quantised model "
		    "or --tensor-parallel-size over more cards.");
	else
		add(message,
		    "Where the weights fill most of the card: a quantised model, or --tensor-parallel-size over more cards.");
}

static void
advise_refusal(struct tn_message *message)
{
	static const struct {
		const char *said_by;
		enum tn_at at;
		const char *advice[3];
	} engines[] = {
		{ "SGLang",
		  TN_AT_LOAD,
		  { "Raise --mem-fraction-static (0.9): weights and cache must fit into that share of the card.",
		    "Shorten --context-length, or halve the cache with --kv-cache-dtype fp8_e5m2.",
		    "Where the weights fill the card: a quantised model, or --tp over more cards." } },
		{ "SGLang",
		  TN_AT_GENERATE,
		  { "Lower --max-running-requests (and --chunked-prefill-size): fewer requests then share the cache.",
		    "Raise --mem-fraction-static, or halve the cache with --kv-cache-dtype fp8_e5m2: there is then room for "
		    "more tokens.",
		    "Raise --schedule-conservativeness (1.3), so that fewer requests are taken in at a time." } },
		{ "TGI",
		  TN_AT_LOAD,
		  { "Lower --max-batch-prefill-tokens, and --max-input-tokens and --max-total-tokens with it.",
		    "Shard over the cards (--num-shard N) and load in 16 bits or quantised (--dtype bfloat16, --quantize awq).",
		    "See with nvidia-smi that nothing else is on the card; --cuda-memory-fraction limits what TGI takes." } },
		{ "TensorRT-LLM",
		  TN_AT_LOAD,
		  { "Shorten max_seq_len and max_num_tokens, or lower max_batch_size.",
		    "Leave more for the cache: kv_cache_config.free_gpu_memory_fraction (0.9 of what is free), and FP8 for "
		    "weights and cache.",
		    "Divide the weights over more cards: tensor_parallel_size, pipeline_parallel_size." } },
		{ "the attention's own check",
		  TN_AT_GENERATE,
		  { "Make the picture smaller, as the message says, or enlarge it afterwards in tiles.",
		    "Use an attention that needs no such room: --xformers or --opt-sdp-attention (stable-diffusion-webui), "
		    "--use-pytorch-cross-attention (ComfyUI).",
		    "Free the card: --medvram, fewer ControlNets, no other program on it." } },
		{ "ExLlama",
		  TN_AT_LOAD,
		  { "Shorten max_seq_len, or take a smaller cache (cache_mode Q8, Q6 or Q4).",
		    "Take a model of fewer bits a weight, or divide it over the cards with gpu_split.", NULL } },
		{ "MLC-LLM",
		  TN_AT_LOAD,
		  { "Raise gpu_memory_utilization where nothing else is on the card.",
		    "Take a model of fewer bits (q4f16_1), or --tensor-parallel-shards over more cards; a smaller "
		    "prefill_chunk_size.",
		    NULL } },
	};
	if (strcmp(message->said_by, "vLLM") == 0)
		advise_vllm(message);
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (strcmp(engines[i].said_by, message->said_by) == 0 && engines[i].at == message->phase)
			for (size_t k = 0; k < 3 && engines[i].advice[k] != NULL; k++)
				add(message, "%s", engines[i].advice[k]);
	if (message->advice_count == 0)
		advise_unknown(message);
}

void
tn__advise(struct tn_message *message, const struct tn_seen *seen)
{
	static void (*const steps[])(struct tn_message *) = {
		[TN_CAUSE_UNKNOWN] = advise_unknown,
		[TN_CAUSE_TOO_BIG] = advise_too_big,
		[TN_CAUSE_FRAGMENTATION] = advise_fragmentation,
		[TN_CAUSE_OTHER_PROCESS] = advise_other_process,
		[TN_CAUSE_FRACTION_LIMIT] = advise_fraction,
		[TN_CAUSE_HOST_RAM] = advise_host,
		[TN_CAUSE_LIBRARY_WORKSPACE] = advise_library,
	};
	message->advice_count = 0;
	if (strcmp(message->family, "engine_refusal") == 0) {
		advise_refusal(message);
		return;
	}
	unsigned said = advise_phase(message, seen);
	if (message->unclear && message->cause == TN_CAUSE_UNKNOWN)
		advise_unclear(message);
	else if (message->cause == TN_CAUSE_MODEL_OR_BATCH)
		advise_model(message, said);
	else
		steps[message->cause](message);
}
