/* SPDX-License-Identifier: Apache-2.0
 *
 * What the bytes of one block are for: what the metadata claim of it, the earlier category of the order where several do.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/labels.h"
#include "base/error.h"

/* doc/format/metadata.md: a byte is the first of these that claims it. */
static const uint8_t order[] = { TN_CATEGORY_gathered,        TN_CATEGORY_parameters,    TN_CATEGORY_gradients,
	                             TN_CATEGORY_optimizer_state, TN_CATEGORY_communication, TN_CATEGORY_temporaries,
	                             TN_CATEGORY_inputs,          TN_CATEGORY_activations,   TN_CATEGORY_workspaces };

/* Where claims of a category begin or end. */
struct tn_edge {
	uint64_t offset;
	int8_t change;
	uint8_t category;
};

static int
compare_edges(const void *left, const void *right)
{
	const struct tn_edge *one = left, *other = right;
	return (one->offset > other->offset) - (one->offset < other->offset);
}

size_t
tn__claims_of(const struct tn_analysis *analysis, size_t count, uint32_t interval, const struct tn_claim **first)
{
	size_t low = 0, high = count, end;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (analysis->claims[middle].interval < interval)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < count && analysis->claims[end].interval == interval;)
		end++;
	*first = &analysis->claims[low];
	return end - low;
}

static tn_status
list_edges(const struct tn_claim *claims, size_t count, struct tn_scratch *scratch)
{
	scratch->budget.limit = UINT64_MAX;
	TN_FORWARD_IF_ERROR(
		tn__grow(&scratch->budget, &scratch->edges, &scratch->capacity, 2 * count, sizeof(*scratch->edges)));
	for (size_t index = 0; index < count; index++) {
		const struct tn_claim *claim = &claims[index];
		scratch->edges[2 * index] = (struct tn_edge){ claim->offset, 1, claim->category };
		scratch->edges[2 * index + 1] = (struct tn_edge){ claim->offset + claim->bytes, -1, claim->category };
	}
	qsort(scratch->edges, 2 * count, sizeof(*scratch->edges), compare_edges);
	return TN_OK;
}

static int
first_open(const size_t *open)
{
	for (size_t index = 0; index < sizeof(order); index++) {
		if (open[order[index]])
			return order[index];
	}
	return -1;
}

/* Gives each stretch between two edges to the first category that claims it. */
static void
share_out(const struct tn_edge *edges, size_t count, struct tn_parts *parts)
{
	size_t open[TN_CATEGORIES] = { 0 };
	for (size_t index = 0; index + 1 < count; index++) {
		open[edges[index].category] += (size_t)(ptrdiff_t)edges[index].change;
		int category = first_open(open);
		if (category >= 0)
			parts->bytes[category] += edges[index + 1].offset - edges[index].offset;
	}
}

/* The label of the largest claim; of claims of a size, the first one's, but what is said of a module gives way: its parameters may be
 * found to be a copy's later, or to be kept by an optimizer alone. */
static void
take_labels(const struct tn_claim *claims, size_t count, struct tn_parts *parts)
{
	uint64_t largest[TN_CATEGORIES] = { 0 };
	for (size_t index = 0; index < count; index++) {
		uint8_t category = claims[index].category;
		const char *known = parts->labels[category];
		uint64_t least = known && tn__module_of_label(known) && !tn__module_of_label(claims[index].label)
		                     ? largest[category]
		                     : largest[category] + 1;
		if (claims[index].bytes < least || !*claims[index].label)
			continue;
		largest[category] = claims[index].bytes;
		parts->labels[category] = claims[index].label;
	}
}

tn_status
tn__split_interval(const struct tn_analysis *analysis, uint32_t interval, struct tn_scratch *scratch,
                   struct tn_parts *parts)
{
	const struct tn_claim *claims;
	uint64_t rest = analysis->blocks.intervals[interval].requested;
	*parts = (struct tn_parts){ 0 };
	if (!analysis->marked) {
		parts->bytes[analysis->guesses[interval].category] = rest;
		return TN_OK;
	}
	size_t count = tn__claims_of(analysis, analysis->claim_count, interval, &claims);
	if (count == 1) {
		parts->bytes[claims->category] = claims->bytes;
	} else if (count > 1) {
		TN_FORWARD_IF_ERROR(list_edges(claims, count, scratch));
		share_out(scratch->edges, 2 * count, parts);
	}
	take_labels(claims, count, parts);
	for (size_t category = 0; category < TN_CATEGORIES; category++)
		rest -= parts->bytes[category];
	bool bucket = rest && tn__made_by_ddp(analysis, analysis->blocks.intervals[interval].stack);
	parts->bytes[bucket ? TN_CATEGORY_communication : TN_CATEGORY_temporaries] += rest;
	return TN_OK;
}

void
tn__scratch_free(struct tn_scratch *scratch)
{
	free(scratch->edges);
	*scratch = (struct tn_scratch){ 0 };
}
