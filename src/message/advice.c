/* SPDX-License-Identifier: Apache-2.0
 *
 * What to do first, and why: up to three steps, named as the user's framework names them. Those of its phase
 * (advice.def) come before those of its cause.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "message/internal_message.h"

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

enum done {
#define DONE(name, words) DONE_##name,
#define ROW(phases, frameworks, done, says, text)
#include "message/advice.def"
#undef DONE
#undef ROW
};

enum says { SAYS_NOTHING = 0, SAYS_BATCH = 1, SAYS_CHECKPOINT = 2 };

static const char *const done_words[] = {
#define DONE(name, words) words,
#define ROW(phases, frameworks, done, says, text)
#include "message/advice.def"
#undef DONE
#undef ROW
};
_Static_assert(sizeof(done_words) / sizeof(done_words[0]) <= 32, "a bit each in tn_message.done");

static const struct row {
	uint32_t phases;
	const char *frameworks;
	enum done done;
	enum says says;
	const char *text;
} rows[] = {
#define AT(phase) (1u << TN_AT_##phase)
#define DONE(name, words)
#define ROW(phases, frameworks, done, says, text) { phases, frameworks, DONE_##done, SAYS_##says, text },
#include "message/advice.def"
#undef DONE
#undef ROW
#undef AT
};

uint32_t
tn__advice_done(const char *line)
{
	uint32_t done = 0;
	for (size_t i = 0; i < DONE_NOTHING; i++)
		for (const char *word = done_words[i];; word++) {
			size_t length = strcspn(word, "|");
			if (memmem(line, strlen(line), word, length) != NULL)
				done |= 1u << i;
			word += length;
			if (*word == '\0')
				break;
		}
	return done;
}

static bool
is_done(const struct tn_message *message, enum done done)
{
	return (message->done >> done & 1u) != 0;
}

/* Whether a list of names, separated by '|', has one. */
static bool
among(const char *list, const char *name)
{
	for (size_t length = strlen(name);; list++) {
		size_t size = strcspn(list, "|");
		if (size == length && memcmp(list, name, length) == 0)
			return true;
		list += size;
		if (*list == '\0')
			return false;
	}
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

/* Rows are for cards that are full. A request as large as the card is one tensor, which passes explain best. */
static bool
phase_decides(const struct tn_message *message)
{
	bool card = message->kind == TN_KIND_CUDA || message->kind == TN_KIND_HIP || message->kind == TN_KIND_XPU;
	bool pass = in_phase(message, 1u << TN_AT_FORWARD | 1u << TN_AT_LOSS | 1u << TN_AT_BACKWARD);
	return card && message->framework != NULL &&
	       (message->cause == TN_CAUSE_MODEL_OR_BATCH || (message->cause == TN_CAUSE_TOO_BIG && !pass));
}

/* Returns what of the general advice is said. */
static unsigned
advise_phase(struct tn_message *message)
{
	unsigned said = 0;
	for (size_t i = 0; phase_decides(message) && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (in_phase(message, rows[i].phases) && among(rows[i].frameworks, message->framework) &&
		    !is_done(message, rows[i].done)) {
			add(message, "%s", rows[i].text);
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
	static const char *const names[] = { "nvidia-smi", "nvidia-smi", "rocm-smi", "Activity Monitor", "xpu-smi", "top",
		                                 "the vendor's monitor" };
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
		    "Update PyTorch, which has no such setting here; until then call torch.cuda.empty_cache() between "
		    "phases whose sizes differ.");
	else
		add(message,
		    "Where that is not supported, set max_split_size_mb:128 there instead: large pieces are then not cut up "
		    "for small requests.");
	add(message, "Keep shapes alike: pad batches to a few fixed lengths, so that freed pieces fit the next request.");
}

static void
advise_other_process(struct tn_message *message)
{
	char device[32] = "";
	if (message->device_index >= 0)
		snprintf(device, sizeof(device), " on device %lld", (long long)message->device_index);
	add(message,
	    "Look who holds the memory%s: %s lists processes; end those left over from earlier "
	    "runs, notebooks included.",
	    device, monitor(message));
	add(message,
	    "Choose a free card with CUDA_VISIBLE_DEVICES; with several ranks, check that each one sets its own device, "
	    "or all of them open a context on card 0.");
	add(message,
	    "If nobody else is listed, this process itself holds it outside PyTorch: another framework, a library's "
	    "workspace, or one in C++.");
}

/* Passes without gradients: nothing is accumulated, and nothing kept for a backward pass. */
static void
advise_inference(struct tn_message *message, unsigned said)
{
	bool own_loop = message->framework != NULL && among("pytorch|timm|peft|accelerate|deepspeed|fsdp", message->framework);
	if (own_loop && !is_done(message, DONE_NO_GRAD))
		add(message, "Wrap this in torch.no_grad() or torch.inference_mode(): else all activations are kept for a backward "
		             "pass that never comes.");
	if ((said & SAYS_BATCH) == 0)
		add(message, "Make the batch, the sequence or the picture smaller: here it is not bound to the size of a training.");
	add(message, "Use bfloat16 or float16, and move results to the computer's memory (.cpu()) as they come.");
}

static void
advise_model(struct tn_message *message, unsigned said)
{
	if (message->kind == TN_KIND_MPS) {
		add(message,
		    "Halve the batch and use gradient accumulation to keep its effect: activations shrink with the batch.");
		add(message,
		    "Load the weights in half precision (torch.float16 or bfloat16) and close other programs: the memory is "
		    "shared with them.");
		add(message,
		    "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit, but the system may then stall; use it last.");
		return;
	}
	if (without_batch(message)) {
		add(message,
		    "No batch is at work here: make the model itself smaller (bfloat16, quantised weights), or spread it over "
		    "several cards or the computer's memory.");
		return;
	}
	if (in_phase(message, 1u << TN_AT_EVALUATION | 1u << TN_AT_GENERATE | 1u << TN_AT_GATHER)) {
		advise_inference(message, said);
		return;
	}
	if ((said & SAYS_BATCH) == 0)
		add(message,
		    "Halve the batch (or the sequence length) and use gradient accumulation to keep its effect: activations "
		    "shrink with the batch.");
	bool checkpoints = is_done(message, DONE_CHECKPOINTING) || (said & SAYS_CHECKPOINT) != 0;
	add(message, "Use bfloat16 autocast%s what is kept for the backward pass.",
	    checkpoints ? ": it cuts" : " and activation checkpointing: they cut");
	add(message, "%s store loss.item(), not the loss: else each step's graph stays.",
	    is_done(message, DONE_NO_GRAD) ? "Where losses are collected"
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
		add(message, "Update PyTorch, or print torch.cuda.memory_summary() before the failing line: the message that "
		             "would have "
		             "shown the sizes was lost.");
	else
		add(message,
		    "Otherwise look at shapes, types and library versions: the text does not say that memory was short.");
}

static void
advise_unknown(struct tn_message *message)
{
	bool contradiction =
	    message->figures[TN_FIGURE_TRIED] != TN_MESSAGE_NONE && message->figures[TN_FIGURE_FREE] != TN_MESSAGE_NONE;
	if (contradiction)
		add(message,
		    "Run it again: the figures are read after the failure, and another process may have taken and returned "
		    "memory meanwhile; watch %s while it starts.", monitor(message));
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

void
tn__advise(struct tn_message *message)
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
	unsigned said = advise_phase(message);
	if (message->unclear && message->cause == TN_CAUSE_UNKNOWN)
		advise_unclear(message);
	else if (message->cause == TN_CAUSE_MODEL_OR_BATCH)
		advise_model(message, said);
	else
		steps[message->cause](message);
}
