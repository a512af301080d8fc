/* SPDX-License-Identifier: Apache-2.0
 *
 * One moment of a device: what every byte was for, and which lines held them.
 *
 * Made from a snapshot and the metadata in it (doc/format/metadata.md, doc/design/0008-categories.md). What the allocator
 * cannot know (context, libraries, other processes, bytes of the program outside of it) is the ledger's to add.
 */
#ifndef TN_ANALYZE_MOMENT_H
#define TN_ANALYZE_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tonnage/snapshot.h"

enum tn_category {
#define CATEGORY(name, words) TN_CATEGORY_##name,
#include "analyze/categories.def"
#undef CATEGORY
	TN_CATEGORIES
};

/* The name in JSON and the words for a person; never NULL. */
const char *tn__category_name(enum tn_category category);
const char *tn__category_words(enum tn_category category);
/* The number of the category of that name (as JSON has it); -1 where there is none, and for NULL. */
int tn__category_of(const char *name);

/* A line of the program. Texts belong to the snapshot. */
struct tn_line {
	const char *file; /* NULL: unknown */
	const char *function;
	int64_t line;
	bool backward; /* work of the backward pass for that line */
};

/* Live bytes of one category from one line, largest first in a moment. */
struct tn_holding {
	enum tn_category category;
	uint64_t bytes; /* as the program asked */
	size_t blocks;
	struct tn_line at;   /* innermost frame outside torch and the standard library */
	struct tn_line user; /* innermost frame of the program itself, when that is another one; else file is NULL */
	size_t alike;        /* the same set of sizes so many times (24 layers); 1 when it is not made of equal parts */
	bool layers;         /* made by modules inside of others; then `alike` counts these layers, or is 1 */
	bool in_module;      /* made within a call of a module */
	tn_stack stack;      /* of the largest block; 0: none */
	const char *label;   /* what most of it is ("exp_avg, exp_avg_sq float32"), or NULL; owned by the moment */
};

struct tn_moment {
	int device;
	int64_t time_us;
	uint64_t reserved, allocated, requested; /* of PyTorch's allocator on that device; requested of live tensors */
	uint64_t largest_free_block;
	uint64_t by_category[TN_CATEGORIES]; /* parameters to cached; adds up to `reserved`. The others are 0 */
	uint64_t of_training; /* of the activations: those that the trace saw being made outside of evaluations */
	bool inferred;        /* without metadata: categories are guessed from stacks and lifetimes */
	uint64_t named_bytes; /* of `requested`: those with a line */
	struct tn_line at;    /* of the allocation that made the moment; of an OOM, the work that asked */
	struct tn_line at_user;
	int64_t step;      /* -1: unknown */
	const char *phase; /* NULL: unknown; belongs to the moment */
	struct tn_holding *holders;
	size_t holder_count;
	char *labels; /* storage of the labels */
};

void tn__moment_free(struct tn_moment *moment);

#endif
