/* SPDX-License-Identifier: Apache-2.0
 *
 * One moment from two accounts: the ledger's, which holds every byte of the device but knows only who took it, and that
 * of PyTorch's allocator, which knows what its own bytes are for. What neither explains is `other`.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "verdict/model_fill.h"

#define MOST_HOLDERS 4096

static int64_t
known(int64_t figure)
{
	return figure == TN_NO_FIGURE ? 0 : figure;
}

void
tn__report_set_split(struct tn_report_moment *moment, const struct tn_report_split *split)
{
	moment->split = *split;
	moment->device_bytes = split->program == TN_NO_FIGURE
	                           ? TN_NO_FIGURE
	                           : known(split->context) + known(split->program) + known(split->libraries) +
	                                 known(split->communication) + known(split->other_processes);
	moment->by_category[TN_CATEGORY_other] = split->program;
	moment->by_category[TN_CATEGORY_context] = split->context;
	moment->by_category[TN_CATEGORY_libraries] = split->libraries;
	moment->by_category[TN_CATEGORY_other_processes] = split->other_processes;
	moment->by_category[TN_CATEGORY_communication] = known(split->communication);
}

bool
tn__report_is_told(const struct tn_report_moment *moment)
{
	return moment->detailed || moment->split.context != TN_NO_FIGURE;
}

static char *
copied(const char *text)
{
	return text != NULL && text[0] != '\0' ? strdup(text) : NULL;
}

static struct tn_place *
place_of(const struct tn_line *line)
{
	return line->file != NULL ? tn__report_new_place(line->file, line->line, line->function, line->backward) : NULL;
}

static tn_status
take_holders(struct tn_report_moment *moment, const struct tn_moment *pytorch)
{
	size_t count = pytorch->holder_count < MOST_HOLDERS ? pytorch->holder_count : MOST_HOLDERS;
	if (count == 0)
		return TN_OK;
	moment->holders = calloc(count, sizeof(*moment->holders));
	TN_RETURN_IF(moment->holders == NULL, TN_NO_MEMORY, "out of host memory");
	for (size_t i = 0; i < count; i++) {
		const struct tn_holding *from = &pytorch->holders[i];
		moment->holders[i] = (struct tn_report_holder){
			.category = from->category,
			.bytes = (int64_t)from->bytes,
			.blocks = (int64_t)from->blocks,
			.at = { copied(from->at.file), from->at.file != NULL ? from->at.line : TN_NO_FIGURE,
			        copied(from->at.function), from->at.backward },
			.alike = from->alike > 0 ? (int64_t)from->alike : 1,
			.layers = from->layers,
			.in_module = from->in_module,
			.what = copied(from->label),
		};
	}
	moment->holder_count = count;
	return TN_OK;
}

/* Everything that is the program's by the ledger, but not by its allocator. */
static tn_status
rest_of(const struct tn_report_moment *moment, const struct tn_moment *pytorch, int64_t *rest)
{
	*rest = TN_NO_FIGURE;
	if (moment->split.program == TN_NO_FIGURE)
		return TN_OK;
	*rest = moment->split.program - (int64_t)pytorch->reserved;
	TN_RETURN_IF(*rest < 0, TN_STATE,
	             "PyTorch's record tells of %" PRIu64 " bytes, the device held %" PRId64 " for the program",
	             pytorch->reserved, moment->split.program);
	return TN_OK;
}

tn_status
tn__report_join(struct tn_report_moment *moment, const struct tn_moment *pytorch)
{
	uint64_t sum = 0;
	int64_t rest;
	for (int i = 0; i < TN_CATEGORIES; i++)
		sum += pytorch->by_category[i];
	TN_RETURN_IF(sum != pytorch->reserved, TN_STATE,
	             "the categories add up to %" PRIu64 " bytes, PyTorch had reserved %" PRIu64, sum, pytorch->reserved);
	TN_FORWARD_IF_ERROR(rest_of(moment, pytorch, &rest));
	TN_FORWARD_IF_ERROR(take_holders(moment, pytorch));
	for (int i = 0; i < TN_CATEGORY_context; i++)
		moment->by_category[i] = (int64_t)pytorch->by_category[i];
	moment->by_category[TN_CATEGORY_communication] += known(moment->split.communication);
	moment->by_category[TN_CATEGORY_other] = rest == TN_NO_FIGURE
	                                             ? TN_NO_FIGURE
	                                             : (int64_t)pytorch->by_category[TN_CATEGORY_other] + rest;
	moment->activations_of_training = (int64_t)pytorch->of_training;
	moment->detailed = true;
	moment->inferred = pytorch->inferred;
	moment->largest_free_block_bytes = (int64_t)pytorch->largest_free_block;
	moment->at = place_of(&pytorch->at);
	moment->step = pytorch->step;
	moment->phase = copied(pytorch->phase);
	return TN_OK;
}
