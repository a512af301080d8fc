/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of rules, and what they share.
 */
#include "analyze/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "message/message.h" /* tn__message_size */

/* Most telling first: findings of one weight stay in this order. */
static tn_rule *const rules[] = {
	tn__find_growth,
	tn__find_zeroing,
	tn__find_evaluation_graph,
	tn__find_labelled,
	tn__find_copies,
	tn__find_buckets,
	tn__find_made_anew,
	tn__find_resident_data,
	tn__find_segment_churn,
	tn__find_fragmentation,
	tn__find_unused_cache,
	tn__find_gradients_in_forward,
	tn__find_foreach,
	tn__find_workspaces,
	tn__find_pinned,
	tn__find_churn,
};

struct tn_found *
tn__found(struct tn_found_list *list, const char *id, enum tn_weight weight, uint64_t bytes, const char *format, ...)
{
	va_list arguments;
	if (list->count == TN_MOST_FOUND)
		return NULL;
	struct tn_found *found = &list->items[list->count++];
	*found = (struct tn_found){.id = id, .weight = weight, .bytes = bytes};
	va_start(arguments, format);
	vsnprintf(found->what, sizeof(found->what), format, arguments);
	va_end(arguments);
	return found;
}

const char *
tn__found_size(uint64_t bytes, char buffer[40])
{
	return tn__message_size(bytes, buffer);
}

struct tn_site_sum
tn__sum_sites(const struct tn_look_around *around, tn_site_question *wanted)
{
	struct tn_site_sum sum = {0};
	for (size_t index = 0; index < around->site_count; index++) { /* largest first */
		const struct tn_site *site = &around->sites[index];
		if (!wanted(around->analysis, site))
			continue;
		sum.bytes += site->bytes;
		sum.largest = sum.largest ? sum.largest : site;
	}
	return sum;
}

bool
tn__is_worth_saying(const struct tn_look_around *around, uint64_t bytes, uint64_t least, uint64_t part)
{
	return bytes >= least && bytes >= around->analysis->reserved[around->state] / part;
}

struct tn_line
tn__line_of_origin(const struct tn_origin *origin)
{
	return origin->user.file ? origin->user : origin->at;
}

struct tn_line
tn__line_of_call(const struct tn_analysis *analysis, const char *name, int64_t from, int64_t until)
{
	const struct tn_mark_call *call = tn__call_between(&analysis->marks, name, from, until);
	return call ? (struct tn_line){.file = call->file, .function = call->function, .line = call->line} :
	              (struct tn_line){0};
}

struct tn_line
tn__line_of_stack(const struct tn_analysis *analysis, tn_stack stack)
{
	struct tn_origin origin = tn__origin_of_stack(analysis, stack);
	return tn__line_of_origin(&origin);
}

static tn_status
ask_all(struct tn_look_around *around, struct tn_found_list *list)
{
	for (size_t state = 0; state <= around->analysis->events.count; state++) {
		uint64_t reserved = around->analysis->reserved[state];
		around->peak = reserved > around->peak ? reserved : around->peak;
	}
	TN_FORWARD_IF_ERROR(tn__layout_of(around->analysis, around->state, &around->layout));
	TN_FORWARD_IF_ERROR(
		tn__sites_of(around->analysis, around->parts, around->state, &around->sites, &around->site_count));
	for (size_t index = 0; index < sizeof(rules) / sizeof(rules[0]); index++)
		TN_FORWARD_IF_ERROR(rules[index](around, list));
	return TN_OK;
}

tn_status
tn__find_all(const struct tn_analysis *analysis, const struct tn_part_list *parts, uint32_t state,
             struct tn_found_list *list)
{
	struct tn_look_around around = {.analysis = analysis, .parts = parts, .state = state};
	list->count = 0;
	tn_status status = ask_all(&around, list);
	tn__layout_free(&around.layout);
	free(around.sites);
	return status;
}
