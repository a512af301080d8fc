/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings that need no trace: from what the program called or was warned of, and from the words of the error that ended
 * it. Two tables.
 */
#include <string.h>

#include "report/report.h"
#include "supervise/internal.h"
#include "verdict/model_fill.h"

#define MIB ((int64_t)1 << 20)

static const struct usage_warning {
	const char *what; /* as the guest calls it */
	enum tn_finding_id id;
	int64_t least_bytes;
	const char *format; /* one %s: a size */
} usage[] = {
	{ "pin_memory", TN_FINDING_pinned_host_memory, 256 * MIB,
	  "%s of the computer's memory was pinned here: each tensor takes the next power of two, and cannot be swapped out" },
	{ "tensor_of_a_tensor", TN_FINDING_tensor_of_a_tensor, 0,
	  "torch.tensor() of a tensor makes a second copy of it on the card" },
	{ "memory_cached", TN_FINDING_memory_cached, 0, "torch.cuda.memory_cached() has gone by another name since 2019" },
};

static const struct {
	const char *words; /* of the exception */
	enum tn_finding_id id;
	const char *what;
} errors[] = {
	{ "does not require grad and does not have a grad_fn", TN_FINDING_backward_without_graph,
	  "backward() on a loss that was computed without a graph" },
	{ "mat1 and mat2 shapes cannot be multiplied", TN_FINDING_shapes_do_not_match,
	  "a layer expects a different number of features than it gets" },
};

/* The entry of a usage_warning with the most bytes; of equals the first. */
static const struct tn_counted *
worst_of(const struct tn_counted_list *list, const char *what)
{
	const struct tn_counted *worst = NULL;
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].name, what) == 0 && (worst == NULL || list->items[i].bytes > worst->bytes))
			worst = &list->items[i];
	return worst;
}

static void
add_habit(const struct usage_warning *usage_warning, struct tn_report *report)
{
	const struct tn_counted *worst = worst_of(&report->usage, usage_warning->what);
	char size[32];
	if (worst == NULL || worst->bytes < usage_warning->least_bytes)
		return;
	tn__human_bytes(worst->bytes, size);
	const char *where = strstr(usage_warning->format, "%s");
	int before = where != NULL ? (int)(where - usage_warning->format) : (int)strlen(usage_warning->format);
	tn__report_add_finding(report, usage_warning->id, worst->bytes > 0 ? worst->bytes : TN_NO_FIGURE, &worst->place,
	                       NULL, "%.*s%s%s", before, usage_warning->format, where != NULL ? size : "",
	                       where != NULL ? where + 2 : "");
}

void
tn__add_usage_warnings(struct tn_report *report)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]) && report->exception != NULL; i++)
		if (strstr(report->exception, errors[i].words) != NULL)
			tn__report_add_finding(report, errors[i].id, TN_NO_FIGURE, report->exception_at, NULL, "%s",
			                       errors[i].what);
	for (size_t i = 0; i < sizeof(usage) / sizeof(usage[0]); i++)
		add_habit(&usage[i], report);
}
