/* SPDX-License-Identifier: Apache-2.0
 *
 * From a region of text to a message: its figures, its finer family, whether it counts, and whether it repeats the
 * message before it, which is held back until that is known.
 */
#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "message/scanner.h"

#define LOOK_AHEAD 700     /* squeezed characters behind its last known phrase that may hold its figures ... */
#define NEAR 200           /* ... and those in which it must be confirmed or refuted */
#define AROUND 2000        /* before it, where a family asks for evidence */
#define NEXT_LINES 15      /* within which a failure with figures is the one without figures before it */
#define REPEAT_LINES 60    /* within which a failure without new figures is the one before */
#define CONTINUE_LINES 400 /* within which a family's later lines belong to its earlier ones */

bool
tn__strangers(uint64_t a, uint64_t b)
{
	return a != 0 && b != 0 && a != b && (a >> 32 == 0) == (b >> 32 == 0);
}

/* ---- the held message ---- */

static size_t figure_count(const struct tn_message *message);

/* An example in a page that teaches: a remedy follows it, and nothing of a run stands in it. */
static bool
taught(const struct tn_message_scanner *scanner, const struct tn_event *event, const struct tn_message *message)
{
	if (figure_count(message) > 0 || tn__message_has_need(message) || event->place.frames || message->rank >= 0)
		return false;
	return (event->remedied && !event->title && !tn__voice_complains(&scanner->voice)) ||
	       (event->weight < TN_WEIGHT_FULL && !event->title && tn__voice_teaches(&scanner->voice));
}

/* A mention in a text of somebody who has trouble; a title alone is not enough to tell that. */
static bool
confirmed(const struct tn_message_scanner *scanner)
{
	return scanner->held_event.needs_trouble && tn__voice_complains(&scanner->voice) &&
	       (!scanner->held_event.title || scanner->voice.own > 0);
}

tn_status
tn__event_hand_out(struct tn_message_scanner *scanner)
{
	if (!scanner->held)
		return TN_OK;
	scanner->held = false;
	if (scanner->held_event.needs_trace && !scanner->held_event.place.frames && !confirmed(scanner))
		return TN_OK;
	if (taught(scanner, &scanner->held_event, &scanner->held_message))
		return TN_OK;
	memcpy(scanner->held_message.culprit, scanner->held_event.culprit, TN_MESSAGE_CULPRIT);
	tn__place_tell(&scanner->held_event.place, scanner->held_event.family, scanner->held_event.hint,
	               scanner->held_message.rank >= 0 ? scanner->framework : 0, &scanner->held_message);
	scanner->handed = true;
	scanner->held_message.shown = scanner->shown;
	tn__advise(&scanner->held_message, &scanner->seen); /* which may depend on the place, known only now */
	return scanner->found(scanner->context, &scanner->held_message);
}

static size_t
figure_count(const struct tn_message *message)
{
	size_t count = message->process_count;
	for (size_t i = 0; i < TN_FIGURE_COUNT; i++)
		count += message->figures[i] != TN_MESSAGE_NONE;
	return count;
}

static bool
same_figures(const struct tn_message *a, const struct tn_message *b)
{
	return figure_count(a) > 0 && memcmp(a->figures, b->figures, sizeof(a->figures)) == 0 && a->kind == b->kind &&
	       a->device_index == b->device_index && a->rank == b->rank && a->process_count == b->process_count;
}

/* Whether `later` says nothing that the held one did not. */
static bool
repeats(const struct tn_event *before, const struct tn_message *held, const struct tn_event *later,
        const struct tn_message *message, uint64_t lines)
{
	if (lines > REPEAT_LINES || before->needs_trace || tn__strangers(before->owner, later->owner))
		return false;
	if (same_figures(held, message))
		return true;
	return figure_count(message) == 0 &&
	       (later->weight <= TN_WEIGHT_GENERIC || held->family == message->family || later->group == before->group);
}

/* Whether `later` is the same failure with more to say. */
static bool
completes(const struct tn_event *before, const struct tn_message *held, const struct tn_event *later,
          const struct tn_message *message, uint64_t lines)
{
	if (before->said || before->needs_trace)
		return true;
	if (tn__strangers(before->owner, later->owner))
		return false;
	if (before->heads_trace && figure_count(held) == 0 && lines <= CONTINUE_LINES)
		return true;
	bool same = later->group == before->group;
	bool continued = same && later->first_order > before->order && before->order > 0;
	bool vague = figure_count(held) == 0 && (before->weight <= TN_WEIGHT_GENERIC || same);
	/* a thread's title, then its words, then the error as the program printed it */
	bool titled = figure_count(held) == 0 && before->line == 1 &&
	              (same || (before->title && held->kind == message->kind));
	return (continued && lines <= CONTINUE_LINES) || (titled && lines <= REPEAT_LINES) ||
	       (vague && lines <= NEXT_LINES);
}

/* Frames that were read for a later mention belong to the error that is held back. */
static void
hand_back_frames(struct tn_message_scanner *scanner)
{
	struct tn_event *held = &scanner->held_event, *event = &scanner->event;
	if (!scanner->held || tn__strangers(held->owner, event->owner) || event->line - held->last_line > REPEAT_LINES)
		return;
	if (held->culprit[0] == '\0')
		memcpy(held->culprit, event->culprit, TN_MESSAGE_CULPRIT);
	if (!held->place.frames && event->place.frames)
		tn__place_join(&held->place, &event->place);
	if (scanner->held_message.rank < 0)
		scanner->held_message.rank = event->rank;
}

static tn_status
accept(struct tn_message_scanner *scanner)
{
	struct tn_event *held = &scanner->held_event, *event = &scanner->event;
	uint64_t lines = event->line - held->last_line;
	if (event->said &&
	    ((scanner->held && !held->needs_trace) || scanner->handed)) { /* of what the text shows already */
		hand_back_frames(scanner);
		return TN_OK;
	}
	if (scanner->held && repeats(held, &scanner->held_message, event, &scanner->message, lines)) {
		if (held->culprit[0] == '\0')
			memcpy(held->culprit, event->culprit, TN_MESSAGE_CULPRIT);
		if (!held->place.frames && !tn__place_tells(&held->place))
			held->place = event->place;
		if (scanner->message.kind == TN_KIND_HOST && figure_count(&scanner->message) == 0 &&
		    strcmp(scanner->message.family, scanner->held_message.family) ==
		        0) { /* which device failed stands in the last line */
			scanner->message.line = scanner->held_message.line;
			scanner->message.rank = scanner->held_message.rank;
			scanner->held_message = scanner->message;
			held->family = event->family;
		}
		held->last_line = event->last_line;
		held->remedied &= event->bare;
		held->order = event->group == held->group && event->order > held->order ? event->order : held->order;
		return TN_OK;
	}
	if (scanner->held && completes(held, &scanner->held_message, event, &scanner->message, lines)) {
		if (event->culprit[0] == '\0')
			memcpy(event->culprit, held->culprit, TN_MESSAGE_CULPRIT);
		if (!event->place.frames || held->heads_trace ||
		    held->place.operation != TN_AT_UNKNOWN) { /* an operation that the title names */
			struct tn_place inner = event->place;
			event->place = held->place;
			tn__place_join(&event->place, &inner);
		}
		if (scanner->message.rank < 0)
			scanner->message.rank = scanner->held_message.rank;
		scanner->message.line = scanner->held_message.line;
		event->needs_trouble |= event->needs_trace && held->needs_trouble;
		scanner->held = false;
	}
	TN_FORWARD_IF_ERROR(tn__event_hand_out(scanner));
	scanner->held = true;
	*held = *event;
	scanner->held_message = scanner->message;
	return TN_OK;
}

/* ---- closing a message ---- */

/* What PyTorch adds to an error of the CUDA runtime. */
#define TORCH_WORDS "cudakernelerrorsmightbe|cuda_launch_blocking|torch_use_cuda_dsa"

static bool
has(const char *text, size_t length, const char *words)
{
	return tn__has_any(text, length, words);
}

static const struct {
	const char *words;
	enum tn_device_kind kind;
} device_words[] = { { "hip|rocm|rccl|miopen", TN_KIND_HIP },
	                 { "xpu|sycl|level_zero", TN_KIND_XPU },
	                 { "npu|musa|mlu|vulkan|opencl|gaudi", TN_KIND_OTHER },
	                 { "metal|mps", TN_KIND_MPS } };

/* "HIP out of memory", "(NPU 0;": which device, when it is not CUDA. */
static enum tn_device_kind
torch_kind(const char *text, size_t length)
{
	if (has(text, length, "hipoutofmemory|(hip"))
		return TN_KIND_HIP;
	if (has(text, length, "xpuoutofmemory|(xpu"))
		return TN_KIND_XPU;
	if (has(text, length,
	        "npuoutofmemory|mluoutofmemory|musaoutofmemory|gcuoutofmemory|hpuoutofmemory|(npu|(mlu|(musa"))
		return TN_KIND_OTHER;
	return TN_KIND_CUDA;
}

static const char *
torch_form(const struct tn_message *message, const char *text, size_t length)
{
	if (message->beyond_any_machine)
		return "huge_request";
	if (message->kind == TN_KIND_HIP)
		return "hip";
	if (message->kind == TN_KIND_XPU)
		return "xpu";
	if (message->kind == TN_KIND_OTHER)
		return "npu";
	if (message->reserved_is_idle)
		return "torch_1.0_cached";
	if (has(text, length, "capactyof"))
		return "torch_2.1_capacty";
	if (message->figures[TN_FIGURE_RESERVED] != TN_MESSAGE_NONE)
		return has(text, length, "max_split_size") ? "torch_1.10_split_hint" : "torch_1.4_reserved";
	if (message->figures[TN_FIGURE_ALLOWED] != TN_MESSAGE_NONE)
		return "torch_allowed";
	if (message->figures[TN_FIGURE_PRIVATE_POOL] != TN_MESSAGE_NONE)
		return "torch_private_pools";
	if (has(text, length, "pytorch_alloc_conf"))
		return "torch_alloc_conf";
	if (message->process_count > 0)
		return "torch_2.2_processes";
	if (has(text, length, "(gpu|alreadyallo"))
		return "torch_1.4_reserved";
	return figure_count(message) > 0 ? "torch_2.2_capacity" : "torch_no_figures";
}

/* Details that only PyTorch's own forms have. */
static void
finish_torch(struct tn_message *message, const char *text, size_t length)
{
	message->kind = torch_kind(text, length);
	message->beyond_any_machine = has(text, length, "triedtoallocatemorethan1eb");
	message->family = torch_form(message, text, length);
	message->old_settings = !has(text, length, "setpytorch_alloc_conf|settingpytorch_alloc_conf") &&
	                        (message->figures[TN_FIGURE_RESERVED] != TN_MESSAGE_NONE ||
	                         has(text, length, "pytorch_cuda_alloc_conf"));
}

/* A template: the place of the figure holds a letter, a brace or a percent sign. */
static bool
unfilled(const char *text, size_t length)
{
	static const char *const heads[] = { "triedtoallocate", "memorytoallocate" };
	const char *at = NULL;
	for (size_t i = 0; at == NULL && i < sizeof(heads) / sizeof(heads[0]); i++) {
		at = tn__find(text, length, heads[i]);
		at = at != NULL ? at + strlen(heads[i]) : NULL;
	}
	if (at == NULL)
		return false;
	if (at >= text + length)
		return false;
	return strchr("{%$<[x", *at) != NULL || (isalpha((unsigned char)*at) && strncmp(at, "more", 4) != 0);
}

/* TensorFlow names the device of each node near an error: the first is where it failed. */
static bool
failed_on_host(const char *text, size_t length)
{
	static const char *const host[] = { "device:cpu", "task:0/cpu:0", "allocatorcpu", "mklcpu", "gpu_host_bfc" };
	const char *card = tn__find(text, length, "device:gpu:");
	for (size_t i = 0; i < sizeof(host) / sizeof(host[0]); i++) {
		const char *found = tn__find(text, length, host[i]);
		if (found != NULL && (card == NULL || found < card || strcmp(host[i], "gpu_host_bfc") == 0))
			return true;
	}
	return false;
}

/* llama.cpp's buffers of the computer's memory. */
#define LLAMA_ON_HOST "cpubuffer|cpu_buffer|ggml_aligned_malloc"
#define LLAMA_ON_CARD "cudamallocfailed|hipmallocfailed|mibondevice"

/* What a program allocates there is not the computer's memory. */
#define OF_A_CARD "gpu|cuda|vram|videomemory|device|hip|d3d|vulkan|metal|opencl|texture"

/* The family in its finer sense, once the region is known. */
static const struct tn_family *
refine(const struct tn_family *family, const char *text, size_t length)
{
	if (strcmp(family->name, "tensorflow") == 0 && failed_on_host(text, length))
		return tn__family_tensorflow_host;
	if (strcmp(family->name, "llama.cpp") == 0 && has(text, length, LLAMA_ON_HOST) && !has(text, length, LLAMA_ON_CARD))
		return tn__family_llama_host;
	if (family == tn__family_allocation && has(text, length, OF_A_CARD))
		return tn__family_lacking;
	if (strcmp(family->name, "other") == 0 && has(text, length, "slurm|srun:"))
		return tn__family_scheduler;
	return family;
}

static void
refine_kind(struct tn_message *message, const char *text, size_t length)
{
	bool by_words = strcmp(message->family, "llama.cpp") == 0 || strcmp(message->family, "other") == 0 ||
	                strcmp(message->family, "nccl") == 0;
	for (size_t i = 0; by_words && i < sizeof(device_words) / sizeof(device_words[0]); i++)
		if (has(text, length, device_words[i].words)) {
			message->kind = device_words[i].kind;
			return;
		}
}

/* TensorFlow's "[[{{node NAME}}]]", "[[Node: NAME = Op[...": the operation that failed. */
static void
read_node(struct tn_event *event, const char *text, size_t length)
{
	static const char *const marks[] = { "[[{{node", "[[node:", "[[node" };
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		const char *found = tn__find(text, length, marks[i]);
		if (found == NULL)
			continue;
		const char *name = found + strlen(marks[i]);
		size_t size = 0, most = (size_t)(text + length - name);
		while (size < most && strchr("}=([]", name[size]) == NULL)
			size++;
		tn__place_node(&event->place, name, size);
		return;
	}
}

static const struct tn_hint *
hint_of(const char *text, size_t length)
{
	for (size_t i = 0; i < tn__hint_count; i++)
		if (has(text, length, tn__hints[i].words))
			return &tn__hints[i];
	return NULL;
}

/* `read`: how much of the text behind `text` is known, also of what comes after the message. */
static bool
proven(const struct tn_event *event, const struct tn_message *message, const char *text, size_t length, size_t read)
{
	const struct tn_family *family = event->family;
	size_t before = event->start < AROUND ? event->start : AROUND;
	if (family->evidence != NULL && !has(text - before, read + before, family->evidence))
		return false;
	size_t whole = length, near = event->last_end - event->start + NEAR;
	length = near < whole ? near : whole;
	if (family->needs != NULL && !has(text, length, family->needs))
		return false;
	if (family->refutes != NULL && has(text, length, family->refutes))
		return false;
	bool sized = event->group == TN_GROUP_TORCH || strcmp(family->name, "cupy") == 0;
	if (sized && unfilled(text, length) && figure_count(message) == 0)
		return false;
	if (event->group == TN_GROUP_TORCH && event->first_order == 2 && event->order == 2 &&
	    !has(text, length, "(gpu|.gpu|npu|xpu|outofmemory"))
		return false;
	if (event->group == TN_GROUP_TORCH && event->first_order >= 3) /* without its head: one phrase alone may be prose */
		return figure_count(message) >= 2;
	return event->reported || event->needs_trace || event->needs_trouble || figure_count(message) > 0;
}

tn_status
tn__event_close(struct tn_message_scanner *scanner, size_t end)
{
	struct tn_event *event = &scanner->event;
	struct tn_message *message = &scanner->message;
	if (!scanner->open)
		return TN_OK;
	scanner->open = false;
	if (end > event->last_end + LOOK_AHEAD)
		end = event->last_end + LOOK_AHEAD;
	const char *text = scanner->squeezed + event->start;
	size_t length = end > event->start ? end - event->start : 0;
	memset(message, 0, sizeof(*message));
	event->family = refine(event->family, text, length);
	tn__figures_read(event->family, text, length, message);
	message->family = event->family->name;
	message->said_by = event->family->said_by;
	message->unclear = event->family->unclear;
	message->kind = event->family->kind;
	message->rank = event->rank;
	message->line = event->line;
	if (strcmp(message->family, "cuda_error_oom") == 0 && has(text, length, TORCH_WORDS))
		message->said_by = "PyTorch";
	if (strcmp(message->family, "torch") == 0)
		finish_torch(message, text, length);
	size_t before = strcmp(message->family, "nccl") == 0 ? (event->start < TN_LOOK_BACK ? event->start : TN_LOOK_BACK)
	                                                     : 0;
	refine_kind(message, text - before, length + before);
	if (!proven(event, message, text, length, scanner->squeezed_used - event->start)) {
		hand_back_frames(scanner);
		return TN_OK;
	}
	if (event->needs_trouble && !event->needs_trace) { /* a phrase with or without figures, and somebody mentions it */
		event->needs_trouble = figure_count(message) == 0;
		event->needs_trace = event->needs_trouble;
	}
	tn__cause_judge(event->family, message);
	if (strcmp(message->family, "tensorflow") == 0)
		read_node(event, text, length);
	before = event->start < TN_LOOK_BACK ? event->start : TN_LOOK_BACK;
	if (event->hint == NULL)
		event->hint = hint_of(text - before, length + before);
	return accept(scanner);
}
