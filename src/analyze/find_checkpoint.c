/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint on the card: what a file was loaded into, and what a model or an optimizer copies from it and does not keep
 * (doc/design/0035-then.md). Before load_state_dict the CPU would have done; after it nothing reads the bytes any more.
 */
#include <string.h>

#include "analyze/findings.h"

#define LEAST ((uint64_t)64 << 20)
#define PART 20
#define MOST_TIMES 4 /* a checkpoint has the model, and two numbers of an optimizer for each of its own: more is data */

/* As the hook calls them (python/tonnage/guest/_tonnage_guest/loaded.py). */
static const char checkpoint[] = "loaded checkpoint", state[] = "loaded optimizer state";

struct sum {
	uint64_t bytes, most;
	struct tn_line at; /* of the largest */
};

static void
add(const struct tn_look_around *around, const struct tn_part *part, struct sum *sum)
{
	const struct tn_interval *block = &around->analysis->blocks.intervals[part->interval];
	sum->bytes += part->bytes;
	if (part->bytes <= sum->most)
		return;
	struct tn_origin origin = tn__origin_of_interval(around->analysis, block);
	sum->at = tn__line_of_origin(&origin);
	sum->most = part->bytes;
}

static void
add_sums(struct sum *sum, const struct sum *other)
{
	if (other->most > sum->most) {
		sum->at = other->at;
		sum->most = other->most;
	}
	sum->bytes += other->bytes;
}

/* Every load_state_dict that took from a file on the card was begun before the moment. */
static bool
is_over(const struct tn_look_around *around)
{
	const struct tn_metadata_call *call = tn__call_between(&around->analysis->metadata, "load_state_dict", 0,
	                                                       INT64_MAX);
	return call && tn__state_at(around->analysis, call->time) <= around->state;
}

static struct tn_trace_finding *
tell(struct tn_trace_findings *list, enum tn_finding_id id, const struct sum *sum, const char *sure, const char *words)
{
	char size[40];
	struct tn_trace_finding *found = tn__found(list, id, sum->bytes, "%s %s", tn__found_size(sum->bytes, size), words);
	if (!found)
		return NULL;
	found->avoidable = true;
	found->at = sum->at;
	found->sure = sure;
	return found;
}

static bool
is_one_line(const struct tn_line *one, const struct tn_line *other)
{
	return one->file && other->file && one->line == other->line && strcmp(one->file, other->file) == 0;
}

tn_status
tn__find_checkpoint(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	struct sum held = { 0 }, twice = { 0 }, loading = { 0 };
	uint64_t model = 0;
	for (size_t index = 0; index < around->parts->count; index++) {
		const struct tn_part *part = &around->parts->items[index];
		const struct tn_interval *block = &around->analysis->blocks.intervals[part->interval];
		if (!tn__is_alive(block, around->state))
			continue;
		if (part->category == TN_CATEGORY_parameters)
			model += part->bytes;
		if (part->category != TN_CATEGORY_temporaries)
			continue;
		if (part->label && strcmp(part->label, state) == 0)
			add(around, part, &twice);
		else if (part->label && strcmp(part->label, checkpoint) == 0)
			add(around, part, &held);
		else if (!part->label && around->analysis->traits[block->stack] & TN_STACK_LOAD)
			add(around, part, &loading);
	}
	bool over = is_over(around), ends = around->state == around->analysis->events.count;
	if (!over) { /* nothing has taken all of it yet */
		add_sums(&held, &twice);
		twice = (struct sum){ 0 };
	}
	bool alone = held.bytes == 0 && twice.bytes == 0 && around->analysis->marked;
	if (alone && ends && loading.bytes <= MOST_TIMES * model && tn__is_worth_saying(around, loading.bytes, LEAST, PART))
		tell(list, TN_FINDING_checkpoint_on_card, &loading, "if it is what the model is to take over",
		     "of a file are loaded onto the card beside the model");
	struct tn_trace_finding *model_part = NULL, *state_part = NULL;
	if (tn__is_worth_saying(around, held.bytes, LEAST, PART))
		model_part = tell(list, over ? TN_FINDING_checkpoint_held : TN_FINDING_checkpoint_on_card, &held, NULL,
		                  over
		                      ? "of a loaded checkpoint are still on the card, although load_state_dict has copied them"
		                      : "of a checkpoint are loaded onto the card, only to be copied there by load_state_dict");
	if (tn__is_worth_saying(around, twice.bytes, LEAST, PART))
		state_part = tell(
			list, TN_FINDING_optimizer_state_twice, &twice, NULL,
			"of optimizer state are on the card twice: as they were loaded, and as the optimizer's own copy");
	if (model_part && state_part && is_one_line(&held.at, &twice.at)) { /* parts of one file, which go together */
		model_part->beside = twice.bytes;
		state_part->beside = held.bytes;
	}
	return TN_OK;
}
