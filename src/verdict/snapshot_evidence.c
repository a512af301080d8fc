/* SPDX-License-Identifier: Apache-2.0
 *
 * An error text says how much was asked and what was free; a snapshot says who held the rest, and how large the largest
 * piece in the cache was. Together they tell fragmentation from a full card.
 *
 * A failed request of the snapshot belongs to an error of the text when device and size agree as far as they are
 * printed. Where the trace does not allow to go back to it, the snapshot's end is shown, and said to be that.
 */
#include "verdict/snapshot_evidence.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* ---- failed requests ---- */

static int
compare_requests(const void *left, const void *right)
{
	const struct tn_failed_request *one = left, *other = right;
	return (one->time_us > other->time_us) - (one->time_us < other->time_us);
}

/* Keeps the latest. */
static void
keep_request(struct tn_evidence *evidence, struct tn_failed_request request)
{
	struct tn_failed_request *oldest = &evidence->requests[0];
	if (evidence->request_count < TN_EVIDENCE_REQUESTS) {
		evidence->requests[evidence->request_count++] = request;
		return;
	}
	for (size_t index = 1; index < TN_EVIDENCE_REQUESTS; index++)
		oldest = evidence->requests[index].time_us < oldest->time_us ? &evidence->requests[index] : oldest;
	if (request.time_us >= oldest->time_us)
		*oldest = request;
}

static void
find_requests(struct tn_evidence *evidence)
{
	for (size_t trace = 0; trace < tn_snapshot_traces(evidence->snapshot); trace++) {
		struct tn_event_columns events = tn_snapshot_columns(evidence->snapshot, trace);
		int device = tn_snapshot_trace_device(evidence->snapshot, trace);
		for (size_t index = 0; device >= 0 && index < events.count; index++) {
			if (events.actions[index] == TN_ACTION_OOM)
				keep_request(evidence,
				             (struct tn_failed_request){ trace, index, events.sizes[index], events.addresses[index],
				                                         events.times[index], device });
		}
	}
	if (evidence->request_count)
		qsort(evidence->requests, evidence->request_count, sizeof(*evidence->requests), compare_requests);
}

tn_status
tn__evidence_new(const struct tn_snapshot *snapshot, struct tn_evidence **evidence)
{
	struct tn_evidence *fresh = calloc(1, sizeof(*fresh));
	TN_RETURN_IF(!fresh, TN_NO_MEMORY, "no host memory to look at the snapshot");
	fresh->snapshot = snapshot;
	fresh->error = TN_EVIDENCE_NO_ERROR;
	find_requests(fresh);
	*evidence = fresh;
	return TN_OK;
}

void
tn__evidence_free(struct tn_evidence *evidence)
{
	if (!evidence)
		return;
	tn__moment_free(&evidence->moment);
	free(evidence->holders);
	free(evidence);
}

/* What the message prints for a rounded request: the segment that PyTorch's allocator would ask of the driver. */
static uint64_t
printed_size(uint64_t request)
{
	if (request <= MIB)
		return 2 * MIB;
	if (request < 10 * MIB)
		return 20 * MIB;
	return request > UINT64_MAX - 2 * MIB ? request : (request + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

/* Texts have two decimals of GiB or MiB. */
static bool
looks_like(uint64_t printed, uint64_t bytes)
{
	uint64_t rounding = (printed >= GIB ? GIB : MIB) * 51 / 10000;
	return printed != TN_MESSAGE_NONE && bytes != TN_UNKNOWN &&
	       (printed > bytes ? printed - bytes : bytes - printed) <= rounding;
}

void
tn__evidence_match(struct tn_evidence *evidence, const struct tn_message *message, uint64_t number)
{
	for (size_t index = evidence->request_count; index-- > 0;) {
		const struct tn_failed_request *request = &evidence->requests[index];
		bool device = message->device_index < 0 || message->device_index == request->device;
		if (!device || !looks_like(message->figures[TN_FIGURE_TRIED], printed_size(request->size)))
			continue;
		evidence->request = request;
		evidence->error = number;
		evidence->text_cause = message->cause;
		return;
	}
}

/* ---- the moment ---- */

/* The card with the most in use, for a snapshot in which nothing failed. */
static int
fullest_device(const struct tn_snapshot *snapshot)
{
	int fullest = 0;
	const struct tn_segment *segments;
	size_t count = tn_snapshot_segments(snapshot, &segments);
	for (size_t index = 0; index < count; index++) {
		int device = segments[index].device;
		if (device > fullest &&
		    tn_snapshot_sum(snapshot, device).reserved > tn_snapshot_sum(snapshot, fullest).reserved)
			fullest = device;
	}
	return fullest;
}

static tn_status
analyse_at(const struct tn_evidence *evidence, const struct tn_analysis *analysis, struct tn_moment *moment,
           bool *at_request)
{
	*at_request = false;
	if (evidence->request && evidence->request->index < analysis->events.count) {
		tn_status status = tn__moment_of_state(analysis, (uint32_t)evidence->request->index + 1, moment);
		*at_request = status == TN_OK;
		if (status == TN_OK || status == TN_NO_MEMORY)
			return status;
	}
	return tn__moment_of_state(analysis, (uint32_t)analysis->events.count, moment);
}

/* Categories and lines from the trace. */
static tn_status
analyse(struct tn_evidence *evidence)
{
	struct tn_analysis *analysis;
	TN_FORWARD_IF_ERROR(tn__analysis_open(evidence->snapshot, evidence->device, &analysis));
	tn_status status = analyse_at(evidence, analysis, &evidence->moment, &evidence->at_request);
	tn__analysis_close(analysis);
	if (status != TN_OK)
		return status;
	evidence->categories = true;
	evidence->reserved = evidence->moment.reserved;
	evidence->allocated = evidence->moment.allocated;
	evidence->largest_free = evidence->moment.largest_free_block;
	return TN_OK;
}

/* Without a usable trace: blocks as they stood at the end. */
static tn_status
look_at_the_end(struct tn_evidence *evidence)
{
	struct tn_snapshot_totals totals = tn_snapshot_sum(evidence->snapshot, evidence->device);
	evidence->reserved = totals.reserved;
	evidence->allocated = totals.allocated;
	evidence->largest_free = totals.largest_free_block;
	return tn_snapshot_holders(evidence->snapshot, evidence->device, &evidence->holders, &evidence->holder_count);
}

static struct tn_line
line_of_stack(const struct tn_snapshot *snapshot, tn_stack stack)
{
	uint32_t number;
	if (!tn_snapshot_user_frame(snapshot, stack, &number) && !tn_snapshot_outside_frame(snapshot, stack, &number))
		return (struct tn_line){ 0 };
	struct tn_frame frame = tn_snapshot_frame(snapshot, number);
	return (struct tn_line){ .file = frame.file, .function = frame.function, .line = frame.line };
}

static void
find_place(struct tn_evidence *evidence)
{
	const struct tn_failed_request *request = evidence->request;
	if (!request)
		return;
	evidence->at = line_of_stack(evidence->snapshot,
	                             tn_snapshot_event(evidence->snapshot, request->trace, request->index).stack);
	if (!evidence->at.file && evidence->at_request)
		evidence->at = evidence->moment.at;
}

size_t
tn__evidence_rows(const struct tn_evidence *evidence)
{
	return evidence->categories ? evidence->moment.holder_count : evidence->holder_count;
}

struct tn_evidence_row
tn__evidence_row(const struct tn_evidence *evidence, size_t index)
{
	if (evidence->categories) {
		const struct tn_holding *holding = &evidence->moment.holders[index];
		return (struct tn_evidence_row){ tn__category_name(holding->category), tn__category_words(holding->category),
			                             holding->bytes, holding->blocks, holding->at };
	}
	const struct tn_holder *holder = &evidence->holders[index];
	return (struct tn_evidence_row){ NULL,
		                             "live blocks",
		                             holder->bytes,
		                             holder->blocks,
		                             { .file = holder->file, .function = holder->function, .line = holder->line } };
}

/* ---- the cause ---- */

static void __attribute__((format(printf, 2, 3)))
advise(struct tn_evidence *evidence, const char *format, ...)
{
	va_list arguments;
	if (evidence->advice_count == sizeof(evidence->advice) / sizeof(evidence->advice[0]))
		return;
	va_start(arguments, format);
	vsnprintf(evidence->advice[evidence->advice_count++], sizeof(evidence->advice[0]), format, arguments);
	va_end(arguments);
}

int
tn__evidence_expandable(const struct tn_snapshot *snapshot)
{
	const struct tn_setting *settings;
	size_t count = tn_snapshot_settings(snapshot, &settings);
	for (size_t index = 0; index < count; index++) {
		if (strcmp(settings[index].name, "expandable_segments") == 0 && settings[index].kind == TN_SETTING_BOOL)
			return settings[index].integer != 0;
	}
	return -1;
}

const char *
tn__evidence_last_part(const char *file)
{
	const char *slash = strrchr(file, '/');
	return slash && slash[1] ? slash + 1 : file;
}

/* What to do about the kind of memory that is most of it. */
static void
advise_largest(struct tn_evidence *evidence)
{
	static const char *const texts[TN_CATEGORIES] = {
		[TN_CATEGORY_parameters] = "load the weights in bfloat16, or put layers elsewhere",
		[TN_CATEGORY_gradients] = "zero_grad() before the forward pass, and keep them in bfloat16",
		[TN_CATEGORY_optimizer_state] = "an optimizer with less state (8-bit AdamW, Adafactor, SGD) holds less",
		[TN_CATEGORY_activations] = "halve the batch and accumulate gradients, or checkpoint these layers",
		[TN_CATEGORY_inputs] = "move batches to the card one at a time",
		[TN_CATEGORY_temporaries] = "see what still refers to what is made there, and whether it must exist at once",
		[TN_CATEGORY_workspaces] = "a library's workspace; its size can be limited (CUBLAS_WORKSPACE_CONFIG)",
	};
	const char *text = texts[TN_CATEGORY_temporaries];
	if (tn__evidence_rows(evidence) == 0)
		return;
	struct tn_evidence_row row = tn__evidence_row(evidence, 0);
	if (evidence->categories && texts[evidence->moment.holders[0].category])
		text = texts[evidence->moment.holders[0].category];
	if (row.at.file)
		advise(evidence, "Begin with %.150s:%" PRId64 ": %s.", tn__evidence_last_part(row.at.file), row.at.line, text);
	else
		advise(evidence, "Start with the %s: %s.", row.words, text);
}

/* The cache has enough, in pieces that are too small. */
static void
say_fragmented(struct tn_evidence *evidence, uint64_t cached)
{
	char asked[40], idle[40], piece[40];
	evidence->cause = TN_CAUSE_FRAGMENTATION;
	snprintf(evidence->reason, sizeof(evidence->reason),
	         "%s is cached and unused, enough for the %s asked for, but its largest free block has %s",
	         tn__message_size(cached, idle), tn__message_size(evidence->request->size, asked),
	         tn__message_size(evidence->largest_free, piece));
	if (tn__evidence_expandable(evidence->snapshot) == 1)
		advise(evidence, "Expandable segments are on already: keep shapes the same, or call torch.cuda.empty_cache() "
		                 "between phases whose sizes differ.");
	else
		advise(evidence, "Set PYTORCH_ALLOC_CONF=expandable_segments:True (before 2.10: PYTORCH_CUDA_ALLOC_CONF): the "
		                 "cache then grows in one piece.");
}

/* The cache has a block that would do: it belongs to another stream or pool. */
static void
say_elsewhere(struct tn_evidence *evidence)
{
	char asked[40], piece[40];
	evidence->cause = TN_CAUSE_FRAGMENTATION;
	snprintf(
		evidence->reason, sizeof(evidence->reason),
		"a free block of %s in the cache would be enough for the %s requested, but belongs to another stream or pool",
		tn__message_size(evidence->largest_free, piece), tn__message_size(evidence->request->size, asked));
	advise(evidence, "Call torch.cuda.empty_cache() where work moves to another stream, pool or CUDA graph.");
}

static void
say_full(struct tn_evidence *evidence, uint64_t cached)
{
	char asked[40], idle[40], live[40];
	const struct tn_failed_request *request = evidence->request;
	bool alone = request->size > evidence->allocated;
	evidence->cause = alone ? TN_CAUSE_TOO_BIG : TN_CAUSE_MODEL_OR_BATCH;
	snprintf(evidence->reason, sizeof(evidence->reason),
	         "tensors hold %s; what is cached, %s, would not do for the %s asked for even in one piece%s",
	         tn__message_size(evidence->allocated, live), tn__message_size(cached, idle),
	         tn__message_size(request->size, asked), alone ? ", which is more than all tensors together" : "");
	if (alone && evidence->at.file)
		advise(evidence, "Look at the shapes in %.150s:%" PRId64 ", or compute it in chunks.",
		       tn__evidence_last_part(evidence->at.file), evidence->at.line);
	if (!alone)
		advise_largest(evidence);
}

static void
judge(struct tn_evidence *evidence)
{
	char live[40], held[40];
	uint64_t cached = evidence->reserved > evidence->allocated ? evidence->reserved - evidence->allocated : 0;
	evidence->cause = TN_CAUSE_UNKNOWN;
	if (evidence->at_request && evidence->request->size != TN_UNKNOWN) {
		if (evidence->largest_free >= evidence->request->size)
			say_elsewhere(evidence);
		else if (cached >= evidence->request->size)
			say_fragmented(evidence, cached);
		else
			say_full(evidence, cached);
		return;
	}
	snprintf(evidence->reason, sizeof(evidence->reason),
	         "%s; tensors held %s of %s reserved when the snapshot was taken",
	         evidence->request ? "the trace does not reach back to the failed request"
	                           : "the snapshot has no failed request",
	         tn__message_size(evidence->allocated, live), tn__message_size(evidence->reserved, held));
	advise_largest(evidence);
}

tn_status
tn__evidence_weigh(struct tn_evidence *evidence)
{
	if (!evidence->request && evidence->request_count)
		evidence->request = &evidence->requests[evidence->request_count - 1];
	evidence->device = evidence->request ? evidence->request->device : fullest_device(evidence->snapshot);
	tn_status status = analyse(evidence);
	if (status == TN_NO_MEMORY)
		return status;
	if (status != TN_OK)
		TN_FORWARD_IF_ERROR(look_at_the_end(evidence));
	find_place(evidence);
	judge(evidence);
	return TN_OK;
}
