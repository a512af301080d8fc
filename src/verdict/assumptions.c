/* SPDX-License-Identifier: Apache-2.0
 *
 * Assumptions of a report: the list, and what the peak is because of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "verdict/job.h"
#include "verdict/model_fill.h"
#include "verdict/stand_ins.h"

#define MOST_ASSUMPTIONS 256

static struct tn_assumption *
find(struct tn_assumed_list *list, const struct tn_assumption *item)
{
	for (size_t i = 0; i < list->count; i++) {
		struct tn_assumption *there = &list->items[i];
		if (there->place.line == item->place.line && strcmp(there->place.file, item->place.file) == 0 &&
		    strcmp(there->what, item->what) == 0)
			return there;
	}
	return NULL;
}

tn_status
tn__report_add_assumption(struct tn_report *report, const struct tn_assumption *item)
{
	struct tn_assumed_list *list = &report->assumptions;
	struct tn_assumption *there = find(list, item), copy = *item;
	if (there != NULL) {
		there->reads += item->reads;
		there->endless |= item->endless;
		there->after_peak &= item->after_peak;
		return TN_OK;
	}
	if (list->count == MOST_ASSUMPTIONS)
		return TN_OK;
	TN_RETURN_IF(!tn__array_add(&list->items, list->count, sizeof(*list->items)), TN_NO_MEMORY, "out of host memory");
	copy.place.file = strdup(item->place.file);
	copy.place.function = NULL;
	copy.what = strdup(item->what);
	copy.value = strdup(item->value);
	if (copy.place.file == NULL || copy.what == NULL || copy.value == NULL) {
		free(copy.place.file);
		free(copy.what);
		free(copy.value);
		return tn__fail(TN_NO_MEMORY, "out of host memory");
	}
	list->items[list->count++] = copy;
	list->passed = list->count;
	return TN_OK;
}

void
tn__assumptions_free(struct tn_assumed_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].place.file);
		free(list->items[i].what);
		free(list->items[i].value);
	}
	free(list->items);
	*list = (struct tn_assumed_list){ .bytes = TN_NO_FIGURE, .share = 1 };
}

bool
tn__assumption_is_count(const struct tn_assumption *item)
{
	return strcmp(item->what, "count") == 0;
}

/* Longer inputs that are known make it a lower bound, whatever else hangs on it.
 * Counts of which nobody knows what hangs on them make a bound as well: the peak must not claim more than is known. */
void
tn__report_set_bound(struct tn_report *report)
{
	const struct tn_assumed_list *list = &report->assumptions;
	bool hang = list->bytes > 0, fewer = report->facts.never_updated || !tn__job_is_proven(report);
	for (size_t i = 0; i < list->count; i++) {
		const struct tn_assumption *item = &list->items[i];
		fewer |= item->chosen && tn__assumption_is_count(item);
		hang |= item->bytes > 0 ||
		        (item->bytes == TN_NO_FIGURE && list->bytes == TN_NO_FIGURE && tn__assumption_is_count(item));
	}
	fewer |= report->inputs.longer ||
	         tn__stand_ins_assumed(&report->stand_ins) & (TN_ASSUMED_LENGTHS | TN_ASSUMED_SIZES);
	report->bound = hang && list->share > 0.5 && !fewer ? TN_PEAK_UPPER
	                : hang || fewer                     ? TN_PEAK_LOWER
	                                                    : TN_PEAK_MEASURED;
}
