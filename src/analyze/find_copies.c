/* SPDX-License-Identifier: Apache-2.0
 *
 * A second copy of the model on the card (an average of its weights, a reference model), by owner and shapes or by sizes;
 * else what copy.deepcopy made: of what is to be saved, say. Layers that are copied to build a model are the model.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/findings.h"
#include "base/error.h"

#define LEAST ((uint64_t)256 << 20)

static bool
is_same_line(const struct tn_line *one, const struct tn_line *other)
{
	return one->file && other->file && one->line == other->line && strcmp(one->file, other->file) == 0;
}

static bool
is_copy(const struct tn_look_around *around, const struct tn_site *site)
{
	uint8_t traits = around->analysis->traits[site->origin.stack];
	return (traits & TN_STACK_COPY) && !(traits & (TN_STACK_BUILD | TN_STACK_MODULE));
}

static bool
lasts(const struct tn_site *site)
{
	return site->category == TN_CATEGORY_parameters || site->category == TN_CATEGORY_optimizer_state;
}

/* What the metadata or the sizes say to be a second copy of the model. */
static tn_status
labelled_copies(const struct tn_look_around *around, uint64_t *bytes, struct tn_line *at)
{
	const struct tn_analysis *analysis = around->analysis;
	struct tn_piece *pieces = calloc(around->parts->count + 1, sizeof(*pieces));
	size_t count = 0;
	uint64_t most = 0;
	TN_RETURN_IF(!pieces, TN_NO_MEMORY, "no host memory for %zu blocks", around->parts->count);
	for (size_t index = 0; index < around->parts->count; index++) {
		const struct tn_part *part = &around->parts->items[index];
		const struct tn_interval *block = &analysis->blocks.intervals[part->interval];
		if (tn__is_alive(block, around->state))
			pieces[count++] = (struct tn_piece){ .bytes = part->bytes,
				                                 .origin = tn__origin_of_interval(analysis, block),
				                                 .label = part->label,
				                                 .category = part->category };
	}
	tn_status status = tn__label_pieces(analysis, pieces, count);
	for (size_t index = 0; index < count && status == TN_OK; index++) {
		if (!pieces[index].label || strcmp(pieces[index].label, tn__label_of_copy) != 0)
			continue;
		*bytes += pieces[index].bytes;
		if (pieces[index].bytes > most) {
			most = pieces[index].bytes;
			*at = tn__line_of_origin(&pieces[index].origin);
		}
	}
	free(pieces);
	return status;
}

/* What copy.deepcopy made, where nothing says what it is a copy of. */
static void
deep_copies(const struct tn_look_around *around, uint64_t *bytes, struct tn_line *at)
{
	const struct tn_site *largest = NULL;
	uint64_t copied = 0, model = 0;
	for (size_t index = 0; index < around->site_count; index++) {
		const struct tn_site *site = &around->sites[index];
		if (!largest && is_copy(around, site)) {
			largest = site;
			*at = tn__line_of_origin(&site->origin);
		}
	}
	for (size_t index = 0; index < around->site_count && largest; index++) {
		const struct tn_site *site = &around->sites[index];
		struct tn_line its = tn__line_of_origin(&site->origin);
		if (is_copy(around, site) && is_same_line(&its, at))
			copied += site->bytes;
		else if (lasts(site))
			model += site->bytes;
	}
	*bytes = copied <= model + model / 10 ? copied : 0;
}

tn_status
tn__find_copies(const struct tn_look_around *around, struct tn_trace_findings *list)
{
	uint64_t bytes = 0;
	struct tn_line at = { 0 };
	char a[40];
	TN_FORWARD_IF_ERROR(labelled_copies(around, &bytes, &at));
	bool named = bytes > 0;
	if (!named)
		deep_copies(around, &bytes, &at);
	for (size_t index = 0; index < list->count;
	     index++) /* a checkpoint that is being loaded is as large as the model */
		if (list->items[index].id == TN_FINDING_checkpoint_on_card && list->items[index].bytes >= bytes)
			return TN_OK;
	if (!tn__is_worth_saying(around, bytes, LEAST, 10))
		return TN_OK;
	tn__found_size(bytes, a);
	struct tn_trace_finding *found = named ? tn__found(
												 list, TN_FINDING_model_copy, bytes,
												 "a second copy of the model, %s, is on the card and is not trained", a)
	                                       : tn__found(list, TN_FINDING_model_copy, bytes,
	                                                   "copy.deepcopy put a copy of %s on the card", a);
	if (found) {
		found->avoidable = true;
		found->at = at;
	}
	return TN_OK;
}
