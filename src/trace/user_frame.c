/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose line a frame is: torch's (which includes the standard library, our own hook and code without a file), an
 * installed library's, or the program's own.
 *
 * Judged once a file name, so that a long name in many frames costs nothing. C++ frames have no Python file and count
 * as torch's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/columns.h"

/* Parts of paths of PyTorch in a checkout, and of the standard library. */
static const char *const of_torch[] = {
	"/torch/nn/", "/torch/optim/", "/torch/autograd/",    "/torch/utils/", "/torch/cuda/",
	"/torch/_",   "/torch/amp/",   "/torch/distributed/", "/lib/python3.", "/lib64/python3.",
};

/* Packages that come with torch. */
static const char *const torch_packages[] = { "torch", "functorch", "torchgen", "triton" };

static bool
ends_with(const char *text, size_t length, const char *end)
{
	size_t tail = strlen(end);
	return length >= tail && memcmp(text + length - tail, end, tail) == 0;
}

/* "<stdin>", "<ipython-input-3-…>" are typed by the user; "<frozen importlib._bootstrap>" is not, nor is code that a
 * program made ("<eval_with_key>.3" of torch.fx). "<string>" is typed when it is the program of `python -c`, and else
 * made (dataclasses, named tuples). */
static bool
is_typed(const char *file, bool string_is_program)
{
	if (strcmp(file, "<string>") == 0)
		return string_is_program;
	if (strncmp(file, "cell ", 5) == 0 && file[5] >= '0' && file[5] <= '9')
		return true; /* of a notebook: the hook has named it (doc/design/0033-notebooks.md) */
	return strncmp(file, "<stdin>", 7) == 0 || strncmp(file, "<ipython-input-", 15) == 0 ||
	       strncmp(file, "<python-input-", 14) == 0 || strncmp(file, "<doctest ", 9) == 0;
}

/* What follows the last folder of installed packages in a path, or NULL. */
static const char *
package_of(const char *file)
{
	const char *found = NULL;
	for (const char *at = strstr(file, "-packages"); at; at = strstr(at + 1, "-packages")) {
		bool folder = (at - file >= 5 && strncmp(at - 5, "/site", 5) == 0) ||
		              (at - file >= 5 && (strncmp(at - 5, "\\site", 5) == 0 || strncmp(at - 5, "/dist", 5) == 0));
		if (folder && (at[9] == '/' || at[9] == '\\'))
			found = at + 10;
	}
	return found;
}

static bool
comes_with_torch(const char *package)
{
	for (size_t index = 0; index < sizeof(torch_packages) / sizeof(torch_packages[0]); index++) {
		size_t length = strlen(torch_packages[index]);
		if (strncmp(package, torch_packages[index], length) == 0 && (package[length] == '/' || package[length] == '\\'))
			return true;
	}
	return false;
}

static enum tn_whose
whose(const char *file, size_t length, bool string_is_program)
{
	if (is_typed(file, string_is_program))
		return TN_WHOSE_USER;
	if (!ends_with(file, length, ".py") && !strstr(file, "/ipykernel_"))
		return TN_WHOSE_TORCH;
	if (strncmp(file, "torch/", 6) == 0 || strstr(file, "/_tonnage_guest/") || strstr(file, "/tonnage/changes/"))
		return TN_WHOSE_TORCH;
	const char *package = package_of(file);
	if (package)
		return comes_with_torch(package) ? TN_WHOSE_TORCH : TN_WHOSE_LIBRARY;
	for (size_t index = 0; index < sizeof(of_torch) / sizeof(of_torch[0]); index++) {
		if (strstr(file, of_torch[index]))
			return TN_WHOSE_TORCH;
	}
	return TN_WHOSE_USER;
}

static const struct tn_frame_row *
frame_row(const struct tn_snapshot *snapshot, uint32_t frame)
{
	return tn__interned(&snapshot->frames, frame);
}

/* True when the program itself is "<string>": there is a frame of its top level. */
static bool
string_is_program(const struct tn_snapshot *snapshot)
{
	for (uint32_t frame = 0; frame < snapshot->frames.count; frame++) {
		const struct tn_frame_row *row = frame_row(snapshot, frame);
		if (row->file != TN_NO_NUMBER && row->name != TN_NO_NUMBER &&
		    strcmp(tn__interned(&snapshot->strings, row->name), "<module>") == 0 &&
		    strcmp(tn__interned(&snapshot->strings, row->file), "<string>") == 0)
			return true;
	}
	return false;
}

/* `known` holds, by string, 0: not judged yet, else 1 + enum tn_whose. */
static void
judge_frames(struct tn_snapshot *snapshot, uint8_t *known)
{
	bool program = string_is_program(snapshot);
	for (uint32_t frame = 0; frame < snapshot->frames.count; frame++) {
		uint32_t file = frame_row(snapshot, frame)->file;
		snapshot->frame_whose[frame] = TN_WHOSE_TORCH;
		if (file == TN_NO_NUMBER)
			continue;
		if (!known[file])
			known[file] = (uint8_t)(1 + whose(tn__interned(&snapshot->strings, file),
			                                  tn__interned_length(&snapshot->strings, file), program));
		snapshot->frame_whose[frame] = known[file] - 1;
	}
}

/* The innermost frame that is at least so much the program's own. */
static uint32_t
innermost(const struct tn_snapshot *snapshot, uint32_t stack, enum tn_whose least)
{
	const uint32_t *frames = tn__interned(&snapshot->stacks, stack);
	size_t count = tn__interned_length(&snapshot->stacks, stack) / sizeof(*frames);
	for (size_t index = 0; index < count; index++) {
		if (snapshot->frame_whose[frames[index]] >= least)
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
		tn__grow(budget, &snapshot->frame_whose, &snapshot->frame_whose_capacity, snapshot->frames.count, 1));
	TN_FORWARD_IF_ERROR(tn__grow(budget, &snapshot->stack_user, &snapshot->stack_user_capacity, snapshot->stacks.count,
	                             sizeof(*snapshot->stack_user)));
	TN_FORWARD_IF_ERROR(tn__grow(budget, &snapshot->stack_outside, &snapshot->stack_outside_capacity,
	                             snapshot->stacks.count, sizeof(*snapshot->stack_outside)));
	TN_FORWARD_IF_ERROR(tn__grow(budget, &known, &capacity, snapshot->strings.count, 1));
	memset(known, 0, capacity);
	judge_frames(snapshot, known);
	tn__release(budget, &known, &capacity, 1);
	for (uint32_t stack = 0; stack < snapshot->stacks.count; stack++) {
		snapshot->stack_user[stack] = innermost(snapshot, stack, TN_WHOSE_USER);
		snapshot->stack_outside[stack] = innermost(snapshot, stack, TN_WHOSE_LIBRARY);
	}
	return TN_OK;
}
