/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors that the metadata call by a name that is a finding by itself.
 */
#include <string.h>

#include "analyze/findings.h"

#define LEAST ((uint64_t)64 << 20)

static const struct kind {
	enum tn_finding_id id;
	const char *label;
	uint8_t category;
	const char *words; /* behind the size */
	const char *call;
} kinds[] = {
	{ TN_FINDING_deleted_but_held, "held by an optimizer alone", TN_CATEGORY_parameters,
	  "of parameters belong to no model any more: an optimizer still holds them, and its state", "deleted" },
	{ TN_FINDING_pruning_masks, "pruning masks", TN_CATEGORY_temporaries,
	  "of masks are stored beside the weights that they prune: pruning makes a model larger while it is trained",
	  NULL },
	{ TN_FINDING_zero_buckets, "DeepSpeed's bucket", TN_CATEGORY_communication,
	  "are DeepSpeed's buckets for gradients: reduce_bucket_size numbers each, however few the model has", NULL },
};

static void
find(const struct tn_look_around *around, const struct kind *kind, struct tn_trace_findings *list)
{
	const struct tn_analysis *analysis = around->analysis;
	uint64_t bytes = 0, most = 0;
	struct tn_line at = { 0 };
	char a[40];
	for (size_t index = 0; index < around->parts->count; index++) {
		const struct tn_part *part = &around->parts->items[index];
		const struct tn_interval *block = &analysis->blocks.intervals[part->interval];
		if (part->category != kind->category || !part->label || strcmp(part->label, kind->label) != 0 ||
		    !tn__is_alive(block, around->state))
			continue;
		bytes += part->bytes;
		if (part->bytes > most) {
			struct tn_origin origin = tn__origin_of_interval(analysis, block);
			at = tn__line_of_origin(&origin);
			most = part->bytes;
		}
	}
	if (!tn__is_worth_saying(around, bytes, LEAST, 20))
		return;
	struct tn_trace_finding *found = tn__found(list, kind->id, bytes, "%s %s", tn__found_size(bytes, a), kind->words);
	if (!found)
		return;
	struct tn_line call = { 0 };
	if (kind->call)
		call = tn__line_of_call(analysis, kind->call, 0, INT64_MAX);
	found->avoidable = true;
	found->at = call.file ? call : at;
}

tn_status
tn__find_labelled(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	for (size_t index = 0; index < sizeof(kinds) / sizeof(kinds[0]); index++)
		find(around, &kinds[index], list);
	return TN_OK;
}
