/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rules share.
 */
#include "analyze/findings.h"

#include <stdarg.h>
#include <stdio.h>

#include "message/message.h" /* tn__message_size */

struct tn_trace_finding *
tn__found(struct tn_trace_findings *list, enum tn_finding_id id, uint64_t bytes, const char *format, ...)
{
	va_list arguments;
	if (list->count == TN_MOST_TRACE_FINDINGS)
		return NULL;
	struct tn_trace_finding *found = &list->items[list->count++];
	*found = (struct tn_trace_finding){ .id = id, .bytes = bytes };
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
	struct tn_site_sum sum = { 0 };
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
	const struct tn_metadata_call *call = tn__call_between(&analysis->metadata, name, from, until);
	return call ? (struct tn_line){ .file = call->file, .function = call->function, .line = call->line }
	            : (struct tn_line){ 0 };
}

struct tn_line
tn__line_of_stack(const struct tn_analysis *analysis, tn_stack stack)
{
	struct tn_origin origin = tn__origin_of_stack(analysis, stack);
	return tn__line_of_origin(&origin);
}
