/* SPDX-License-Identifier: Apache-2.0
 *
 * Which line of the program a stack, a block or a piece of work belongs to.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/error.h"
#include "base/strings.h"

enum { LONGEST_PATH = 4096 }; /* of a file that is looked at: a name of megabytes may stand in many frames */

/* ---- traits ---- */

/* The last part of a qualified name. */
static const char *
plain_name(const char *function)
{
	const char *dot = strrchr(function, '.');
	return dot ? dot + 1 : function;
}

static bool
is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++) {
		if (strcmp(name, *names) == 0)
			return true;
	}
	return false;
}

/* Of one frame, for traits_of_stack alone: a model's work, which an optimizer does only in a closure that it is given. */
#define WORK_OF_A_MODEL 128

static bool
works_for_a_model(const struct tn_frame *frame, const char *name)
{
	if (tn__ends_with(frame->file, "torch/nn/functional.py"))
		return true;
	bool autograd = tn__ends_with(frame->file, "torch/autograd/__init__.py") ||
	                tn__ends_with(frame->file, "torch/_tensor.py");
	return autograd && (strcmp(name, "backward") == 0 || strcmp(name, "grad") == 0);
}

/* Of one frame; a call of a module is TN_STACK_MODULE. */
static uint8_t
traits_of_frame(const struct tn_frame *frame)
{
	static const char *const moves[] = { "_apply", "to", "cuda", NULL };
	static const char *const makes[] = { "__init__", "reset_parameters", "_reset_parameters", NULL };
	size_t length = strnlen(frame->file, LONGEST_PATH);
	if (length == LONGEST_PATH || strnlen(frame->function, LONGEST_PATH) == LONGEST_PATH)
		return 0;
	bool python = frame->user || frame->library || (length > 3 && strcmp(frame->file + length - 3, ".py") == 0);
	if (!python)
		return 0;
	const char *name = plain_name(frame->function);
	if (strstr(frame->file, "torch/optim/"))
		return TN_STACK_PYTHON | TN_STACK_OPTIMIZER;
	if (strstr(frame->file, "torch/nn/modules/module.py"))
		return (uint8_t)(TN_STACK_PYTHON | (strcmp(name, "_call_impl") == 0 ? TN_STACK_MODULE : 0) |
		                 (is_one_of(name, moves) ? TN_STACK_BUILD : 0));
	if (strstr(frame->file, "torch/serialization.py") || strstr(frame->file, "safetensors/torch.py"))
		return TN_STACK_PYTHON | TN_STACK_LOAD;
	if (works_for_a_model(frame, name))
		return TN_STACK_PYTHON | WORK_OF_A_MODEL;
	if (strcmp(name, "deepcopy") == 0 && tn__ends_with(frame->file, "copy.py"))
		return TN_STACK_PYTHON | TN_STACK_COPY;
	if (strstr(frame->file, "torch/nn/init.py") || (strstr(frame->file, "torch/nn/modules/") && is_one_of(name, makes)))
		return TN_STACK_PYTHON | TN_STACK_BUILD;
	return TN_STACK_PYTHON;
}

/* Frames come innermost first: what an optimizer calls as its closure (Lightning, skorch, LBFGS) is a pass, not an update. */
static uint8_t
traits_of_stack(const struct tn_snapshot *snapshot, const uint8_t *of_frames, tn_stack stack)
{
	const uint32_t *frames;
	size_t count = tn_snapshot_stack(snapshot, stack, &frames), calls = 0;
	uint8_t traits = 0;
	for (size_t index = 0; index < count; index++) {
		bool in_closure = traits & (TN_STACK_MODULE | WORK_OF_A_MODEL);
		traits |= of_frames[frames[index]] & (uint8_t)~(in_closure ? TN_STACK_OPTIMIZER : 0);
		calls += (of_frames[frames[index]] & TN_STACK_MODULE) != 0;
	}
	return (uint8_t)((traits & ~WORK_OF_A_MODEL) | (calls > 1 ? TN_STACK_NESTED : 0));
}

tn_status
tn__find_traits(struct tn_analysis *analysis)
{
	const struct tn_snapshot *snapshot = analysis->snapshot;
	size_t frames = tn_snapshot_frames(snapshot), stacks = tn_snapshot_stacks(snapshot);
	uint8_t *of_frames = malloc(frames + 1);
	analysis->traits = malloc(stacks + 1);
	if (!of_frames || !analysis->traits) {
		free(of_frames);
		return tn__fail(TN_NO_MEMORY, "no host memory for %zu stacks", stacks);
	}
	for (uint32_t index = 0; index < frames; index++) {
		struct tn_frame frame = tn_snapshot_frame(snapshot, index);
		of_frames[index] = traits_of_frame(&frame);
	}
	for (tn_stack stack = 0; stack < stacks; stack++)
		analysis->traits[stack] = traits_of_stack(snapshot, of_frames, stack);
	free(of_frames);
	return TN_OK;
}

/* ---- origins ---- */

static struct tn_line
line_of(const struct tn_snapshot *snapshot, uint32_t number)
{
	struct tn_frame frame = tn_snapshot_frame(snapshot, number);
	return (struct tn_line){ .file = frame.file, .function = frame.function, .line = frame.line };
}

struct tn_origin
tn__origin_of_stack(const struct tn_analysis *analysis, tn_stack stack)
{
	struct tn_origin origin = { .stack = stack };
	uint32_t at, user;
	if (!tn_snapshot_outside_frame(analysis->snapshot, stack, &at))
		return origin;
	origin.at = line_of(analysis->snapshot, at);
	if (tn_snapshot_user_frame(analysis->snapshot, stack, &user) && user != at)
		origin.user = line_of(analysis->snapshot, user);
	return origin;
}

static struct tn_origin
backward_of_stack(const struct tn_analysis *analysis, tn_stack stack)
{
	struct tn_origin origin = tn__origin_of_stack(analysis, stack);
	origin.at.backward = origin.at.file != NULL;
	origin.user.backward = origin.user.file != NULL;
	return origin;
}

struct tn_origin
tn__origin_of_event(const struct tn_analysis *analysis, size_t event)
{
	struct tn_origin origin = tn__origin_of_stack(analysis, analysis->events.stacks[event]);
	size_t run = tn__run_at(analysis, event);
	if (!origin.at.file && run < analysis->metadata.runs_count && analysis->run_stacks[run])
		return backward_of_stack(analysis, analysis->run_stacks[run]);
	return origin;
}

struct tn_origin
tn__origin_of_interval(const struct tn_analysis *analysis, const struct tn_interval *interval)
{
	struct tn_origin origin = tn__origin_of_stack(analysis, interval->stack);
	if (origin.at.file)
		return origin;
	if (analysis->marked)
		return interval->begun ? tn__origin_of_event(analysis, interval->from - 1) : origin;
	uint32_t other = analysis->guesses[interval - analysis->blocks.intervals].named_by;
	if (other == TN_NO_INTERVAL)
		return origin;
	return backward_of_stack(analysis, analysis->blocks.intervals[other].stack);
}

/* ---- visits ---- */

/* The innermost frame outside torch of an allocation, or of the forward that it works for; false when unknown. */
static bool
frame_of(const struct tn_analysis *analysis, size_t event, uint32_t *frame)
{
	if (tn_snapshot_outside_frame(analysis->snapshot, analysis->events.stacks[event], frame))
		return true;
	size_t run = tn__run_at(analysis, event);
	return run < analysis->metadata.runs_count &&
	       tn_snapshot_outside_frame(analysis->snapshot, analysis->run_stacks[run], frame);
}

tn_status
tn__find_visits(struct tn_analysis *analysis)
{
	const struct tn_event_columns *events = &analysis->events;
	uint32_t visit = 1, last = UINT32_MAX, frame;
	analysis->visits = malloc((events->count + 1) * sizeof(*analysis->visits));
	TN_RETURN_IF(!analysis->visits, TN_NO_MEMORY, "no host memory for %zu events", events->count);
	for (size_t event = 0; event < events->count; event++) {
		if (events->actions[event] == TN_ACTION_ALLOC && frame_of(analysis, event, &frame)) {
			visit += last != UINT32_MAX && last != frame;
			last = frame;
		}
		analysis->visits[event] = visit;
	}
	return TN_OK;
}
