/* SPDX-License-Identifier: Apache-2.0
 *
 * Data that stays on the device: tensors of the program itself that were there before the first forward pass began, are
 * neither parameters nor their state, and still live. As many and as large as the parameters, they are a copy of the
 * model.
 */
#include <string.h>

#include "analyze/findings.h"

#define LEAST ((uint64_t)512 << 20)

struct resident {
	uint64_t bytes;
	size_t blocks;
	struct tn_line at;
};

/* The state in which the first forward pass began; that of the end when none did. */
static uint32_t
first_forward(const struct tn_analysis *analysis)
{
	for (size_t index = 0; index < analysis->metadata.phases_count; index++) {
		if (strcmp(analysis->metadata.phases[index].name, "forward") == 0)
			return tn__state_at(analysis, analysis->metadata.phases[index].time);
	}
	return (uint32_t)analysis->events.count;
}

static bool
is_resident(const struct tn_look_around *around, const struct tn_part *part, uint32_t before)
{
	const struct tn_interval *block = &around->analysis->blocks.intervals[part->interval];
	uint8_t traits = around->analysis->traits[block->stack];
	bool known = (part->label && *part->label) || tn__made_by_ddp(around->analysis, block->stack);
	bool kind = !known && (part->category == TN_CATEGORY_inputs || part->category == TN_CATEGORY_temporaries);
	return kind && tn__is_alive(block, around->state) && block->begun && block->from <= before &&
	       (traits & TN_STACK_PYTHON) && !(traits & (TN_STACK_MODULE | TN_STACK_OPTIMIZER | TN_STACK_BUILD));
}

static struct tn_line
line_of(const struct tn_look_around *around, const struct tn_part *part)
{
	struct tn_origin origin = tn__origin_of_interval(around->analysis,
	                                                 &around->analysis->blocks.intervals[part->interval]);
	return tn__line_of_origin(&origin);
}

/* The line with the most of it: one pass to find a candidate by its largest block, one to sum it up. */
static struct resident
sum_up(const struct tn_look_around *around, uint32_t before)
{
	struct resident lines[32] = { { 0 } }, worst = { 0 };
	size_t count = 0;
	for (size_t index = 0; index < around->parts->count; index++) {
		const struct tn_part *part = &around->parts->items[index];
		size_t line = 0;
		if (!is_resident(around, part, before))
			continue;
		struct tn_line at = line_of(around, part);
		while (line < count && (lines[line].at.file != at.file || lines[line].at.line != at.line))
			line++;
		if (!at.file || (line == count && count == sizeof(lines) / sizeof(lines[0])))
			continue;
		count += line == count;
		lines[line].at = at;
		lines[line].bytes += part->bytes;
		lines[line].blocks++;
		if (lines[line].bytes > worst.bytes)
			worst = lines[line];
	}
	return worst;
}

static struct resident
parameters_at(const struct tn_look_around *around)
{
	struct resident sum = { 0 };
	for (size_t index = 0; index < around->site_count; index++) {
		if (around->sites[index].category != TN_CATEGORY_parameters)
			continue;
		sum.bytes += around->sites[index].bytes;
		sum.blocks += around->sites[index].blocks;
	}
	return sum;
}

/* What is known to be a copy of the model, or a checkpoint, is told as that. */
static bool
is_told(const struct tn_trace_findings *list, const struct tn_line *at)
{
	for (size_t index = 0; index < list->count; index++) {
		const struct tn_trace_finding *found = &list->items[index];
		bool known = found->id == TN_FINDING_model_copy || found->id == TN_FINDING_checkpoint_on_card;
		if (known && found->at.file && found->at.line == at->line && strcmp(found->at.file, at->file) == 0)
			return true;
	}
	return false;
}

tn_status
tn__find_resident_data(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	const struct tn_analysis *analysis = around->analysis;
	uint64_t reserved = analysis->reserved[around->state];
	char a[40];
	if (!analysis->marked)
		return TN_OK;
	struct resident worst = sum_up(around, first_forward(analysis)), model = parameters_at(around);
	if (worst.bytes < LEAST || worst.bytes < reserved / 5 || is_told(list, &worst.at))
		return TN_OK;
	bool copy = model.blocks >= 4 && worst.blocks >= model.blocks && worst.blocks <= 2 * model.blocks &&
	            worst.bytes >= model.bytes / 2 && worst.bytes <= model.bytes + model.bytes / 4;
	struct tn_trace_finding *found = copy ? tn__found(list, TN_FINDING_model_copy, worst.bytes,
	                                                  "a second model's worth of tensors, %s, stays on the card",
	                                                  tn__found_size(worst.bytes, a))
	                                      : tn__found(
												list, TN_FINDING_dataset_on_device, worst.bytes,
												"%s of data, created before the first forward pass, stays on the card",
												tn__found_size(worst.bytes, a));
	if (found) {
		found->avoidable = true;
		found->at = worst.at;
		found->sure = "inferred from when and where it was allocated";
	}
	return TN_OK;
}
