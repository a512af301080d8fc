/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies on the card that copy.deepcopy made: of the model (an average of its weights, a reference model), or of what is
 * to be saved. Layers that are copied to build a model are the model.
 */
#include <string.h>

#include "analyze/findings.h"

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

tn_status
tn__find_copies(const struct tn_look_around *around, struct tn_found_list *list)
{
	const struct tn_site *largest = NULL;
	uint64_t copied = 0, model = 0;
	struct tn_line at = {0};
	char a[40];
	for (size_t index = 0; index < around->site_count; index++) {
		const struct tn_site *site = &around->sites[index];
		if (!largest && is_copy(around, site)) {
			largest = site;
			at = tn__line_of_origin(&site->origin);
		}
	}
	for (size_t index = 0; index < around->site_count && largest; index++) {
		const struct tn_site *site = &around->sites[index];
		struct tn_line its = tn__line_of_origin(&site->origin);
		if (is_copy(around, site) && is_same_line(&its, &at))
			copied += site->bytes;
		else if (lasts(site))
			model += site->bytes;
	}
	if (!tn__is_worth_saying(around, copied, LEAST, 10) || copied > model + model / 10)
		return TN_OK;
	struct tn_found *found = tn__found(list, "model_copy", TN_WEIGHT_WARNING, copied,
	                                   "copy.deepcopy put a copy of %s on the card", tn__found_size(copied, a));
	if (found) {
		found->avoidable = true;
		found->at = at;
		found->advice = "make the copy on the CPU (.cpu(), map_location=\"cpu\"), or in 16 bits";
	}
	return TN_OK;
}
