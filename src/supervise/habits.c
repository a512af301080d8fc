/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings that need no trace: from what the program called or was warned of, and from the words of the error that ended
 * it. Two tables.
 */
#include <string.h>

#include "verdict/advice.h"
#include "report/report.h"
#include "supervise/internal.h"

#define MIB ((int64_t)1 << 20)

static const struct habit {
	const char *what; /* as the guest calls it: the finding's id, unless `id` says otherwise */
	const char *id;
	enum tn_severity severity;
	int64_t least_bytes;
	const char *format; /* one %s: a size */
	const char *advice; /* ids of the table of advice */
} habits[] = {
	{ "pin_memory", "pinned_host_memory", TN_SEVERITY_HINT, 256 * MIB,
	  "%s of the computer's memory was pinned here: each tensor takes the next power of two, and cannot be swapped out",
	  "pin_few pin_by_loader" },
	{ "tensor_of_a_tensor", NULL, TN_SEVERITY_WARNING, 0,
	  "torch.tensor() of a tensor makes a second copy of it on the card",
	  "tensor_itself" },
	{ "memory_cached", NULL, TN_SEVERITY_WARNING, 0, "torch.cuda.memory_cached() has gone by another name since 2019",
	  "memory_reserved" },
};

static const struct {
	const char *words; /* of the exception */
	const char *id, *what, *advice;
} errors[] = {
	{ "does not require grad and does not have a grad_fn", "backward_without_graph",
	  "backward() on a loss that was computed without a graph",
	  "keep_the_graph" },
	{ "mat1 and mat2 shapes cannot be multiplied", "shapes_do_not_match",
	  "a layer expects another number of features than it gets",
	  "lazy_linear" },
};

/* The entry of a habit with the most bytes; of equals the first. */
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
add_habit(const struct habit *habit, struct tn_report *report)
{
	const struct tn_counted *worst = worst_of(&report->habits, habit->what);
	char size[32];
	if (worst == NULL || worst->bytes < habit->least_bytes)
		return;
	tn__human_bytes(worst->bytes, size);
	const char *where = strstr(habit->format, "%s");
	int before = where != NULL ? (int)(where - habit->format) : (int)strlen(habit->format);
	tn__report_advise(report, tn__report_add_finding(report, habit->id != NULL ? habit->id : habit->what, habit->severity,
	                                          worst->bytes > 0 ? worst->bytes : TN_NO_FIGURE, &worst->place, NULL,
	                                          "%.*s%s%s", before, habit->format, where != NULL ? size : "",
	                                          where != NULL ? where + 2 : ""),
	           habit->advice);
}

void
tn__add_habits(struct tn_report *report)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]) && report->exception != NULL; i++)
		if (strstr(report->exception, errors[i].words) != NULL)
			tn__report_advise(report, tn__report_add_finding(report, errors[i].id, TN_SEVERITY_ERROR, TN_NO_FIGURE,
			                                          report->exception_at, NULL, "%s", errors[i].what),
			           errors[i].advice);
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
		add_habit(&habits[i], report);
}
