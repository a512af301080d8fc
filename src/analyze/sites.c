/* SPDX-License-Identifier: Apache-2.0
 *
 * What was alive in a state, joined by category and stack.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/history.h"
#include "base/error.h"

static int
compare_places(const struct tn_site *one, const struct tn_site *other)
{
	if (one->category != other->category)
		return one->category < other->category ? -1 : 1;
	if (one->origin.stack != other->origin.stack)
		return one->origin.stack < other->origin.stack ? -1 : 1;
	return (one->origin.at.backward > other->origin.at.backward) -
	       (one->origin.at.backward < other->origin.at.backward);
}

static int
by_place(const void *left, const void *right)
{
	const struct tn_site *one = left, *other = right;
	int order = compare_places(one, other);
	return order ? order : (one->bytes < other->bytes) - (one->bytes > other->bytes);
}

static int
by_bytes(const void *left, const void *right)
{
	const struct tn_site *one = left, *other = right;
	if (one->bytes != other->bytes)
		return one->bytes > other->bytes ? -1 : 1;
	return compare_places(one, other);
}

static size_t
join(struct tn_site *sites, size_t count)
{
	size_t kept = 0;
	if (count)
		qsort(sites, count, sizeof(*sites), by_place);
	for (size_t index = 0; index < count; index++) {
		if (kept && compare_places(&sites[kept - 1], &sites[index]) == 0) {
			sites[kept - 1].bytes += sites[index].bytes;
			sites[kept - 1].blocks++;
		} else {
			sites[kept++] = sites[index];
		}
	}
	if (kept)
		qsort(sites, kept, sizeof(*sites), by_bytes);
	return kept;
}

/* A block of before the trace belongs to no phase. */
static bool
was_made_in(const struct tn_analysis *analysis, const struct tn_interval *block, const char *phase)
{
	if (!block->begun)
		return false;
	const struct tn_metadata_phase *found = tn__phase_at(&analysis->metadata, analysis->events.times[block->from - 1]);
	return found && strcmp(found->name, phase) == 0;
}

tn_status
tn__sites_of(const struct tn_analysis *analysis, const struct tn_part_list *parts, uint32_t state, const char *phase,
             struct tn_site **sites, size_t *count)
{
	size_t alive = 0, filled = 0;
	for (size_t index = 0; index < parts->count; index++)
		alive += tn__is_alive(&analysis->blocks.intervals[parts->items[index].interval], state);
	struct tn_site *list = malloc((alive + 1) * sizeof(*list));
	TN_RETURN_IF(!list, TN_NO_MEMORY, "no host memory for %zu blocks", alive);
	for (size_t index = 0; index < parts->count; index++) {
		const struct tn_part *part = &parts->items[index];
		const struct tn_interval *block = &analysis->blocks.intervals[part->interval];
		if (tn__is_alive(block, state) && (!phase || was_made_in(analysis, block, phase)))
			list[filled++] = (struct tn_site){ .bytes = part->bytes,
				                               .blocks = 1,
				                               .origin = tn__origin_of_interval(analysis, block),
				                               .label = part->label,
				                               .category = part->category };
	}
	*count = join(list, filled);
	*sites = list;
	return TN_OK;
}
