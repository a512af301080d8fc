/* SPDX-License-Identifier: Apache-2.0
 *
 * Which lines are the program's own: Python files outside torch, the standard library and installed packages.
 *
 * Judged once a file name, so that a long name in many frames costs nothing. C++ frames have no Python file and are
 * never the program's own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/columns.h"

/* Parts of paths that belong to somebody else. The last rows: PyTorch from a checkout, and our own hook. */
static const char *const foreign[] = {
	"/site-packages/",  "\\site-packages\\", "/dist-packages/", "/lib/python3.",   "\\lib\\site-packages\\",
	"/lib64/python3.",  "/torch/nn/",        "/torch/optim/",   "/torch/autograd/", "/torch/utils/",
	"/torch/cuda/",     "/torch/_",          "/torch/distributed/", "/torch/amp/",  "/_tonnage_guest/",
};

static bool
ends_with(const char *text, size_t length, const char *end)
{
	size_t tail = strlen(end);
	return length >= tail && memcmp(text + length - tail, end, tail) == 0;
}

/* "<stdin>", "<string>", "<ipython-input-3-…>" are typed by the user; "<frozen importlib._bootstrap>" is not, nor is
 * code that a program made ("<eval_with_key>.3" of torch.fx). */
static bool
is_typed(const char *file)
{
	return strncmp(file, "<stdin>", 7) == 0 || strncmp(file, "<string>", 8) == 0 ||
		strncmp(file, "<ipython-input-", 15) == 0 || strncmp(file, "<python-input-", 14) == 0 ||
		strncmp(file, "<doctest ", 9) == 0;
}

static bool
is_users(const char *file, size_t length)
{
	if (is_typed(file))
		return true;
	if (!ends_with(file, length, ".py") && !strstr(file, "/ipykernel_"))
		return false;
	if (strncmp(file, "torch/", 6) == 0)
		return false;
	for (size_t index = 0; index < sizeof(foreign) / sizeof(foreign[0]); index++) {
		if (strstr(file, foreign[index]))
			return false;
	}
	return true;
}

/* `known` holds, by string, 0: not judged yet, 1: somebody else's, 2: the user's. */
static void
judge_frames(struct tn_snapshot *snapshot, uint8_t *known)
{
	for (uint32_t frame = 0; frame < snapshot->frames.count; frame++) {
		uint32_t file = ((const struct tn_frame_row *)tn__interned(&snapshot->frames, frame))->file;
		snapshot->frame_user[frame] = 0;
		if (file == TN_NO_NUMBER)
			continue;
		if (!known[file])
			known[file] = 1 + is_users(tn__interned(&snapshot->strings, file),
			                           tn__interned_length(&snapshot->strings, file));
		snapshot->frame_user[frame] = known[file] == 2;
	}
}

static uint32_t
innermost(const struct tn_snapshot *snapshot, uint32_t stack)
{
	const uint32_t *frames = tn__interned(&snapshot->stacks, stack);
	size_t count = tn__interned_length(&snapshot->stacks, stack) / sizeof(*frames);
	for (size_t index = 0; index < count; index++) {
		if (snapshot->frame_user[frames[index]])
			return frames[index];
	}
	return TN_NO_NUMBER;
}

tn_status
tn__snapshot_find_user_frames(struct tn_snapshot *snapshot)
{
	uint8_t *known = NULL;
	size_t capacity = 0;
	struct tn_budget *budget = &snapshot->budget;
	TN_FORWARD_IF_ERROR(
		tn__grow(budget, &snapshot->frame_user, &snapshot->frame_user_capacity, snapshot->frames.count, 1));
	TN_FORWARD_IF_ERROR(tn__grow(budget, &snapshot->stack_user, &snapshot->stack_user_capacity, snapshot->stacks.count,
	                             sizeof(*snapshot->stack_user)));
	TN_FORWARD_IF_ERROR(tn__grow(budget, &known, &capacity, snapshot->strings.count, 1));
	memset(known, 0, capacity);
	judge_frames(snapshot, known);
	tn__release(budget, &known, &capacity, 1);
	for (uint32_t stack = 0; stack < snapshot->stacks.count; stack++)
		snapshot->stack_user[stack] = innermost(snapshot, stack);
	return TN_OK;
}
