/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots for tests of the analysis, written by hand: events, blocks and metadata of device 0. A stack is a text with a
 * letter a frame, innermost first.
 */
#ifndef TEST_ANALYZE_WRITER_H
#define TEST_ANALYZE_WRITER_H

#include "test_pickle_writer.h"

static struct writer writer;

#define MIB ((int64_t)1 << 20)

static const struct {
	char letter;
	const char *function, *file;
	int line;
} frames[] = {
	{ 't', "train", "/work/train.py", 41 },
	{ 'e', "evaluate", "/work/train.py", 52 },
	{ 'm', "forward", "/work/model.py", 88 },
	{ 'n', "forward", "/work/model.py", 90 },
	{ 'o', "forward", "/work/model.py", 92 },
	{ 'L', "forward", "/env/lib/python3.11/site-packages/transformers/gpt.py", 7 },
	{ 'C', "_call_impl", "/env/lib/python3.11/site-packages/torch/nn/modules/module.py", 1779 },
	{ 'A', "_apply", "/env/lib/python3.11/site-packages/torch/nn/modules/module.py", 915 },
	{ 'O', "step", "/env/lib/python3.11/site-packages/torch/optim/adamw.py", 220 },
	{ 'T', "linear", "/env/lib/python3.11/site-packages/torch/nn/functional.py", 125 },
	{ 'D', "deepcopy", "/usr/lib/python3.11/copy.py", 146 },
	{ 'B', "_ddp_init_helper", "/env/lib/python3.11/site-packages/torch/nn/parallel/distributed.py", 1316 },
	{ 'H', "gather", "/env/lib/python3.11/site-packages/torch/nn/parallel/scatter_gather.py", 110 },
	{ 'M', "__init__", "/env/lib/python3.11/site-packages/torch/nn/modules/transformer.py", 90 },
	{ 'G', "note", "/opt/lib/tonnage/guest/_tonnage_guest/graph.py", 3 },
	{ 'S', "__init__", "<string>", 2 },
	{ 'x', "at::empty", "Tensor.cpp", 1 },
};

static inline void
put_stack(const char *letters)
{
	put_text(&writer, "frames");
	put_ops(&writer, "]");
	if (!*letters)
		return;
	put_ops(&writer, "(");
	for (; *letters; letters++) {
		for (uint32_t index = 0; index < sizeof(frames) / sizeof(frames[0]); index++) {
			if (frames[index].letter == *letters)
				put_with(&writer, 'j', index);
		}
	}
	put_ops(&writer, "e");
}

static inline void
open_snapshot(void)
{
	put_start(&writer);
	put_ops(&writer, "}(");
	put_text(&writer, "frames of the test");
	put_ops(&writer, "](");
	for (uint32_t index = 0; index < sizeof(frames) / sizeof(frames[0]); index++)
		put_frame(&writer, frames[index].function, frames[index].file, frames[index].line, index);
	put_ops(&writer, "e");
}

static inline void
put_metadata(const char *text, size_t length)
{
	put_text(&writer, "tonnage");
	put_with(&writer, 'X', (uint32_t)length);
	put_bytes(&writer, text, length);
}

static inline void
close_snapshot(void)
{
	put_ops(&writer, "u.");
}

/* ---- the trace ---- */

static int64_t clock_us; /* of the next event; each takes a microsecond */

static inline void
open_trace(void)
{
	clock_us = 1000;
	put_text(&writer, "device_traces");
	put_ops(&writer, "](](");
}

static inline void
close_trace(void)
{
	put_ops(&writer, "ee");
}

static inline void
event(const char *action, int64_t address, int64_t size, const char *stack)
{
	put_ops(&writer, "}(");
	put_text_pair(&writer, "action", action);
	put_pair(&writer, strcmp(action, "oom") ? "addr" : "device_free", address);
	put_pair(&writer, "size", size);
	put_pair(&writer, "time_us", clock_us++);
	put_stack(stack);
	put_ops(&writer, "u");
}

static inline void
alloc(int64_t address, int64_t size, const char *stack)
{
	event("alloc", address, size, stack);
}

/* Both halves of a free; the stack is that of the allocation. */
static inline void
release(int64_t address, int64_t size, const char *stack)
{
	event("free_requested", address, size, stack);
	event("free_completed", address, size, stack);
}

/* ---- segments ---- */

static inline void
open_segments(void)
{
	put_text(&writer, "segments");
	put_ops(&writer, "](");
}

static inline void
close_segments(void)
{
	put_ops(&writer, "e");
}

static inline void
open_segment(int64_t address, int64_t total, bool expandable)
{
	put_ops(&writer, "}(");
	put_pair(&writer, "device", 0);
	put_pair(&writer, "address", address);
	put_pair(&writer, "total_size", total);
	put_text_pair(&writer, "segment_type", total == 2 * MIB ? "small" : "large");
	put_text(&writer, "is_expandable");
	put_ops(&writer, expandable ? "\x88" : "\x89");
	put_text(&writer, "blocks");
	put_ops(&writer, "](");
}

static inline void
close_segment(void)
{
	put_ops(&writer, "eu");
}

static inline void
block(int64_t address, int64_t size, int64_t requested, const char *state, const char *stack)
{
	put_ops(&writer, "}(");
	put_pair(&writer, "address", address);
	put_pair(&writer, "size", size);
	put_pair(&writer, "requested_size", requested);
	put_text_pair(&writer, "state", state);
	put_stack(stack);
	put_ops(&writer, "u");
}

static inline void
live(int64_t address, int64_t size, int64_t requested, const char *stack)
{
	block(address, size, requested, "active_allocated", stack);
}

/* A segment of one free block. */
static inline void
free_segment(int64_t address, int64_t total)
{
	open_segment(address, total, false);
	block(address, total, 0, "inactive", "");
	close_segment();
}

#endif
